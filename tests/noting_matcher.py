"""For workers in other processes: a matcher that writes down its work and dies when told to, and a plain work object."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from fake_matcher import FakeMatcher

from pdc_sfm.errors import ImageError


class NotingMatcher(FakeMatcher):
    """Writes down which process matched which pair. Kills its process at the pair `dies_of`, the first time."""

    identity = "FakeMatcher"

    def __init__(self, notes: Path, dies_of: tuple[str, str] | None = None, seconds: float = 0.0):
        super().__init__()
        self.notes, self.dies_of, self.seconds = Path(notes), dies_of, seconds

    def match(self, code0, code1):
        note(self.notes, f"{os.getpid()} {code0.name} {code1.name}")
        if (code0.name, code1.name) == self.dies_of and not self.notes.with_suffix(".dead").exists():
            self.notes.with_suffix(".dead").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(self.seconds)
        return super().match(code0, code1)


class Doubling:
    """Doubles numbers, is killed by 13, and refuses 7 as a bad image."""

    def double(self, numbers, item):
        some = numbers[item.start : item.stop]
        if 13 in some:
            os.kill(os.getpid(), signal.SIGKILL)
        if 7 in some:
            raise ImageError("seven is no image")
        return [2 * number for number in some]

    def process(self, shared, item):
        return os.getpid()


def note(path: Path, line: str) -> None:
    with open(path, "a") as file:
        file.write(f"{line}\n")
