"""The first look: what was made, how good it is, how long it took; and at the end settings and versions."""

from __future__ import annotations

import json
from typing import Any

from pdc_sfm.errors import UserError
from pdc_sfm.pictures import tile
from pdc_sfm.report.html import Markup, Section, figure, table, text, tiles
from pdc_sfm.report.run_data import Missing, Run
from pdc_sfm.store.pair_lists import read_pairs

THUMB = 220  # pixels of the longer side of an image in doubt
MOST_LOST = 30  # images named that the model lacks
SUMMARY = "summary.json"  # of the model


def overview(run: Run) -> Section:
    """Figures and the table of results."""
    section = Section("overview", "Overview", _verdict(run))
    rows = run.record.get("metrics") or []
    if rows:
        section.content += tiles(_figures(rows[0])) + _metrics_table(rows)
    else:
        section.content += tiles(_model_figures(run, section))
    section.content += _remarks(run)
    if run.record.get("steps"):
        section.content += _steps(run.record["steps"])
    if run.record and not run.record.get("finished"):
        section.missing.append("the run is not finished: the same command continues it")
    return section


def _verdict(run: Run) -> str:
    """What the map says of itself, before anything that makes it look good."""
    try:
        verdict = run.json(f"sfm/{SUMMARY}").get("verdict")
    except Missing:
        return ""
    if not verdict:
        return ""
    if verdict["kind"] == "consistent":
        return '<p class="verdict">The map is <b class="good">consistent</b>: its verified pairs agree with it.</p>'
    reasons = "".join(f"<li>{text(reason)}</li>" for reason in verdict["reasons"])
    parts = "".join(f"<li>{len(part)} images: {text(_some(part))}</li>" for part in verdict["parts"])
    parts = f"<p>Parts that hold together:</p><ol>{parts}</ol>" if parts else ""
    images = f"<p>In doubt: {text(_some(verdict['images']))}</p>" if verdict["images"] else ""
    title = "This map is doubtful" if verdict["kind"] == "doubtful" else "This map falls apart"
    shown = _doubted_pairs(run, verdict.get("pairs", []))
    return f'<div class="verdict alarm"><h3>{title}</h3><ul>{reasons}</ul>{shown}{images}{parts}</div>'


def _doubted_pairs(run: Run, pairs: list[list[str]]) -> str:
    """The pairs in question as pictures: whether two things look alike is seen at once."""
    shown = []
    for what, first, second in pairs:
        try:
            sheet = tile([[run.thumb(name, THUMB) for name in (first, second)]])
        except UserError:
            continue
        shown.append(figure(sheet, f"{what}: {first} - {second}"))
    return f'<div class="pairs">{"".join(shown)}</div>' if shown else ""


def _some(names: list[str]) -> str:
    return ", ".join(names[:MOST_LOST]) + (f" and {len(names) - MOST_LOST} more" if len(names) > MOST_LOST else "")


def settings(run: Run) -> Section:
    """Everything that made the results."""
    if not run.record:
        raise Missing("run.json is not there")
    section = Section("settings", "Settings and versions")
    versions, machine = run.record.get("versions", {}), run.record.get("machine", {})
    section.content += table(["package", "version"], versions.items(), 9)
    section.content += table(["machine", ""], machine.items(), 9)
    flat = table(["setting", "value"], flatten(run.record.get("settings", {})), 9)
    section.content += f"<details><summary>All settings</summary>{flat}</details>"
    return section


def flatten(settings: dict[str, Any], where: str = "") -> list[tuple[str, str]]:
    """Nested settings as the `key=value` words that would set them."""
    rows: list[tuple[str, str]] = []
    for key, value in settings.items():
        name = f"{where}.{key}" if where else str(key)
        if isinstance(value, dict):
            rows += flatten(value, name)
        else:
            rows.append((name, value if isinstance(value, str) else json.dumps(value)))
    return rows


