"""The depth of one image, in three steps: by itself against its partners' pictures, then twice so that views agree on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import cv2
import numpy as np

from pdc_sfm.colmap.io.posed_views import PosedView
from pdc_sfm.fusion.geometry import Transfer, pixel_grid, scaled_intrinsics, scaled_size
from pdc_sfm.fusion.patch_match import Planes, Search
from pdc_sfm.fusion.patches import BEST, Expected, Partner, PatchCost
from pdc_sfm.fusion.probability import OWN_WEIGHTS, belief, logistic, own_features
from pdc_sfm.fusion.smoothing import smooth
from pdc_sfm.fusion.workspace import Workspace
from pdc_sfm.images import read_image, resize_image

FLOW, PHOTOMETRIC, AGREED, GEOMETRIC, MASKS = "flow", "photometric", "agreed", "geometric", "masks"  # steps


class Effort(NamedTuple):
    """How long a search goes on at a scale."""

    scale: float  # of the image
    drawn: int  # planes by chance
    rounds: int
    regions: int  # around a pixel, whose planes it tries
    spread: float  # of inverse depth, by itself


COARSE = Effort(0.25, 6, 5, 6, 0.3)
MIDDLE = Effort(0.5, 0, 3, 5, 0.03)
AGREEING = Effort(0.5, 0, 2, 4, 0.01)
FINE = Effort(1.0, 0, 2, 3, 0.006)
HIGH_CONFIDENCE = 0.6  # probability of a flow's depth from which a surface is begun
LIKELY, ASKED = 0.3, 0.3  # that counts in the cost, and by how much
WITHIN = 0.01  # of inverse depth: the flow is no better known than that
CHEAP = 0.7  # a plane of a partner that costs less is tried here
# By which surfaces may lie beyond the model's points: the ground at one's feet is seldom matched.
FARTHER, NEARER = 2.0, 16.0
# Pixels: the error of a patch that agrees with none of its partners' samples, and of the best. A patch's place is known
# as sqrt((1 - ZNCC) / ZNCC), the ratio of noise to signal; the factor was set on six
# images of the demo, and is still too small (benchmarks/densify.py: errors by sigma).
PIXEL_SIGMA, LEAST_NOISE, LEAST_AGREEMENT = 1.25, 0.02, 0.3


@dataclass(frozen=True)
class DensePlan:
    """What the steps of all images need to know: views without their points, partners and limits of inverse depth."""

    workspace: Workspace
    views: Sequence[PosedView]
    partners: Sequence[Sequence[int]]
    limits: Sequence[tuple[float, float]]
    planes: Sequence[np.ndarray]  # (M, 3) that the model's points lie on, n X = 1 in the camera's frame
    seed: int = 0


def rho_limits(view: PosedView) -> tuple[float, float]:
    """Inverse depths between which the surfaces of an image lie, by the points of the model that it shows."""
    depth = view.points @ view.cam_from_world[2, :3] + view.cam_from_world[2, 3]
    far, near = np.quantile(1 / depth[depth > 0], (0.005, 0.995))
    return float(far / FARTHER), float(near * NEARER)


def photometric_step(plan: DensePlan, number: int) -> None:
    """Planes at half the size, from the flow's depth and the planes of the model."""
    view, limits = plan.views[number], plan.limits[number]
    rng = np.random.default_rng((plan.seed, 1, number))
    flow = plan.workspace.load(FLOW, view.name)
    cost = _cost(plan, number, COARSE, flow)
    planes = Planes.of_surface(_surface(flow, cost.size, limits))
    planes.compare(cost)
    search = Search(cost, planes, limits, rng)
    search.propose(plan.planes[number] @ np.linalg.inv(scaled_intrinsics(view, cost.size)))
    search.draw(COARSE.drawn, COARSE.scale)
    search.run(COARSE.rounds, COARSE.regions, COARSE.spread)
    chosen = cost.choose(planes.agreement(cost))
    planes = _refined(plan, number, MIDDLE, _cost(plan, number, MIDDLE, flow), chosen, planes, rng)
    _save(plan, PHOTOMETRIC, view.name, planes, cost=planes.cost)


def agreed_step(plan: DensePlan, number: int) -> None:
    """Planes at half the size that partners agree with, by what each found alone."""
    rng = np.random.default_rng((plan.seed, 2, number))
    flow = plan.workspace.load(FLOW, plan.views[number].name)
    planes, _ = _agreeing(plan, number, PHOTOMETRIC, flow, rng)
    _save(plan, AGREED, plan.views[number].name, planes, cost=planes.cost)


