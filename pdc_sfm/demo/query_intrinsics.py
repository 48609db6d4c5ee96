"""Intrinsics of queries: from a list, a rig, the map's camera of the same size, or EXIF."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from pdc_sfm.colmap.io.cameras import FOCAL_LENGTHS, camera_of_exif, camera_parameters, make_camera
from pdc_sfm.colmap.io.rigs import Rigs
from pdc_sfm.colmap.types import Camera, Reconstruction
from pdc_sfm.demo.query_rigs import SOURCE, rig_intrinsics
from pdc_sfm.errors import FormatError, UserError
from pdc_sfm.images import read_image
from pdc_sfm.pixels import Size

EXIF = "EXIF"
EXIF_SIGMA = 0.03  # relative: EXIF rounds to whole millimetres, of about 28, and phones crop pictures
TURNED = ("SIMPLE_PINHOLE", "PINHOLE", "SIMPLE_RADIAL", "RADIAL")
SAME_CAMERA = 0.1  # by which focal lengths of one camera may differ, relative: EXIF is rounded, lenses differ by more


def query_cameras(
    links: Mapping[str, str],
    files: Mapping[str, Path],
    listed: Mapping[str, Camera] | None,
    model: Reconstruction,
    rigs: Rigs,
) -> tuple[dict[str, Camera], dict[str, str]]:
    """Intrinsics by link, and where they are from or why there are none by name."""
    cameras, sources = {}, {}
    for name, link in links.items():
        try:
            if listed:
                camera, sources[name] = listed[name], "the list"
            else:
                camera, sources[name] = _intrinsics(files[name], model, name, rigs)
        except UserError as error:
            sources[name] = str(error)
            continue
        cameras[link] = camera
    return cameras, sources


def _intrinsics(path: Path, model: Reconstruction, name: str, rigs: Rigs) -> tuple[Camera, str]:
    height, width = read_image(path).shape[:2]
    if (given := rig_intrinsics(rigs, name, (width, height))) is not None:
        return given, SOURCE
    return intrinsics_of((width, height), camera_of_exif(path), model)


def intrinsics_of(size: Size, said: Camera | None, model: Reconstruction) -> tuple[Camera, str]:
    """Of the map's cameras of an image's size, if they agree with each other and with what EXIF said; else those."""
    width, height = size
    if said is not None and (said.width, said.height) != (width, height):
        said = None
    known = list(model.cameras.values())
    same, source = [camera for camera in known if (camera.width, camera.height) == (width, height)], "the map's camera"
    if not same and said is None:  # portrait, where the map's pictures are landscape, or the other way
        turned = (_turned(camera, size) for camera in known)
        same, source = [camera for camera in turned if camera is not None], "the map's camera, turned"
    if same:
        lengths = np.array([_focal_length(camera) for camera in same])
        usual = same[int(np.argsort(lengths)[len(same) // 2])]
        others = [*lengths, *([_focal_length(said)] if said is not None else [])]
        if max(abs(np.log(other / _focal_length(usual))) for other in others) <= SAME_CAMERA:
            return usual, source
    if said is not None:
        return said, EXIF
    why = "cameras of that size in the map differ" if same else "no camera of the map has that size"
    raise FormatError(
        f"intrinsics are not known ({width} x {height}, no focal length in EXIF, {why}): list them with --queries"
    )


def _turned(camera: Camera, size: Size) -> Camera | None:
    """A camera turned by a quarter, if its images then have this size; of those whose lens is the same along both axes.

    To which side it was turned is not known: the principal point is taken to be the center.
    """
    if (camera.height, camera.width) != size or camera.model_name not in TURNED:
        return None
    width, height = size
    values = dict(zip(camera_parameters(camera.model_name), camera.params))
    values |= {"cx": width / 2, "cy": height / 2, "fx": values.get("fy"), "fy": values.get("fx")}
    params = [float(values[key]) for key in camera_parameters(camera.model_name)]
    return make_camera(camera.model_name, width, height, params)


def _focal_length(camera: Camera) -> float:
    """Pixels, the mean of both axes."""
    values = dict(zip(camera_parameters(camera.model_name), camera.params))
    return float(np.mean([values[key] for key in FOCAL_LENGTHS if key in values]))
