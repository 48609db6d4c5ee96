"""The self-check of a finished model: consistent, doubtful, or falling apart, with a line for each reason."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Literal

import pycolmap

from pdc_sfm.colmap.io.cameras import intrinsic_limits
from pdc_sfm.colmap.io.models import ModelSummary, Verdict
from pdc_sfm.colmap.mapping.coverage_cells import GRID
from pdc_sfm.colmap.mapping.evidence import PairEvidence, frame_images
from pdc_sfm.colmap.mapping.intrinsics import Cameras, drifted_cameras, focal_drift, runaway_cameras, used_cameras
from pdc_sfm.colmap.mapping.links import (
    MIN_FIT,
    Link,
    connected_parts,
    find_links,
    opposed_links,
    proven_parts,
    supports,
)
from pdc_sfm.colmap.mapping.mappers import FEWEST
from pdc_sfm.colmap.mapping.places import returning_pairs, returning_views
from pdc_sfm.colmap.mapping.repeats import LinkKeypoints

MAX_ERROR = 4.0  # pixels: what COLMAP allows each single observation; the mean of a sane model lies far below
MOST_NAMED = 8  # images of a line
MOST_LINES = 5  # of one kind


def judge(
    model: pycolmap.Reconstruction, summary: ModelSummary, cameras: Cameras | None = None, untold: bool = False
) -> Verdict:
    """The verdict on a model by itself. `cameras` are those before mapping, None if they were not adjusted.

    `untold`: focal lengths ran away when they were adjusted, and the photographs do not tell them.
    """
    reasons = [_error_doubt(summary), _observation_doubt(model)]
    if cameras is not None:
        reasons += [_intrinsics_doubt(model, cameras), _drift_doubt(model, cameras)]
    if untold:
        reasons.append(
            "the photographs do not tell focal lengths (of a plane, from one place, or straight ahead?): they are little more "
            "than a guess; give camera.params, or camera.mode=single if one camera took them"
        )
    return Verdict("doubtful", tuple(filter(None, reasons))) if any(reasons) else Verdict()


def judge_links(model: pycolmap.Reconstruction, pairs: Sequence[PairEvidence]) -> Verdict:
    """Whether the verified pairs of a model hold it together, and agree with it."""
    ids = set(frame_images(model).values())
    parts = connected_parts(ids, [pair for pair in pairs if supports(pair)])
    links = find_links(ids, pairs)
    weak, against = [link for link in links if link.is_weak], [link for link in links if link.is_contradicted]
    opposed, denied = opposed_links(links), [link for link in links if link.is_denied]
    lines = [f"no verified pair that the map explains joins {_names(model, part)} to the rest" for part in parts[1:]]
    lines += [_weak_line(model, link) for link in weak] + [_denied_line(model, link) for link in denied]
    lines += [_contradicted_line(model, link) for link in opposed]
    bent = min((link for link in links if link.is_bent), key=lambda link: link.fit, default=None)
    if bent:
        lines.append(_bent_line(model, bent))
    if returned := returning_pairs(model, pairs):
        lines.append(_returned_line(model, [(pair.first, pair.second) for pair in returned]))
    if not lines:
        return Verdict()
    doubted = {image for link in (*weak, *denied, *against) for image in link.part}.union(*parts[1:])
    doubted |= bent.part if bent else set()
    doubted |= {image for pair in returned for image in (pair.first, pair.second)}
    kind: Literal["doubtful", "falls apart"] = "falls apart" if len(parts) > 1 or weak or denied else "doubtful"
    strong = proven_parts(ids, pairs) if kind == "falls apart" else []
    shown = [("little holds", link.pair) for link in weak[:MOST_LINES]]
    shown += [("two things that look alike?", link.pair) for link in denied[:MOST_LINES]]
    for link in opposed[:MOST_LINES]:
        shown += [("the map follows", link.pair)] + ([("it contradicts", link.against)] if link.against else [])
    shown += [("laid over each other", pair) for pair in returned[:1]]
    return Verdict(
        kind,
        _shortened(lines),
        _sorted_names(model, doubted),
        tuple(_sorted_names(model, p) for p in strong),
        tuple((what, *_pair_names(model, pair)) for what, pair in shown),
    )


def judge_views(model: pycolmap.Reconstruction, same_views: Sequence[tuple[str, str]]) -> Verdict:
    """Whether the model lets a thing before a background that stands still come back to how it stood."""
    returned = returning_views(model, same_views)
    if not returned:
        return Verdict()
    images = _sorted_names(model, {image for pair in returned for image in pair})
    first = tuple(model.image(image).name for image in returned[0])
    return Verdict(
        "doubtful", (_returned_line(model, returned),), images, pairs=(("laid over each other", first[0], first[1]),)
    )


def judge_repeats(model: pycolmap.Reconstruction, repeated: Sequence[tuple[Link, LinkKeypoints]]) -> Verdict:
    """What is said of links that repeated structure alone supports."""
    if not repeated:
        return Verdict()
    lines = [_repeated_line(model, link, found) for link, found in repeated]
    shown = tuple(("only what repeats?", *_pair_names(model, link.pair)) for link, _ in repeated[:MOST_LINES])
    images = _sorted_names(model, {image for link, _ in repeated for image in link.part})
    return Verdict("doubtful", _shortened(lines), images, pairs=shown)


def _weak_line(model: pycolmap.Reconstruction, link: Link) -> str:
    count = "one pair" if link.pairs == 1 else f"{link.pairs} pairs"
    return (
        f"little holds {_names(model, link.part)} to the rest: {count}, the strongest {_pair(model, link.pair)} "
        f"with {link.pair.matches} matches on {_share(model, link.pair, link.pair.explained_cells)}; it may stand elsewhere: "
        "take photographs between the two parts, or match with dense.method=search"
    )


def _denied_line(model: pycolmap.Reconstruction, link: Link) -> str:
    return (
        f"{_names(model, link.part)} may show another thing than the rest that looks alike: of what both sides see at one place, "
        f"as the map has it, {link.missed:.0%} does not match, as if it were not the same ({_pair(model, link.pair)}); take "
        "photographs between the two parts, or leave one out"
    )


def _contradicted_line(model: pycolmap.Reconstruction, link: Link) -> str:
    assert link.against is not None
    agreed = " and others that agree on another place" if link.has_alternative else ""
    return (
        f"pairs disagree on the place of {_names(model, link.part)}: the map follows {_pair(model, link.pair)} "
        f"({_share(model, link.pair, link.pair.explained_cells)}) and contradicts {_pair(model, link.against)} "
        f"({_share(model, link.against, link.against.cells)}){agreed}; do they show two things that look alike? Leave one side "
        "out, or take photographs between"
    )


def _bent_line(model: pycolmap.Reconstruction, link: Link) -> str:
    return (
        f"the map explains only {link.fit:.0%} of the matches that hold {_names(model, link.part)} to the rest as closely as "
        f"their pairs do, of which right maps explain {MIN_FIT:.0%} and more: it is bent, or things look the same from several "
        "sides; take photographs between, or give camera.params if focal lengths were guessed"
    )


def _repeated_line(model: pycolmap.Reconstruction, link: Link, found: LinkKeypoints) -> str:
    return (
        f"{_names(model, link.part)} may belong elsewhere: {found.share:.0%} of what joins this part to the rest repeats "
        f"in the pictures, as equal windows do ({_pair(model, link.pair)}), and hardly anything that is to be found only once "
        "matches; take photographs between the two parts, or with more in view that does not repeat"
    )


def _returned_line(model: pycolmap.Reconstruction, pairs: Sequence[tuple[int, int]]) -> str:
    images = {image for pair in pairs for image in pair}
    first, second = (model.image(image).name for image in pairs[0])
    return (
        f"{first} - {second} stand at exactly one place, as {len(images)} images do, though those between them do not: "
        "one side of a thing is laid over another that looks the same, unless they are copies, or a tripod stood there twice; "
        "leave one side out, or take photographs with more around the thing in view"
    )


def _share(model: pycolmap.Reconstruction, pair: PairEvidence, cells: int) -> str:
    """Of the picture that a pair's matches cover, in words."""
    cameras = (model.camera(model.image(image_id).camera_id) for image_id in (pair.first, pair.second))
    sides = [sorted((camera.width, camera.height)) for camera in cameras]
    whole = min(GRID * GRID * short / long for short, long in sides)
    return f"{min(1.0, cells / whole):.0%} of the picture"


