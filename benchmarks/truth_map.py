"""A map of a rendered scene's true cameras, with points of its true depth: what is measured on it owes nothing to matching.

Without its queries, half of which are taken at night: they are no part of a map.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pycolmap

from pdc_sfm.colmap.io.posed_model import posed_model
from pdc_sfm.pixels import inside, to_colmap
from pdc_sfm.scenes.layouts.plain import read_depth

QUERIES = ("day/", "night/")  # of a town; other kinds of scenes have none
POINTS = 700  # begun in each image,
MATCHED = 0.6  # and found, by this chance, in every other one that shows them


def write_truth_map(folder: Path) -> Path:
    """Write the model of a folder of `pdc-sfm scene` to `sfm` in it; returns that."""
    rng = np.random.default_rng(0)
    cameras = json.loads((folder / "cameras.json").read_text(encoding="utf-8"))
    cameras = {name: camera for name, camera in cameras.items() if not name.startswith(QUERIES)}
    poses = {name: np.c_[camera["R_cam_from_world"], camera["t_cam_from_world"]] for name, camera in cameras.items()}
    intrinsics = {
        name: np.array([[camera["fx"], 0, camera["cx"]], [0, camera["fy"], camera["cy"]], [0, 0, 1.0]])
        for name, camera in cameras.items()
    }
    depths = {name: read_depth(folder / "depth" / name)[0] for name in cameras}
    tracks: list[tuple[np.ndarray, list[tuple[str, np.ndarray]]]] = []
    for name, depth in depths.items():
        row, column = (rng.integers(0, side, POINTS) for side in depth.shape)
        row, column = row[depth[row, column] > 0], column[depth[row, column] > 0]
        rays = np.stack([column, row, np.ones(len(row))], -1) @ np.linalg.inv(intrinsics[name]).T
        world = (rays * depth[row, column][:, None] - poses[name][:, 3]) @ poses[name][:, :3]
        seen = [(other, *_shown(world, poses[other], intrinsics[other], depths[other])) for other in depths]
        kept = [(other, pixels, shown & (rng.random(len(shown)) < MATCHED)) for other, pixels, shown in seen]
        for number, point in enumerate(world):
            track = [(other, pixels[number]) for other, pixels, shown in kept if shown[number]]
            if len(track) > 1:
                tracks.append((point, track))
    return _write(folder, cameras, poses, tracks)


def _shown(
    points: np.ndarray, pose: np.ndarray, intrinsics: np.ndarray, depth: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Pixels (N, 2) of points in a view, and whether its depth there is theirs."""
    there = (points @ pose[:, :3].T + pose[:, 3]) @ intrinsics.T
    ahead = there[:, 2] > 0
    pixels = there[:, :2] / np.where(ahead, there[:, 2], 1)[:, None]
    on = ahead & inside(pixels, depth.shape[::-1])
    column, row = np.where(on[:, None], np.rint(pixels), 0).astype(int).T
    column, row = np.minimum(column, depth.shape[1] - 1), np.minimum(row, depth.shape[0] - 1)
    return pixels, on & (np.abs(depth[row, column] - there[:, 2]) < 0.01 * there[:, 2])


def _write(folder: Path, cameras: dict, poses: dict, tracks: list) -> Path:
    pinholes = {
        name: pycolmap.Camera(
            model="PINHOLE",
            width=camera["width"],
            height=camera["height"],
            params=[camera["fx"], camera["fy"], *to_colmap(np.array([camera["cx"], camera["cy"]]))],
        )
        for name, camera in cameras.items()
    }
    model = posed_model(poses, pinholes)
    numbers = {model.image(image_id).name: image_id for image_id in model.reg_image_ids()}
    keypoints: dict[str, list[np.ndarray]] = {name: [] for name in cameras}
    elements = []
    for _, track in tracks:
        elements.append([pycolmap.TrackElement(numbers[name], len(keypoints[name])) for name, _ in track])
        for name, pixel in track:
            keypoints[name].append(to_colmap(pixel))
    for name, own in keypoints.items():
        model.image(numbers[name]).points2D = [pycolmap.Point2D(xy) for xy in own]
    for (point, _), track in zip(tracks, elements):
        model.add_point3D(point, pycolmap.Track(track), np.zeros(3, np.uint8))
    (folder / "sfm").mkdir(exist_ok=True)
    model.write_binary(folder / "sfm")
    summary = {"inputs": {"images": str((folder / "images").absolute())}}
    (folder / "sfm" / "summary.json").write_text(json.dumps(summary), encoding="utf-8")
    return folder / "sfm"
