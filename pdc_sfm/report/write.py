"""A run folder to one HTML file: every section on its own, what cannot be shown is said."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pdc_sfm.device import check_device
from pdc_sfm.errors import UserError
from pdc_sfm.files import write_text
from pdc_sfm.report.gallery import ShownPair, gallery, load_shown
from pdc_sfm.report.ground_truth import against_truth
from pdc_sfm.report.html import Section
from pdc_sfm.report.localization import localization, retrieval
from pdc_sfm.report.model3d import model_section
from pdc_sfm.report.overview import overview, settings
from pdc_sfm.report.page import page
from pdc_sfm.report.run_data import Missing, Run
from pdc_sfm.report.statistics import statistics

if TYPE_CHECKING:
    from pdc_sfm.matcher import Matcher

NAME = "report.html"
PAIRS = 6


def write_report(
    run_folder: Path | str, *, pairs: int = PAIRS, matcher: Matcher | None = None, device: str = "auto"
) -> Path:
    """Write `report.html` into the folder of a run and return its path.

    The network runs again for the dense maps of `pairs` pairs, with the run's weights and settings unless a `matcher`
    is given. The report names missing or damaged parts and shows the rest.
    """
    if matcher is None:
        check_device(device)
    run = Run(run_folder)
    shown, unshown = _shown_pairs(run, pairs, matcher, device)
    makers: list[Callable[[], Section]] = [
        lambda: overview(run),
        lambda: model_section(run),
        lambda: statistics(run),
        lambda: gallery(run, shown, unshown, raw_settings_of(run)),
    ]
    if run.has_queries:
        makers.append(lambda: localization(run))
    if run.has_queries or (run.folder / "retrieval.txt").is_file():
        makers.append(lambda: retrieval(run))
    if (run.folder / "depth").is_dir():
        makers.append(lambda: against_truth(run, shown))
    makers.append(lambda: settings(run))
    sections, missing = [], run.missing_parts()
    for make in makers:
        try:
            section = make()
        except Missing as reason:
            missing.append(str(reason))
        except UserError as error:  # a file that is damaged
            missing.append(str(error))
        except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:  # a file of an unexpected shape
            missing.append(f"a part cannot be shown: {type(error).__name__}: {error}")
        else:
            sections.append(section)
            missing += section.missing
    path = run.folder / NAME
    write_text(path, page(run, sections, _distinct(missing)))
    return path


def _shown_pairs(run: Run, count: int, matcher: Matcher | None, device: str) -> tuple[list[ShownPair], str | None]:
    """The pairs of the gallery, and why they lack dense maps if they do."""
    try:
        if not len(run.raw):
            return [], None
    except Missing:
        return [], None
    reason = None
    if matcher is None:
        try:
            matcher = _matcher_of(run, device)
        except UserError as error:
            reason = f"flow and confidence of pairs: {error}"
    try:
        return load_shown(run, count, matcher), reason
    except UserError as error:
        return load_shown(run, count, None), f"flow and confidence of pairs: {error}"


def _matcher_of(run: Run, device: str) -> Matcher:
    """The network and settings that made the run's matches."""
    from pdc_sfm.dense.settings import DenseSettings
    from pdc_sfm.matcher import PairSettings, load_matcher
    from pdc_sfm.settings import from_dict

    made_by = raw_settings_of(run)
    dense = from_dict(DenseSettings, made_by.get("dense", {}))
    return load_matcher(_weights_of(run.record.get("settings", {})), PairSettings(dense=dense), device)


def raw_settings_of(run: Run) -> dict[str, Any]:
    """The settings of the raw matches, if there are any."""
    from pdc_sfm.store.journal import raw_settings

    try:
        return raw_settings(run.folder / "matches.raw")
    except UserError:
        return {}


def _weights_of(settings: Any) -> str | None:
    """The weights named anywhere in a run's settings; None is the built-in model."""
    if not isinstance(settings, dict):
        return None
    if isinstance(settings.get("weights"), str):
        return settings["weights"]
    return next((found for value in settings.values() if (found := _weights_of(value))), None)


def _distinct(lines: list[str]) -> list[str]:
    return list(dict.fromkeys(lines))
