"""The steps of a run: each is done once, timed, and told in one line."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pdc_sfm.demo.table import format_table
from pdc_sfm.pipeline.steps import Steps
from pdc_sfm.run_folder import RunFolder


class Chain:
    """A chain of steps (`pipeline.steps.Steps`) with times and results for the record of the run."""

    def __init__(self, folder: RunFolder, say: Callable[[str], None] = print):
        self.folder, self._say = folder, say
        self._steps = Steps(folder.path, say=lambda _: None)

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
        step = self.folder.step(name)
        self._say(f"{name:<18} {step['summary']:<72} " + (f"{step['seconds']:6.1f} s" if now else "done before"))

    def finish(self, rows: list[dict[str, Any]], report: bool) -> None:
        """Record the table, write the report, show both."""
        self.folder.finish(rows)
        written = self._report() if report else None
        seconds = sum(step["seconds"] for step in self.folder.record["steps"])
        self._say(f"{'total':<18} {'':<72} {seconds:6.1f} s\n\n{format_table(rows)}\n")
        self._say(f"report: {written}" if written else f"results: {self.folder.path}")

    def _report(self) -> Path | None:
        if importlib.util.find_spec("pdc_sfm.report") is None:
            return None
        from pdc_sfm.report import write_report

        start = time.monotonic()
        path = write_report(self.folder.path)
        self.folder.note_step("report", time.monotonic() - start, path.name)
        self._say(f"{'report':<18} {path.name:<72} {self.folder.step('report')['seconds']:6.1f} s")
        return path
