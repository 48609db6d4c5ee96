"""SIFT localization of one photograph at a time with the map in memory, to compare with `rounds.py`.

    pdc-sfm demo --output outputs/demo
    python benchmarks/resident_sift.py outputs/demo

The map is the one that `pdc-sfm demo` made by COLMAP's SIFT; descriptors of its images are in memory. A query is described,
matched with all images of the map (mutual nearest neighbors, ratio test), and its pose is estimated like ours. Processor seconds.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np
import pycolmap
from rounds import THRESHOLDS

from pdc_sfm.colmap.io.cameras import read_camera_list
from pdc_sfm.colmap.io.models import load_model
from pdc_sfm.colmap.io.point_lookup import PointLookup
from pdc_sfm.colmap.localization.localize_sfm import LocalizationSettings, locate
from pdc_sfm.colmap.localization.probability import METRES
from pdc_sfm.colmap.localization.query import Query
from pdc_sfm.evaluation.measures.poses import pose_error
from pdc_sfm.sift import RATIO

Words = np.ndarray  # (N, 128) float32 unit


def unit(words: np.ndarray) -> Words:
    words = words.astype(np.float32)
    return words / np.maximum(np.linalg.norm(words, axis=1, keepdims=True), 1e-9)


def match(first: Words, second: Words) -> np.ndarray:
    """(M, 2) rows of both that are each other's nearest, clearly nearer than the second."""
    likeness, rows = first @ second.T, np.arange(len(first))
    best, back = likeness.argmax(1), likeness.argmax(0)
    nearest = likeness[rows, best]
    likeness[rows, best] = -1
    near, next_near = (np.sqrt(np.maximum(2 - 2 * value, 0)) for value in (nearest, likeness.max(1)))
    kept = (near < RATIO * next_near) & (back[best] == rows)
    return np.stack((rows[kept], best[kept]), 1).astype(np.int32)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    args = parser.parse_args()
    cameras = read_camera_list(args.folder / "queries.txt")
    known = json.loads((args.folder / "cameras.json").read_text(encoding="utf-8"))
    model = load_model(args.folder / "sift/sfm")
    lookup, settings = PointLookup(model), LocalizationSettings()
    ids = {model.image(number).name: number for number in model.reg_image_ids()}
    with pycolmap.Database.open(args.folder / "sift/features.sift.db") as database:
        stored = {image.name: image.image_id for image in database.read_all_images()}
        words = {name: unit(database.read_descriptors(stored[name]).data) for name in ids}
    options = pycolmap.FeatureExtractionOptions(num_threads=1, use_gpu=False)
    sift, times, errors = pycolmap.Sift(options, pycolmap.Device.cpu), [], []
    for name, camera in cameras.items():
        start = time.process_time()
        gray = np.asarray(pycolmap.Bitmap.read(args.folder / "images" / name, as_rgb=False).to_array())
        points, found = sift.extract(np.ascontiguousarray(gray.reshape(gray.shape[:2])))
        described = unit(found)
        pairs = [(ids[image], match(described, words[image])) for image in ids]
        listed = [(number, some, np.ones(len(some), np.float32)) for number, some in pairs]
        item = locate(Query(name, camera, points[:, :2].astype(np.float64), listed), lookup, settings, METRES)
        times.append(time.process_time() - start)
        truth = np.c_[known[name]["R_cam_from_world"], known[name]["t_cam_from_world"]]
        estimate = item.attempt.estimate if item.attempt else None
        off = pose_error(np.array(estimate["cam_from_world"].matrix()), truth) if estimate else (np.inf, 180.0)
        errors.append(off)
        print(f"{name:<16} {times[-1]:6.2f} s {100 * off[0]:8.1f} cm {off[1]:6.2f} deg", flush=True)
    away = np.array(errors)
    right = [100 * np.mean((away[:, 0] <= metres) & (away[:, 1] <= degrees)) for metres, degrees in THRESHOLDS]
    print(
        f"{' / '.join(f'{share:.1f}' for share in right)} % within 0.25 m 2 deg / 0.5 m 5 deg / 5 m 10 deg;"
        f" {np.median(times):.2f} s in the median, {np.percentile(times, 95):.2f} s at 95 %"
    )


if __name__ == "__main__":
    main()
