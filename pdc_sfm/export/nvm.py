"""VisualSFM's model.nvm (NVM_V3): focal length, quaternion of camera from world, and center of each camera.

Its distortion is of measured points, COLMAP's of ideal ones, and neither has the other as its exact inverse: images with
distortion are undistorted.
"""

from __future__ import annotations

import numpy as np

from pdc_sfm.colmap.io.undistortion import is_pinhole
from pdc_sfm.export.formats import Export, register
from pdc_sfm.export.one_focal import focal_length, tracks, warn_of_losses, words
from pdc_sfm.files import write_text


@register("nvm", images="images", holds=is_pinhole, separators=" \t")
def write(export: Export) -> str:
    """model.nvm."""
    warn_of_losses(export, "NVM")
    ids, points = export.image_ids(), tracks(export)
    lines = ["NVM_V3", "", str(len(ids))]
    for image_id, (name, camera, pose) in zip(ids, export.views()):
        quaternion = np.asarray(export.model.image(image_id).cam_from_world().rotation.quat)[[3, 0, 1, 2]]
        center = -pose[:, :3].T @ pose[:, 3]
        lines.append(f"images/{name}\t{words(focal_length(camera), *quaternion, *center)} 0 0")
    lines += ["", str(len(points))]
    for place, color, observations in points:
        seen = (f"{row} {keypoint} {words(x, y)}" for row, keypoint, x, y in observations)
        rgb = " ".join(str(int(c)) for c in color)
        lines.append(f"{words(*place)} {rgb} {len(observations)} {' '.join(seen)}")
    write_text(export.folder / "model.nvm", "\n".join([*lines, "", "0", ""]))
    return f"{len(ids)} images, {len(points):,} points"