def geometric_step(plan: DensePlan, number: int) -> None:
    """Planes of the image's size that partners agree with, by what they agreed on before, and how well inverse depth is known."""
    view = plan.views[number]
    rng = np.random.default_rng((plan.seed, 3, number))
    flow = plan.workspace.load(FLOW, view.name)
    planes, chosen = _agreeing(plan, number, AGREED, flow, rng)
    cost = _cost(plan, number, FINE, flow, _others(plan, number, AGREED))
    planes = _refined(plan, number, FINE, cost, chosen, planes, rng)
    agreement = planes.agreement(cost)
    best = np.sort(agreement, axis=0)[-BEST:].mean(0).reshape(view.size[::-1])
    gray = gray_of(plan, number, view.size)
    found = smooth(*planes.maps(), best, gray)
    rho = np.clip(found.rho, *plan.limits[number])
    probability = logistic(own_features(rho, found.gx, found.gy, best, found.support), OWN_WEIGHTS)
    planes = Planes(view.size, rho.ravel(), found.gx.ravel(), found.gy.ravel(), planes.cost)
    more = {
        "agreement": best,
        "support": found.support,
        "probability": probability,
        "belief": belief(probability, gray),
    }
    _save(plan, GEOMETRIC, view.name, planes, sigma=_sigma(cost, planes, agreement), **more)


def _agreeing(
    plan: DensePlan, number: int, step: str, flow: dict[str, np.ndarray], rng: np.random.Generator
) -> tuple[Planes, np.ndarray]:
    """The planes of a step after those of the partners were tried, and the partners chosen for each pixel."""
    planes, others = _load(plan, step, plan.views[number].name), _others(plan, number, step)
    cost = _cost(plan, number, AGREEING, flow, others)
    chosen = cost.choose(planes.agreement(cost))
    return _refined(plan, number, AGREEING, cost, chosen, planes, rng, others), chosen


def _others(plan: DensePlan, number: int, step: str) -> list[Planes]:
    return [_load(plan, step, plan.views[other].name) for other in plan.partners[number]]


def _cost(
    plan: DensePlan,
    number: int,
    effort: Effort,
    flow: dict[str, np.ndarray],
    others: Sequence[Planes] | None = None,
) -> PatchCost:
    size = scaled_size(plan.views[number].size, effort.scale)
    return PatchCost(gray_of(plan, number, size), _partners(plan, number, size, others), _expected(flow, size))


def _refined(
    plan: DensePlan,
    number: int,
    effort: Effort,
    cost: PatchCost,
    chosen: np.ndarray,
    planes: Planes,
    rng: np.random.Generator,
    others: Sequence[Planes] = (),
) -> Planes:
    """Planes at the size of the cost, compared with the chosen partners, after those of `others` were tried."""
    cost.ask(chosen)
    planes = planes.resized(cost.size)
    planes.compare(cost)
    for partner, other in zip(cost.partners, others):
        _carry(partner, other, cost, planes)
    Search(cost, planes, plan.limits[number], rng).run(effort.rounds, effort.regions, effort.spread)
    return planes


