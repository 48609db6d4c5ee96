"""Assembling the two hloc files from raw matches: milliseconds a pair by rule, and where they go. Needs no images.

    python benchmarks/assembly.py [--images 40] [--most 10000 2000] [--preset aachen] [--rules flow hloc] [--profile]
    python benchmarks/assembly.py --threads 1 2 4 8

Raw matches are simulated: cameras above a plane, turned and scaled a little, each paired with those about it, see a
grid at a quarter of the resolution in both directions, with noise. A pair keeps `--most` of its matches at random, as
`select.max_matches` would. With one thread the time is that of the processor, so that other work beside it does little
harm; with more it is that of the clock.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from unittest import mock

import h5py
import numpy as np
from scipy.spatial import cKDTree

from pdc_sfm.engine.run import MatchingSettings
from pdc_sfm.matches.types import RawMatches
from pdc_sfm.settings import load_settings, preset_path
from pdc_sfm.store.journal import RawStore, open_raw_store
from pdc_sfm.store.writers import new_h5, write_matches
from pdc_sfm.tracks.assemble import Outputs, aggregate
from pdc_sfm.tracks.settings import TrackSettings
from pdc_sfm.tracks.threads import Threads

SIZE = (640, 480)
GRID = np.stack(np.meshgrid(np.arange(1.5, SIZE[0], 4), np.arange(1.5, SIZE[1], 4)), -1).reshape(-1, 2)
FOOTPRINT = 140.0  # pixels from one camera to the next: those that are paired see about a third of each other's image
SOME = np.arange(4000, dtype=np.int32)
PARTNERS = 20  # nearest cameras of each, so that an image has 24 pairs; 26 in pairs-db-covis20
PARTS = "propagate fuse_tracks add_new confirmed vote link read select write_keypoints write_matches".split()


@dataclass(frozen=True)
class Cost:
    """What assembling took."""

    seconds: float
    divided: float  # share of it that is divided among threads
    pairs: int
    raw: int  # matches of all pairs
    matches: int  # in the match file

    @property
    def per_pair(self) -> float:
        return self.seconds / self.pairs

    def __str__(self) -> str:
        counts = f"{self.raw / self.pairs:,.0f} raw matches a pair, {self.matches / self.pairs:,.0f} in the file"
        return f"{1e3 * self.per_pair:6.2f} ms a pair, {self.divided:.0%} for threads to divide; {counts}"


class Timed(Threads):
    """Threads that say how long they worked."""

    worked = 0.0

    def map(self, call, items, most=None):
        def timed(item):
            start = time.thread_time()
            result = call(item)
            Timed.worked += time.thread_time() - start
            return result

        return super().map(timed, items, most)

    def begin(self, function, *args):
        if self._pool is not None:  # it may be for another process, whose time is not ours
            return super().begin(function, *args)
        return super().begin(timed_call, function, *args)


def timed_call(function, *args):
    start = time.process_time()
    result = function(*args)
    Timed.worked += time.process_time() - start
    return result


def simulate(folder: Path, images: int, most: int, seed: int = 0) -> RawStore:
    """A journal of the pairs of so many cameras."""
    rng = np.random.default_rng(seed)
    centers = rng.uniform(0, FOOTPRINT * np.sqrt(images), (images, 2))
    turns = np.exp(rng.normal(0, 0.1, images) + 1j * rng.normal(0, 0.1, images))  # of images against the plane
    near = cKDTree(centers).query(centers, min(images, PARTNERS + 1))[1]
    pairs = sorted({(min(i, j), max(i, j)) for i, row in enumerate(near.tolist()) for j in row[1:]})
    with open_raw_store(folder, {}, overwrite=True) as store:
        for pair in pairs:
            found = _matches(centers[list(pair)], turns[list(pair)], rng, most)
            store.append((f"db/{pair[0]:06d}.jpg", f"db/{pair[1]:06d}.jpg"), found, (SIZE, SIZE))
    return RawStore(folder)


def _matches(centers: np.ndarray, turns: np.ndarray, rng: np.random.Generator, most: int) -> RawMatches:
    """Both directions of a pair of cameras at two points (2, 2) of the plane."""
    halves = []
    for a, b in ((0, 1), (1, 0)):
        plane = _turned(GRID - np.divide(SIZE, 2), 1 / turns[a]) + centers[a]
        there = _turned(plane - centers[b], turns[b]) + np.divide(SIZE, 2)
        inside = ((there >= 0) & (there <= np.subtract(SIZE, 1))).all(1)
        halves.append((GRID[inside], there[inside] + rng.normal(0, 0.3, (inside.sum(), 2))))
    points = np.concatenate((np.stack(halves[0]), np.stack(halves[1][::-1])), 1)
    kept = np.sort(rng.permutation(points.shape[1])[:most])
    return RawMatches(*points[:, kept], rng.uniform(0.25, 0.55, len(kept)))


def _turned(points: np.ndarray, turn: complex) -> np.ndarray:
    values = (points[:, 0] + 1j * points[:, 1]) * turn
    return np.stack((values.real, values.imag), 1)


def assemble(raw: RawStore, tracks: TrackSettings, threads: int = 1, run: Callable = lambda call: call()) -> Cost:
    """Both files of all pairs of a journal; `run` calls what is to be measured."""
    pairs, clock = raw.pairs(), time.process_time if threads == 1 else time.perf_counter
    Timed.worked = 0.0
    with tempfile.TemporaryDirectory() as folder, mock.patch("pdc_sfm.tracks.assemble.Threads", Timed):
        outputs = Outputs(Path(folder) / "features.h5", Path(folder) / "matches.h5", {}, tracks)
        processor, start = time.process_time(), clock()
        summary = run(lambda: aggregate(raw, pairs, outputs, threads=threads))
        seconds, processor = clock() - start, time.process_time() - processor
    count = sum(raw.count(pair) for pair in pairs)
    return Cost(seconds, Timed.worked / processor, len(pairs), count, summary.matches)


def profile(raw: RawStore, tracks: TrackSettings) -> None:
    """Where the time goes: each part with what it calls."""
    profiler = cProfile.Profile(time.process_time)
    cost = assemble(raw, tracks, run=profiler.runcall)
    stats = pstats.Stats(profiler).stats
    for name in PARTS:
        spent = sum(values[3] for (_, _, function), values in stats.items() if function == name)
        print(f"    {name:16} {1e3 * spent / cost.pairs:6.2f} ms a pair, {spent / cost.seconds:4.0%}")


def h5_seconds(write: Callable[[h5py.File, int], None], count: int = 500) -> float:
    """Seconds of a pair for h5 alone."""
    with tempfile.TemporaryDirectory() as folder, new_h5(Path(folder) / "pairs.h5") as file:
        start = time.process_time()
        for i in range(count):
            write(file, i)
        return (time.process_time() - start) / count


def by_h5py(file: h5py.File, i: int) -> None:
    """The least that h5py's own classes need for a pair."""
    group = file.create_group(f"db-{i // 25:06d}.jpg/db-{i:06d}.jpg")
    group.create_dataset("matches0", data=SOME)
    group.create_dataset("matching_scores0", data=SOME.astype(np.float16))


