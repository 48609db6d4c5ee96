"""One model as a page of its own, to turn around in a browser without a network."""

from __future__ import annotations

from pathlib import Path

from pdc_sfm.colmap.io.maps import find_map
from pdc_sfm.colmap.io.models import load_model
from pdc_sfm.colmap.io.results import read_poses
from pdc_sfm.errors import FormatError
from pdc_sfm.files import write_text
from pdc_sfm.fusion.cloud import dense_cloud
from pdc_sfm.report.model3d import section_of_model
from pdc_sfm.report.page import document
from pdc_sfm.report.run_data import Missing


def write_view(folder: Path | str, page: Path | str, queries: Path | str | None = None, sparse: bool = False) -> str:
    """Write the page of a map, with the poses of a results file; returns what it shows.

    The points are those of its dense cloud, if there is one below it, unless `sparse` asks for the model's.
    """
    found = find_map(folder)
    model = load_model(found.model)
    poses = {} if queries is None else read_poses(Path(queries))
    try:
        cloud = None if sparse else dense_cloud(folder)
        section = section_of_model(model, poses, cloud)
    except Missing as reason:
        raise FormatError(f"the model in {found.model} cannot be looked at: {reason}") from None
    points = f"{model.num_points3D():,} points" if cloud is None else f"{len(cloud[0]):,} points of the dense cloud"
    said = f"{points}, {model.num_reg_images()} cameras"
    said += f", {len(poses)} queries" if poses else ""
    write_text(page, document(Path(folder).resolve().name, said, [section]))
    return said
