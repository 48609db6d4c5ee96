"""Search for a pair that one pass does not find: turned, zoomed, tilted (beyond the paper).

SIFT, which knows neither scale nor turn, proposes first. Then the network looks itself: its 256x256 branch fits every image
into the same square, so it never sees another scale by itself. Here it looks at one whole image and many views of the other:
turned; squeezed along one direction; shrunk on an empty canvas; windows that magnify. Either image can be the one that is
viewed, so zoom is found both ways. This branch costs a tenth of a whole pass, and how many of its cells are confident tells
the right view from the wrong ones. Whatever is proposed, a whole pass through it must be sure of most that it shows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pdc_sfm.dense.estimate import DenseEstimate, from_level, on_host
from pdc_sfm.dense.homography_fit import Fit, fit_homography, fit_points
from pdc_sfm.dense.views import View
from pdc_sfm.pixels import COARSE_SIDE, inside, transform
from pdc_sfm.sift import match_descriptions

if TYPE_CHECKING:
    from pdc_sfm.dense.estimator import EncodedView
    from pdc_sfm.network import PDCNet

TURNS = tuple(range(0, 360, 45))  # degrees
SHRUNK = 0.4  # zooms from about 1.5 to 4 become what a pass finds
MAGNIFIED = 2.0
TILTED = 0.5  # one direction of an image squeezed to this: what is seen at 60 degrees
DIRECTIONS = (0, 45, 90, 135)  # degrees, of what is squeezed
PLACES = tuple((x, y) for y in (0.25, 0.5, 0.75) for x in (0.25, 0.5, 0.75))  # centers of windows, in parts of an image
LIKELY_TURNS = 2  # turns beside none at which windows are tried
FAR_ZOOM, FAR_TURN = 1.7, 25.0  # along any direction; degrees: beyond them a pass finds only a part
LARGEST_PART = 0.7  # of the reference's sides: what the query shows of it is magnified if it is less
ROOM = 1.1  # around it
FEWEST_KEYPOINTS = 12  # of SIFT, for a homography
FEWEST_CELLS = 40  # confident, of 32x32, for a homography
RANSAC_THRESHOLD = 3.0  # pixels of the branch, whose flow is coarse


@dataclass(frozen=True)
class ViewHypothesis:
    """Which image is viewed (the other is whole), and how."""

    viewed: int
    turn: float = 0.0
    tilt: float | None = None  # the direction that is squeezed
    zoom: float = 1.0
    place: tuple[float, float] = (0.5, 0.5)


@dataclass(frozen=True)
class ViewSearch:
    """The looks at one pair of images."""

    network: PDCNet
    images: tuple[EncodedView, EncodedView]
    threshold: float = 0.1
    device: str = "cpu"
    view_search: bool = True  # whether the network looks at views as well

    def homographies(self) -> Iterator[np.ndarray]:
        """image1_from_image0 (3, 3), the best of each stage that has one; later stages cost more."""
        homography = self.by_keypoints()
        if homography is not None:
            yield homography
        if not self.view_search:
            return
        fits: dict[float, float] = {}  # the most cells that agree at each turn
        for stage in (self._turned, self._tilted, self._shrunk, self._magnified):
            looks = [(look, self._fit(look)) for look in stage(fits)]
            found = [(look, fit) for look, fit in looks if fit is not None]
            for look, fit in found:
                fits[look.turn] = max(fits.get(look.turn, 0), fit.inliers)
            if found:
                look, fit = max(found, key=lambda entry: entry[1].inliers)
                homography = fit.query_from_reference
                yield homography if look.viewed else np.linalg.inv(homography)

    def by_keypoints(self) -> np.ndarray | None:
        """image1_from_image0 (3, 3) that SIFT's keypoints agree on."""
        whole = [encoded.view for encoded in self.images]
        described = (encoded.keypoints for encoded in self.images)
        found = fit_points(*match_descriptions(*described)[:2], FEWEST_KEYPOINTS, RANSAC_THRESHOLD)
        if found is None:
            return None
        to_view, from_view = np.linalg.inv(whole[0].original_from_view), whole[1].original_from_view
        return from_view @ found[0] @ to_view

    def _turned(self, _: dict) -> list[ViewHypothesis]:
        return [ViewHypothesis(1, turn) for turn in TURNS[1:]]  # upright both are in a whole pass

    def _tilted(self, _: dict) -> list[ViewHypothesis]:
        return [ViewHypothesis(viewed, tilt=direction) for direction in DIRECTIONS for viewed in (0, 1)]

    def _shrunk(self, _: dict) -> list[ViewHypothesis]:
        return [ViewHypothesis(viewed, turn, zoom=SHRUNK) for turn in TURNS for viewed in (0, 1)]

    def _magnified(self, fits: dict[float, float]) -> list[ViewHypothesis]:
        likely = sorted(fits, key=fits.__getitem__, reverse=True)[:LIKELY_TURNS]
        return [
            ViewHypothesis(viewed, turn, zoom=MAGNIFIED, place=at)
            for turn in dict.fromkeys((0, *likely))
            for viewed in (0, 1)
            for at in PLACES
        ]

    def _fit(self, look: ViewHypothesis) -> Fit | None:
        view = self._view(look)
        estimate = self._estimate(self.images[1 - look.viewed], view)
        width, height = (COARSE_SIDE * a / b for a, b in zip(view.seen_size, view.size))
        return fit_homography(
            estimate,
            (COARSE_SIDE, COARSE_SIDE),
            (width, height),
            threshold=self.threshold,
            min_matches=FEWEST_CELLS,
            ransac_threshold=RANSAC_THRESHOLD,
        )

    def _view(self, look: ViewHypothesis) -> View:
        whole = self.images[look.viewed].view
        view = whole.scaled(COARSE_SIDE / min(whole.size)).zoomed(look.zoom, look.place)
        return (view if look.tilt is None else view.squeezed(TILTED, look.tilt)).rotated(look.turn)

    def _estimate(self, reference: EncodedView, view: View) -> DenseEstimate:
        """One pass of the branch; the whole image's code is there already."""
        import torch

        from pdc_sfm.network import prepare_image

        with torch.inference_mode():
            code = self.network.encode_low(prepare_image(view.render()).to(self.device))
            output = self.network.decode(reference.code, code, last_level=3)[-1]
        return from_level(
            on_host(output),
            reference.view.original_size,
            view.original_size,
            view_size=view.size,
            query_from_view=view.original_from_view,
        )


