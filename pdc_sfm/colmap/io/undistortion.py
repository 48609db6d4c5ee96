"""Images and models without distortion: what programs read that know pinhole cameras only."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pycolmap

from pdc_sfm.colmap.io.models import load_model, write_model
from pdc_sfm.colmap.quiet import colmap_log
from pdc_sfm.errors import ImageError


def undistort(model: pycolmap.Reconstruction, images: Path, folder: Path) -> pycolmap.Reconstruction:
    """Write undistorted images to `folder`/images, as COLMAP makes them. Returns their model, of PINHOLE cameras."""
    with tempfile.TemporaryDirectory(dir=folder) as place, colmap_log():
        given, made = Path(place) / "given", Path(place) / "made"
        given.mkdir()
        made.mkdir()
        write_model(given, model)
        pycolmap.undistort_images(made, given, images, jpeg_quality=95)
        pinhole = load_model(made / "sparse")
        names = [pinhole.image(image_id).name for image_id in pinhole.reg_image_ids()]
        absent = [name for name in names if not (made / "images" / name).is_file()]
        if absent:  # COLMAP goes on without a word
            raise ImageError(f"COLMAP cannot undistort {images / absent[0]} ({len(absent)} such images)")
        shutil.move(made / "images", folder / "images")
    return pinhole


def is_pinhole(camera: pycolmap.Camera) -> bool:
    """Whether a camera has no distortion."""
    return camera.model_name in ("PINHOLE", "SIMPLE_PINHOLE")
