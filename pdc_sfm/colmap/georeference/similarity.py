"""The similarity that aligns a map with known positions, robust to wrong ones.

Hypotheses come from two places where it is known which way is up (that most photographs are taken level, as a person or a
gimbal holds them), from three where it is not. The one whose median residual is least wins; it also tells how large the errors of
the places are where nothing is said of them. What lies beyond five times that is no part of the fit.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math

import numpy as np
from scipy.optimize import least_squares
from scipy.spatial.transform import Rotation

MAX_ERROR = 5.0  # sigmas: beyond, a place is wrong (once in 60,000 by chance)
MEDIAN = 1.538  # of the length of a vector of three standard normal numbers
HYPOTHESES = 300  # of half right places 37 triples are right
WARP = 0.002  # of the extent of the places, by which a right map may be bent
MIN_PLACES = 6  # places that tell their own errors
ROLL, PITCH = np.sin(np.deg2rad((10.0, 45.0)))  # by which photographs may not be level
ON_A_LINE = 0.05  # of the length of the places: less wide, they do not tell the turn about it


@dataclasses.dataclass(frozen=True)
class Places:
    """Points of the map, and where they are in the world."""

    source: np.ndarray  # (N, 3) in the map
    target: np.ndarray  # (N, 3) in the world
    sigma: np.ndarray  # (N, 3) metres, of the target: as said, or in proportion to each other
    is_known: bool  # whether that was said; else the fit finds a common factor

    @functools.cached_property
    def extent(self) -> float:
        """Of the middle half of the places, a few wrong ones do not matter."""
        return 2 * float(np.median(np.linalg.norm(self.target - np.median(self.target, axis=0), axis=1)))


@dataclasses.dataclass(frozen=True)
class Axes:
    """Directions in the map of photographs as a person sees them: to the right, down, and forward; each (M, 3)."""

    right: np.ndarray
    down: np.ndarray
    forward: np.ndarray

    def up(self) -> np.ndarray:
        """The direction (3,) in which most are level."""
        spread = self.right.T @ self.right / ROLL**2 + self.forward.T @ self.forward / PITCH**2
        found = np.linalg.eigh(spread)[1][:, 0]
        return found if self.are_upright(found) else -found

    def are_upright(self, up: np.ndarray) -> bool:
        """Whether most stand on their feet; those that look down say it by that."""
        return float(-(self.down @ up).sum() - 0.5 * (self.forward @ up).sum()) > 0


@dataclasses.dataclass(frozen=True)
class Similarity:
    """x -> scale rotation x + translation: of a map, its world from it."""

    scale: float
    rotation: np.ndarray  # (3, 3)
    translation: np.ndarray  # (3,)

    def __call__(self, points: np.ndarray) -> np.ndarray:
        """(..., 3) points of the first world -> the second."""
        return self.scale * points @ self.rotation.T + self.translation


@dataclasses.dataclass(frozen=True)
class PlaceFit:
    """A similarity, and what it says of the places."""

    similarity: Similarity
    factor: float  # by which their errors are larger than `Places.sigma` says
    residuals: np.ndarray  # (N,) in sigmas
    scale_sigma: float  # of the scale, relative
    is_upright: bool  # the photographs

    @property
    def good(self) -> np.ndarray:
        """(N,) bool: places that agree with it."""
        return self.residuals <= MAX_ERROR


def fit_similarity(
    places: Places, axes: Axes | None, scale: tuple[float, float] | None = None, seed: int = 0
) -> PlaceFit | None:
    """The best similarity; None if the places do not determine any.

    With `axes` the world's z is up, and photographs are level unless places say otherwise. `scale` is a known one, and
    its relative sigma.
    """
    best = None
    for hypotheses in _hypotheses(places, axes, np.random.default_rng(seed)):
        medians = np.array([np.median(_residuals(places, one)) for one in hypotheses])
        if not len(medians) or not np.isfinite(medians).any():
            continue
        fit = _refined(places, axes, scale, hypotheses[int(np.nanargmin(medians))])
        # places alone, without what is up, must fit better by more than chance
        if best is None or np.median(fit.residuals) * fit.factor < 0.7 * np.median(best.residuals) * best.factor:
            best = fit
    return best


def lie_on_a_line(points: np.ndarray) -> bool:
    """Whether points (N, 3) do not tell the turn about their longest axis."""
    lengths = np.linalg.svd(points - points.mean(axis=0), compute_uv=False)
    return bool(lengths[1] < ON_A_LINE * lengths[0])


def _hypotheses(places: Places, axes: Axes | None, random: np.random.Generator) -> list[list[Similarity]]:
    count = len(places.source)
    free = [] if count < 3 else [_by_points(places, some) for some in _samples(count, 3, random)]
    found = [[one for one in free if one is not None]]
    if axes is None:
        return found
    level = _turn_to_z(axes.up())
    upright = [_by_two(places, level, some) for some in _samples(count, 2, random)]
    return [[one for one in upright if one is not None], *found]


def _samples(count: int, size: int, random: np.random.Generator) -> list[np.ndarray]:
    """All choices of so many, or as many as there are hypotheses."""
    if math.comb(count, size) <= HYPOTHESES:
        return [np.array(some) for some in itertools.combinations(range(count), size)]
    return [random.choice(count, size, replace=False) for _ in range(HYPOTHESES)]


def _by_two(places: Places, level: np.ndarray, some: np.ndarray) -> Similarity | None:
    """Scale and turn about the vertical by two places; `level` makes the map upright."""
    source, target = places.source[some] @ level.T, places.target[some]
    (a, b), (c, d) = (source[1] - source[0])[:2], (target[1] - target[0])[:2]
    scale = np.hypot(c, d) / max(np.hypot(a, b), 1e-12)
    if not 1e-9 < scale < 1e9:
        return None
    turn = Rotation.from_euler("z", np.arctan2(d, c) - np.arctan2(b, a)).as_matrix() @ level
    return Similarity(scale, turn, target.mean(axis=0) - scale * turn @ places.source[some].mean(axis=0))


def _by_points(places: Places, some: np.ndarray) -> Similarity | None:
    """Of three places or more: Umeyama's."""
    source, target = places.source[some], places.target[some]
    a, b = source - source.mean(axis=0), target - target.mean(axis=0)
    left, values, right = np.linalg.svd(b.T @ a)
    if values[1] < 1e-9 * values[0] or not np.isfinite(values).all():
        return None
    signs = np.array([1.0, 1.0, np.sign(np.linalg.det(left @ right))])
    scale = float((values * signs).sum() / (a * a).sum())
    if not 1e-9 < scale < 1e9:
        return None
    rotation = left * signs @ right
    return Similarity(scale, rotation, target.mean(axis=0) - scale * rotation @ source.mean(axis=0))


