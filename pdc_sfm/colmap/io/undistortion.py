"""Undistorts images and models, for programs that only support pinhole cameras."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import numpy as np
import pycolmap

from pdc_sfm.colmap.io.cameras import rays_of
from pdc_sfm.colmap.io.models import load_model, write_model
from pdc_sfm.colmap.quiet import colmap_log
from pdc_sfm.errors import ImageError
from pdc_sfm.pixels import from_colmap, to_colmap


def undistort(
    model: pycolmap.Reconstruction, images: Path, folder: Path, max_side: int | None = None
) -> pycolmap.Reconstruction:
    """Write undistorted images to `folder`/images, as COLMAP makes them. Returns their model, of PINHOLE cameras.

    Images with a longer side than `max_side` are shrunk.
    """
    options = pycolmap.UndistortCameraOptions()
    options.max_image_size = -1 if max_side is None else max_side
    with tempfile.TemporaryDirectory(dir=folder) as place, colmap_log():
        given, made = Path(place) / "given", Path(place) / "made"
        given.mkdir()
        made.mkdir()
        write_model(given, model)
        pycolmap.undistort_images(made, given, images, undistort_options=options, jpeg_quality=95)
        pinhole = load_model(made / "sparse")
        names = [pinhole.image(image_id).name for image_id in pinhole.reg_image_ids()]
        absent = [name for name in names if not (made / "images" / name).is_file()]
        if absent:  # COLMAP goes on without a word
            raise ImageError(f"COLMAP cannot undistort {images / absent[0]} ({len(absent)} such images)")
        shutil.move(made / "images", folder / "images")
    return pinhole


def original_points(original: pycolmap.Camera, undistorted: pycolmap.Camera) -> np.ndarray:
    """(H, W, 2) pixel indices of an original image that the pixels of the undistorted one show; NaN: none."""
    x, y = np.meshgrid(np.arange(undistorted.width), np.arange(undistorted.height))
    rays = rays_of(undistorted, to_colmap(np.stack([x, y], -1).reshape(-1, 2)))
    there = original.img_from_cam(np.c_[rays, np.ones(len(rays))])
    return from_colmap(np.asarray(there)).reshape(*x.shape, 2)


def is_pinhole(camera: pycolmap.Camera) -> bool:
    """Whether a camera has no distortion."""
    return camera.model_name in ("PINHOLE", "SIMPLE_PINHOLE")
