"""How long one training pair takes to make on one core, and how the pairs are distributed.

python benchmarks/training_pairs.py --photos datasets/benchmarks/photos --objects datasets/benchmarks/objects --size 320
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import cv2
import numpy as np
from data import DATA, needed

from pdc_sfm.synthetic.pairs import SyntheticPairSettings, make_pair
from pdc_sfm.synthetic.photographs import open_cutouts, open_photographs
from pdc_sfm.synthetic.warps import ImageFrame, random_warp


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--photos", type=Path, default=DATA / "photos", help="folder of photographs")
    parser.add_argument("--objects", type=Path)
    parser.add_argument("--size", type=int, default=320)
    parser.add_argument("--pairs", type=int, default=200)
    args = parser.parse_args()
    cv2.setNumThreads(1)
    photos = open_photographs(needed(args.photos))
    cutouts = open_cutouts(needed(args.objects)) if args.objects else None
    settings = SyntheticPairSettings(size=(args.size, args.size))
    print(photos.summary())

    start, visible, unrelated = time.process_time(), [], 0
    for i in range(args.pairs):
        pair = make_pair(photos, cutouts, settings, np.random.default_rng([0, i]))
        unrelated += pair.unrelated
        if not pair.unrelated:
            visible.append(pair.visible.mean())
    spent = (time.process_time() - start) / args.pairs
    print(f"{1000 * spent:.1f} ms of one core a pair at {args.size} x {args.size}")
    print(f"visible: {np.mean(visible):.2f} of the reference; unrelated: {unrelated / args.pairs:.2f} of the pairs")

    rng = np.random.default_rng(0)
    poses = [random_warp(ImageFrame(*settings.size), settings.warp, rng)[1] for _ in range(2000)]
    turned = np.abs(np.degrees([pose.rotation for pose in poses]))
    zoomed = np.exp(np.abs([pose.log_zoom for pose in poses]))
    print("rotation above", "  ".join(f"{mark}: {np.mean(turned > mark):.2f}" for mark in (20, 45, 90, 135)))
    print("zoom above", "  ".join(f"{mark}: {np.mean(zoomed > mark):.2f}" for mark in (1.25, 1.5, 2, 2.5)))


if __name__ == "__main__":
    main()
