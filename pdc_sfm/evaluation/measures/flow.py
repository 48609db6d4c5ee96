"""Accuracy of a flow field (paper, appendix "Evaluation metrics"): AEPE, PCK-T, Fl. Shares are in 0..1, errors in pixels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

PCK_THRESHOLDS = (1.0, 3.0, 5.0, 10.0)  # pixels: 1, 3 and 5 are those of the paper's tables


def end_point_error(estimated: np.ndarray, true: np.ndarray) -> np.ndarray:
    """Euclidean distance between two flows (or points) (..., 2) -> (...)."""
    return np.linalg.norm(np.asarray(estimated, np.float64) - true, axis=-1)


def aepe(errors: np.ndarray) -> float:
    """Average end-point error of one image, over its valid pixels."""
    return float(np.mean(errors))


def pck(errors: np.ndarray, threshold: float) -> float:
    """Share of errors that are at most the threshold."""
    return float(np.mean(errors <= threshold))


def is_outlier(errors: np.ndarray, true_flow: np.ndarray) -> np.ndarray:
    """KITTI's outliers: off by more than 3 pixels and by more than 5 % of the true flow's length. (N,), (N, 2) -> (N,)."""
    return (errors > 3) & (errors > 0.05 * np.linalg.norm(true_flow, axis=-1))


def fl(errors: np.ndarray, true_flow: np.ndarray) -> float:
    """Share of KITTI's outliers."""
    return float(np.mean(is_outlier(errors, true_flow)))


@dataclass(frozen=True)
class ImageTally:
    """What is kept of one image: enough for every mean over images, groups and the whole dataset."""

    group: str
    pixels: int
    error_sum: float
    correct: tuple[int, ...]  # for each threshold
    outliers: int | None


@dataclass
class FlowTally:
    """Errors of a dataset, image by image; nothing is stored per pixel."""

    thresholds: Sequence[float] = PCK_THRESHOLDS
    images: list[ImageTally] = field(default_factory=list)

    def add(self, errors: np.ndarray, true_flow: np.ndarray | None = None, group: str = "") -> None:
        """The errors (N,) of one image; with its true flow (N, 2) outliers are counted too. No pixels: no image."""
        if len(errors) == 0:
            return
        correct = tuple(int((errors <= t).sum()) for t in self.thresholds)
        outliers = None if true_flow is None else int(is_outlier(errors, true_flow).sum())
        self.images.append(ImageTally(group, len(errors), float(np.sum(errors, dtype=np.float64)), correct, outliers))

    def aepe(self) -> float:
        """The mean over images of each one's AEPE."""
        return _mean(image.error_sum / image.pixels for image in self.images)

    def aepe_by_group(self) -> float:
        """The mean over groups (ETH3D: sequences) of the mean over their images."""
        return self._by_group(lambda image: image.error_sum / image.pixels)

    def pck_per_dataset(self, threshold: float) -> float:
        """All pixels of the dataset counted alike (MegaDepth, RobotCar)."""
        at = self._column(threshold)
        return _share(sum(image.correct[at] for image in self.images), self.pixels)

    def pck_per_image(self, threshold: float) -> float:
        """The mean over images of each one's PCK."""
        at = self._column(threshold)
        return _mean(image.correct[at] / image.pixels for image in self.images)

    def pck_by_group(self, threshold: float) -> float:
        """The mean over groups of the mean over their images (ETH3D)."""
        at = self._column(threshold)
        return self._by_group(lambda image: image.correct[at] / image.pixels)

    def fl(self) -> float:
        """Outliers among all valid pixels of the dataset."""
        if any(image.outliers is None for image in self.images):
            raise ValueError("Fl needs the true flow of every image")
        return _share(sum(image.outliers or 0 for image in self.images), self.pixels)

    @property
    def pixels(self) -> int:
        return sum(image.pixels for image in self.images)

    def _column(self, threshold: float) -> int:
        return list(self.thresholds).index(threshold)

    def _by_group(self, value: Callable[[Any], float]) -> float:
        groups = dict.fromkeys(image.group for image in self.images)
        return _mean(_mean(value(image) for image in self.images if image.group == group) for group in groups)


def _mean(values: Iterable[float]) -> float:
    numbers = list(values)
    return float(np.mean(numbers)) if numbers else float("nan")


def _share(part: int, whole: int) -> float:
    return part / whole if whole else float("nan")
