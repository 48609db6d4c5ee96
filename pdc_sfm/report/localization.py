"""Where the queries were found: errors, inliers, and what was retrieved for each."""

from __future__ import annotations

from typing import Any

import numpy as np

from pdc_sfm.errors import UserError
from pdc_sfm.matches.select import subsample_spatially
from pdc_sfm.matches.types import RawMatches
from pdc_sfm.pair_picture import match_picture
from pdc_sfm.report.charts import dots
from pdc_sfm.report.html import Markup, Section, figure, picture, table, text
from pdc_sfm.report.run_data import Missing, Run
from pdc_sfm.store.pair_lists import read_retrieval

MOST_QUERIES = 24  # with pictures; the table has all
MOST_LINES = 50  # more would hide the pictures
BEST = 5
THUMB = 200


def localization(run: Run) -> Section:
    """Errors of all queries, and the inliers of each drawn."""
    content = run.json("localization.json")
    queries, thresholds = content["queries"], content.get("thresholds", [])
    section = Section("localization", "Localization")
    sift: dict[str, Any] = {}
    try:
        sift = run.json("sift.json").get("queries", {})
    except Missing:
        pass  # said in the list of missing files
    section.content += _chart(queries, sift, [t[0] for t in thresholds]) + _table(queries, sift, thresholds)
    try:
        logs = run.json("results.txt_logs.json")["queries"]
    except Missing as missing:
        section.missing.append(f"inliers: {missing}")
        return section
    drawn = [
        _inliers(run, name, query, logs[name], section)
        for name, query in list(queries.items())[:MOST_QUERIES]
        if name in logs
    ]
    section.content += f'<div class="queries">{"".join(drawn)}</div>'
    if len(queries) > MOST_QUERIES:
        section.content += f"<p class=note>{len(queries) - MOST_QUERIES} more queries are not drawn.</p>"
    return section


def retrieval(run: Run) -> Section:
    """Each query with its best images and the number of matches that ranked them."""
    path = run.folder / "retrieval.txt"
    if not path.is_file():
        raise Missing("retrieval.txt is not there")
    lists: dict[str, list[tuple[str, str]]] = {q: [(n, "") for n in names] for q, names in read_retrieval(path).items()}
    section = Section("retrieval", "Retrieval")
    unmatched: list[str] = []
    if (run.folder / "retrieval.json").is_file():
        content = run.json("retrieval.json")
        unmatched = content.get("unmatched", [])
        lists |= {query: [(row[0], _counted(row[1])) for row in rows] for query, rows in content["queries"].items()}
    for query, rows in list(lists.items())[:MOST_QUERIES]:
        try:
            section.content += _strip(run, query, rows)
        except UserError as error:
            section.missing.append(str(error))
    if unmatched:
        section.content += f"<p class=note>No match at all: {text(', '.join(unmatched))}</p>"
    if len(lists) > MOST_QUERIES:
        section.content += f"<p class=note>{len(lists) - MOST_QUERIES} more queries are not shown.</p>"
    return section


def _counted(matches: int | None) -> str:
    """Matches that ranked an image; none were counted of one that the first stages chose alone."""
    return "" if matches is None else f"{matches:,} matches"


def _strip(run: Run, query: str, rows: list[tuple[str, str]]) -> str:
    cells = [
        f'<figure class="asked">{picture(run.thumb(query, THUMB), query)}<figcaption>{text(query)}</figcaption></figure>'
    ]
    for name, said in rows[:BEST]:
        caption = f"<figcaption>{text(name)}<br>{text(said)}</figcaption>"
        cells.append(f"<figure>{picture(run.thumb(name, THUMB), name)}{caption}</figure>")
    return f'<div class="strip">{"".join(cells)}</div>'


def _chart(queries: dict[str, Any], sift: dict[str, Any], marks: list[float]) -> str:
    known = any(query.get("metres") is not None for query in queries.values())
    if not known:
        return ""
    rows: dict[str, dict[str, float | None]] = {}
    for name, query in queries.items():
        rows[name] = {"ours": query.get("metres")}
        if name in sift:
            rows[name]["SIFT"] = sift[name].get("metres")
    chart = dots(rows, "position error in metres; thresholds dashed", marks)
    return (
        f"<figure class=half>{chart}<figcaption>An empty circle at the right: no pose was found.</figcaption></figure>"
    )


def _table(queries: dict[str, Any], sift: dict[str, Any], thresholds: list[list[float]]) -> str:
    head = ["query", "kind", "position", "rotation", "inliers", "SIFT position", "SIFT rotation", "SIFT inliers"]
    rows = []
    for name, query in queries.items():
        other = sift.get(name)
        rows.append(
            [
                name,
                query.get("group", ""),
                *_cells(query, thresholds),
                *(_cells(other, thresholds) if other else ["-"] * 3),
            ]
        )
    return table(head if sift else head[:5], [row if sift else row[:5] for row in rows], 2)


def _cells(query: dict[str, Any], thresholds: list[list[float]]) -> list[object]:
    """Position, rotation, inliers; the color says which threshold is met."""
    metres, degrees = query.get("metres"), query.get("degrees")
    inliers = f"{query.get('inliers', 0):,}"
    if not query.get("localized"):
        return [Markup(f'<span class="bad" title="{text(query.get("reason", ""))}">not found</span>'), "-", inliers]
    if metres is None or degrees is None:
        return ["found", "-", inliers]
    met = [k for k, (far, turned) in enumerate(thresholds) if metres <= far and degrees <= turned]
    grade = f"grade{met[0]}" if met else "bad"
    return [Markup(f'<span class="{grade}">{metres:.3f} m</span>'), f"{degrees:.2f}°", inliers]


def _inliers(run: Run, name: str, query: dict[str, Any], log: dict[str, Any], section: Section) -> str:
    shown = np.array(log.get("shown") or [], float).reshape(-1, 4)
    said = f"{log.get('inliers', 0):,} inliers of {log.get('correspondences', 0):,} correspondences"
    if query.get("metres") is not None:
        said += f"; {query['metres']:.3f} m, {query['degrees']:.2f}° off"
    elif not query.get("localized"):
        said += f"; not localized: {query.get('reason') or log.get('reason', '')}"
    try:
        if len(shown):
            images = [run.image(name), run.image(log["best_image"])]
            matches = RawMatches(shown[:, :2], shown[:, 2:], np.ones(len(shown)))
            few = subsample_spatially(matches, MOST_LINES, images[0].shape[1::-1])
            drawn = match_picture(images[0], images[1], few, 760)
            said += f"; {len(few)} drawn with {log['best_image']}"
        else:
            drawn = run.thumb(name, 640)
    except UserError as error:
        section.missing.append(str(error))
        return ""
    kind = "" if len(shown) else " class=lost"
    return f"<div{kind}>{figure(drawn, f'{name}: {said}')}</div>"
