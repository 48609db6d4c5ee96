"""The model with its cameras, to turn around: data for plotly, and a picture for those who cannot run it."""

from __future__ import annotations

import base64
import dataclasses
import json
from typing import Any

import numpy as np

from pdc_sfm.colmap.io.models import model_poses
from pdc_sfm.colmap.io.pointcloud import model_points, remove_outliers
from pdc_sfm.colmap.render import draw, overview
from pdc_sfm.colmap.types import Reconstruction
from pdc_sfm.evaluation.measures.poses import camera_center
from pdc_sfm.report.html import Section, picture
from pdc_sfm.report.run_data import Missing, Run

MOST_POINTS = 40_000  # of a model that are drawn,
MOST_DENSE = 150_000  # and of a dense cloud
PICTURE = (1200, 700)


def model_section(run: Run) -> Section:
    """Points and cameras of a run; localized queries in a color of their own."""
    return section_of_model(run.model, _query_poses(run))


def section_of_model(
    model: Reconstruction, queries: dict[str, np.ndarray], dense: tuple[np.ndarray, np.ndarray] | None = None
) -> Section:
    """The same of any model; `queries` are cam_from_world (3, 4) by name, `dense` points and colors to show for its own."""
    poses = model_poses(model)
    points, colors = dense or model_points(model)
    if len(points) == 0 or not poses:
        raise Missing(f"the model has {len(points)} points and {len(poses)} cameras")
    keep = np.arange(len(points)) if dense else np.flatnonzero(remove_outliers(points))
    stacked = np.stack(list(poses.values()))
    shown = np.sort(np.random.default_rng(0).permutation(keep)[: MOST_DENSE if dense else MOST_POINTS])
    world = upright(stacked)
    drawn, centers = points[shown] @ world.T, camera_center(np.stack([*poses.values(), *queries.values()])) @ world.T
    seen = frame(points[keep] @ world.T, centers)
    near = stacked[seen.near[: len(stacked)]] if seen.near[: len(stacked)].any() else stacked
    still = draw(points[keep], colors[keep], near, overview(near, points[keep], PICTURE), background=255)
    size = _camera_size(centers[: len(stacked)], seen.radius)
    data: dict[str, Any] = {
        "points": _floats(drawn),
        "colors": _bytes(colors[shown]),
        "range": _range(drawn, centers),
        "frame": {"center": seen.center.tolist(), "radius": seen.radius},
        "cameras": [_cameras("images", poses, world, size)],
    }
    if queries:
        data["cameras"].append(_cameras("localized queries", queries, world, size))
    note = f"{len(points):,} points and {len(poses)} cameras"
    if len(shown) < len(points):
        note += f"; {len(shown):,} points are drawn"
    if not seen.near.all():
        note += f"; {np.count_nonzero(~seen.near)} cameras stand further off: zoom out to see them"
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
    """Localized queries, if the run has some and the model's world is theirs."""
    from pdc_sfm.colmap.io.results import read_poses

    path = run.folder / "results.txt"
    return read_poses(path) if path.is_file() else {}


def _cameras(name: str, poses: dict[str, np.ndarray], world: np.ndarray, size: float) -> dict[str, Any]:
    """Names, centers, and pyramids as one broken line."""
    corners = size * np.array([[0, 0, 0], [-0.6, -0.45, 1], [0.6, -0.45, 1], [0.6, 0.45, 1], [-0.6, 0.45, 1]])
    walk = [0, 1, 2, 0, 3, 4, 0, None, 1, 4, None, 2, 3, None]
    lines, centers = [], []
    for pose in poses.values():
        tips = (corners - pose[:, 3]) @ pose[:, :3] @ world.T
        lines += [[None] * 3 if corner is None else np.round(tips[corner], 4).tolist() for corner in walk]
        centers.append(np.round(tips[0], 4).tolist())
    return {"label": name, "names": list(poses), "centers": centers, "lines": lines}


@dataclasses.dataclass(frozen=True)
class FirstView:
    """What the first view holds: a ball, and which cameras are in it. A far camera or stray point sets no zoom."""

    center: np.ndarray  # (3,)
    radius: float
    near: np.ndarray  # (N,) bool: cameras inside


def frame(points: np.ndarray, centers: np.ndarray) -> FirstView:
    """The middle 96 % of the points on each axis, the nearer half of the cameras, and those about as near as these.

    What is left out lies further from the middle than half as far again as the points reach.
    """
    low, high = np.quantile(points, (0.02, 0.98), axis=0)
    middle, reach = (low + high) / 2, np.linalg.norm(high - low) / 2
    distances = np.linalg.norm(centers - middle, axis=1)
    near = distances <= max(1.5 * reach, np.median(distances))
    low, high = np.minimum(low, centers[near].min(0)), np.maximum(high, centers[near].max(0))
    return FirstView((low + high) / 2, max(float(np.linalg.norm(high - low)) / 2, 1e-9), near)


def _camera_size(centers: np.ndarray, radius: float) -> float:
    """A quarter of the usual distance to the nearest other camera, but neither a speck nor a wall in the first view."""
    if len(centers) < 2:
        return 0.05 * radius
    distances = np.linalg.norm(centers[:, None] - centers[None], axis=-1)
    np.fill_diagonal(distances, np.inf)
    return float(np.clip(np.median(distances.min(1)) / 4, 0.015 * radius, 0.06 * radius))


def _range(points: np.ndarray, centers: np.ndarray) -> list[list[float]]:
    """Of each axis: all that is drawn, with a margin."""
    both = np.concatenate([points, centers])
    low, high = both.min(0), both.max(0)
    margin = max(0.03 * float((high - low).max()), 1e-9)
    return np.round(np.stack([low - margin, high + margin], 1), 4).tolist()


def _floats(values: np.ndarray) -> str:
    return base64.b64encode(np.ascontiguousarray(values, "<f4").tobytes()).decode()


def _bytes(values: np.ndarray) -> str:
    return base64.b64encode(np.ascontiguousarray(values, np.uint8).tobytes()).decode()


def _unit(vector: np.ndarray) -> np.ndarray:
    return vector / max(np.linalg.norm(vector), 1e-12)
