"""Cameras: models by name, settings for a reconstruction, and lists of images with intrinsics."""

from __future__ import annotations

import dataclasses
import difflib
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import pycolmap

from pdc_sfm.errors import FormatError, SettingsError
from pdc_sfm.paths import read_text
from pdc_sfm.settings import require
from pdc_sfm.store.pair_lists import check_name

LARGEST = 10**6  # pixels of a side: beyond any image, a sign of a damaged line
HIGHEST = 1e12  # of a parameter: likewise
# Focal length by the larger side of the image, from and to, and distortion, beyond which no photograph is believed. The widest
# lens that keeps lines straight has 9 mm for 36 mm of film, 0.25; one of 360 mm has 10, and as the distortion that is
# COLMAP's own limit. A fisheye lens whose circle lies within a 4:3 image has 0.2: for these models COLMAP's limit stays.
INTRINSIC_LIMITS = (0.25, 10.0, 1.0)
WIDEST_FISHEYE = 0.1  # COLMAP's min_focal_length_ratio
SLACK = 1.5  # factor around the intrinsics of a known camera that the limits always leave, so that it can be adjusted
FOCAL_LENGTHS = ("f", "fx", "fy")
MODELS = tuple(name for name in pycolmap.CameraModelId.__members__ if name != "INVALID")

CameraMode = Literal["auto", "single", "per_folder", "per_image"]


@dataclasses.dataclass(frozen=True)
class CameraSettings:
    """Intrinsics of a reconstruction."""

    model: str = "SIMPLE_RADIAL"  # any COLMAP camera model
    # fx,fy,cx,cy for PINHOLE and so on; empty: focal length from EXIF or a guess, then refined
    params: tuple[float, ...] = ()
    mode: CameraMode = "auto"  # which images share a camera; auto: by EXIF
    refine: bool = True  # adjust focal length and distortion in bundle adjustment

    def __post_init__(self) -> None:
        expected = camera_parameters(self.model)
        require(
            len(self.params) in (0, len(expected)),
            f"camera.params has {len(self.params)} values, {self.model} takes {len(expected)}: {', '.join(expected)}",
        )


def camera_parameters(model: str) -> list[str]:
    """Names of the parameters of a camera model, in COLMAP's order; an error if there is no such model."""
    if model not in MODELS:
        close = difflib.get_close_matches(model.upper(), MODELS, n=1)
        hint = f"did you mean {close[0]}?" if close else f"known: {', '.join(MODELS)}"
        raise SettingsError(f"unknown camera model {model}: {hint}")
    camera = pycolmap.Camera.create_from_model_name(1, model, 1.0, 2, 2)
    return [name.strip() for name in camera.params_info.split(",")]


def make_camera(model: str, width: int, height: int, params: Sequence[float]) -> pycolmap.Camera:
    """A camera with fixed, trusted intrinsics."""
    expected = camera_parameters(model)
    if len(params) != len(expected):
        raise SettingsError(f"{model} takes {len(expected)} parameters ({', '.join(expected)}), not {len(params)}")
    if width < 1 or height < 1:
        raise SettingsError(f"an image of {width} x {height} pixels")
    if max(width, height) > LARGEST:
        raise SettingsError(f"an image of {width} x {height} pixels is larger than any")
    if not all(math.isfinite(p) and abs(p) < HIGHEST for p in params):
        raise SettingsError(f"a parameter that cannot be: {', '.join(map(str, params))}")
    if any(p <= 0 for p, name in zip(params, expected) if name in FOCAL_LENGTHS):
        raise SettingsError(f"a focal length must be above 0: {', '.join(map(str, params))}")
    camera = pycolmap.Camera(model=model, width=width, height=height, params=list(params))
    camera.has_prior_focal_length = True
    return camera


def guess_camera(width: int, height: int) -> pycolmap.Camera:
    """COLMAP's guess of a camera of which only the size of its images is known."""
    params = np.array([1.2 * max(width, height), width / 2, height / 2, 0.0])
    guess = pycolmap.Camera(model="SIMPLE_RADIAL", width=width, height=height, params=params)
    guess.has_prior_focal_length = False
    return guess


def copy_camera(camera: pycolmap.Camera) -> pycolmap.Camera:
    """The same intrinsics, for a camera of its own."""
    copied = pycolmap.Camera(camera.todict())
    copied.camera_id = pycolmap.INVALID_CAMERA_ID
    return copied


def camera_of_exif(path: Path) -> pycolmap.Camera | None:
    """The camera of an image file that tells its focal length."""
    try:
        camera = pycolmap.infer_camera_from_image(path)
    except (RuntimeError, ValueError):
        return None
    return camera if camera.has_prior_focal_length else None


def intrinsic_limits(cameras: Iterable[pycolmap.Camera]) -> tuple[float, float, float]:
    """INTRINSIC_LIMITS, widened to hold what is known of these cameras, from EXIF or because it was given."""
    low, high, extra = INTRINSIC_LIMITS
    for camera in cameras:
        if "FISHEYE" in camera.model_name:
            low = min(low, WIDEST_FISHEYE)
        if camera.has_prior_focal_length:
            ratio = camera.mean_focal_length() / max(camera.width, camera.height)
            low, high = min(low, ratio / SLACK), max(high, ratio * SLACK)
            extra = max(extra, SLACK * max((abs(camera.params[i]) for i in camera.extra_params_idxs()), default=0.0))
    return low, high, extra


def read_camera_list(path: Path | str) -> dict[str, pycolmap.Camera]:
    """Images with intrinsics, `NAME MODEL WIDTH HEIGHT PARAMS...` a line. `path` may be a glob of several files."""
    path = Path(path)
    files = [path] if path.is_file() else sorted(path.parent.glob(path.name)) if path.name else []
    if not files:
        raise FormatError(f"no list of images with intrinsics at {path}")
    cameras: dict[str, pycolmap.Camera] = {}
    for file in files:
        for number, line in enumerate(_read_lines(file), start=1):
            words = line.split()
            if not words or words[0].startswith("#"):
                continue
            where = f"{file} line {number}"
            check_name(words[0], f"{where}: ")
            camera = _parse_camera(words, where)
            other = cameras.setdefault(words[0], camera)
            if repr(other) != repr(camera) or list(other.params) != list(camera.params):
                raise FormatError(f"{where}: {words[0]} was listed before with other intrinsics")
    if not cameras:
        raise FormatError(f"{path} lists no image")
    return cameras


def _read_lines(file: Path) -> list[str]:
    try:
        return read_text(file).split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise FormatError(f"cannot read {file}: {error}") from None


def _parse_camera(words: list[str], where: str) -> pycolmap.Camera:
    name, *intrinsics = words
    if len(intrinsics) < 4:
        raise FormatError(f"{where}: {name} has no intrinsics; write NAME MODEL WIDTH HEIGHT PARAMS...")
    model, width, height, *params = intrinsics
    try:
        if any("_" in word for word in (width, height, *params)):  # Python would take 1_0 for 10
            raise ValueError("digits, not `_`, make a number")
        return make_camera(model, int(width), int(height), [float(p) for p in params])
    except (SettingsError, ValueError) as error:
        raise FormatError(f"{where}: {name}: {error}") from None


def rays_of(camera: pycolmap.Camera, keypoints: np.ndarray) -> np.ndarray:
    """(N, 2) COLMAP coordinates -> (N, 2) normalized coordinates; NaN where the camera model cannot be inverted."""
    if len(keypoints) == 0:
        return np.zeros((0, 2))
    return np.asarray(camera.cam_from_img(np.ascontiguousarray(keypoints, np.float64)))
