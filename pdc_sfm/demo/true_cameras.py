"""The scene's true cameras in COLMAP's and hloc's formats."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pdc_sfm.colmap import types
from pdc_sfm.colmap.io.cameras import make_camera
from pdc_sfm.colmap.io.posed_model import posed_model
from pdc_sfm.files import write_text
from pdc_sfm.scenes import Camera


def intrinsics(camera: Camera) -> tuple[float, float, float, float]:
    """Parameters of a PINHOLE camera."""
    return camera.focal, camera.focal, camera.width / 2, camera.height / 2


def colmap_camera(camera: Camera) -> types.Camera:
    """A scene's camera as COLMAP has it."""
    return make_camera("PINHOLE", camera.width, camera.height, intrinsics(camera))


def known_model(cameras: Mapping[str, Camera]) -> types.Reconstruction:
    """A model of posed images, without points."""
    poses = {name: camera.cam_from_world for name, camera in cameras.items()}
    return posed_model(poses, {name: colmap_camera(camera) for name, camera in cameras.items()})


def write_queries(path: Path, cameras: Mapping[str, Camera]) -> Path:
    """A query list with intrinsics, `NAME MODEL W H PARAMS...` a line."""
    lines = (
        f"{name} PINHOLE {camera.width} {camera.height} {' '.join(repr(float(p)) for p in intrinsics(camera))}\n"
        for name, camera in cameras.items()
    )
    write_text(path, "".join(lines))
    return path