def _turn_to_z(up: np.ndarray) -> np.ndarray:
    """A rotation (3, 3) that makes a direction the third axis."""
    return np.asarray(Rotation.align_vectors(np.array([[0.0, 0.0, 1.0]]), up[None])[0].as_matrix())


def _residuals(places: Places, similarity: Similarity, factor: float = 1.0) -> np.ndarray:
    """(N,) in sigmas, a bent map allowed for."""
    variance = (factor * places.sigma) ** 2 + (WARP * places.extent) ** 2
    return np.sqrt(((similarity(places.source) - places.target) ** 2 / variance).sum(axis=1))


def _factor(places: Places, similarity: Similarity) -> float:
    """By which the errors of the places are larger than was said; what was said is believed within a factor of 2.5."""
    count = len(places.source)
    plain = np.linalg.norm((similarity(places.source) - places.target) / places.sigma, axis=1)
    found = float(np.median(plain)) / MEDIAN * (1 + 5 / max(count - 2, 1))  # the usual correction of a median of few
    if places.is_known:
        return found if found > 2.5 and count >= MIN_PLACES else 1.0
    return found if count >= MIN_PLACES else max(found, 1.0)


def _refined(places: Places, axes: Axes | None, scale: tuple[float, float] | None, start: Similarity) -> PlaceFit:
    """Least squares over the places that agree, and the photographs' being level."""
    now, covariance = start, np.eye(7)
    for _ in range(4):
        factor = _factor(places, now)
        good = _residuals(places, now, factor) <= MAX_ERROR
        now, covariance = _least_squares(places, axes, scale, now, good, factor)
    factor = _factor(places, now)
    if not places.is_known and len(places.source) >= MIN_PLACES:  # by all that agree, more surely than by a median
        good = _residuals(places, now, factor) <= MAX_ERROR
        plain = ((now(places.source[good]) - places.target[good]) / places.sigma[good]).ravel()
        spread = float(np.sqrt((plain**2).sum() / max(plain.size - 7, 1)))
        covariance, factor = covariance * min(spread / max(factor, 1e-12), 1.0) ** 2, spread
    up = now.rotation.T @ np.array([0.0, 0.0, 1.0])
    return PlaceFit(
        now,
        factor,
        _residuals(places, now, factor),
        float(np.sqrt(max(covariance[0, 0], 0.0))),
        axes is None or axes.are_upright(up),
    )


def _least_squares(
    places: Places,
    axes: Axes | None,
    scale: tuple[float, float] | None,
    start: Similarity,
    good: np.ndarray,
    factor: float,
) -> tuple[Similarity, np.ndarray]:
    """The best similarity near `start`, and the covariance (7, 7) of log scale, turn and shift."""
    sigma = np.sqrt((factor * places.sigma[good]) ** 2 + (WARP * places.extent) ** 2)
    source, target = places.source[good], places.target[good]
    middle = source.mean(axis=0) if len(source) else np.zeros(3)  # about which it turns and scales
    center = start(middle[None])[0]

    def moved(step: np.ndarray) -> Similarity:
        size = start.scale * float(np.exp(step[0]))
        rotation = Rotation.from_rotvec(step[1:4]).as_matrix() @ start.rotation
        return Similarity(size, rotation, center + step[4:] - size * rotation @ middle)

    def errors(step: np.ndarray) -> np.ndarray:
        found = moved(step)
        parts = [((found(source) - target) / sigma).ravel()]
        if axes is not None:
            up = found.rotation[2]
            tilt = np.concatenate((axes.right @ up / ROLL, axes.forward @ up / PITCH))
            parts.append(np.sign(tilt) * np.sqrt(np.log1p(tilt**2)))  # Cauchy: some are not level at all
        if scale is not None:
            parts.append(np.array([np.log(found.scale / scale[0]) / scale[1]]))
        return np.concatenate(parts)

    solved = least_squares(
        errors, np.zeros(7), x_scale=np.r_[np.full(4, 0.01), np.full(3, places.extent * 0.01 + 1e-9)]
    )
    return moved(solved.x), np.linalg.pinv(solved.jac.T @ solved.jac)
