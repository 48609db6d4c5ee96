"""No bridge without proof: what holds together becomes one model, and what only a weak link joined another."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pycolmap

from pdc_sfm.colmap.io.models import Verdict
from pdc_sfm.colmap.mapping.evidence import PairEvidence, frame_images, weigh_pairs
from pdc_sfm.colmap.mapping.links import proven_parts
from pdc_sfm.colmap.mapping.mappers import FEWEST, Models
from pdc_sfm.colmap.mapping.verdict import judge_links


def check_parts(model: pycolmap.Reconstruction, database: Path, split: bool = True) -> tuple[Models, Verdict]:
    """The proven parts of a model, the largest first, and the verdict on them by their verified pairs.

    A map falls apart where several of its images hold together on each side of a weak link. Single images that little ties to
    it are taken out, as if they had not been registered, and the rest is judged by itself.
    """
    pairs = list(weigh_pairs(model, database))
    verdict = judge_links(model, pairs)
    models = separate_parts(model, pairs) if split and verdict.kind == "falls apart" else []
    if len(models) != 1:
        return models or [model], verdict
    kept = set(models[0].reg_image_ids())
    return models, judge_links(models[0], [pair for pair in pairs if kept.issuperset((pair.first, pair.second))])


def separate_parts(model: pycolmap.Reconstruction, pairs: Sequence[PairEvidence]) -> Models:
    """The parts of a model that proven links hold together, the largest first.

    Images that nothing proves are in none of them.
    """
    parts = (part for part in proven_parts(set(frame_images(model).values()), pairs) if len(part) > 1)
    models = [found for part in parts if holds(found := _only(model, part))]
    return sorted(models, key=lambda found: (-found.num_reg_images(), -found.num_points3D()))


def _only(model: pycolmap.Reconstruction, images: frozenset[int]) -> pycolmap.Reconstruction:
    """A copy with these images alone, and the points that they see from places far enough apart to know their depth."""
    found = pycolmap.Reconstruction(model)
    manager = pycolmap.ObservationManager(found)
    kept = {model.image(image_id).frame_id for image_id in images}
    for frame_id in set(model.reg_frame_ids()) - kept:
        manager.deregister_frame(frame_id)
    least = pycolmap.IncrementalMapperOptions().filter_min_tri_angle
    manager.filter_points3D_with_small_triangulation_angle(least, set(found.point3D_ids()))
    return found


def holds(model: pycolmap.Reconstruction) -> bool:
    """Whether two images at least see enough points to count as registered."""
    return sum(model.image(image_id).num_points3D >= FEWEST for image_id in model.reg_image_ids()) >= 2
