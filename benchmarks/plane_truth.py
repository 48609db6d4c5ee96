"""The truth or the match? Photographs of planes: our surest places by the given homography, and by two truths made of SIFT.

  python benchmarks/plane_truth.py --images oxford/ --sets trees wall

Half of SIFT's matches within 5 px of the given homography make two other truths: a homography fitted to them, and the given
one plus a cubic polynomial. For each truth: the share of SIFT's other half, and of our places stated above .9 (every 16th
pixel), that is less than 1 px off. Ours are not used for any of it: what they agree with better is nearer the truth.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
import torch
from data import needed

from pdc_sfm.evaluation.datasets.homography_pair import load_pair
from pdc_sfm.evaluation.datasets.homography_sets import PlanePair, find_sets
from pdc_sfm.evaluation.measures.match_scores import flow_at
from pdc_sfm.matcher import Matcher, load_matcher, match_images
from pdc_sfm.sift import sift_matches

FAR = 5.0  # px: SIFT's matches beyond are wrong
FEWEST = 100  # matches of SIFT, below which they say little
HIGH_CONFIDENCE = 0.9
STEP = 16
Truth = Callable[[np.ndarray], np.ndarray]
COLUMNS = ("given", "fitted", "cubic")


def fitted(points: np.ndarray, there: np.ndarray) -> Truth:
    matrix, _ = cv2.findHomography(points.astype(float), there.astype(float), cv2.RANSAC, 3.0, maxIters=5000)
    return lambda p: cv2.perspectiveTransform(p[None].astype(float), matrix)[0]


def cubic(given: Truth, points: np.ndarray, there: np.ndarray, size: np.ndarray) -> Truth:
    """The given truth plus what robust least squares (Cauchy, .7 px) find of a polynomial of third order."""
    off, terms = there - given(points), _terms(points, size)
    weights = np.ones(len(off))
    for _ in range(20):
        rows = np.sqrt(weights)[:, None]
        found = np.linalg.lstsq(terms * rows, off * rows, rcond=None)[0]
        weights = 1 / (1 + (np.linalg.norm(off - terms @ found, axis=1) / 0.7) ** 2)
    return lambda p: given(p) + _terms(p, size) @ found


def _terms(points: np.ndarray, size: np.ndarray) -> np.ndarray:
    x, y = (points / size * 2 - 1).T
    return np.stack([x**i * y**j for i in range(4) for j in range(4 - i)], 1)


def near(points: np.ndarray, truth: np.ndarray) -> float:
    return 100 * float((np.abs(points - truth).max(1) < 1).mean())


def judge(files: PlanePair, matcher: Matcher) -> list[float] | None:
    """SIFT's and our shares by the three truths, how far the first two lie apart (RMS), and what is stated."""
    pair = load_pair(files.reference, files.query, files.homography, matcher.settings.dense.min_side)
    size = np.array(pair.reference.shape[1::-1], float)
    points, there, _ = sift_matches(pair.reference, pair.query)

    def given(p: np.ndarray) -> np.ndarray:
        return p + flow_at(pair.flow, p)

    kept = np.linalg.norm(there - given(points), axis=1) < FAR
    points, there = points[kept], there[kept]
    if len(points) < FEWEST:
        return None
    half = np.random.default_rng(0).random(len(points)) < 0.5
    truths = [given, fitted(points[half], there[half]), cubic(given, points[half], there[half], size)]
    y, x = (values.ravel() for values in np.mgrid[STEP // 2 : size[1] : STEP, STEP // 2 : size[0] : STEP].astype(int))
    grid = np.stack([x, y], 1)[pair.visible[y, x]].astype(float)
    found = match_images(pair.reference, pair.query, matcher=matcher).forward.sample(grid)
    confidence = found.confidence_within()
    sure = found.valid & (confidence > HIGH_CONFIDENCE)
    apart = np.sqrt(((truths[1](grid) - given(grid)) ** 2).sum(1).mean())
    sift = [near(there[~half], truth(points[~half])) for truth in truths]
    ours = [near((grid + found.flow)[sure], truth(grid)[sure]) for truth in truths]
    return [*sift, *ours, float(apart), 100 * float(confidence[sure].mean())]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=Path, required=True, help="folder of the sets")
    parser.add_argument("--sets", nargs="+", default=[], metavar="NAME", help="only these")
    args = parser.parse_args()
    sets = find_sets(needed(args.images), args.sets)
    torch.set_num_threads(1)
    matcher = load_matcher()
    print(f"{'':12}{'SIFT within 1 px by':>24}{'ours above .9, by':>24}{'apart':>8}{'stated':>8}")
    print(f"{'':12}" + "".join(f"{name:>8}" for name in COLUMNS * 2))
    for name, pairs in sets.items():
        rows = {files.number: row for files in pairs if (row := judge(files, matcher))}
        for number, row in {**rows, "mean": np.mean(list(rows.values()), 0)}.items():
            print(f"{f'{name} {number}':12}" + "".join(f"{value:8.2f}" for value in row), flush=True)


if __name__ == "__main__":
    main()
