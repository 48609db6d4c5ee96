"""Bundler's bundle.out (v0.3) and list.txt.

A camera looks along -z with y up: p = R X + t, then f r(p) (-p.xy / p.z) with r = 1 + k1 |.|^2 + k2 |.|^4, in pixels from
the image's center, x to the right and y up.
"""

from __future__ import annotations

import numpy as np

from pdc_sfm.colmap.types import Camera
from pdc_sfm.export.formats import Export, register
from pdc_sfm.export.one_focal import focal_length, parameters, tracks, warn_of_losses, words
from pdc_sfm.files import write_text

MODELS = ("SIMPLE_PINHOLE", "PINHOLE", "SIMPLE_RADIAL", "RADIAL")
FLIP = np.diag([1.0, -1.0, -1.0])  # COLMAP's axes of a camera -> Bundler's


@register("bundler", images="images", holds=lambda camera: camera.model_name in MODELS, separators=" \t")
def write(export: Export) -> str:
    """bundle.out, list.txt."""
    warn_of_losses(export, "Bundler")
    views, points = list(export.views()), tracks(export)
    lines = ["# Bundle file v0.3", f"{len(views)} {len(points)}"]
    for _, camera, pose in views:
        rotation, translation = FLIP @ pose[:, :3], FLIP @ pose[:, 3]
        lines += [
            words(focal_length(camera), *_radial(camera)),
            *(words(*row) for row in rotation),
            words(*translation),
        ]
    for place, color, observations in points:
        seen = (f"{row} {keypoint} {words(x, -y)}" for row, keypoint, x, y in observations)
        lines += [words(*place), " ".join(str(int(c)) for c in color), " ".join((str(len(observations)), *seen))]
    write_text(export.folder / "list.txt", "".join(f"images/{name}\n" for name, _, _ in views))
    write_text(export.folder / "bundle.out", "\n".join(lines) + "\n")
    return f"{len(views)} images, {len(points):,} points"


def _radial(camera: Camera) -> tuple[float, float]:
    values = parameters(camera)
    return values.get("k", values.get("k1", 0.0)), values.get("k2", 0.0)
