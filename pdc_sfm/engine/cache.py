"""A cache of codes, limited in bytes. The order of use is known, so the code needed latest is evicted (Belady)."""

from __future__ import annotations

import heapq
import re
from collections.abc import Sequence
from typing import Generic, Protocol, TypeVar

from pdc_sfm.errors import SettingsError

NEVER = 1 << 62  # later than any step of a plan
UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}


class Sized(Protocol):
    """What says how much memory it takes."""

    @property
    def nbytes(self) -> int: ...


Code = TypeVar("Code", bound=Sized)


def parse_bytes(text: str) -> int:
    """'8GB', '500 MB', '1.5GiB' or a plain number of bytes."""
    found = re.fullmatch(r"\s*([0-9]*\.?[0-9]+)\s*([KMGT]?)(I?)B?\s*", text.upper())
    if not found or (found[3] and not found[2]):
        raise SettingsError(f"memory={text} is not a size: write for example 8GB or 500MB")
    unit = UNITS[found[2]] if not found[3] else 1024 ** list(UNITS).index(found[2])
    size = float(found[1]) * unit
    if size > 2**62:
        raise SettingsError(f"memory={text} is more than any machine has: write for example 8GB or 500MB")
    return int(size)


class CodeCache(Generic[Code]):
    """Codes by image number, for a known sequence of steps, each using some images.

    `get` and `put` belong to the current step; `finish_step` moves on. Codes that no later step uses are let go.
    """

    def __init__(self, steps: Sequence[Sequence[int]], budget: int):
        self.budget = budget
        self.bytes = 0
        self.hits = 0
        self.misses = 0
        self._steps = steps
        self._step = 0
        self._uses: dict[int, list[int]] = {}  # of each image the steps that use it, latest first
        for step in reversed(range(len(steps))):
            for image in steps[step]:
                self._uses.setdefault(image, []).append(step)
        self._codes: dict[int, Code] = {}
        self._latest: list[tuple[int, int]] = []  # (minus the next use, image), possibly outdated

    def __contains__(self, image: int) -> bool:
        return image in self._codes

    def codes(self) -> list[tuple[int, Code]]:
        """All that is there."""
        return list(self._codes.items())

    def get(self, image: int) -> Code | None:
        """The code of an image of this step, if it is there."""
        code = self._codes.get(image)
        self.hits += code is not None
        self.misses += code is None
        return code

    def put(self, image: int, code: Code) -> None:
        """Keep a code as long as there is room, at the cost of those needed later."""
        if image in self._codes:
            return
        self._codes[image] = code
        self.bytes += code.nbytes
        heapq.heappush(self._latest, (-self._next_use(image), image))
        while self.bytes > self.budget and self._codes:
            self._drop_latest()

    def shrink(self) -> bool:
        """Hold half of what is held from now on; False if there is nothing to let go."""
        if not self._codes:
            return False
        self.budget = self.bytes // 2
        while self.bytes > self.budget:
            self._drop_latest()
        return True

    def finish_step(self) -> None:
        """Go on to the next step."""
        images = self._steps[self._step]
        for image in images:
            self._uses[image].pop()
        self._step += 1
        for image in set(images):
            if image in self._codes:
                if self._uses[image]:
                    heapq.heappush(self._latest, (-self._next_use(image), image))
                else:
                    self._drop(image)

    def _next_use(self, image: int) -> int:
        uses = self._uses.get(image)
        return uses[-1] if uses else NEVER

    def _drop_latest(self) -> None:
        while True:
            use, image = heapq.heappop(self._latest)
            if image in self._codes and -use == self._next_use(image):
                return self._drop(image)

    def _drop(self, image: int) -> None:
        self.bytes -= self._codes.pop(image).nbytes
