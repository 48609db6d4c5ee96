"""The first stage: matches every pair of a list once, encodes images as rarely as memory allows, writes the journal.

Workers match blocks of the ordered list (`work.py`); this one writer appends what they found, at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pdc_sfm.engine.order import order_pairs
from pdc_sfm.engine.work import Done, Plan
from pdc_sfm.engine.writer import Writer
from pdc_sfm.matches.masks import MaskedMatches
from pdc_sfm.progress import progress
from pdc_sfm.store.journal import RawStore
from pdc_sfm.store.pair_lists import Pair
from pdc_sfm.workers import Pool


@dataclass
class LoopReport:
    """What one run of the loop did."""

    pairs: int = 0  # matched now
    encoded: int = 0  # encodings
    images: int = 0  # distinct images encoded
    bad: dict[str, str] = field(default_factory=dict)  # image -> what is wrong with it
    skipped: list[Pair] = field(default_factory=list)  # pairs left out for it
    remarks: dict[str, None] = field(default_factory=dict)  # what the user should know, in order
    masked: int = 0  # matches that were dropped under masks


def match_on(pool: Pool, pairs: Sequence[Pair], store: RawStore, *, memory: int, bar: Any = None) -> LoopReport:
    """Match the pairs that the store lacks on workers with `PairWork`, each with so many bytes for codes.

    `bar` counts on a progress bar of the caller instead of one of its own.
    """
    loop = _Loop(store, bar)
    todo = [pair for pair in pairs if pair not in store]
    if todo and bar is None:
        with progress(None, "matching", "pair", len(pairs), len(pairs) - len(todo)) as loop.bar:
            loop.run(pool, todo, memory)
    elif todo:
        loop.run(pool, todo, memory)
    return loop.report


class _Loop:
    def __init__(self, store: RawStore, bar: Any):
        self.store, self.bar = store, bar
        self.report = LoopReport()
        self.seen: set[str] = set()
        self.reused = 0

    def run(self, pool: Pool, todo: Sequence[Pair], memory: int) -> None:
        names = list(dict.fromkeys(name for pair in todo for name in pair))
        size, done = pool.call("code_bytes", names)
        self.note(done)
        usable = [pair for pair in todo if self.report.bad.keys().isdisjoint(pair)]
        self.note(Done(skipped=[pair for pair in todo if not self.report.bad.keys().isdisjoint(pair)]))
        if size is not None and memory < 2 * size:
            said = f"memory={memory} bytes holds no two codes of {size}: images are encoded again and again; give more"
            self.report.remarks[said] = None
        if size is not None:
            plan = make_plan(names, usable, max(2, memory // max(1, size)))
            with Writer(self.note) as writer:
                for _, done in pool.run("match", plan, len(usable)):
                    if done.on_its_way:
                        writer.put(done)
                    else:  # what is here is kept before anything else begins: a kill loses nothing that was found
                        writer.wait()
                        self.note(done)

    def note(self, done: Done) -> None:
        """Keep what a block found."""
        done.finish()
        for found in done.found:
            assert not callable(found.matches)
            self.store.append(found.pair, found.matches, found.sizes)
            if isinstance(found.matches, MaskedMatches):
                self.report.masked += found.matches.dropped
        report = self.report
        report.pairs += len(done.found)
        report.encoded += len(done.encoded)
        self.seen.update(done.encoded)
        report.images = len(self.seen)
        report.bad |= done.bad
        report.skipped += done.skipped
        report.remarks |= dict.fromkeys(done.remarks)
        self.reused += done.reused
        self.bar.set_postfix(hits=f"{self.reused / max(1, self.reused + report.encoded):.0%}", refresh=False)
        self.bar.update(len(done.found) + len(done.skipped))


def make_plan(names: list[str], pairs: Sequence[Pair], capacity: int) -> Plan:
    """The pairs ordered for a cache of so many codes."""
    number = {name: i for i, name in enumerate(names)}
    array = np.array([(number[a], number[b]) for a, b in pairs], np.int64).reshape(-1, 2)
    return Plan(names, array[order_pairs(array, capacity)].astype(np.int32))
