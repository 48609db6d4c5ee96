"""A plane for every pixel: good ones spread to their neighbors, and are varied (PatchMatch, in checkerboard order).

Every pixel of one color of the checkerboard tries, at once, the cheapest plane of each of several regions of the
other color around it; then its own, varied a little.
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from pdc_sfm.fusion.geometry import pixel_grid
from pdc_sfm.fusion.patches import PatchCost
from pdc_sfm.pixels import Size

# Offsets (dx, dy) of the pixels of a region, all of the other color: the arms near and far, and the corners.
NEAR, FAR = (1, 3, 5), (9, 15, 25, 41)
ARMS = [(0, -1), (0, 1), (-1, 0), (1, 0)]
REGIONS = [
    *[[(dx * k, dy * k) for k in reach] for reach in (NEAR, FAR) for dx, dy in ARMS],
    [(-3, -4), (3, 4), (-4, 3), (4, -3)],
    [(-8, -9), (8, 9), (-9, 8), (9, -8)],
]
SLOPE = 0.003  # typical change of inverse depth a pixel of the whole image, by inverse depth: of planes drawn by chance


@dataclass
class Planes:
    """A plane a pixel, (N,) float32 each: inverse depth at the pixel, its change a pixel to the right and down, cost."""

    size: Size
    rho: np.ndarray
    gx: np.ndarray
    gy: np.ndarray
    cost: np.ndarray

    @staticmethod
    def of_surface(rho: np.ndarray) -> Planes:
        """Tangent planes of a smooth surface (h, w), not yet compared with anything."""
        smooth = cv2.GaussianBlur(rho, (0, 0), 1.5)
        gx, gy = (cv2.Sobel(smooth, -1, 1 - axis, axis, ksize=3).ravel() / 8 for axis in (0, 1))
        size = rho.shape[1], rho.shape[0]
        return Planes(size, rho.ravel().copy(), gx, gy, np.full(rho.size, np.inf, np.float32))

    def maps(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Inverse depth and its gradient, (h, w) each."""
        rho, gx, gy = (part.reshape(self.size[::-1]) for part in (self.rho, self.gx, self.gy))
        return rho, gx, gy

    def resized(self, size: Size) -> Planes:
        """The planes of the nearest pixels at another size."""
        x, y = pixel_grid(size)
        scale = self.size[0] / size[0], self.size[1] / size[1]
        at_x, at_y = (x + 0.5) * scale[0] - 0.5, (y + 0.5) * scale[1] - 0.5
        column = np.clip(np.rint(at_x), 0, self.size[0] - 1).astype(np.int64)
        row = np.clip(np.rint(at_y), 0, self.size[1] - 1).astype(np.int64)
        rho, gx, gy = (part[row, column] for part in self.maps())
        rho = rho + gx * (at_x - column) + gy * (at_y - row)
        rho, gx, gy = (part.ravel().astype(np.float32) for part in (rho, gx * scale[0], gy * scale[1]))
        return Planes(size, rho, gx, gy, np.full(rho.size, np.inf, np.float32))

    def compare(self, cost: PatchCost) -> None:
        """What they cost."""
        self.cost = cost(np.arange(len(self.rho)), self.rho, self.gx, self.gy)

    def agreement(self, cost: PatchCost) -> np.ndarray:
        """(P, N) with each partner."""
        return cost.agreement(np.arange(len(self.rho)), self.rho, self.gx, self.gy)

    def accept(self, cost: PatchCost, pixels: np.ndarray, rho: np.ndarray, gx: np.ndarray, gy: np.ndarray) -> None:
        """Take the planes that cost less than what is there."""
        if not len(pixels):
            return
        rho, gx, gy = (part.astype(np.float32) for part in (rho, gx, gy))
        found = cost(pixels, rho, gx, gy)
        better = found < self.cost[pixels]
        taken = pixels[better]
        self.rho[taken], self.gx[taken], self.gy[taken] = rho[better], gx[better], gy[better]
        self.cost[taken] = found[better]


class Search:
    """Planes of one image at one size, within limits of inverse depth."""

    def __init__(self, cost: PatchCost, planes: Planes, limits: tuple[float, float], rng: np.random.Generator):
        self.cost, self.planes, self.limits, self.rng = cost, planes, limits, rng

    def draw(self, times: int, scale: float) -> None:
        """Try planes drawn by chance; `scale` is the image's size by that of the whole one."""
        pixels, (far, near) = np.arange(len(self.planes.rho)), np.log(self.limits)
        for _ in range(times):
            rho = np.exp(self.rng.uniform(far, near, len(pixels)))  # as many from one meter to two as from two to four
            slopes = self.rng.normal(0, SLOPE / scale, (2, len(pixels))) * rho
            self.planes.accept(self.cost, pixels, rho, *slopes)

    def propose(self, planes: np.ndarray) -> None:
        """Try planes (M, 3), rho = gx x + gy y + c, everywhere."""
        for gx, gy, constant in planes:
            rho = gx * self.cost.x + gy * self.cost.y + constant
            pixels = np.flatnonzero((rho > self.limits[0]) & (rho < self.limits[1]))
            slopes = (np.full(len(pixels), slope) for slope in (gx, gy))
            self.planes.accept(self.cost, pixels, rho[pixels], *slopes)

    def run(self, rounds: int, regions: int, spread: float) -> None:
        """Let planes spread from so many of the regions around each pixel, drawn anew each round, and vary them.

        `spread` is the largest change of inverse depth, by itself, in the first round; it halves each time.
        """
        parity = (self.cost.x + self.cost.y).astype(np.int64) % 2
        for turn in range(rounds):
            for color in (0, 1):
                pixels = np.flatnonzero(parity == color)
                for region in self.rng.permutation(len(REGIONS))[:regions]:
                    self._propagate(pixels, REGIONS[region])
                self._vary(pixels, spread * 0.5**turn)

    def _propagate(self, pixels: np.ndarray, region: list[tuple[int, int]]) -> None:
        planes, (width, height) = self.planes, self.planes.size
        x, y = pixels % width, pixels // width
        best = np.full(len(pixels), np.inf, np.float32)
        source = pixels.copy()
        for dx, dy in region:
            other = np.clip(y + dy, 0, height - 1) * width + np.clip(x + dx, 0, width - 1)
            cheaper = planes.cost[other] < best
            best[cheaper], source[cheaper] = planes.cost[other[cheaper]], other[cheaper]
        gx, gy = planes.gx[source], planes.gy[source]
        rho = planes.rho[source] + gx * (x - source % width) + gy * (y - source // width)
        new = (np.abs(rho - planes.rho[pixels]) > 1e-4 * rho) | (gx != planes.gx[pixels])
        keep = (rho > self.limits[0]) & (rho < self.limits[1]) & new
        planes.accept(self.cost, pixels[keep], rho[keep], gx[keep], gy[keep])

    def _vary(self, pixels: np.ndarray, spread: float) -> None:
        planes, count = self.planes, len(pixels)
        rho, gx, gy = planes.rho[pixels], planes.gx[pixels], planes.gy[pixels]
        planes.accept(self.cost, pixels, rho * (1 + self.rng.normal(0, 0.3 * spread, count)), gx, gy)
        rho, gx, gy = planes.rho[pixels], planes.gx[pixels], planes.gy[pixels]
        tilt = self.rng.normal(0, 0.1 * spread, (2, count)) * rho
        planes.accept(
            self.cost, pixels, rho * (1 + self.rng.normal(0, 0.03 * spread, count)), gx + tilt[0], gy + tilt[1]
        )
