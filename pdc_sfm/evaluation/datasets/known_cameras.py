"""Pairs of a folder of images with a cameras.json: width, height, fx, fy, cx, cy, R_cam_from_world, t_cam_from_world."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from pdc_sfm.errors import FormatError
from pdc_sfm.evaluation.datasets.pose_pair import PosePair, relative_pose


def read_camera_file(path: Path) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Intrinsics (3, 3) and cam_from_world (3, 4) of each image; x ~ K (R X + t), COLMAP's pixel coordinates."""
    try:
        entries = json.loads(Path(path).read_text(encoding="utf-8"))
        return {name: (_intrinsics(entry), _pose(entry)) for name, entry in entries.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        detail = f"no {error} of an image" if isinstance(error, KeyError) else str(error)
        raise FormatError(
            f"cannot read cameras from {path}: {detail}; each image takes fx, fy, cx, cy, R_cam_from_world, t_cam_from_world"
        ) from None


def neighbor_pairs(images: Path, cameras: Path, gaps: Sequence[int] = (1, 2, 4)) -> list[PosePair]:
    """Each image with those `gaps` places further in the order of names; the gap is the pair's group."""
    known = read_camera_file(cameras)
    names = sorted(name for name in known if (Path(images) / name).is_file())
    if len(names) < 2:
        raise FormatError(f"{len(names)} images of {cameras} are in {images}: a pair needs two")
    pairs = [(a, b, gap) for gap in gaps for a, b in zip(names, names[gap:])]
    return [camera_pair(Path(images), known, a, b, f"gap {gap}") for a, b, gap in pairs]


def camera_pair(images: Path, known: dict, name0: str, name1: str, group: str = "") -> PosePair:
    """The pair of two images of a camera file."""
    (intrinsics0, pose0), (intrinsics1, pose1) = known[name0], known[name1]
    return PosePair(
        f"{name0} {name1}", images / name0, images / name1, intrinsics0, intrinsics1, relative_pose(pose0, pose1), group
    )


def _intrinsics(entry: dict) -> np.ndarray:
    return np.array([[entry["fx"], 0, entry["cx"]], [0, entry["fy"], entry["cy"]], [0, 0, 1.0]])


def _pose(entry: dict) -> np.ndarray:
    rotation, translation = np.array(entry["R_cam_from_world"], float), np.array(entry["t_cam_from_world"], float)
    if rotation.shape != (3, 3) or translation.shape != (3,):
        raise ValueError(f"R is {rotation.shape}, t is {translation.shape}; (3, 3) and (3,) are needed")
    return np.c_[rotation, translation]
