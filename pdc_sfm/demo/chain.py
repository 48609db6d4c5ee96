"""The steps of a run: each is done once, timed, and reported in one line."""

from __future__ import annotations

import importlib.util
import logging
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pdc_sfm.pipeline.steps import Steps
from pdc_sfm.run_folder import RunFolder

log = logging.getLogger(__name__)


class Chain:
    """A chain of steps (`pipeline.steps.Steps`) with times and results for the record of the run."""

    def __init__(self, folder: RunFolder):
        self.folder = folder
        self._steps = Steps(folder.path, level=logging.DEBUG)

    def run(
        self, name: str, settings: Any, outputs: Sequence[Path], work: Callable[[], str], rest: Sequence[Path] = ()
    ) -> None:
        """Do a step unless it was done with the same settings; `work` returns what to say about it.

        `rest` are files that it would go on with, unless other settings made them (`Steps.run`).
        """
        now: list[str] = []

        def timed() -> None:
            start = time.monotonic()
            now.append(work())
            self.folder.note_step(name, time.monotonic() - start, now[0])

        self._steps.run(name, settings, outputs, timed, rest)
        self._tell(name, bool(now))

    def finish(self, rows: list[dict[str, Any]], report: bool) -> None:
        """Record the table, write the report."""
        self.folder.finish(rows)
        if report and importlib.util.find_spec("pdc_sfm.report") is not None:
            self._report()
        seconds = sum(step["seconds"] for step in self.folder.record["steps"])
        log.info("%-18s %-72s %6.1f s", "total", "", seconds)

    def _tell(self, name: str, now: bool) -> None:
        step = self.folder.step(name)
        log.info("%-18s %-72s %s", name, step["summary"], f"{step['seconds']:6.1f} s" if now else "done before")

    def _report(self) -> None:
        from pdc_sfm.report import write_report

        start = time.monotonic()
        path = write_report(self.folder.path)
        self.folder.note_step("report", time.monotonic() - start, path.name)
        self._tell("report", True)
