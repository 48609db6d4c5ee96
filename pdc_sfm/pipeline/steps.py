"""Steps of a long run: a rerun skips finished steps and repeats those whose result would change."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pdc_sfm.errors import OtherSettingsError
from pdc_sfm.files import remove_folder, write_text

log = logging.getLogger(__name__)


class Steps:
    """A chain of steps whose outputs lie in one folder.

    A step is done if its outputs exist and were made by the same chain: the same settings of this step and of all steps
    before it. What was done is recorded after each step, so a run may be stopped anywhere.
    """

    def __init__(self, folder: Path, level: int = logging.INFO):
        self._record = folder / "steps.json"
        self._level = level  # of what it says in the log
        self._chain = ""
        try:
            self._done: dict[str, str] = json.loads(self._record.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            self._done = {}

    def run(
        self, name: str, settings: Any, outputs: Sequence[Path], work: Callable[[], None], rest: Sequence[Path] = ()
    ) -> None:
        """Do `work` unless it is done; it must write its outputs at once or be able to go on with half-done ones.

        `rest` are such half-done ones. What `work` refuses to go on with because other settings made it is removed, and
        nothing else: after any other error everything is kept.
        """
        text = json.dumps([self._chain, name, settings], sort_keys=True, default=str)
        self._chain = hashlib.sha256(text.encode()).hexdigest()
        if self._done.get(name) == self._chain and all(path.exists() for path in outputs):
            log.log(self._level, "%s: done before", name)
            return
        log.log(self._level, "%s ...", name)
        self._done.pop(name, None)
        self._save()
        while True:
            try:
                work()
                break
            except OtherSettingsError as error:
                if not _remove_other(error.path, outputs, rest):
                    raise
        self._done[name] = self._chain
        self._save()

    def _save(self) -> None:
        write_text(self._record, json.dumps(self._done, indent=1) + "\n")


def _remove_other(refused: Path | None, outputs: Sequence[Path], rest: Sequence[Path]) -> bool:
    """Remove what was refused, if it is this step's, and the outputs that were made of it; whether there was any."""
    if refused is None or not any(refused == own or own in refused.parents for own in (*outputs, *rest)):
        return False
    found = [path for path in (refused, *outputs) if path.exists()]
    for path in found:
        if path.is_dir():
            remove_folder(path)
        else:
            path.unlink(missing_ok=True)
    return bool(found)
