"""A scene as a plain folder: images, cameras, depth.

images/{db,day,night}/0001.jpg
depth/{db,day,night}/0001.npz    depth (H, W) float32 metres, 0 in the sky; moving (H, W) bool
cameras.json                     per image: width, height, fx, fy, cx, cy, R_cam_from_world, t_cam_from_world
scene.json                       settings, the pixel convention, and when each picture was taken
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

from pdc_sfm.errors import FormatError
from pdc_sfm.files import atomic_path, exclusive, write_text
from pdc_sfm.images import write_image
from pdc_sfm.scenes.layouts.produce import take_pictures
from pdc_sfm.scenes.layouts.scene_json import is_written, write_record
from pdc_sfm.scenes.render.camera import Camera
from pdc_sfm.scenes.render.renderer import Rendering
from pdc_sfm.scenes.render.shot import Shot
from pdc_sfm.scenes.settings import SceneSettings, WorldSettings

Progress = Callable[[int, int, str], object]


def write_scene(
    folder: Path | str, settings: SceneSettings, workers: int = 1, progress: Progress | None = None
) -> Path:
    """Render the scene into `folder`, unless it is there already; returns the folder.

    `progress(done, total, name)` is called after each picture.
    """
    return write_pictures(folder, settings, "plain", settings.total, lambda: take_pictures(settings, workers), progress)


def write_pictures(
    folder: Path | str,
    settings: SceneSettings | WorldSettings,
    layout: str,
    total: int,
    pictures: Callable[[], Iterable[tuple[Shot, Rendering]]],
    progress: Progress | None = None,
) -> Path:
    """Write `total` pictures with cameras and depth, unless the folder holds them already; returns the folder."""
    folder = Path(folder)
    shots: dict[str, Shot] = {}
    with exclusive(folder / "scene"):
        if is_written(folder, settings, layout):
            return folder
        for shot, rendering in pictures():
            write_image(folder / "images" / shot.name, rendering.image)
            if settings.depth:
                write_depth(folder / "depth" / shot.name, rendering)
            shots[shot.name] = shot
            if progress:
                progress(len(shots), total, shot.name)
        cameras = {name: camera_to_dict(shot.camera) for name, shot in shots.items()}
        write_text(folder / "cameras.json", json.dumps(cameras, indent=1))
        write_record(folder, settings, layout, shots)
    return folder


def write_depth(path: Path, rendering: Rendering) -> None:
    """Depth of an image, under the image's name with the suffix npz."""
    path = path.with_suffix(".npz")
    with atomic_path(path) as partial, open(partial, "wb") as file:
        np.savez_compressed(file, depth=rendering.depth, moving=rendering.moving)


def read_depth(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Depth (H, W) float32 and the mask of what moves (H, W) bool, for an image's path below `depth`."""
    with np.load(path.with_suffix(".npz")) as file:
        return file["depth"], file["moving"]


def camera_to_dict(camera: Camera) -> dict:
    return {
        "width": camera.width,
        "height": camera.height,
        "fx": camera.focal,
        "fy": camera.focal,
        "cx": camera.width / 2,
        "cy": camera.height / 2,
        "R_cam_from_world": camera.cam_from_world[:, :3].tolist(),
        "t_cam_from_world": camera.cam_from_world[:, 3].tolist(),
    }


def read_cameras(folder: Path | str) -> dict[str, Camera]:
    """Cameras of a plain folder by image name."""
    path = Path(folder) / "cameras.json"
    try:
        entries = json.loads(path.read_text(encoding="utf-8"))
        return {name: _camera_from_dict(entry) for name, entry in entries.items()}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise FormatError(
            f"cannot read cameras from {path}: {error}; `pdc-sfm scene --output DIR` writes such a folder"
        ) from None


def _camera_from_dict(entry: dict) -> Camera:
    pose = np.concatenate(
        [np.array(entry["R_cam_from_world"], float), np.array(entry["t_cam_from_world"], float)[:, None]], 1
    )
    if entry["fx"] != entry["fy"] or 2 * entry["cx"] != entry["width"] or 2 * entry["cy"] != entry["height"]:
        raise ValueError("cameras of a scene have square pixels and the principal point in the middle")
    return Camera(int(entry["width"]), int(entry["height"]), float(entry["fx"]), pose)