def by_ours(file: h5py.File, i: int) -> None:
    write_matches(file, f"db/{i // 25:06d}.jpg", f"db/{i:06d}.jpg", np.stack((SOME, SOME), 1), SOME)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=40)
    parser.add_argument("--most", type=int, nargs="+", default=[10_000, 2000], help="matches of a pair (10000 2000)")
    parser.add_argument("--preset", default="aachen", help="whose tracks.* are taken (aachen)")
    parser.add_argument("--rules", nargs="+", default=["flow", "hloc"], choices=["flow", "hloc"])
    parser.add_argument("--threads", type=int, nargs="+", default=[1])
    parser.add_argument("--profile", action="store_true", help="where the time goes")
    args = parser.parse_args()
    tracks = load_settings(MatchingSettings, preset_path(args.preset)).tracks
    print(
        f"{args.images} images; {args.preset}: at most {tracks.max_keypoints} keypoints, cells of {tracks.cell_size:g}"
    )
    for most in args.most:
        with tempfile.TemporaryDirectory() as folder:
            raw = simulate(Path(folder) / "raw", args.images, most)
            for rule in args.rules:
                for threads in args.threads:
                    print(f"  {rule:4} {threads:2} {assemble(raw, replace(tracks, rule=rule), threads)}", flush=True)
                if args.profile:
                    profile(raw, replace(tracks, rule=rule))
    plain, ours = 1e3 * h5_seconds(by_h5py), 1e3 * h5_seconds(by_ours)
    print(f"A pair's group and its two datasets of 4,000: {plain:.2f} ms by h5py alone, {ours:.2f} ms by our writer")


if __name__ == "__main__":
    main()
