"""Trainers of Gaussian splats: undistorted images, and a COLMAP model of pinhole cameras in sparse/0."""

from __future__ import annotations

import numpy as np

from pdc_sfm.colmap.io.models import add_points, write_model
from pdc_sfm.colmap.io.undistortion import is_pinhole
from pdc_sfm.export.formats import Export, register
from pdc_sfm.fusion.cloud import dense_cloud

SEEDS = 200_000  # points of a dense cloud: trainers add more where they are needed, and memory goes with them


@register("splats", images="images", holds=is_pinhole)
def write(export: Export) -> str:
    """sparse/0. Splats begin at the points of the model, all of which are written, and at those of its dense cloud."""
    folder = export.folder / "sparse" / "0"
    folder.mkdir(parents=True)
    cloud = dense_cloud(export.map)
    said = f"{export.model.num_reg_images()} images, {export.model.num_points3D():,} points to begin with"
    if cloud is not None:
        chosen = np.linspace(0, len(cloud[0]) - 1, min(SEEDS, len(cloud[0]))).astype(np.int64)
        add_points(export.model, *(part[chosen] for part in cloud))
        said += f", and {len(chosen):,} of the dense cloud"
    write_model(folder, export.model)
    return said
