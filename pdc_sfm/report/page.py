"""The page around the sections: head, navigation, style, scripts. Nothing is loaded from elsewhere."""

from __future__ import annotations

import datetime
import importlib.util
from collections.abc import Sequence
from importlib import resources
from pathlib import Path

from pdc_sfm import __version__
from pdc_sfm.report.html import Section, text
from pdc_sfm.report.run_data import Run

KINDS = {"scene": "the built-in scene", "images": "a folder of photographs"}


def page(run: Run, sections: list[Section], missing: list[str]) -> str:
    """The whole document of a run."""
    return document(run.folder.resolve().name, _subtitle(run), sections, missing)


def document(name: str, subtitle: str, sections: list[Section], missing: Sequence[str] = ()) -> str:
    """A page of sections, complete in one file."""
    title = f"pdc-sfm: {name}"
    links = "".join(f'<a href="#{s.key}">{text(s.title)}</a>' for s in sections)
    navigation, kind = (f"<nav>{links}</nav>", "") if len(sections) > 1 else ("", ' class="single"')
    body = "".join(f'<section id="{s.key}"><h2>{text(s.title)}</h2>{s.content}</section>' for s in sections)
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{text(title)}</title>
<link rel="icon" href="data:,">
<style>{_resource("page.css")}</style>
</head>
<body{kind}>
<header><div class="top"><h1>{text(title)}</h1>
<button id="theme" type="button" title="dark or light">◐</button></div>
<p class="note">{text(subtitle)}</p>
{navigation}</header>
<main>{_missing(missing)}{body}</main>
<footer>Written by pdc-sfm {text(__version__)}. This file needs no network.</footer>
<dialog id="large"><img alt=""></dialog>
{_scripts('id="model-data"' in body)}
</body>
</html>
"""


def _subtitle(run: Run) -> str:
    what = KINDS.get(run.record.get("kind", ""), "a run")
    record = run.folder / "run.json"
    when = datetime.datetime.fromtimestamp((record if record.is_file() else run.folder).stat().st_mtime)
    return f"{what[0].upper()}{what[1:]}, {run.image_count} images, {when:%Y-%m-%d %H:%M}"


def _missing(lines: Sequence[str]) -> str:
    if not lines:
        return ""
    items = "".join(f"<li>{text(line)}</li>" for line in lines)
    return f'<section class="missing" id="missing"><h2>Not shown</h2><ul>{items}</ul></section>'


def _scripts(with_model: bool) -> str:
    own = f"<script>{_resource('page.js')}</script>"
    plotly = plotly_file() if with_model else None
    if plotly is None:
        return own
    return f"<script>{plotly.read_text(encoding='utf-8')}</script>\n{own}"


def plotly_file() -> Path | None:
    """plotly's script, found without importing plotly; None if it is not installed (a still picture is shown then)."""
    spec = importlib.util.find_spec("plotly")
    if spec is None or spec.origin is None:
        return None
    path = Path(spec.origin).parent / "package_data" / "plotly.min.js"
    return path if path.is_file() else None


def _resource(name: str) -> str:
    return resources.files("pdc_sfm.report").joinpath(name).read_text(encoding="utf-8")