def join_verdicts(first: Verdict, second: Verdict) -> Verdict:
    """The worse of both, with the reasons of both."""
    kind = second.kind if first.kind == "consistent" or second.kind == "falls apart" else first.kind
    reasons, images = first.reasons + second.reasons, first.images + second.images
    return Verdict(kind, reasons, images, first.parts + second.parts, first.pairs + second.pairs)


def _shortened(lines: Sequence[str]) -> tuple[str, ...]:
    more = (f"and {len(lines) - MOST_LINES} more of this kind",) if len(lines) > MOST_LINES else ()
    return (*lines[:MOST_LINES], *more)


def _sorted_names(model: pycolmap.Reconstruction, images: Collection[int]) -> tuple[str, ...]:
    return tuple(sorted(model.image(image).name for image in images))


def _names(model: pycolmap.Reconstruction, images: Collection[int]) -> str:
    names = _sorted_names(model, images)
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + more


def _pair(model: pycolmap.Reconstruction, pair: PairEvidence) -> str:
    return " - ".join(_pair_names(model, pair))


def _pair_names(model: pycolmap.Reconstruction, pair: PairEvidence) -> tuple[str, str]:
    return model.image(pair.first).name, model.image(pair.second).name


def _error_doubt(summary: ModelSummary) -> str:
    if summary.reprojection_error <= MAX_ERROR:
        return ""
    return (
        f"the mean reprojection error is {summary.reprojection_error:.1f} px, more than the {MAX_ERROR:.0f} px that "
        "a single observation may have"
    )


