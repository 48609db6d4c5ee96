"""The model with its cameras, to turn around: data for plotly, and a picture for those who cannot run it."""

from __future__ import annotations

import base64
import json
from typing import Any

import numpy as np

from pdc_sfm.colmap.io.models import model_poses
from pdc_sfm.colmap.io.pointcloud import model_points, remove_outliers
from pdc_sfm.colmap.render import draw, overview
from pdc_sfm.evaluation.poses import camera_center
from pdc_sfm.report.html import Section, picture
from pdc_sfm.report.run_data import Missing, Run

MOST_POINTS = 40_000
PICTURE = (1200, 700)


def model_section(run: Run) -> Section:
    """Points and cameras; localised queries in a colour of their own."""
    model = run.model
    poses = model_poses(model)
    points, colours = model_points(model)
    if len(points) == 0 or not poses:
        raise Missing(f"the model has {len(points)} points and {len(poses)} cameras")
    keep = np.flatnonzero(remove_outliers(points))
    stacked = np.stack(list(poses.values()))
    still = draw(points[keep], colours[keep], stacked, overview(stacked, points[keep], PICTURE), background=255)
    shown = np.sort(np.random.default_rng(0).permutation(keep)[:MOST_POINTS])
    world = upright(stacked)
    queries = _query_poses(run)
    size = _camera_size(camera_center(stacked))
    data = {
        "points": _floats(points[shown] @ world.T),
        "colours": _bytes(colours[shown]),
        "range": _range(
            points[keep] @ world.T, camera_center(np.stack([*poses.values(), *queries.values()])) @ world.T
        ),
        "cameras": [_cameras("images", poses, world, size)],
    }
    if queries:
        data["cameras"].append(_cameras("localised queries", queries, world, size))
    note = f"{len(points):,} points and {len(poses)} cameras"
    if len(shown) < len(points):
        note += f"; {len(shown):,} points are drawn"
    embedded = json.dumps(data).replace("</", "<\\/")  # no name of an image can end the script
    section = Section("model", "Model")
    section.content = (
        f'<p class="note">{note}. Drag to turn, two fingers or the wheel to zoom, hover a camera for its name.</p>'
        f'<div id="model-view" class="model"><div class="still">{picture(still, "the model")}</div></div>'
        f'<script type="application/json" id="model-data">{embedded}</script>'
    )
    return section


def upright(poses: np.ndarray) -> np.ndarray:
    """(3, 3) rotation of the world that puts the cameras' mean up along z and their mean view along y."""
    up = -_unit(poses[:, 1, :3].mean(0))
    forward = poses[:, 2, :3].mean(0)
    if np.linalg.norm(np.cross(forward, up)) < 0.05:  # cameras all around: any direction will do
        forward = np.eye(3)[np.abs(up).argmin()]
    right = _unit(np.cross(forward, up))
    return np.stack([right, np.cross(up, right), up])


def _query_poses(run: Run) -> dict[str, np.ndarray]:
    """Localised queries, if the run has some and the model's world is theirs."""
    from pdc_sfm.colmap.io.results import read_poses

    path = run.folder / "results.txt"
    return read_poses(path) if path.is_file() else {}


def _cameras(name: str, poses: dict[str, np.ndarray], world: np.ndarray, size: float) -> dict[str, Any]:
    """Names, centres, and pyramids as one broken line."""
    corners = size * np.array([[0, 0, 0], [-0.6, -0.45, 1], [0.6, -0.45, 1], [0.6, 0.45, 1], [-0.6, 0.45, 1]])
    walk = [0, 1, 2, 0, 3, 4, 0, None, 1, 4, None, 2, 3, None]
    lines, centres = [], []
    for pose in poses.values():
        tips = (corners - pose[:, 3]) @ pose[:, :3] @ world.T
        lines += [[None] * 3 if corner is None else np.round(tips[corner], 4).tolist() for corner in walk]
        centres.append(np.round(tips[0], 4).tolist())
    return {"label": name, "names": list(poses), "centres": centres, "lines": lines}


def _camera_size(centres: np.ndarray) -> float:
    if len(centres) < 2:
        return 0.1
    distances = np.linalg.norm(centres[:, None] - centres[None], axis=-1)
    np.fill_diagonal(distances, np.inf)
    return float(np.median(distances.min(1))) / 4


def _range(points: np.ndarray, centres: np.ndarray) -> list[list[float]]:
    """Of each axis: what holds 98 % of the points and all cameras."""
    low = np.minimum(np.quantile(points, 0.01, axis=0), centres.min(0))
    high = np.maximum(np.quantile(points, 0.99, axis=0), centres.max(0))
    margin = 0.03 * (high - low).max()
    return np.round(np.stack([low - margin, high + margin], 1), 4).tolist()


def _floats(values: np.ndarray) -> str:
    return base64.b64encode(np.ascontiguousarray(values, "<f4").tobytes()).decode()


def _bytes(values: np.ndarray) -> str:
    return base64.b64encode(np.ascontiguousarray(values, np.uint8).tobytes()).decode()


def _unit(vector: np.ndarray) -> np.ndarray:
    return vector / max(np.linalg.norm(vector), 1e-12)
