"""The first stage: every pair of a list once, each image encoded as rarely as memory allows, results to the journal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from pdc_sfm.engine.cache import CodeCache
from pdc_sfm.engine.order import order_pairs
from pdc_sfm.engine.reading import ReadAhead
from pdc_sfm.errors import ImageError
from pdc_sfm.matches.types import RawMatches
from pdc_sfm.pixels import Size
from pdc_sfm.store.journal import RawStore

Pair = tuple[str, str]
LOOK_AHEAD = 256  # steps searched for images to read next


class Matcher(Protocol):
    """What the loop runs, as `pdc_sfm.matcher.Matcher`. Codes have `nbytes`; `match_batch` is used if it is there."""

    def encode(self, image: np.ndarray, name: str) -> Any: ...

    def match(self, code0: Any, code1: Any) -> RawMatches: ...


MatchMany = Callable[[Sequence[Pair], Sequence[tuple[Any, Any]]], Sequence[RawMatches]]


@dataclass
class LoopReport:
    """What one run of the loop did."""

    pairs: int = 0  # matched now
    encoded: int = 0  # encodings
    images: int = 0  # distinct images encoded
    bad: dict[str, str] = field(default_factory=dict)  # image -> what is wrong with it
    skipped: list[Pair] = field(default_factory=list)  # pairs left out for it


def match_missing(
    pairs: Sequence[Pair],
    folder: Path,
    matcher: Matcher,
    store: RawStore,
    *,
    memory: int,
    readers: int = 2,
    batch: int = 1,
    strict: bool = False,
    show: bool = False,
    match_many: MatchMany | None = None,
) -> LoopReport:
    """Match the pairs that the store lacks. A bad image costs its pairs, or with `strict` ends the run."""
    todo = [pair for pair in pairs if pair not in store]
    with ReadAhead(folder, readers) as reader:
        loop = _Loop(matcher, store, reader, memory, strict, match_many or _match_many(matcher))
        if todo:
            with _progress(len(pairs), len(pairs) - len(todo), show) as bar:
                loop.run(todo, batch, bar)
    return loop.report


class _Loop:
    def __init__(
        self, matcher: Matcher, store: RawStore, reader: ReadAhead, memory: int, strict: bool, match_many: MatchMany
    ):
        self.matcher, self.store, self.reader, self.memory, self.strict = matcher, store, reader, memory, strict
        self.match_many = match_many
        self.report = LoopReport()
        self.sizes: dict[str, Size] = {}

    def run(self, todo: Sequence[Pair], batch: int, bar: Any) -> None:
        names = list(dict.fromkeys(name for pair in todo for name in pair))
        first = self._first_code(names)
        if first is None:
            return self._skip(todo, bar)
        number = {name: i for i, name in enumerate(names)}
        usable = [pair for pair in todo if not self._is_bad(pair)]
        self._skip([pair for pair in todo if self._is_bad(pair)], bar)
        array = np.array([(number[a], number[b]) for a, b in usable], np.int64).reshape(-1, 2)
        plan = [usable[i] for i in order_pairs(array, max(2, self.memory // max(1, first[1].nbytes)))]
        cache: CodeCache[Any] = CodeCache([(number[a], number[b]) for a, b in plan], self.memory)
        cache.put(number[first[0]], first[1])
        waiting: list[tuple[Pair, tuple[Any, Any]]] = []
        for pair in self._reading_ahead(plan, cache, number):
            codes = self._codes(pair, cache, number)
            cache.finish_step()
            if codes is None:
                self._skip([pair], bar)
            else:
                waiting.append((pair, codes))
            if len(waiting) >= batch:
                self._match(waiting, cache, bar)
        self._match(waiting, cache, bar)

    def _reading_ahead(self, plan: Sequence[Pair], cache: CodeCache[Any], number: dict[str, int]) -> Iterator[Pair]:
        """The pairs in order; before each one, images needed soon begin to be read."""
        ahead = 0
        for step, pair in enumerate(plan):
            ahead = max(ahead, step)
            while self.reader.has_room and ahead < min(len(plan), step + LOOK_AHEAD):
                for name in plan[ahead]:
                    if number[name] not in cache and name not in self.report.bad:
                        self.reader.start(name)
                ahead += 1
            yield pair

    def _codes(self, pair: Pair, cache: CodeCache[Any], number: dict[str, int]) -> tuple[Any, Any] | None:
        """The codes of both images; None if one of them is bad."""
        codes = []
        for name in pair:
            if self._is_bad(pair):
                return None
            code = cache.get(number[name])
            if code is None:
                code = self._encode(name)
                if code is None:
                    return None
                cache.put(number[name], code)
            codes.append(code)
        return codes[0], codes[1]

    def _encode(self, name: str) -> Any | None:
        try:
            image = self.reader.take(name)
            code = self.matcher.encode(image, name)
        except ImageError as error:
            if self.strict:
                raise
            self.report.bad[name] = str(error)
            return None
        self.report.encoded += 1
        self.report.images += name not in self.sizes
        self.sizes[name] = image.shape[1], image.shape[0]
        return code

    def _first_code(self, names: Sequence[str]) -> tuple[str, Any] | None:
        """The first readable image and its code, which tells how many codes there is room for."""
        for name in names:
            code = self._encode(name)
            if code is not None:
                return name, code
        return None

    def _match(self, waiting: list[tuple[Pair, tuple[Any, Any]]], cache: CodeCache[Any], bar: Any) -> None:
        pairs = [pair for pair, _ in waiting]
        for pair, matches in zip(pairs, self.match_many(pairs, [codes for _, codes in waiting])):
            self.store.append(pair, matches, (self.sizes[pair[0]], self.sizes[pair[1]]))
        self.report.pairs += len(pairs)
        waiting.clear()
        bar.set_postfix(hits=f"{cache.hits / max(1, cache.hits + cache.misses):.0%}", refresh=False)
        bar.update(len(pairs))

    def _is_bad(self, pair: Pair) -> bool:
        return pair[0] in self.report.bad or pair[1] in self.report.bad

    def _skip(self, pairs: Sequence[Pair], bar: Any) -> None:
        self.report.skipped += pairs
        bar.update(len(pairs))


def _match_many(matcher: Matcher) -> MatchMany:
    """Pairs through `match_batch` where the matcher has it, one by one otherwise."""
    together = getattr(matcher, "match_batch", None)

    def match(_: Sequence[Pair], codes: Sequence[tuple[Any, Any]]) -> Sequence[RawMatches]:
        if together is not None and len(codes) > 1:
            return together(codes)
        return [matcher.match(code0, code1) for code0, code1 in codes]

    return match


def _progress(total: int, done: int, show: bool) -> Any:
    from tqdm import tqdm

    return tqdm(total=total, initial=done, desc="matching", unit="pair", disable=None if show else True, smoothing=0.1)