def is_far(estimate: DenseEstimate, sure: np.ndarray, reference: View, query: View) -> bool:
    """Whether the surest cells (h, w) are so turned, zoomed or tilted, as the network sees the images, that it loses others."""
    together = sure[:-1, :-1] & sure[1:, :-1] & sure[:-1, 1:]
    if not together.any():
        return True
    points = estimate.query_points * np.divide(query.size, query.original_size)
    spacing = np.divide(reference.size, estimate.grid_size)
    across = (points[:-1, 1:] - points[:-1, :-1])[together] / spacing[0]
    down = (points[1:, :-1] - points[:-1, :-1])[together] / spacing[1]
    derivative = np.stack((np.median(across, 0), np.median(down, 0)), 1)  # (2, 2), of the flow's usual place
    longest, shortest = np.linalg.svd(derivative, compute_uv=False)  # tilt makes them differ
    turn = np.arctan2(derivative[1, 0] - derivative[0, 1], np.trace(derivative))
    return bool(longest > FAR_ZOOM or shortest < 1 / FAR_ZOOM or abs(np.degrees(turn)) > FAR_TURN)


def shown_cells(estimate: DenseEstimate, query_from_reference: np.ndarray) -> np.ndarray:
    """(h, w) bool: cells that a homography puts on the query."""
    return inside(transform(estimate.reference_points, query_from_reference), estimate.query_size)


def window_around(shown: np.ndarray) -> tuple[float, tuple[float, float]] | None:
    """Magnification and center of the window around cells (h, w), in parts of the grid; None if they are most of it."""
    rows, columns = (np.flatnonzero(shown.any(axis)) for axis in (1, 0))
    if not len(rows):
        return None
    ends = [(index[0] / n, (index[-1] + 1) / n) for index, n in ((columns, shown.shape[1]), (rows, shown.shape[0]))]
    part = ROOM * max(high - low for low, high in ends)
    if part > LARGEST_PART:
        return None
    x, y = (float(np.clip((low + high) / 2, part / 2, 1 - part / 2)) for low, high in ends)
    return 1 / part, (x, y)
