"""The pictures of an image's partners in one sheet, so that every pixel can be compared with a partner of its own at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import cv2
import numpy as np

from pdc_sfm.fusion.geometry import Transfer
from pdc_sfm.fusion.settings import BORDER, sheet_columns


@dataclass(frozen=True)
class Partner:
    """Another image, and how to get there."""

    gray: np.ndarray  # (h, w) float32
    there: Transfer
    back: Transfer | None = None
    rho: np.ndarray | None = None  # (h, w): its own inverse depth, 0 where unknown, if views are to agree


@dataclass(frozen=True)
class Asked:
    """The partner of all pixels, or of each of N: then numbers have a shape of (N,), transfers a last axis of N."""

    number: int | np.ndarray
    there: Transfer
    back: Transfer | None
    left: np.ndarray  # of its picture in the sheet
    top: np.ndarray
    width: np.ndarray
    height: np.ndarray

    def shows(self, u: np.ndarray, v: np.ndarray) -> np.ndarray:
        """Which points lie in the partner's picture."""
        return (u >= 0) & (v >= 0) & (u <= self.width - 1) & (v <= self.height - 1)


class Album:
    """The sheet."""

    def __init__(self, partners: Sequence[Partner]):
        columns = sheet_columns(len(partners))
        sizes = np.array([partner.gray.shape[::-1] for partner in partners])
        cell = sizes.max(0) + 2 * BORDER
        places = [(number % columns, number // columns) for number in range(len(partners))]
        self._corners = (np.array(places) * cell + BORDER).astype(np.float32)
        self._sizes = sizes.astype(np.float32)
        self._there = _stacked([partner.there for partner in partners])
        backs = [partner.back for partner in partners if partner.back is not None]
        self._back = _stacked(backs) if len(backs) == len(partners) else None
        rows = -(-len(partners) // columns)
        self.gray = np.zeros((rows * cell[1], columns * cell[0]), np.float32)
        self.rho = None if any(partner.rho is None for partner in partners) else np.zeros_like(self.gray)
        for partner, corner in zip(partners, self._corners.astype(int)):
            framed = cv2.copyMakeBorder(partner.gray, BORDER, BORDER, BORDER, BORDER, cv2.BORDER_REPLICATE)
            self._place(self.gray, framed, corner - BORDER)
            if self.rho is not None and partner.rho is not None:
                self._place(self.rho, partner.rho, corner)

    def of(self, number: int | np.ndarray) -> Asked:
        """One partner for all pixels, or numbers (N,), one for each."""
        there, back = (
            None if one is None else Transfer(one.matrix.take(number, -1), one.shift.take(number, -1))
            for one in (self._there, self._back)
        )
        assert there is not None
        return Asked(number, there, back, *self._corners[number].T, *self._sizes[number].T)

    @staticmethod
    def _place(sheet: np.ndarray, picture: np.ndarray, corner: np.ndarray) -> None:
        height, width = picture.shape
        sheet[corner[1] : corner[1] + height, corner[0] : corner[0] + width] = picture


def _stacked(transfers: Sequence[Transfer]) -> Transfer:
    """With a last axis over all of them."""
    matrix, shift = (np.stack(parts, -1) for parts in zip(*((one.matrix, one.shift) for one in transfers)))
    return Transfer(matrix, shift)