def _figures(row: dict[str, Any]) -> list[tuple[str, str]]:
    figures = [
        ("images registered", f"{row['registered']} of {row['images']}"),
        ("points", f"{row['points']:,}"),
        ("mean track length", f"{row['track_length']:.2f}"),
        ("reprojection error", f"{row['reprojection_error']:.2f} px"),
    ]
    for group, query in (
        row.get("queries") or {}
    ).items():  # a pose that was found may be a wrong one: the truth counts
        within = round(query["recall"][1] * query["count"])
        figures.append((f"{group} queries within 0.5 m, 5°", f"{within} of {query['count']}"))
    return figures


def _model_figures(run: Run, section: Section) -> list[tuple[str, str]]:
    """Without a finished run: what the model alone says."""
    from pdc_sfm.colmap.io.models import summarize

    figures = [("images", str(run.image_count))]
    try:
        summary = summarize(run.model)
    except Missing:
        return figures
    return [
        *figures,
        ("images registered", str(summary.registered)),
        ("points", f"{summary.points:,}"),
        ("mean track length", f"{summary.mean_track_length:.2f}"),
    ]


def _metrics_table(rows: list[dict[str, Any]]) -> str:
    groups = list(dict.fromkeys(group for row in rows for group in row.get("queries") or {}))
    head = ["method", "registered", "points", "track length", "error px", *(f"{g}: recall %" for g in groups)]
    body = []
    for row in rows:
        recalls = [_recall((row.get("queries") or {}).get(group)) for group in groups]
        body.append(
            [
                row["method"],
                f"{row['registered']} / {row['images']}",
                f"{row['points']:,}",
                f"{row['track_length']:.2f}",
                f"{row['reprojection_error']:.2f}",
                *recalls,
            ]
        )
    note = (
        "<p class=note>Recall: share of queries within 0.25 m and 2°, 0.5 m and 5°, 5 m and 10°.</p>" if groups else ""
    )
    return table(head, body) + note


def _recall(query: dict[str, Any] | None) -> str:
    return "-" if not query else " / ".join(f"{100 * share:.0f}" for share in query["recall"])


def _remarks(run: Run) -> str:
    """What mapping said: why images are not in the model, and what else one should know."""
    try:
        remarks = run.json(f"sfm/{SUMMARY}").get("remarks") or []
    except Missing:
        remarks = []
    items = "".join(f"<li>{text(remark[:1].upper() + remark[1:])}</li>" for remark in remarks)
    said = f'<div class="lost"><b>Remarks</b><ul>{items}</ul></div>' if items else ""
    return said if any(remark.startswith("not registered") for remark in remarks) else said + _unregistered(run)


def _unregistered(run: Run) -> str:
    """Which images the model lacks: whoever made it looks at these first."""
    try:
        model = run.model
        names = sorted({name for pair in read_pairs(run.folder / "pairs.txt") for name in pair})
    except (Missing, UserError):
        return ""
    seen = {model.image(i).name for i in model.reg_image_ids() if model.image(i).num_points3D > 0}
    lost = [name for name in names if name not in seen]
    if not lost:
        return ""
    return f'<p class="lost"><b class="bad">Not in the model:</b> {text(_some(lost))}</p>'


def _count(steps: list) -> str:
    return f"{len(steps)} step{'s' if len(steps) != 1 else ''}"


def _steps(steps: list[dict[str, Any]]) -> str:
    total = sum(step["seconds"] for step in steps)
    longest = max(step["seconds"] for step in steps) or 1
    rows = [
        (
            step["name"],
            Markup(f'<i class="bar" style="width:{100 * step["seconds"] / longest:.0f}%"></i>{step["seconds"]:.1f} s'),
            step.get("summary", ""),
        )
        for step in steps
    ]
    body = table(["step", "time", "result"], rows, 9)
    return f'<details class="steps"><summary>{_count(steps)}, {total:.0f} s</summary>{body}</details>'
