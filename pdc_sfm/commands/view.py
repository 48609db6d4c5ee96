"""Look at a model: turn it in a window, or write a picture of it.

The window needs open3d: pip install 'pdc-sfm[viewer]', and on Debian apt install libusb-1.0-0 libgl1. The picture
(--output) needs nothing. Any other viewer opens points.ply in the model's folder.

Examples:
  pdc-sfm view sfm/
  pdc-sfm view sfm/ --output cloud.png --azimuth 30 --elevation 20
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from pdc_sfm.commands.paths import Paths


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", type=Path, help="folder of a COLMAP model")
    parser.add_argument("--output", type=Path, help="write a picture instead of opening a window")
    parser.add_argument("--azimuth", type=float, default=20.0, help="degrees the picture is turned to the side")
    parser.add_argument("--elevation", type=float, default=15.0, help="degrees the picture is taken from above")
    parser.add_argument("--size", type=int, nargs=2, default=(1280, 800), metavar=("WIDTH", "HEIGHT"))
    parser.add_argument("--keep-outliers", action="store_true", help="show stray points too")
    parser.set_defaults(paths=Paths(models=("model",), pictures=("output",)))


def run(args: argparse.Namespace) -> None:
    import numpy as np

    from pdc_sfm.colmap.io.models import load_model, model_poses
    from pdc_sfm.colmap.io.pointcloud import model_points, remove_outliers
    from pdc_sfm.errors import FormatError

    model = load_model(args.model)
    points, colors = model_points(model)
    if len(points) == 0:
        raise FormatError(f"the model in {args.model} has no points to look at")
    if not args.keep_outliers:
        keep = remove_outliers(points)
        points, colors = points[keep], colors[keep]
    poses = np.stack(list(model_poses(model).values()))
    if args.output is None:
        _show(points, colors, poses)
        return
    from pdc_sfm.colmap.render import draw, overview
    from pdc_sfm.images import write_image

    view = overview(poses, points, tuple(args.size), args.azimuth, args.elevation)
    write_image(args.output, draw(points, colors, poses, view))
    print(f"{len(points):,} points, {len(poses)} cameras -> {args.output}")


def _show(points: Any, colors: Any, poses: Any) -> None:
    from pdc_sfm.errors import UserError

    try:
        import open3d
    except (ImportError, OSError) as error:  # OSError: a system library is missing
        raise UserError(
            f"the window needs open3d ({error}): pip install 'pdc-sfm[viewer]', and on Debian "
            "apt install libusb-1.0-0 libgl1; --output picture.png works without"
        ) from None
    cloud = open3d.geometry.PointCloud(open3d.utility.Vector3dVector(points))
    cloud.colors = open3d.utility.Vector3dVector(colors / 255.0)
    centers = -(poses[:, :, :3].transpose(0, 2, 1) @ poses[:, :, 3:])[..., 0]
    path = open3d.geometry.PointCloud(open3d.utility.Vector3dVector(centers))
    path.paint_uniform_color((0.84, 0.3, 0.17))
    open3d.visualization.draw_geometries([cloud, path], window_name="pdc-sfm view")
