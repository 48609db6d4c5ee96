"""Models on disk, in COLMAP's format, with a summary and a colored point cloud."""

from __future__ import annotations

import dataclasses
import json
import logging
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pycolmap

from pdc_sfm import __version__
from pdc_sfm.colmap.io.frame import MapFrame, read_frame, write_frame
from pdc_sfm.colmap.io.model_files import check_binary_model
from pdc_sfm.colmap.io.pointcloud import model_points, remove_outliers, write_ply
from pdc_sfm.colmap.quiet import colmap_log
from pdc_sfm.errors import FormatError, StorageError, UserError
from pdc_sfm.paths import MADE_MODEL, keep_apart

log = logging.getLogger(__name__)

SUMMARY = "summary.json"  # written last: its presence says that a result is complete


class ReconstructionError(UserError):
    """COLMAP could not make a model of what it was given."""


@dataclasses.dataclass(frozen=True)
class ModelSummary:
    """What one wants to know first about a model."""

    images: int  # that could have been registered
    registered: int
    points: int
    mean_track_length: float
    reprojection_error: float  # pixels, mean over points

    def __str__(self) -> str:
        return (
            f"{self.registered} of {self.images} images registered, {self.points:,} points, "
            f"mean track length {self.mean_track_length:.2f}, reprojection error {self.reprojection_error:.2f} px"
        )


@dataclasses.dataclass(frozen=True)
class Verdict:
    """What a map says of itself after a self-check. "consistent" is no proof: nothing that was looked at speaks against it."""

    kind: Literal["consistent", "doubtful", "falls apart"] = "consistent"
    reasons: tuple[str, ...] = ()  # why not, a line each, with what to do
    images: tuple[str, ...] = ()  # that are in doubt
    parts: tuple[tuple[str, ...], ...] = ()  # images that hold together, where the map falls apart
    pairs: tuple[tuple[str, str, str], ...] = ()  # to look at: what the map does with it, and the two images

    def __str__(self) -> str:
        if self.kind == "consistent":
            return "the map is consistent: its verified pairs agree with it, and hold it together"
        reasons = f"for {len(self.reasons)} reasons" if len(self.reasons) > 1 else "for the reason"
        what = "IS DOUBTFUL" if self.kind == "doubtful" else "FALLS APART"
        return f"THIS MODEL {what}, {reasons} above: look at it before you use it (pdc-sfm view)"


@dataclasses.dataclass(frozen=True)
class MappingResult:
    """A new model, what of the input it does not use (a line for each reason), what else one should know, and how far to
    trust it."""

    model: pycolmap.Reconstruction
    summary: ModelSummary
    left_out: tuple[str, ...]
    remarks: tuple[str, ...] = ()
    verdict: Verdict = Verdict()

    def warn(self) -> None:
        """Log what was left out, and why the model may be nonsense."""
        for line in self.left_out:
            log.warning(f"left out: {line}")
        for line in self.verdict.reasons:
            log.warning(f"{self.verdict.kind}: {line}")


def load_model(path: Path | str) -> pycolmap.Reconstruction:
    """Read a model from its folder (.bin or .txt files)."""
    path = Path(path)
    for suffix in (".bin", ".txt"):
        if all((path / f"{name}{suffix}").is_file() for name in ("cameras", "images", "points3D")):
            break
    else:
        raise FormatError(f"{path} holds no COLMAP model: expected cameras, images and points3D, as .bin or .txt")
    if suffix == ".bin":
        check_binary_model(path)
    try:
        with colmap_log():
            model = pycolmap.Reconstruction(path)
        _refuse_nonsense(model)
    except (ValueError, RuntimeError, IndexError, KeyError, TypeError, OverflowError, MemoryError) as error:
        raise FormatError(f"cannot read the COLMAP model in {path}: {' '.join(str(error).split())}") from None
    return model


