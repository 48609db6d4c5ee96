"""The self-check of a finished model: consistent, doubtful, or falling apart, with a line for each reason."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Literal

import pycolmap

from pdc_sfm.colmap.io.cameras import intrinsic_limits
from pdc_sfm.colmap.io.models import ModelSummary, Verdict
from pdc_sfm.colmap.mapping.evidence import PairEvidence
from pdc_sfm.colmap.mapping.links import Link, connected_parts, find_links, proven_parts, supports
from pdc_sfm.colmap.mapping.mappers import FEWEST, Cameras, runaway_cameras

MAX_ERROR = 4.0  # pixels: what COLMAP allows each single observation; the mean of a sane model lies far below
MOST_NAMED = 8  # images of a line
MOST_LINES = 5  # of one kind


def judge(
    model: pycolmap.Reconstruction, summary: ModelSummary, cameras: Cameras | None = None, held: bool = False
) -> Verdict:
    """The verdict on a model by itself. `cameras` are those before mapping, None if they were not adjusted.

    `held`: intrinsics were to be adjusted, and stayed as they were guessed, since they ran away.
    """
    reasons = [_error_doubt(summary), _observation_doubt(model)]
    if cameras is not None:
        reasons.append(_intrinsics_doubt(model, cameras))
    if held:
        reasons.append(
            "the photographs do not tell focal lengths (of a plane, from one place, or straight ahead?): they are "
            "those guessed before mapping; give camera.params, or camera.mode=single if one camera took them"
        )
    return Verdict("doubtful", tuple(filter(None, reasons))) if any(reasons) else Verdict()


def judge_links(model: pycolmap.Reconstruction, pairs: Sequence[PairEvidence]) -> Verdict:
    """Whether the verified pairs of a model hold it together, and agree with it."""
    ids = model.reg_image_ids()
    parts = connected_parts(ids, [pair for pair in pairs if supports(pair)])
    links = find_links(ids, pairs)
    weak, against = [link for link in links if link.is_weak], [link for link in links if link.is_contradicted]
    lines = [f"no verified pair that the map explains joins {_names(model, part)} to the rest" for part in parts[1:]]
    lines += [_weak_line(model, link) for link in weak]
    by_pair = {
        link.against: link for link in reversed(against) if not link.is_weak
    }  # the weakest that a pair contradicts
    lines += [_contradicted_line(model, link) for link in reversed(by_pair.values())]
    if not lines:
        return Verdict()
    doubted = {image for link in (*weak, *against) for image in link.part}.union(*parts[1:])
    kind: Literal["doubtful", "falls apart"] = "falls apart" if len(parts) > 1 or weak else "doubtful"
    strong = proven_parts(ids, pairs) if kind == "falls apart" else []
    return Verdict(
        kind, _shortened(lines), _sorted_names(model, doubted), tuple(_sorted_names(model, p) for p in strong)
    )


def _weak_line(model: pycolmap.Reconstruction, link: Link) -> str:
    count = "one pair" if link.pairs == 1 else f"{link.pairs} pairs"
    return (
        f"little holds {_names(model, link.part)} to the rest: {count}, the strongest {_pair(model, link.pair)} "
        f"with {link.pair.matches} matches on {link.pair.explained_cells} cells; they may stand elsewhere: take "
        "photographs between the two parts, or match with dense.method=search"
    )


def _contradicted_line(model: pycolmap.Reconstruction, link: Link) -> str:
    assert link.against is not None
    return (
        f"pairs disagree on where {_names(model, link.part)} stand: the map follows {_pair(model, link.pair)} "
        f"({link.pair.explained_cells} cells) and contradicts {_pair(model, link.against)} "
        f"({link.against.cells} cells); do they show two things that look alike? Leave one side out, or take "
        "photographs between"
    )


def join_verdicts(first: Verdict, second: Verdict) -> Verdict:
    """The worse of both, with the reasons of both."""
    kind = second.kind if first.kind == "consistent" or second.kind == "falls apart" else first.kind
    return Verdict(kind, first.reasons + second.reasons, first.images + second.images, second.parts)


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
    return f"{model.image(pair.first).name} - {model.image(pair.second).name}"


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
