"""How well the partners agree with a plane at a pixel: patches of the image against the partners' through the plane."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np

from pdc_sfm.fusion.album import Album, Asked, Partner
from pdc_sfm.fusion.geometry import NEAREST, lookup, pixel_grid

# A patch: 5 x 5 samples that lie 1.5 pixels apart; those of another gray than the center count less, by this many
# gray levels, since they may lie on another surface.
SIDE, SPACING, SIMILAR_GRAY = 5, 1.5, 10.0
NOISE = 9.0  # gray levels squared: a patch that varies less says little
BEST = 2  # partners whose agreement counts: others may not see the point
WORTH = (0.65, 0.35)  # of the cost with the best of them and the second, which may be of a partner that does not see it
CHOSEN, AROUND = 4, 9  # partners that see a pixel best are asked again; by the mean of so many pixels each way
BLOCK = 1 << 12  # pixels at a time: what they need stays in the processor's cache
# What disagreement between views costs, as ZNCC does: a pixel of the way there and back, up to the most.
PER_PIXEL, MOST_PIXELS = 0.2, 3.0


@dataclass(frozen=True)
class Expected:
    """What is known of the depth beforehand, by pixel (N,): the cost of being elsewhere is `weight`."""

    rho: np.ndarray
    sigma: np.ndarray
    weight: np.ndarray


@dataclass(frozen=True)
class _Patches:
    """Of some pixels of the image, (N,) and (S, N)."""

    x: np.ndarray
    y: np.ndarray
    weights: np.ndarray
    centered: np.ndarray  # weighted samples without their mean
    variance: np.ndarray


class PatchCost:
    """The cost of planes at the pixels of an image; the least is near 0, agreement by chance costs about 1.

    Every pixel is compared with all partners, unless `ask` says with which.
    """

    def __init__(self, gray: np.ndarray, partners: Sequence[Partner], expected: Expected | None = None):
        self.partners, self.expected = partners, expected
        self._album = Album(partners)
        self._chosen: np.ndarray | None = None  # (turns, N) numbers of partners
        self.size = gray.shape[1], gray.shape[0]
        x, y = pixel_grid(self.size)
        self.x, self.y = x.ravel(), y.ravel()
        offsets = (np.arange(SIDE) - SIDE // 2) * SPACING
        dy, dx = (axis.reshape(-1, 1).astype(np.float32) for axis in np.meshgrid(offsets, offsets, indexing="ij"))
        self._dx, self._dy = dx, dy  # (S, 1)
        samples = _sample(gray, self.x + dx, self.y + dy)  # (S, N): sample after sample, which is what is fast
        near = np.exp(-0.5 * (dx**2 + dy**2) / (SIDE // 2 * SPACING) ** 2)
        weights = near * np.exp(-np.abs(samples - gray.ravel()) / SIMILAR_GRAY)
        weights /= weights.sum(0)
        centered = samples - _dot(weights, samples)
        self._weights, self._centered = weights, weights * centered
        self._variance = np.maximum(_dot(self._centered, centered), 0)

    def __call__(self, pixels: np.ndarray, rho: np.ndarray, gx: np.ndarray, gy: np.ndarray) -> np.ndarray:
        """(N,) costs of planes at pixels (N,), numbers of them."""
        found = np.empty(len(pixels), np.float32)
        for start in range(0, len(pixels), BLOCK):
            part = slice(start, start + BLOCK)
            found[part] = self._cost(pixels[part], rho[part], gx[part], gy[part])
        return found

    def agreement(self, pixels: np.ndarray, rho: np.ndarray, gx: np.ndarray, gy: np.ndarray) -> np.ndarray:
        """(P, N) zero-mean normalized cross-correlation with each partner, 0 where it does not see the pixel."""
        found = np.zeros((len(self.partners), len(pixels)), np.float32)
        for start in range(0, len(pixels), BLOCK):
            part = slice(start, start + BLOCK)
            own = self._patches(pixels[part])
            for turn in range(self._turns):
                asked = self._asked(turn, pixels[part])
                seen = self._correlate(asked, own, rho[part], gx[part], gy[part])
                found[asked.number, np.arange(len(pixels))[part]] = seen
        return found

    def choose(self, agreement: np.ndarray) -> np.ndarray:
        """(P, h, w) bool: the partners that agree best (P, N) around each pixel; others, it seems, do not see it."""
        if len(agreement) <= CHOSEN:
            return np.ones((len(agreement), *self.size[::-1]), bool)
        around = np.stack([cv2.blur(own.reshape(self.size[::-1]), (AROUND, AROUND)) for own in agreement])
        chosen = np.zeros(around.shape, bool)
        np.put_along_axis(chosen, np.argpartition(-around, CHOSEN - 1, axis=0)[:CHOSEN], True, axis=0)
        return chosen

    def ask(self, chosen: np.ndarray) -> None:
        """From now on compare with these partners only, (P, h, w) bool, of each pixel as many, perhaps of another size."""
        resized = [cv2.resize(own.view(np.uint8), self.size, interpolation=cv2.INTER_NEAREST) for own in chosen]
        number, pixel = np.nonzero(np.stack(resized).reshape(len(chosen), -1))
        order = np.argsort(pixel, kind="stable")
        self._chosen = number[order].reshape(len(self.x), -1).T.copy()

    @property
    def _turns(self) -> int:
        return len(self.partners) if self._chosen is None else len(self._chosen)

    def _asked(self, turn: int, pixels: np.ndarray) -> Asked:
        """The partner that each of the pixels is compared with in this turn."""
        return self._album.of(turn if self._chosen is None else self._chosen[turn, pixels])

    def _cost(self, pixels: np.ndarray, rho: np.ndarray, gx: np.ndarray, gy: np.ndarray) -> np.ndarray:
        own, costs = self._patches(pixels), np.empty((self._turns, len(pixels)), np.float32)
        for turn, cost in enumerate(costs):
            asked = self._asked(turn, pixels)
            cost[:] = 1 - np.clip(self._correlate(asked, own, rho, gx, gy), -0.2, 1)
            if self._album.rho is not None:
                cost += PER_PIXEL * self._round_trip(asked, own.x, own.y, rho)
        cost = _weighted(costs)
        if self.expected is not None:
            known = self.expected
            off = (rho - known.rho[pixels]) / known.sigma[pixels]
            cost += known.weight[pixels] * (1 - np.exp(-0.5 * off**2))
        cost[rho <= 0] = np.inf
        return cost

    def _patches(self, pixels: np.ndarray) -> _Patches:
        weights, centered = (part.take(pixels, axis=1) for part in (self._weights, self._centered))
        return _Patches(self.x[pixels], self.y[pixels], weights, centered, self._variance[pixels])

    def _correlate(self, asked: Asked, own: _Patches, rho: np.ndarray, gx: np.ndarray, gy: np.ndarray) -> np.ndarray:
        """(N,) correlation with the partners' patches. A plane is taken there by its affinity at the pixel."""
        matrix, shift = asked.there.matrix, asked.there.shift
        u, v, ratio = asked.there.rows(own.x, own.y, rho)
        inverse = 1 / np.maximum(ratio, NEAREST)
        u *= inverse
        v *= inverse
        across, down = matrix[2, 0] + shift[2] * gx, matrix[2, 1] + shift[2] * gy  # changes of the ratio
        maps = [
            self._around(
                at + corner,
                (matrix[axis, 0] + shift[axis] * gx - at * across) * inverse,
                (matrix[axis, 1] + shift[axis] * gy - at * down) * inverse,
            )
            for axis, (at, corner) in enumerate(((u, asked.left), (v, asked.top)))
        ]
        samples = cv2.remap(self._album.gray, *maps, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
        mean, common = _dot(own.weights, samples), _dot(own.centered, samples)
        samples *= samples
        spread = np.maximum(_dot(own.weights, samples) - mean**2, 0)
        seen = (ratio > NEAREST) & asked.shows(u, v)
        return np.where(seen, common / np.sqrt(own.variance * spread + NOISE), 0)

    def _round_trip(self, asked: Asked, x: np.ndarray, y: np.ndarray, rho: np.ndarray) -> np.ndarray:
        """Pixels between a point and where its partner, by its own depth, sees it; at most `MOST_PIXELS`."""
        assert self._album.rho is not None
        assert asked.back is not None
        u, v, _ = asked.there.points(x, y, rho)
        u, v = (np.nan_to_num(axis, nan=-9.0) for axis in (u, v))
        on = asked.shows(u, v)
        column, row = (np.where(on, at + corner, 0) for at, corner in ((u, asked.left), (v, asked.top)))
        own = np.where(on, lookup(self._album.rho, column, row), 0)
        back_x, back_y, _ = asked.back.points(u, v, own)
        off = np.hypot(back_x - x, back_y - y)
        return np.where((own > 0) & (off < MOST_PIXELS), off, MOST_PIXELS)

    def _around(self, at: np.ndarray, across: np.ndarray, down: np.ndarray) -> np.ndarray:
        """(S, N): a linear function at the samples. Not as a product of matrices, which would take threads of its own."""
        found = self._dx * across
        found += self._dy * down
        found += at
        return found


def _weighted(costs: np.ndarray) -> np.ndarray:
    """(N,) of costs (P, N): of the best two, by their worth."""
    if len(costs) == 1:
        return costs[0]
    best = np.partition(costs, 1, axis=0)[:BEST]
    return (WORTH[0] * best[0] + WORTH[1] * best[1]).astype(np.float32)


def _dot(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """(S, N) twice -> (N,)."""
    return np.einsum("sn,sn->n", first, second)


def _sample(image: np.ndarray, u: np.ndarray, v: np.ndarray) -> np.ndarray:
    """(S, N) samples, bilinear, of the nearest pixel beyond the border. OpenCV takes at most 32,767 columns."""
    found = np.empty(u.shape, np.float32)
    for start in range(0, u.shape[1], BLOCK):
        part = slice(start, start + BLOCK)
        maps = (np.ascontiguousarray(axis[:, part], np.float32) for axis in (u, v))
        found[:, part] = cv2.remap(image, *maps, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
    return found