def _refuse_nonsense(model: pycolmap.Reconstruction) -> None:
    """A flipped bit in a number goes unnoticed by COLMAP; where it makes nonsense of it, it shall not go on."""
    for camera in model.cameras.values():
        if not np.isfinite(camera.params).all() or not 0 < camera.width < 10**6 or not 0 < camera.height < 10**6:
            raise ValueError(f"camera {camera.camera_id} cannot be: {camera.width} x {camera.height}, {camera.params}")
    for image_id in model.reg_image_ids():
        image = model.image(image_id)
        rotation = np.asarray(image.cam_from_world().matrix())
        if not np.isfinite(rotation).all() or abs(np.linalg.det(rotation[:, :3]) - 1) > 1e-3:
            raise ValueError(f"the pose of {image.name} is none")


def add_points(model: pycolmap.Reconstruction, points: np.ndarray, colors: np.ndarray) -> None:
    """Add points (N, 3) of colors (N, 3) uint8 that no image is said to see."""
    for point, color in zip(points, colors):
        model.add_point3D(point, pycolmap.Track(), color)


def has_metres(model: Path | str | pycolmap.Reconstruction) -> bool:
    """Whether a model's unit may be taken for metres: not if `reconstruct` made it of matches alone, as its files say.

    A rig whose cameras' places are known gives a map its unit.
    """
    path = None if isinstance(model, pycolmap.Reconstruction) else Path(model) / SUMMARY
    if path is None or not path.is_file() or read_frame(path.parent) is not None:
        return True
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        return content.get("metres", False) or "mapper" not in content.get("settings", {})
    except (OSError, ValueError, AttributeError) as error:
        raise FormatError(f"cannot read {path}: {error}") from None


def model_poses(model: pycolmap.Reconstruction) -> dict[str, np.ndarray]:
    """`cam_from_world` (3, 4) of every registered image, by name."""
    images = (model.image(image_id) for image_id in sorted(model.reg_image_ids()))
    return {image.name: np.asarray(image.cam_from_world().matrix()) for image in images}


def summarize(model: pycolmap.Reconstruction, images: int | None = None) -> ModelSummary:
    """Figures of a model; `images` is how many could have been registered."""
    return ModelSummary(
        images=model.num_images() if images is None else images,
        registered=model.num_reg_images(),
        points=model.num_points3D(),
        mean_track_length=model.compute_mean_track_length() if model.num_points3D() else 0.0,
        reprojection_error=model.compute_mean_reprojection_error() if model.num_points3D() else 0.0,
    )


def write_model(folder: Path, model: pycolmap.Reconstruction) -> None:
    """Write a model's files. COLMAP does not notice when they end early, on a full disk."""
    model.write_binary(folder)
    try:
        check_binary_model(folder)
    except FormatError as error:
        raise StorageError(f"cannot write the model: {error}; is the disk full? Make room and run again") from None


def named(images: Path | str, features: Path | str) -> dict[str, str]:
    """Where the images and features of a model lie, for those who localize in it."""
    return {"images": str(Path(images).absolute()), "features": str(Path(features).absolute())}


def keep_model_apart(
    images: Path | str, inputs: Iterable[Path | str], output: Path | str, models: Iterable[Path | str] = ()
) -> None:
    """Refuse a folder for a new model that would replace or mix with what it is made of."""
    replaced = [Path(output) / name for name in MADE_MODEL]
    keep_apart(images=[images], inputs=inputs, models=models, folders=[output], replaced=replaced)


def save_model(
    folder: Path,
    model: pycolmap.Reconstruction,
    summary: ModelSummary,
    notes: dict[str, Any],
    keep_outliers: bool,
    frame: MapFrame | None = None,
) -> None:
    """Write model, point cloud, frame and summary into a folder (which `files.atomic_folder` then publishes)."""
    write_model(folder, model)
    write_frame(folder, frame)
    points, colors = model_points(model)
    if not keep_outliers:
        keep = remove_outliers(points)
        points, colors = points[keep], colors[keep]
    write_ply(folder / "points.ply", points, colors)
    content = {"model": dataclasses.asdict(summary), **notes}
    content["versions"] = {"pdc_sfm": __version__, "pycolmap": pycolmap.__version__}
    (folder / SUMMARY).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
