"""What depth is found from: undistorted images, their cameras, their masks."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np

from pdc_sfm.colmap.io.maps import MapFiles
from pdc_sfm.colmap.io.models import load_model, write_model
from pdc_sfm.colmap.io.posed_views import PosedView, posed_views
from pdc_sfm.colmap.io.undistortion import original_points, undistort
from pdc_sfm.colmap.types import Reconstruction
from pdc_sfm.errors import FormatError, ImageError
from pdc_sfm.fusion.depth import MASKS
from pdc_sfm.fusion.workspace import Workspace
from pdc_sfm.images import name_problem
from pdc_sfm.matches.masks import Masks


def checked_model(found: MapFiles, images: Path | None) -> tuple[Reconstruction, Path]:
    """The model of a map and the folder of its images, all of which are there."""
    model = load_model(found.model)
    lies = images if images is not None else found.images
    if lies is None or not lies.is_dir():
        raise ImageError(
            f"the images of the map {found.model} are not {f'at {lies}' if lies else 'known'}: give --images"
        )
    names = [model.image(image_id).name for image_id in model.reg_image_ids()]
    for name in names:
        if problem := name_problem(name):
            raise FormatError(f"the model in {found.model} has an image whose name {name!r} {problem}")
    absent = [name for name in names if not (lies / name).is_file()]
    if absent:
        raise ImageError(f"{len(absent)} images of the map are not in {lies} (first: {absent[0]}): give --images")
    if len(names) < 2:
        raise FormatError(f"the model in {found.model} has {len(names)} image with a pose: depth takes two or more")
    if not model.num_points3D():
        raise FormatError(
            f"the model in {found.model} has no points, which say what images share: triangulate it first"
        )
    return model, lies


def prepare(
    model: Reconstruction, images: Path, workspace: Workspace, max_side: int, masks: Masks | None
) -> list[PosedView]:
    """Undistorted images and their model in the workspace, made once; the views of it."""
    if not workspace.sparse.is_dir():
        partial = workspace.work / "undistorted"
        for path in (partial, workspace.images):  # of a run that was killed
            shutil.rmtree(path, ignore_errors=True)
        partial.mkdir(parents=True)
        pinhole = undistort(model, images, partial, max_side)
        (partial / "sparse").mkdir()
        write_model(partial / "sparse", pinhole)
        if masks is not None:
            _undistort_masks(model, pinhole, masks, workspace)
        os.rename(partial / "images", workspace.images)
        os.rename(partial / "sparse", workspace.sparse)  # last: it says that the rest is there
        shutil.rmtree(partial)
    return posed_views(load_model(workspace.sparse))


def _undistort_masks(model: Reconstruction, pinhole: Reconstruction, masks: Masks, workspace: Workspace) -> None:
    for image_id in pinhole.reg_image_ids():
        image = pinhole.image(image_id)
        covers = masks.covers(image.name)
        if covers is None:
            continue
        original = model.camera(model.image(image_id).camera_id)
        masks.check(image.name, (original.width, original.height))
        points = original_points(original, pinhole.camera(image.camera_id))
        on = np.isfinite(points).all(-1)
        points[~on] = 0
        covered = masks.covered(image.name, points.reshape(-1, 2)).reshape(on.shape) | ~on
        workspace.save(MASKS, image.name, covered=covered)
