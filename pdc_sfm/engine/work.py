"""The work of a worker on blocks of an ordered pair list: read images, encode those not in the cache, match."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from pdc_sfm.engine.cache import CodeCache
from pdc_sfm.engine.reading import ReadAhead
from pdc_sfm.errors import ImageError, SettingsError
from pdc_sfm.images import Photograph, read_photograph
from pdc_sfm.matches.masks import Masks
from pdc_sfm.matches.types import RawMatches
from pdc_sfm.pixels import Size
from pdc_sfm.store.journal import MatchCount
from pdc_sfm.store.pair_lists import Pair
from pdc_sfm.workers import Block

T = TypeVar("T")
LOOK_AHEAD = 256  # steps searched for images to read next
FREE_SHARE = 0.7  # of a device's free memory that codes may fill: a pair needs some too


class PairMatcher(Protocol):
    """What matches pairs, as `pdc_sfm.matcher.Matcher`. Codes have `nbytes`.

    Used if they are there: `begin`, if it is `asynchronous`, or `match_batch`, for several pairs; `free_bytes`, what a device
    has left; `release`, to give back to it what is no longer used; `sees_upright`: `encode` takes a `Photograph`, whose EXIF
    says how it is seen upright, and gives matches in pixels as they are stored.
    """

    def encode(self, image: np.ndarray, name: str) -> Any: ...

    def match(self, code0: Any, code1: Any) -> RawMatches: ...


Matched = RawMatches | MatchCount  # in full, or only how many
MatchMany = Callable[[Sequence[Pair], Sequence[tuple[Any, Any]]], Sequence[Matched | Callable[[], Matched]]]


@dataclass(frozen=True)
class Plan:
    """Pairs in the order in which they are matched."""

    names: list[str]
    pairs: np.ndarray  # (P, 2) numbers of names

    def pair(self, step: int) -> Pair:
        first, second = self.pairs[step]
        return self.names[first], self.names[second]


class FoundMatches(NamedTuple):
    """The matches of a pair, or what is called for them (`Done.finish`)."""

    pair: Pair
    matches: Matched | Callable[[], Matched]
    sizes: tuple[Size, Size]  # (width, height) of both images


@dataclass
class Done:
    """What became of a block."""

    found: list[FoundMatches] = field(default_factory=list)
    skipped: list[Pair] = field(default_factory=list)  # for bad images
    bad: dict[str, str] = field(default_factory=dict)  # image -> what is wrong with it
    encoded: list[str] = field(default_factory=list)
    reused: int = 0  # codes that were in memory
    remarks: list[str] = field(default_factory=list)  # what the user should know

    @property
    def on_its_way(self) -> bool:
        """Whether matches must be waited for."""
        return any(callable(item.matches) for item in self.found)

    def finish(self) -> None:
        """Wait for matches that are still on their way from a device."""
        self.found = [item._replace(matches=item.matches()) if callable(item.matches) else item for item in self.found]

    def __getstate__(self) -> dict[str, Any]:
        self.finish()  # only matches go to another process
        return self.__dict__


class PairWork:
    """One worker: a matcher, the images, and codes in memory, as many as fit.

    The blocks of a share follow each other, so that the cache knows what is needed again, until the share's end.
    """

    def __init__(
        self,
        folder: Path,
        matcher: PairMatcher,
        *,
        memory: int,
        readers: int = 2,
        batch: int = 1,
        strict: bool = False,
        match_many: MatchMany | None = None,
        read: Callable[[Path], Photograph | np.ndarray] = read_photograph,
        masks: Masks | None = None,
    ):
        self._matcher, self._batch, self._strict, self._masks = matcher, batch, strict, masks
        self._match_many = match_many or pairs_together(matcher)
        self._reader = ReadAhead(folder, readers, read)
        self._bad: dict[str, str] = {}
        self._sizes: dict[str, Size] = {}
        self._plan = Plan([], np.zeros((0, 2), np.int64))
        self._cache: CodeCache[Any] = CodeCache([], memory)
        self._first: dict[str, Any] = {}  # the code by which their size was found
        self._step = self._end = self._ahead = 0

    def close(self) -> None:
        self._reader.close()

    def code_bytes(self, names: Sequence[str], _: Any = None) -> tuple[int | None, Done]:
        """The size of the first readable image's code, which tells how many there is room for."""
        done = Done()
        for name in names:
            code = self._encode(name, done)
            if code is not None:
                self._first = {name: code}
                self._limit(done)
                return code.nbytes, done
        return None, done

    def _limit(self, done: Done) -> None:
        """Keep no more codes than the device has room for."""
        free = getattr(self._matcher, "free_bytes", lambda: None)()
        if free is None or self._cache.budget <= (room := int(FREE_SHARE * free)):
            return
        kept = f"{room >> 20} MB of codes are kept, not {self._cache.budget >> 20}"
        done.remarks.append(f"the device has {free >> 20} MB free: {kept}")
        self._cache.budget = room

    def match(self, plan: Plan, block: Block) -> Done:
        """Match the pairs of a block of the plan."""
        done = Done()
        if plan is not self._plan or block.start != self._step or block.stop > self._end:
            self._begin_share(plan, block)
        waiting: list[tuple[Pair, tuple[Any, Any]]] = []
        while self._step < block.stop:
            self._read_ahead()
            pair, codes = plan.pair(self._step), self._codes(done)
            self._cache.finish_step()
            self._step += 1
            if codes is None:
                done.skipped.append(pair)
            else:
                waiting.append((pair, codes))
            if len(waiting) == self._batch or (waiting and self._step == block.stop):
                self._match(waiting, done)
        return done

    def _begin_share(self, plan: Plan, block: Block) -> None:
        """From here on the cache knows the steps up to the share's end. Codes that they need stay."""
        kept = {**self._first, **{self._plan.names[image]: code for image, code in self._cache.codes()}}
        self._cache = CodeCache(plan.pairs[block.start : block.end].tolist(), self._cache.budget)
        if kept:
            numbers = np.unique(plan.pairs[block.start : block.end]).tolist()
            for image in numbers:
                if plan.names[image] in kept:
                    self._cache.put(image, kept[plan.names[image]])
        self._reader.forget()
        self._plan, self._first = plan, {}
        self._step, self._end, self._ahead = block.start, block.end, block.start

    def _read_ahead(self) -> None:
        """Images needed soon begin to be read."""
        self._ahead = max(self._ahead, self._step)
        while self._reader.has_room and self._ahead < min(self._end, self._step + LOOK_AHEAD):
            for image in self._plan.pairs[self._ahead].tolist():
                if image not in self._cache and self._plan.names[image] not in self._bad:
                    self._reader.start(self._plan.names[image])
            self._ahead += 1

    def _codes(self, done: Done) -> tuple[Any, Any] | None:
        """The codes of both images of this step; None if one of them is bad."""
        codes = []
        for image in self._plan.pairs[self._step].tolist():
            if not self._bad.keys().isdisjoint(self._plan.pair(self._step)):
                return None
            code = self._cache.get(image)
            if code is None:
                code = self._encode(self._plan.names[image], done)
                if code is None:
                    return None
                self._cache.put(image, code)
            else:
                done.reused += 1
            codes.append(code)
        return codes[0], codes[1]

    def _encode(self, name: str, done: Done) -> Any | None:
        try:
            image = self._sparing(lambda: self._reader.take(name), name, done)
            pixels = image.pixels if isinstance(image, Photograph) else image
            if self._masks is not None:
                self._masks.check(name, (pixels.shape[1], pixels.shape[0]))
            seen: Any = image if getattr(self._matcher, "sees_upright", False) else pixels
            code = self._sparing(lambda: self._matcher.encode(seen, name), name, done)
        except ImageError as error:
            if self._strict:
                raise
            self._bad[name] = done.bad[name] = str(error)
            return None
        done.encoded.append(name)
        self._sizes[name] = pixels.shape[1], pixels.shape[0]
        return code

    def _match(self, waiting: list[tuple[Pair, tuple[Any, Any]]], done: Done) -> None:
        pairs, codes = [pair for pair, _ in waiting], [codes for _, codes in waiting]
        try:
            found = self._match_many(pairs, codes)
        except Exception as error:
            if not out_of_memory(error):
                raise
            if len(pairs) > 1:
                done.remarks.append(
                    f"memory did not suffice for {len(pairs)} pairs at a time: they are matched one by one"
                )
            found = [self._match_one(pair, code, done) for pair, code in zip(pairs, codes)]
        for pair, matches in zip(pairs, found):
            done.found.append(FoundMatches(pair, matches, (self._sizes[pair[0]], self._sizes[pair[1]])))
        waiting.clear()

    def _match_one(self, pair: Pair, codes: tuple[Any, Any], done: Done) -> Matched | Callable[[], Matched]:
        return self._sparing(lambda: self._match_many([pair], [codes])[0], " ".join(pair), done)

    def _sparing(self, work: Callable[[], T], what: str, done: Done) -> T:
        """Do something; where memory does not suffice, again with half the codes kept, at last with none."""
        while True:
            try:
                return work()
            except Exception as error:
                if not out_of_memory(error):
                    raise
            held = self._cache.bytes
            if not self._cache.shrink():
                raise SettingsError(
                    f"there is not enough memory for {what}: set a lower dense.max_side or dense.min_side, or free some"
                )
            getattr(self._matcher, "release", lambda: None)()
            done.remarks.append(
                f"memory did not suffice: {self._cache.budget >> 20} MB of codes are kept, not {held >> 20}"
            )


def out_of_memory(error: Exception) -> bool:
    """Whether that is what an error says: Python's, torch's of the processor and of a GPU, cuBLAS's and cuDNN's."""
    said = ("out of memory", "can't allocate memory", "not enough memory", "ALLOC_FAILED")
    return isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and any(s in str(error) for s in said))


def pairs_together(matcher: PairMatcher) -> MatchMany:
    """Pairs through `begin` or `match_batch` where the matcher has it, one by one otherwise."""
    begin, together = getattr(matcher, "begin", None), getattr(matcher, "match_batch", None)

    def match(_: Sequence[Pair], codes: Sequence[tuple[Any, Any]]) -> Sequence[Matched | Callable[[], Matched]]:
        if begin is not None and getattr(matcher, "asynchronous", False):
            return begin(codes)
        if together is not None and len(codes) > 1:
            return together(codes)
        return [matcher.match(code0, code1) for code0, code1 in codes]

    return match