def _carry(partner: Partner, other: Planes, cost: PatchCost, planes: Planes) -> None:
    """Try a partner's planes where its pixels lie in this image; the nearest wins where several do."""
    assert partner.back is not None
    source = np.flatnonzero(other.cost < CHEAP)
    x, y = (source % other.size[0]).astype(np.float32), (source // other.size[0]).astype(np.float32)
    rho, gx, gy = other.rho[source], other.gx[source], other.gy[source]
    u, v, here = partner.back.points(x, y, rho)
    gradient = partner.back.planes(np.stack([gx, gy, rho - gx * x - gy * y], -1).astype(np.float64))
    width, height = planes.size
    with np.errstate(invalid="ignore"):
        on = (u > -0.5) & (v > -0.5) & (u < width - 0.5) & (v < height - 0.5) & np.isfinite(gradient).all(-1)
    order = np.flatnonzero(on)[np.argsort(here[on], kind="stable")]
    target = np.rint(v[order]).astype(np.int64) * width + np.rint(u[order]).astype(np.int64)
    nearest = np.full(width * height, -1)
    nearest[target] = order  # the last one written is the nearest
    pixels = np.flatnonzero(nearest >= 0)
    gx, gy, constant = gradient[nearest[pixels]].T
    rho = gx * cost.x[pixels] + gy * cost.y[pixels] + constant
    keep = rho > 0
    planes.accept(cost, pixels[keep], rho[keep], gx[keep], gy[keep])


def _sigma(cost: PatchCost, planes: Planes, agreement: np.ndarray) -> np.ndarray:
    """Standard deviation of inverse depth (N,): by the parallax and the agreement (P, N) of each partner."""
    information = np.zeros(len(planes.rho))
    for partner, seen in zip(cost.partners, agreement):
        noise = np.maximum(1 - seen, LEAST_NOISE) / np.maximum(seen, LEAST_AGREEMENT)
        parallax = np.nan_to_num(partner.there.parallax(cost.x, cost.y, planes.rho))
        information += np.where(seen > LEAST_AGREEMENT, parallax**2 / (PIXEL_SIGMA**2 * noise), 0)
    return (1 / np.sqrt(np.maximum(information, 1e-12))).astype(np.float32)


def _partners(
    plan: DensePlan, number: int, size: tuple[int, int], others: Sequence[Planes] | None = None
) -> list[Partner]:
    view, found = plan.views[number], []
    for index, other in enumerate(plan.partners[number]):
        there = plan.views[other]
        scale = size[0] / view.size[0]
        other_size = scaled_size(there.size, scale)
        gray = gray_of(plan, other, other_size)
        forward = Transfer.between(view, there, size, other_size)
        if others is None:
            found.append(Partner(gray, forward))
        else:
            back = Transfer.between(there, view, other_size, size)
            rho = others[index].resized(other_size).maps()[0]
            covered = covered_of(plan, other)
            if covered is not None:
                rho[cv2.resize(covered, other_size, interpolation=cv2.INTER_NEAREST) > 0] = 0
            found.append(Partner(gray, forward, back, rho))
    return found


def covered_of(plan: DensePlan, number: int) -> np.ndarray | None:
    """(h, w) uint8, 1 where an image is under its mask; None if it has none."""
    name = plan.views[number].name
    there = plan.workspace.made(MASKS, name).is_file()
    return plan.workspace.load(MASKS, name)["covered"].astype(np.uint8) if there else None


def gray_of(plan: DensePlan, number: int, size: tuple[int, int]) -> np.ndarray:
    """(h, w) float32 gray levels of an image at a size."""
    image = read_image(plan.workspace.images / plan.views[number].name)
    return resize_image(cv2.cvtColor(image, cv2.COLOR_RGB2GRAY), size).astype(np.float32)


def _expected(flow: dict[str, np.ndarray], size: tuple[int, int]) -> Expected:
    """The flow's depth at every pixel, along the slope of its cell."""
    height, width = flow["rho"].shape
    x, y = pixel_grid(size)
    at_x, at_y = (x + 0.5) * (width / size[0]) - 0.5, (y + 0.5) * (height / size[1]) - 0.5
    column, row = (np.clip(np.rint(at), 0, most - 1).astype(np.int64) for at, most in ((at_x, width), (at_y, height)))
    known = flow["probability"] > LIKELY
    gx, gy = (_slope(flow["rho"], known, axis)[row, column] for axis in (1, 0))
    rho, sigma, probability = (flow[key][row, column].ravel() for key in ("rho", "sigma", "probability"))
    rho = rho + (gx * (at_x - column) + gy * (at_y - row)).ravel().astype(np.float32)
    weight = np.where(probability > LIKELY, ASKED * probability, 0).astype(np.float32)
    return Expected(rho, np.maximum(3 * sigma, WITHIN * rho), weight)


def _slope(rho: np.ndarray, known: np.ndarray, axis: int) -> np.ndarray:
    """(h, w) change a cell along an axis: the smaller of those to both sides, 0 at edges of depth, where they differ in sign."""
    count = rho.shape[axis]
    both = np.take(known, range(1, count), axis) & np.take(known, range(count - 1), axis)
    step = np.diff(rho, axis=axis) * both
    pad = [(0, 0), (0, 0)]
    pad[axis] = (1, 0)
    before = np.pad(step, pad)
    pad[axis] = (0, 1)
    after = np.pad(step, pad)
    return np.where(before * after > 0, np.where(np.abs(before) < np.abs(after), before, after), 0).astype(np.float32)


def _surface(flow: dict[str, np.ndarray], size: tuple[int, int], limits: tuple[float, float]) -> np.ndarray:
    """A surface (h, w) through the flow's depth where it is sure, smooth between."""
    weight = np.where(flow["probability"] > HIGH_CONFIDENCE, flow["probability"], 0).astype(np.float32)
    middle = float(np.sqrt(limits[0] * limits[1]))
    known = weight.any()
    surface = _fill(flow["rho"], weight) if known else np.full_like(flow["rho"], middle)
    return np.clip(cv2.resize(surface, size), *limits)


def _fill(values: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Values where they have weight, elsewhere those of a coarser grid (push-pull)."""
    if min(values.shape) < 3:
        return np.full_like(values, (values * weight).sum() / max(float(weight.sum()), 1e-9))
    below = cv2.pyrDown(weight)
    coarse = np.where(below > 1e-6, cv2.pyrDown(values * weight) / np.maximum(below, 1e-6), 0).astype(np.float32)
    filled = cv2.pyrUp(_fill(coarse, np.minimum(2 * below, 1)), dstsize=values.shape[::-1])
    own = np.minimum(4 * weight, 1)
    return own * values + (1 - own) * filled


def _save(plan: DensePlan, step: str, name: str, planes: Planes, **more: np.ndarray) -> None:
    rho, gx, gy = planes.maps()
    arrays = {key: part.reshape(planes.size[::-1]) for key, part in more.items()}
    plan.workspace.save(step, name, rho=rho, gx=gx, gy=gy, **arrays)


def _load(plan: DensePlan, step: str, name: str) -> Planes:
    made = plan.workspace.load(step, name)
    size = made["rho"].shape[1], made["rho"].shape[0]
    return Planes(size, *(made[key].ravel() for key in ("rho", "gx", "gy", "cost")))
