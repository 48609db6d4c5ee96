"""Show a map in a browser, or write a picture of it.

OUT is what `map`, `reconstruct` or `triangulate` wrote, or any COLMAP model. The page is one file that works offline; --page
keeps it. --queries also shows the poses that `localize` wrote. If `densify` made a
cloud of the map, it is shown (--sparse: the map's own points). Other viewers can open points.ply in the model's folder
and fused.ply in OUT/dense.

Examples:
  pdc-sfm view outputs/photos
  pdc-sfm view sfm/ --output cloud.png --azimuth 30 --elevation 20
"""

from __future__ import annotations

import argparse
import tempfile
import webbrowser
from pathlib import Path

from pdc_sfm.commands.shared.paths import Paths


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", type=Path, metavar="OUT", help="map, or folder of a COLMAP model")
    parser.add_argument("--page", type=Path, help="write the page to this file instead of opening it")
    parser.add_argument("--queries", type=Path, help="results.txt of localize, shown in the map")
    parser.add_argument("--output", type=Path, help="write a picture instead")
    parser.add_argument("--azimuth", type=float, default=20.0, help="degrees around the vertical axis")
    parser.add_argument("--elevation", type=float, default=15.0, help="degrees above the horizon")
    parser.add_argument("--size", type=int, nargs=2, default=(1280, 800), metavar=("WIDTH", "HEIGHT"))
    parser.add_argument("--sparse", action="store_true", help="show the map's own points, not its dense cloud")
    parser.add_argument("--keep-outliers", action="store_true", help="show stray points in the picture too")
    parser.set_defaults(paths=Paths(models=("model",), inputs=("queries",), files=("page",), pictures=("output",)))


def run(args: argparse.Namespace) -> None:
    if args.output is not None:
        _draw(args)
        return
    from pdc_sfm.report.view import write_view

    page = args.page or Path(tempfile.mkdtemp(prefix="pdc-sfm-")) / "view.html"
    print(f"{write_view(args.model, page, args.queries, args.sparse)} -> {page}")
    if args.page is None and not webbrowser.open(page.as_uri()):
        print("no browser was found here: open that file in one")


def _draw(args: argparse.Namespace) -> None:
    """A picture without a browser."""
    import numpy as np

    from pdc_sfm.colmap.io.maps import find_map
    from pdc_sfm.colmap.io.models import load_model, model_poses
    from pdc_sfm.colmap.io.pointcloud import model_points, remove_outliers
    from pdc_sfm.colmap.render import draw, overview
    from pdc_sfm.errors import FormatError
    from pdc_sfm.fusion.cloud import dense_cloud
    from pdc_sfm.images import write_image

    model = load_model(find_map(args.model).model)
    cloud = None if args.sparse else dense_cloud(args.model)
    points, colors = cloud or model_points(model)
    if len(points) == 0:
        raise FormatError(f"the model in {args.model} has no points to look at")
    if not args.keep_outliers and cloud is None:
        keep = remove_outliers(points)
        points, colors = points[keep], colors[keep]
    poses = np.stack(list(model_poses(model).values()))
    view = overview(poses, points, tuple(args.size), args.azimuth, args.elevation)
    write_image(args.output, draw(points, colors, poses, view))
    print(f"{len(points):,} points, {len(poses)} cameras -> {args.output}")
