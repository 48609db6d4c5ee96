"""What dense.method=auto costs against direct, and which matches it keeps: on a list whose pairs all match upright, on all pairs
of 24 images of which most do not overlap, and on hard pairs, which are searched.

  python benchmarks/adaptive.py
  python benchmarks/adaptive.py --scenes datasets/benchmarks/scenes --lists mixed --methods direct search

Every pair is matched by both, in turn, in one process with one thread; what is compared is processor time, encoding included,
each image once, and where it went. A pair is lost if direct has 100 matches or more of it, and auto less than half of them.
Hard pairs are photographs and themselves turned by 120 degrees and squeezed to 0.4, as seen at 66 degrees.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
from data import DATA, needed

from pdc_sfm.dense.estimator import Estimator
from pdc_sfm.dense.settings import DenseSettings
from pdc_sfm.dense.view_codes import ViewCodes
from pdc_sfm.dense.view_evidence import ViewEvidence
from pdc_sfm.dense.view_search import ViewSearch
from pdc_sfm.dense.views import Shape, View
from pdc_sfm.images import Photograph, list_images, read_photograph
from pdc_sfm.matcher import Matcher, PairSettings, load_matcher

Pairs = list[tuple[Path, Path]]
HARD = Shape(turn=120, squeezed_along=30)  # how the second image of a hard pair is shown
NEAR = 4  # images of a walk that all see the same
EACH, IMAGES = 3, 24  # of each scene, and in all
FOUND = 100  # matches


def upright_pairs(scenes: Path) -> Pairs:
    """The images of fountain-P11 up to four apart."""
    folder = needed(scenes / "fountain-P11/images")
    names = list_images(folder)
    return [(folder / a, folder / b) for k, a in enumerate(names) for b in names[k + 1 : k + 1 + NEAR]]


def mixed_pairs(scenes: Path) -> Pairs:
    """All pairs of three images each of eight scenes, far apart in each."""
    chosen: list[Path] = []
    for folder in sorted(needed(scenes).glob("*/images")):
        names = list_images(folder)
        chosen += [folder / names[int(n)] for n in np.linspace(0, len(names) - 1, EACH)]
    return list(itertools.combinations(chosen[:IMAGES], 2))


def hard_pairs(scenes: Path) -> Pairs:
    """One image of each scene, with itself as it is shown by `HARD`."""
    firsts = [folder / list_images(folder)[0] for folder in sorted(needed(scenes).glob("*/images"))]
    return [(path, path / "hard") for path in firsts]


def read(path: Path) -> Photograph:
    if path.name != "hard":
        return read_photograph(path)
    pixels = read_photograph(path.parent).pixels
    size = pixels.shape[1], pixels.shape[0]
    seen = View.whole(pixels, size, size).on_canvas(max(size), HARD).render()
    return Photograph((255 * seen).round().astype(np.uint8))


LISTS = {"upright": upright_pairs, "mixed": mixed_pairs, "hard": hard_pairs}
STAGES = {  # what a function is called for, less what it calls
    "encoding": (Estimator, "encode"),
    "coarse levels": (Estimator, "coarse"),
    "encoding views": (ViewCodes, "maps"),
    "comparing views": (ViewEvidence, "shortlist"),
    "proposing": (ViewSearch, "propose"),
    "encoding the proposed": (Estimator, "encode_view"),
    "passes by the proposed": (Estimator, "one_pass"),
    "first passes": (Estimator, "field"),
}
_seconds: dict[str, float] = defaultdict(float)
_within: list[str] = []


def watch() -> None:
    """From here on `_seconds` counts the stages."""
    for stage, (owner, name) in STAGES.items():
        setattr(owner, name, _watched(getattr(owner, name), stage))


def _watched(function: Any, stage: str) -> Any:
    @functools.wraps(function)
    def timed(*arguments: Any, **options: Any) -> Any:
        inner = _within[-1:] == ["encoding"]  # an image as it is encoded first is a view too
        _within.append(stage)
        start = time.process_time()
        try:
            return function(*arguments, **options)
        finally:
            _within.pop()
            if not inner:
                spent = time.process_time() - start
                _seconds[stage] += spent
                if _within:
                    _seconds[_within[-1]] -= spent

    return timed


class Timed:
    """A matcher, the processor seconds it took, and what it found."""

    def __init__(self, matcher: Matcher) -> None:
        self.matcher = matcher
        self.stages: dict[str, float] = defaultdict(float)
        self.codes: dict[Path, object] = {}
        self.seconds: dict[str, float] = defaultdict(float)
        self.counts: list[int] = []
        self.times: list[float] = []

    def match(self, pair: tuple[Path, Path]) -> None:
        _seconds.clear()
        for path in pair:
            if path not in self.codes:
                photograph = read(path)
                start = time.process_time()
                self.codes[path] = self.matcher.encode(photograph, str(path))
                self.seconds["encoding"] += time.process_time() - start
        start = time.process_time()
        self.counts.append(len(self.matcher.match(*(self.codes[path] for path in pair))))
        self.times.append(time.process_time() - start)
        self.seconds["matching"] += self.times[-1]
        for stage, seconds in _seconds.items():
            self.stages[stage] += seconds

    @property
    def total(self) -> float:
        return sum(self.seconds.values())


def compare(name: str, pairs: Pairs, methods: list[str], side: int) -> None:
    """Print one list's figures: the second method against the first."""
    first, second = (
        Timed(load_matcher(settings=PairSettings(DenseSettings(min_side=side, method=method)), device="cpu"))
        for method in methods
    )
    for number, pair in enumerate(pairs):
        for one in (first, second) if number % 2 else (second, first):
            one.match(pair)
    before, after = np.array(first.counts), np.array(second.counts)
    found = before >= FOUND
    lost = found & (after < before / 2)
    gained = ~found & (after >= FOUND)
    print(
        f"{name}: {len(pairs)} pairs of {len(first.codes)} images, {found.sum()} with {FOUND} matches by {methods[0]}"
    )
    for one, method in ((first, methods[0]), (second, methods[1])):
        parts = ", ".join(f"{part} {seconds:.1f}" for part, seconds in one.seconds.items())
        print(f"  {method:8} {one.total:7.1f} s ({parts})")
        if sum(one.stages.values()):
            print(f"           {', '.join(f'{stage} {seconds:.1f}' for stage, seconds in one.stages.items())}")
    print(
        f"  {methods[1]} takes {second.total / first.total:.2f} times as long: {first.total / second.total:.2f} times as fast"
    )
    kinds = (
        ("matched by both", found & ~lost),
        ("matched by neither", ~found & ~gained),
        ("lost", lost),
        ("gained", gained),
    )
    for kind, mask in kinds:
        if mask.any():
            ours, theirs = (1000 * np.median(np.array(one.times)[mask]) for one in (second, first))
            kept = f", {after[mask].sum()} of {before[mask].sum()} matches" if before[mask].any() else ""
            print(f"  {kind:19} {mask.sum():4} pairs, median {ours:.0f} ms (by {methods[0]} {theirs:.0f}){kept}")
    if name == "hard":
        there = (second.seconds["matching"] - second.stages["encoding views"]) / first.seconds["matching"]
        print(f"  once the views are there, a pair takes as long as {there:.2f} passes")
    for number in np.flatnonzero(lost | gained):
        a, b = (f"{path.parent.parent.name}/{path.name}" for path in pairs[number])
        print(f"    {a} {b}: {before[number]} -> {after[number]} matches")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scenes", type=Path, default=DATA / "scenes", help="folders with images/ in them")
    parser.add_argument("--lists", nargs="+", choices=LISTS, default=list(LISTS), help="which lists")
    parser.add_argument("--methods", nargs=2, default=["direct", "auto"], help="two values of dense.method")
    parser.add_argument("--side", type=int, default=480, help="dense.min_side")
    args = parser.parse_args()
    lists = {name: LISTS[name](args.scenes) for name in args.lists}
    import cv2
    import torch

    torch.set_num_threads(1)
    cv2.setNumThreads(1)
    watch()
    for name, pairs in lists.items():
        compare(name, pairs, args.methods, args.side)


if __name__ == "__main__":
    main()