def _observation_doubt(model: pycolmap.Reconstruction) -> str:
    images = [model.image(image_id) for image_id in sorted(model.reg_image_ids())]
    seen: dict[int, int] = {}  # by all images of a frame
    for image in images:
        seen[image.frame_id] = seen.get(image.frame_id, 0) + image.num_points3D
    blind = [image.name for image in images if image.num_points3D and seen[image.frame_id] < FEWEST]
    if not blind:
        return ""
    return f"{len(blind)} of {len(images)} images see fewer than {FEWEST} points (first: {blind[0]})"


def _intrinsics_doubt(model: pycolmap.Reconstruction, cameras: Cameras) -> str:
    limits = intrinsic_limits(cameras.values())
    wrong = runaway_cameras(model, limits)
    if not wrong:
        return ""
    first = wrong[0]
    image = _first_image(model, first)
    ratio = first.mean_focal_length() / max(first.width, first.height)
    distortion = max((float(first.params[i]) for i in first.extra_params_idxs()), key=abs, default=0.0)
    return (
        f"{len(wrong)} of {len(used_cameras(model))} cameras cannot be: that of "
        f"{image} has a focal length of {ratio:.3g} times its larger side and a distortion of {distortion:.3g} "
        f"(plausible: {limits[0]:.3g} to {limits[1]:.3g}, and up to {limits[2]:.3g}); give camera.params, or "
        "camera.mode=single if one camera took them"
    )


def _drift_doubt(model: pycolmap.Reconstruction, cameras: Cameras) -> str:
    off = drifted_cameras(model, cameras)
    if not off:
        return ""
    now, before = off[0], cameras[off[0].camera_id]
    return (
        f"{len(off)} of {len(used_cameras(model))} focal lengths left what EXIF or camera.params say: that of "
        f"{_first_image(model, now)} went from {before.mean_focal_length():.0f} to {now.mean_focal_length():.0f} px "
        f"({focal_drift(now, before):.2f} times); camera.refine=false holds them, unless it was cropped, and more "
        "photographs tell them better"
    )


def _first_image(model: pycolmap.Reconstruction, camera: pycolmap.Camera) -> str:
    return min(model.image(i).name for i in model.reg_image_ids() if model.image(i).camera_id == camera.camera_id)
