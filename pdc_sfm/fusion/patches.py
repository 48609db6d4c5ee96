"""How well the partners agree with a plane at a pixel: patches of the image against the partners' through the plane."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np

from pdc_sfm.fusion.geometry import NEAREST, Transfer, lookup, pixel_grid

# A patch: 5 x 5 samples that lie 1.5 pixels apart; those of another gray than the center count less, by this many
# gray levels, since they may lie on another surface.
SIDE, SPACING, ALIKE = 5, 1.5, 10.0
NOISE = 9.0  # gray levels squared: a patch that varies less says little
BEST = 2  # partners whose agreement counts: others may not see the point
CHOSEN, AROUND = 4, 9  # partners that see a pixel best are asked again; by the mean of so many pixels each way
BLOCK = 1 << 14  # pixels at a time: what they need stays in the processor's cache
# What disagreement between views costs, as ZNCC does: a pixel of the way there and back, up to the most.
PER_PIXEL, MOST_PIXELS = 0.2, 3.0


@dataclass(frozen=True)
class Partner:
    """Another image, and how to get there."""

    gray: np.ndarray  # (h, w) float32
    there: Transfer
    back: Transfer | None = None
    rho: np.ndarray | None = None  # (h, w): its own inverse depth, 0 where unknown, if views are to agree


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
        self.chosen: np.ndarray | None = None  # (P, N)
        self.size = gray.shape[1], gray.shape[0]
        x, y = pixel_grid(self.size)
        self.x, self.y = x.ravel(), y.ravel()
        offsets = (np.arange(SIDE) - SIDE // 2) * SPACING
        dy, dx = (axis.reshape(-1, 1).astype(np.float32) for axis in np.meshgrid(offsets, offsets, indexing="ij"))
        self._dx, self._dy = dx, dy  # (S, 1)
        samples = _sample(gray, self.x + dx, self.y + dy)  # (S, N): sample after sample, which is what is fast
        near = np.exp(-0.5 * (dx**2 + dy**2) / (SIDE // 2 * SPACING) ** 2)
        weights = near * np.exp(-np.abs(samples - gray.ravel()) / ALIKE)
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
        blocks = (slice(start, start + BLOCK) for start in range(0, len(pixels), BLOCK))
        parts = [self._agreement(pixels[part], rho[part], gx[part], gy[part]) for part in blocks]
        return np.concatenate(parts, 1) if parts else np.zeros((len(self.partners), 0), np.float32)

    def choose(self, agreement: np.ndarray) -> np.ndarray:
        """(P, h, w) bool: the partners that agree best (P, N) around each pixel; others, it seems, do not see it."""
        if len(agreement) <= CHOSEN:
            return np.ones((len(agreement), *self.size[::-1]), bool)
        around = np.stack([cv2.blur(own.reshape(self.size[::-1]), (AROUND, AROUND)) for own in agreement])
        chosen = np.zeros(around.shape, bool)
        np.put_along_axis(chosen, np.argpartition(-around, CHOSEN - 1, axis=0)[:CHOSEN], True, axis=0)
        return chosen

    def ask(self, chosen: np.ndarray) -> None:
        """From now on compare with these partners only, (P, h, w) bool, perhaps of another size."""
        resized = [cv2.resize(own.view(np.uint8), self.size, interpolation=cv2.INTER_NEAREST) for own in chosen]
        self.chosen = np.stack(resized).reshape(len(chosen), -1) > 0

    def _cost(self, pixels: np.ndarray, rho: np.ndarray, gx: np.ndarray, gy: np.ndarray) -> np.ndarray:
        costs = 1 - np.clip(self._agreement(pixels, rho, gx, gy), -0.2, 1)
        for number, partner in enumerate(self.partners):
            if partner.rho is not None:
                asked = self._asked(number, pixels)
                here = pixels[asked]
                costs[number, asked] += PER_PIXEL * round_trip(partner, self.x[here], self.y[here], rho[asked])
        count = min(BEST, len(costs))
        cost = np.partition(costs, count - 1, axis=0)[:count].mean(0)
        if self.expected is not None:
            known = self.expected
            off = (rho - known.rho[pixels]) / known.sigma[pixels]
            cost += known.weight[pixels] * (1 - np.exp(-0.5 * off**2))
        cost[rho <= 0] = np.inf
        return cost

    def _asked(self, number: int, pixels: np.ndarray) -> np.ndarray | slice:
        """Which of the pixels a partner is asked about."""
        return slice(None) if self.chosen is None else np.flatnonzero(self.chosen[number, pixels])

    def _agreement(self, pixels: np.ndarray, rho: np.ndarray, gx: np.ndarray, gy: np.ndarray) -> np.ndarray:
        found = np.zeros((len(self.partners), len(pixels)), np.float32)
        if self.chosen is None:
            patches = self._patches(pixels)
        for number, (row, partner) in enumerate(zip(found, self.partners)):
            asked = self._asked(number, pixels)
            if self.chosen is not None:
                patches = self._patches(pixels[asked])
            row[asked] = self._correlate(partner, patches, rho[asked], gx[asked], gy[asked])
        return found

    def _patches(self, pixels: np.ndarray) -> _Patches:
        weights, centered = (part.take(pixels, axis=1) for part in (self._weights, self._centered))
        return _Patches(self.x[pixels], self.y[pixels], weights, centered, self._variance[pixels])

    def _correlate(
        self, partner: Partner, own: _Patches, rho: np.ndarray, gx: np.ndarray, gy: np.ndarray
    ) -> np.ndarray:
        """(N,) correlation with the partner's patches. A plane is taken there by its affinity at the pixel."""
        matrix, shift = partner.there.matrix, partner.there.shift
        u, v, ratio = partner.there.rows(own.x, own.y, rho)
        inverse = 1 / np.maximum(ratio, NEAREST)
        u *= inverse
        v *= inverse
        across, down = matrix[2, 0] + shift[2] * gx, matrix[2, 1] + shift[2] * gy  # changes of the ratio
        maps = [
            self._around(
                at,
                (matrix[axis, 0] + shift[axis] * gx - at * across) * inverse,
                (matrix[axis, 1] + shift[axis] * gy - at * down) * inverse,
            )
            for axis, at in enumerate((u, v))
        ]
        samples = _sample(partner.gray, *maps)
        mean, common = _dot(own.weights, samples), _dot(own.centered, samples)
        samples *= samples
        spread = np.maximum(_dot(own.weights, samples) - mean**2, 0)
        height, width = partner.gray.shape
        seen = (ratio > NEAREST) & (u >= 0) & (v >= 0) & (u <= width - 1) & (v <= height - 1)
        return np.where(seen, common / np.sqrt(own.variance * spread + NOISE), 0)

    def _around(self, at: np.ndarray, across: np.ndarray, down: np.ndarray) -> np.ndarray:
        """(S, N): a linear function at the samples. Not as a product of matrices, which would take threads of its own."""
        found = self._dx * across
        found += self._dy * down
        found += at
        return found


def round_trip(partner: Partner, x: np.ndarray, y: np.ndarray, rho: np.ndarray) -> np.ndarray:
    """Pixels between a point and where its partner, by its own depth, sees it; at most `MOST_PIXELS`."""
    assert partner.rho is not None
    assert partner.back is not None
    u, v, _ = partner.there.points(x, y, rho)
    own = lookup(partner.rho, u, v)
    back_x, back_y, _ = partner.back.points(np.nan_to_num(u), np.nan_to_num(v), own)
    off = np.hypot(back_x - x, back_y - y)
    return np.where((own > 0) & (off < MOST_PIXELS), off, MOST_PIXELS).astype(np.float32)


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
