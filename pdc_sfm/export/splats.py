"""Trainers of Gaussian splats: undistorted images, and a COLMAP model of pinhole cameras in sparse/0."""

from __future__ import annotations

from pdc_sfm.colmap.io.models import write_model
from pdc_sfm.colmap.io.undistortion import is_pinhole
from pdc_sfm.export.formats import Export, register


@register("splats", images="images", holds=is_pinhole)
def write(export: Export) -> str:
    """sparse/0. Splats begin at the points of the model, all of which are written."""
    folder = export.folder / "sparse" / "0"
    folder.mkdir(parents=True)
    write_model(folder, export.model)
    return f"{export.model.num_reg_images()} images, {export.model.num_points3D():,} points to begin with"
