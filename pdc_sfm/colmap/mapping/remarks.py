"""What else one should know of a map: why images are not in it and what to try, models apart, cameras."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import pycolmap

from pdc_sfm.colmap.io.cameras import CameraSettings
from pdc_sfm.colmap.mapping.intrinsics import Adjusted
from pdc_sfm.colmap.mapping.mappers import Models

MOST_NAMED = 20  # images of a line
FEW = 100  # verified matches of a dense pair: look-alikes have as many
TRY = {
    "no partner": "none of their pairs has matches that agree with one geometry: match with dense.method=search if they are "
    "turned or much nearer, give more pairs, or take photographs between",
    "unproven": "only small patches tie them to the map: take photographs between, or match with dense.method=search",
    "disputed": "pairs as strong as those that placed them say otherwise, so they were left out: do they show something that "
    "looks alike? Take photographs between",
    "partners elsewhere": "they match only images that are not in the map either: give pairs with others, or take "
    "photographs between",
    "too few matches": f"no pair with the map has {FEW} verified matches: take photographs between, or match with "
    "dense.method=search",
    "contradicted": "they have matches enough, but these do not agree with the map: do they show something that looks alike, "
    "or seen from one place only?",
}

STOOD_STILL = (
    "most matches stood still in the pictures (the background of a turntable, a frame, or what is far away) and were left out: "
    "they say nothing of where cameras stand"
)
HELD = (
    "focal lengths are those of EXIF, or as given: adjusted, some had left them by more than a quarter without explaining more; "
    "too few photographs tell them"
)
NO_DISTORTION = (
    "lens distortion was not adjusted: intrinsics ran away with it; the photographs tell focal lengths alone"
)


def explain_unregistered(
    model: pycolmap.Reconstruction,
    database: Path,
    names: Collection[str],
    unproven: Collection[str] = (),
    disputed: Collection[str] = (),
) -> tuple[str, ...]:
    """Reasons of the named images that a model lacks. `unproven` were in it before parts that little holds were taken out,
    `disputed` before those that pairs disagree on were."""
    registered = {model.image(i).name for i in model.reg_image_ids()}
    lost = sorted(set(names) - registered)
    if not lost:
        return ()
    best: dict[str, int] = {}  # matches of the strongest verified pair with an image of the map; 0: with others only
    with pycolmap.Database.open(database) as opened:
        name_of = {image.image_id: image.name for image in opened.read_all_images()}
        for pair_id, count in zip(*opened.read_two_view_geometry_num_inliers()):
            pair = [name_of[image_id] for image_id in pycolmap.pair_id_to_image_pair(pair_id)]
            for name, other in (pair, pair[::-1]):
                best[name] = max(best.get(name, 0), count if other in registered else 0)
    found: dict[str, list[str]] = {reason: [] for reason in TRY}
    for name in lost:
        found["disputed" if name in disputed else _reason(best.get(name), name in unproven)].append(name)
    return tuple(f"not registered, {why}: {_some(some)}; {TRY[why]}" for why, some in found.items() if some)


def _reason(best: int | None, unproven: bool) -> str:
    if unproven:
        return "unproven"
    if best is None:
        return "no partner"
    if best == 0:
        return "partners elsewhere"
    return "too few matches" if best < FEW else "contradicted"


def _some(names: list[str]) -> str:
    return ", ".join(names[:MOST_NAMED]) + (f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else "")


def remark_others(others: Models) -> tuple[str, ...]:
    """Models beside the main one."""
    if not others:
        return ()
    sizes = ", ".join(str(other.num_reg_images()) for other in others)
    return (f"{len(others)} smaller models apart from the main one, of {sizes} images, are kept in models/",)


def camera_remarks(model: pycolmap.Reconstruction, settings: CameraSettings, done: Adjusted = "all") -> tuple[str, ...]:
    """Where nothing is known of cameras and one may have taken all images, and where less was adjusted than was to be."""
    cameras = list(model.cameras.values())
    known = [camera.has_prior_focal_length for camera in cameras]
    kept = (NO_DISTORTION,) if settings.refine and done == "focal lengths" else ()
    if settings.refine and done == "nothing" and all(known):
        return (HELD,)
    alike = len({(camera.width, camera.height) for camera in cameras}) == 1
    if settings.mode != "auto" or len(cameras) < 3 or not alike or any(known):
        return kept
    return (
        *kept,
        "no image tells its focal length, and all are of one size: if one camera took them, camera.mode=single",
    )
