"""What speaks against a finished model: one line for each reason why it may be nonsense."""

from __future__ import annotations

import pycolmap

from pdc_sfm.colmap.io.cameras import intrinsic_limits
from pdc_sfm.colmap.io.models import ModelSummary
from pdc_sfm.colmap.mapping.mappers import FEWEST, Cameras, runaway_cameras

MAX_ERROR = 4.0  # pixels: what COLMAP allows each single observation; the mean of a sane model lies far below


def find_doubts(
    model: pycolmap.Reconstruction, summary: ModelSummary, cameras: Cameras | None = None, held: bool = False
) -> tuple[str, ...]:
    """Doubts about a model; none is no proof. `cameras` are those before mapping, None if they were not adjusted.

    `held`: intrinsics were to be adjusted, and stayed as they were guessed, since they ran away.
    """
    found = [_error_doubt(summary), _observation_doubt(model)]
    if cameras is not None:
        found.append(_intrinsics_doubt(model, cameras))
    if held:
        found.append(
            "the photographs do not tell focal lengths (of a plane, from one place, or straight ahead?): they are "
            "those guessed before mapping; give camera.params, or camera.mode=single if one camera took them"
        )
    return tuple(line for line in found if line)


def _error_doubt(summary: ModelSummary) -> str:
    if summary.reprojection_error <= MAX_ERROR:
        return ""
    return (
        f"the mean reprojection error is {summary.reprojection_error:.1f} px, more than the {MAX_ERROR:.0f} px that "
        "a single observation may have"
    )


def _observation_doubt(model: pycolmap.Reconstruction) -> str:
    images = [model.image(image_id) for image_id in sorted(model.reg_image_ids())]
    blind = [image.name for image in images if 0 < image.num_points3D < FEWEST]
    if not blind:
        return ""
    return f"{len(blind)} of {len(images)} images see fewer than {FEWEST} points (first: {blind[0]})"


def _intrinsics_doubt(model: pycolmap.Reconstruction, cameras: Cameras) -> str:
    limits = intrinsic_limits(cameras.values())
    wrong = runaway_cameras(model, limits)
    if not wrong:
        return ""
    first = wrong[0]
    image = min(model.image(i).name for i in model.reg_image_ids() if model.image(i).camera_id == first.camera_id)
    ratio = first.mean_focal_length() / max(first.width, first.height)
    distortion = max((float(first.params[i]) for i in first.extra_params_idxs()), key=abs, default=0.0)
    return (
        f"{len(wrong)} of {len({model.image(i).camera_id for i in model.reg_image_ids()})} cameras cannot be: that of "
        f"{image} has a focal length of {ratio:.3g} times its larger side and a distortion of {distortion:.3g} "
        f"(plausible: {limits[0]:.3g} to {limits[1]:.3g}, and up to {limits[2]:.3g}); give camera.params, or "
        "camera.mode=single if one camera took them"
    )
