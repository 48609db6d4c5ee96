"""No bridge without proof: what holds together becomes one model, and what only a weak link joined another."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pycolmap

from pdc_sfm.colmap.io.models import Verdict, model_poses
from pdc_sfm.colmap.mapping.evidence import PairEvidence, frame_images, weigh_pairs
from pdc_sfm.colmap.mapping.links import find_links, opposed_links, proven_parts
from pdc_sfm.colmap.mapping.mappers import FEWEST, Models
from pdc_sfm.colmap.mapping.places import returning_pairs
from pdc_sfm.colmap.mapping.repeats import repeated_links
from pdc_sfm.colmap.mapping.verdict import judge_links, judge_repeats

MOST_DISPUTED = 1 / 3  # of the images: what is left is twice what is left out, or the whole map is in doubt


class CheckedParts(NamedTuple):
    """What a model became by the check of its parts."""

    models: Models  # the largest first
    verdict: Verdict  # on the first, or on the whole where it falls apart
    disputed: tuple[str, ...] = ()  # images left out since pairs disagree on their place


def check_parts(model: pycolmap.Reconstruction, database: Path, images: Path, split: bool = True) -> CheckedParts:
    """The proven parts of a model, and the verdict on them by their verified pairs and by the pictures.

    A map falls apart where several of its images hold together on each side of a weak link. Single images that little ties to
    it are taken out, as if they had not been registered, and the rest is judged by itself. So are images that pairs disagree
    on, if the rest is consistent without them. Where cameras come back to one place nothing is taken out (`_without_disputed`).
    What all this finds consistent is doubted if only what repeats in the pictures joins a part of it.
    """
    pairs = list(weigh_pairs(model, database))
    checked = _checked_pairs(model, pairs, split)
    if checked.verdict.kind != "consistent":
        return checked
    (model,) = checked.models
    repeated = repeated_links(model, _among(model, pairs), database, images)
    return checked._replace(verdict=judge_repeats(model, repeated))


def _checked_pairs(model: pycolmap.Reconstruction, pairs: Sequence[PairEvidence], split: bool) -> CheckedParts:
    """The same by the verified pairs alone."""
    verdict = judge_links(model, pairs)
    models = separate_parts(model, pairs) if split and verdict.kind == "falls apart" else []
    if len(models) > 1:
        return CheckedParts(models, verdict)
    if models and not returning_pairs(model, pairs):
        model, pairs = models[0], _among(models[0], pairs)
        verdict = judge_links(model, pairs)
    undisputed = _without_disputed(model, pairs) if split and verdict.kind == "doubtful" else None
    if undisputed is None:
        return CheckedParts([model], verdict)
    left = set(model_poses(model)) - set(model_poses(undisputed))
    return CheckedParts([undisputed], Verdict(), tuple(sorted(left)))


def _without_disputed(model: pycolmap.Reconstruction, pairs: Sequence[PairEvidence]) -> pycolmap.Reconstruction | None:
    """The model without images that pairs disagree on; None if it is no better, or if that may not be told of single images.

    Cameras that come back to one place speak of a thing that looks the same from several sides. Without some of its images
    what is left of its map would still be one side laid over another, and look consistent.
    """
    images = set(frame_images(model).values())
    out = frozenset[int]().union(*(link.part for link in opposed_links(find_links(images, pairs))))
    if not out or len(out) > MOST_DISPUTED * len(images) or returning_pairs(model, pairs):
        return None
    rest = _only(model, frozenset(images - out))
    return rest if holds(rest) and judge_links(rest, _among(rest, pairs)).kind == "consistent" else None


def _among(model: pycolmap.Reconstruction, pairs: Sequence[PairEvidence]) -> list[PairEvidence]:
    """The pairs of registered images."""
    registered = set(model.reg_image_ids())
    return [pair for pair in pairs if registered.issuperset((pair.first, pair.second))]


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
