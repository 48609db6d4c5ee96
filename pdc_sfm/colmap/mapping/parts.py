"""No bridge without proof: what holds together becomes one model, and what only a weak link joined another."""

from __future__ import annotations

from collections.abc import Sequence

import pycolmap

from pdc_sfm.colmap.mapping.evidence import PairEvidence
from pdc_sfm.colmap.mapping.links import proven_parts
from pdc_sfm.colmap.mapping.mappers import FEWEST, Models


def separate_parts(model: pycolmap.Reconstruction, pairs: Sequence[PairEvidence]) -> Models:
    """The parts of a model that proven links hold together, the largest first; the model itself if it is one.

    Images that nothing proves are in none of them.
    """
    parts = [part for part in proven_parts(model.reg_image_ids(), pairs) if len(part) > 1]
    if len(parts) == 1 and len(parts[0]) == model.num_reg_images():
        return [model]
    models = [found for part in parts if holds(found := _only(model, part))]
    return sorted(models, key=lambda found: (-found.num_reg_images(), -found.num_points3D())) or [model]


def _only(model: pycolmap.Reconstruction, images: frozenset[int]) -> pycolmap.Reconstruction:
    """A copy with these images alone, and the points that they see."""
    found = pycolmap.Reconstruction(model)
    manager = pycolmap.ObservationManager(found)
    kept = {model.image(image_id).frame_id for image_id in images}
    for frame_id in set(model.reg_frame_ids()) - kept:
        manager.deregister_frame(frame_id)
    return found


def holds(model: pycolmap.Reconstruction) -> bool:
    """Whether two images at least see enough points to count as registered."""
    return sum(model.image(image_id).num_points3D >= FEWEST for image_id in model.reg_image_ids()) >= 2
