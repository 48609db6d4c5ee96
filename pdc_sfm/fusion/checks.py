"""Which depths are believed: by what the image knows, and by whether other views see the same or see through it.

What agrees is averaged by inverse variance, so that a depth map is better than what one view found alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from pdc_sfm.fusion.depth import GEOMETRIC, DensePlan, covered_of, gray_of
from pdc_sfm.fusion.geometry import Transfer, lookup, normals, pixel_grid
from pdc_sfm.fusion.probability_network import final_features, probability_network
from pdc_sfm.fusion.settings import DensifySettings
from pdc_sfm.fusion.workspace import write_map

# Relative errors of inverse depth between two views: poses and sampling add the first to those of both depths; the second
# is the most that is granted, as depths further apart are of different surfaces whatever they say of themselves.
LEAST_ERROR, LARGEST_ERROR = 0.002, 0.02
SAME, APART = 2.0, 3.0  # errors: two depths up to the first are of the same surface, from the second of different ones
SPECKLE_STEP = 0.0025  # of log depth: the unit in which neighbors are compared,
SPECKLE_JUMP = 8  # and by how many of them they may differ, 2 %


@dataclass(frozen=True)
class SeenDepth:
    """What an image and its partners say of its depth together, (h, w) each."""

    rho: np.ndarray
    sigma: np.ndarray  # standard deviation of rho
    same: np.ndarray  # partners that see the same surface, by their probabilities
    through: np.ndarray  # those that see something behind it: it is in the air
    before: np.ndarray  # those that see something before it, which may hide it
    count: np.ndarray  # images that see the surface, itself among them
    asked: np.ndarray  # partners in whose picture the point lies


def check_step(plan: DensePlan, settings: DensifySettings, number: int) -> int:
    """Check the depth of an image against that of its partners; writes its maps. Returns how many pixels have depth."""
    view = plan.views[number]
    made = plan.workspace.load(GEOMETRIC, view.name)
    seen, covered = see(plan, number, made), covered_of(plan, number)
    gray = gray_of(plan, number, view.size)
    probability = probability_network()(final_features(made, vars(seen), gray, view.intrinsics[0, 0]))
    rho = np.where((probability >= settings.probability) & (seen.count >= settings.seen), seen.rho, 0)
    if covered is not None:
        rho[covered > 0] = 0
    rho = drop_speckles(rho, settings.speckle)
    known = rho > 0
    depth = np.where(known, 1 / np.where(known, rho, 1), 0).astype(np.float32)
    sigma = np.where(known, seen.sigma * depth**2, 0)  # d depth = d rho / rho^2
    direction = normals(made["rho"], made["gx"], made["gy"], view.intrinsics) * known[..., None]
    write_map(plan.workspace.map("normal", view.name), direction)
    write_map(plan.workspace.map("sigma", view.name), sigma)
    write_map(plan.workspace.map("depth", view.name), depth)  # last: it says that the others are there
    return int(known.sum())


def see(plan: DensePlan, number: int, made: dict[str, np.ndarray]) -> SeenDepth:
    """What the partners' depth says of that of an image, each as far as it is believed by itself."""
    view, rho = plan.views[number], made["rho"]
    x, y = pixel_grid(view.size)
    own_error = made["sigma"] / rho
    same, through, before, asked = (np.zeros(rho.shape) for _ in range(4))
    count = np.ones(rho.shape, np.int32)
    weight = 1 / made["sigma"].astype(np.float64) ** 2
    total, squares, terms = weight * rho, np.zeros(rho.shape), np.ones(rho.shape)
    for other in plan.partners[number]:
        there = plan.views[other]
        theirs = plan.workspace.load(GEOMETRIC, there.name)
        u, v, expected = Transfer.between(view, there, view.size, there.size).points(x, y, rho)
        found = lookup(theirs["rho"], u, v)
        on = found > 0
        for slope, at in (
            (theirs["gx"], u),
            (theirs["gy"], v),
        ):  # from the pixel's center to where the point lies in it
            found = found + np.where(on, lookup(slope, u, v) * (at - np.rint(at)), 0)
        relative = np.where(on, found / np.where(on, expected, 1) - 1, 0)
        their_error = lookup(theirs["sigma"], u, v) / np.where(on, expected, 1)
        error = np.clip(np.sqrt(own_error**2 + their_error**2 + LEAST_ERROR**2), LEAST_ERROR, LARGEST_ERROR)
        off = relative / error
        belief = np.where(on, lookup(theirs["belief"], u, v), 0)
        agrees = belief * np.exp(-0.5 * off**2)
        same += agrees
        through += belief * (off < -APART)
        before += belief * (off > APART)
        asked += on
        count += on & (np.abs(off) < SAME)
        more = agrees / np.maximum(rho * np.hypot(their_error, LEAST_ERROR), 1e-12) ** 2
        weight += more
        total += more * rho * (1 + relative)
        squares += agrees * off**2
        terms += agrees
    scatter = np.maximum(squares / terms, 1)  # 1 if the errors are right
    # not less for more views: they were made to agree
    sigma = np.sqrt(terms * scatter / weight)
    mean = (total / weight).astype(np.float32)
    return SeenDepth(mean, sigma.astype(np.float32), same, through, before, count, asked)


def drop_speckles(rho: np.ndarray, size: int) -> np.ndarray:
    """The same without patches of fewer pixels, cut off by a jump of depth or by nothing around them."""
    known = rho > 0
    if size == 0 or not known.any():
        return rho
    steps = np.log(np.where(known, rho, 1) / rho[known].min()) / SPECKLE_STEP
    steps = np.where(known, np.clip(steps + 1, 1, 32767), 0).astype(np.int16)
    cv2.filterSpeckles(steps, 0, size, SPECKLE_JUMP)
    return np.where(steps > 0, rho, 0)
