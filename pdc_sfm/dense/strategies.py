"""Strategies for one pair (Sec. 3.7): direct (D), homography (H), multi-scale (MS), and searches over rotation and zoom.

Each gives one `DenseEstimate` of the original pair. The network sees views of the two images; whatever a view does to
the pixels is undone exactly: final query point = query_from_view(fine flow's point).
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from pdc_sfm.dense.estimate import DenseEstimate, from_level, on_host
from pdc_sfm.dense.homography import Fit, fit_homography
from pdc_sfm.dense.search import COMPLETE, PLANAR, Search, Trial, is_far, shown_cells, window_around
from pdc_sfm.dense.settings import DenseSettings
from pdc_sfm.dense.views import SMALLEST, View
from pdc_sfm.errors import ImageError
from pdc_sfm.images import fitted_size, resize_image
from pdc_sfm.sift import Description, describe

if TYPE_CHECKING:
    from pdc_sfm.dense.field import Field
    from pdc_sfm.dense.subpixel import Gray
    from pdc_sfm.network import ImageCode, LevelOutput, PDCNet

SEARCH_SIDE = 256  # rotations are tried at the smallest size the network works at
MOST_KEYPOINTS = 2000  # of an image, for a search
KEYPOINT_BYTES = 4 * (128 + 2)  # a descriptor and its place
DETAIL = 2  # images are kept at up to twice the network's resolution, for views that magnify


@dataclass(frozen=True)
class EncodedView:
    """A view of an image and its code."""

    view: View
    code: ImageCode
    gray: Gray | None = None  # for alignment
    searched: bool = False  # a search may add keypoints

    @functools.cached_property
    def keypoints(self) -> Description:
        """SIFT's, found when a search first wants them: once, however many pairs the image is in."""
        return describe(resize_image(self.view.source, self.view.size), MOST_KEYPOINTS)

    @property
    def sizes(self) -> tuple:
        """What images must share to be in one batch: the size the network sees, and their own."""
        return self.code.high_size, tuple(self.view.original_size)

    @property
    def nbytes(self) -> int:
        gray = 0 if self.gray is None else self.gray.nbytes
        keypoints = (
            MOST_KEYPOINTS * KEYPOINT_BYTES if self.searched else 0
        )  # also before they are found: it must not grow
        return self.code.nbytes + self.view.source.nbytes + gray + keypoints


@dataclass(frozen=True, eq=False)
class Estimator:
    """A network and the strategy to use it with. Nothing is remembered between calls."""

    network: PDCNet
    settings: DenseSettings = field(default_factory=DenseSettings)
    device: str = "cpu"
    codes: Literal["float32", "float16"] = (
        "float32"  # as which codes are kept; the network computes in its own precision
    )

    def encode(self, image: np.ndarray, name: str = "image") -> EncodedView:
        """The code of an image, (H, W, 3) uint8, at the resolution of the settings."""
        if image.ndim != 3 or image.shape[2] != 3 or image.dtype != np.uint8:
            raise ImageError(f"{name} is {image.dtype} {image.shape}: expected RGB, (H, W, 3) uint8")
        height, width = image.shape[:2]
        if min(height, width) < SMALLEST:
            raise ImageError(f"{name} is {width}x{height} pixels: at least {SMALLEST}x{SMALLEST} are needed")
        size = fitted_size((width, height), self.settings.min_side, self.settings.max_side)
        encoded = self._encode(View.whole(image, (width, height), size), name)
        view = replace(encoded.view, source=self._kept_pixels(image, size))
        return replace(encoded, view=view, searched=self.settings.method == "search")

    def estimate(self, reference: EncodedView, query: EncodedView) -> DenseEstimate:
        """Where every cell of the reference lies in the query, by the strategy of the settings."""
        if self.settings.method == "search":
            return self._searched((reference, query), self._direct([(reference, query)]))[0]
        return self._estimate(reference, query, self._best_angle(reference, query), {})

    def estimate_both(self, image0: EncodedView, image1: EncodedView) -> tuple[DenseEstimate, DenseEstimate]:
        """Both directions: image0 as reference, then image1 as reference."""
        if self.settings.method == "search":
            both = (image0, image1), (image1, image0)
            return tuple(self._searched(both[0], self._direct(both)))
        angle, known = self._best_angle(image0, image1), {}
        return self._estimate(image0, image1, angle, known), self._estimate(image1, image0, -angle, known)

    def estimate_batch(self, pairs: Sequence[tuple[EncodedView, EncodedView]]) -> list[DenseEstimate]:
        """As `estimate` for (reference, query) pairs; direct passes over images of equal sizes run as one batch."""
        if self.settings.needs_pixels:
            return [self.estimate(reference, query) for reference, query in pairs]
        return self._direct(pairs)

    # --- strategies --------------------------------------------------------------------------------------------------

    def _estimate(self, reference: EncodedView, query: EncodedView, angle: float, known: dict) -> DenseEstimate:
        """One direction, the query turned by `angle` first. `known` holds the codes of views of this pair."""
        method = self.settings.method
        if angle % 360:
            query = self._encode(query.view.rotated(angle))
        if method == "multiscale":
            first, fit = self._best_scale(reference, query, known)
        else:
            first = self._direct([(reference, query)])[0]
            fit = self._fit(first, reference.view, query.view) if method == "homography" else None
        if fit is not None:
            first = self._second_pass((reference, query), first, fit.query_from_reference)
        elif method != "direct":
            method = f"direct ({method} found none)"
        return replace(first, method=f"rotated {angle % 360:g}, {method}" if angle % 360 else method)

    def _best_scale(self, reference: EncodedView, query: EncodedView, known: dict) -> tuple[DenseEstimate, Fit | None]:
        """Of the passes over all scales the one whose homography has the highest share of inliers (then: most)."""
        passes = []
        for scale in self.settings.scales:
            smaller = self._shrunk(reference, min(scale, 1.0), known)
            other = self._shrunk(query, min(1 / scale, 1.0), known)
            estimate = self._direct([(smaller, other)], align=False)[0]
            passes.append((estimate, self._fit(estimate, smaller.view, other.view)))
        if not any(fit for _, fit in passes):
            return self._direct([(reference, query)])[0], None
        first, fit = max((p for p in passes if p[1]), key=lambda p: (round(p[1].share, 2), p[1].matches))
        height, width = reference.code.high_size
        return first.resampled((width // first.stride, height // first.stride)), fit

    def _searched(self, images: tuple[EncodedView, EncodedView], first: list[DenseEstimate]) -> list[DenseEstimate]:
        """The first passes (forward, or forward and backward); if one found little, all are tried again, aligned."""
        directions = [images, images[::-1]][: len(first)]
        if not any(self._is_weak(estimate, *pair) for estimate, pair in zip(first, directions)):
            return [self._completed(pair, estimate) for pair, estimate in zip(directions, first)]
        best = Trial(0.0)
        for homography in self._homographies(directions, first):
            best = max(best, self._trial(directions, first, homography), key=lambda trial: trial.share)
            if best.confirmed:
                break
        return [self._aligned(n, directions[n], estimate, best) for n, estimate in enumerate(first)]

    def _completed(self, pair: tuple[EncodedView, EncodedView], first: DenseEstimate) -> DenseEstimate:
        """A pass that found a plane but not all of it is followed by one through the plane's homography."""
        fit = self._fit(first, *(encoded.view for encoded in pair))
        if fit is None or fit.share < PLANAR:
            return first
        sure = self._sure(first)
        if sure[shown_cells(first, fit.query_from_reference)].mean() > COMPLETE:
            return first
        second = self._closer_pass(pair, first, fit.query_from_reference)
        return replace(second, method="search") if self._sure(second).sum() > sure.sum() else first

    def _aligned(
        self, n: int, pair: tuple[EncodedView, EncodedView], first: DenseEstimate, best: Trial
    ) -> DenseEstimate:
        """The aligned pass of direction n, if its homography was confirmed or at least more is sure."""
        if best.share:
            second = best.estimates[n] if n in best.estimates else self._closer_pass(pair, first, best.aligning[n])
            if best.confirmed:  # what the first pass, lost, says of the rest is worth nothing
                return replace(second, valid=second.valid & shown_cells(first, best.aligning[n]), method="search")
            if self._sure(second).sum() > self._sure(first).sum():
                return replace(second, method="search")
        return replace(first, method="direct (search found none)")

    def _is_weak(self, first: DenseEstimate, reference: EncodedView, query: EncodedView) -> bool:
        """Whether a pass found little, or is at the limit of what it can find."""
        sure = self._sure(first)
        return bool(sure.mean() < self.settings.search_below) or is_far(first, sure, reference.view, query.view)

    def _homographies(
        self, directions: list[tuple[EncodedView, EncodedView]], first: list[DenseEstimate]
    ) -> Iterator[np.ndarray]:
        """Candidates for image1_from_image0, cheap ones first: from what the first passes are sure of, then searched."""
        fits = [self._fit(estimate, *(e.view for e in pair)) for estimate, pair in zip(first, directions)]
        if any(fits):
            n, fit = max(((n, fit) for n, fit in enumerate(fits) if fit), key=lambda entry: entry[1].inliers)
            yield fit.query_from_reference if n == 0 else np.linalg.inv(fit.query_from_reference)
        yield from Search(
            self.network, directions[0], self.settings.threshold, self.device, self.settings.view_search
        ).homographies()

    def _trial(self, directions: list, first: list[DenseEstimate], homography: np.ndarray) -> Trial:
        """An aligned pass in the easier direction, whose reference is the nearer view: it shows more of the other."""
        aligning = (homography, np.linalg.inv(homography))
        shown = [shown_cells(estimate, h) for estimate, h in zip(first, aligning)]
        n = int(np.argmax([part.mean() for part in shown]))
        second = self._closer_pass(directions[n], first[n], aligning[n])
        sure = (self._sure(second) & shown[n]).sum()
        share = sure / shown[n].sum() if sure >= self.settings.min_matches else 0.0
        return Trial(share, aligning, {n: second})

    def _sure(self, estimate: DenseEstimate) -> np.ndarray:
        """(h, w) bool: cells that are matches."""
        return estimate.valid & (estimate.confidence() > self.settings.threshold)

    def _second_pass(
        self, pair: tuple[EncodedView, EncodedView], first: DenseEstimate, query_from_reference: np.ndarray
    ) -> DenseEstimate:
        """The fine flow to the query warped by the homography; where that shows nothing, the first pass stays."""
        reference, query = pair
        aligned = self._encode(query.view.seen_from(reference.view, query_from_reference))
        fine = self._direct([(reference, aligned)])[0].resampled(first.grid_size)
        seen = fine.valid[..., None]
        return replace(
            fine,
            flow=np.where(seen, fine.flow, first.flow),
            log_var=np.where(seen, fine.log_var, first.log_var),
            logits=np.where(seen, fine.logits, first.logits),
            valid=fine.valid | first.valid,
        )

    def _closer_pass(
        self, pair: tuple[EncodedView, EncodedView], first: DenseEstimate, query_from_reference: np.ndarray
    ) -> DenseEstimate:
        """A second pass over the part of the reference that the query shows, magnified if it is small."""
        reference, query = pair
        window = window_around(shown_cells(first, query_from_reference))
        if window is not None:
            reference = self._encode(reference.view.zoomed(*window))
        return self._second_pass((reference, query), first, query_from_reference)

    def _fit(self, estimate: DenseEstimate, reference: View, query: View) -> Fit | None:
        return fit_homography(
            estimate,
            reference.seen_size,
            query.seen_size,
            threshold=self.settings.threshold,
            min_matches=self.settings.min_matches,
            ransac_threshold=self.settings.ransac_threshold,
        )

    def _best_angle(self, reference: EncodedView, query: EncodedView) -> float:
        """The turn of the query, in degrees, after which most cells of the reference are confident."""
        count = self.settings.rotations
        if count == 1:
            return 0.0
        small = self._encode(_small(reference.view))
        angles = [360.0 * k / count for k in range(count)]
        confident = []
        for angle in angles:
            turned = self._encode(_small(query.view).rotated(angle))
            estimate = self._direct([(small, turned)], align=False)[0]
            confident.append(int(self._sure(estimate).sum()))
        return angles[int(np.argmax(confident))]

    @property
    def _aligns(self) -> bool:
        """Whether matches are aligned: as the settings say, else unless the network is to give its published numbers."""
        return aligns(self.network) if self.settings.subpixel is None else self.settings.subpixel

    # --- views and passes --------------------------------------------------------------------------------------------

    def _direct(self, pairs: Sequence[tuple[EncodedView, EncodedView]], align: bool = True) -> list[DenseEstimate]:
        """One pass of the network for each pair, in batches of equal sizes."""
        import torch

        from pdc_sfm.dense import subpixel as alignment

        groups: dict[tuple, list[int]] = {}
        for number, (reference, query) in enumerate(pairs):
            groups.setdefault((reference.code.high_size, query.code.high_size), []).append(number)
        found: dict[int, DenseEstimate] = {}
        for numbers in groups.values():
            some = [pairs[n] for n in numbers]
            with torch.inference_mode():
                output = self._decode(some)
                if align and self._aligns:
                    output = alignment.align_likely(output, *_grays(some), self.network.confidence_head)
            output = on_host(output)
            for index, number in enumerate(numbers):
                found[number] = _original(output, *pairs[number], index)
        return [found[number] for number in range(len(pairs))]

    def field(self, pairs: Sequence[tuple[EncodedView, EncodedView]]) -> Field:
        """One pass for (reference, query) pairs of whole images with equal `sizes`, left where it was computed."""
        import torch

        from pdc_sfm.dense import subpixel as alignment
        from pdc_sfm.dense.cells import fused
        from pdc_sfm.dense.field import field_of

        p1 = None
        with torch.inference_mode():
            output = self._decode(pairs)
            if self._aligns and fused(output.flow):
                grays = (alignment.Gray.cat(some) for some in _grays(pairs))
                output, p1 = alignment.align_and_score(output, *grays, self.network.confidence_head)
            elif self._aligns:
                output = alignment.align_likely(output, *_grays(pairs), self.network.confidence_head)
            return field_of(output, *(encoded.view.original_size for encoded in pairs[0]), p1)

    def _decode(self, pairs: Sequence[tuple[EncodedView, EncodedView]]) -> LevelOutput:
        references, queries = (_batch([pair[side].code for pair in pairs]) for side in (0, 1))
        if self.codes != "float32":
            import torch

            references, queries = references.to(torch.float32), queries.to(torch.float32)
        return self.network.decode(references, queries)[-1]

    def _encode(self, view: View, name: str = "image") -> EncodedView:
        import torch

        from pdc_sfm.dense import subpixel as alignment
        from pdc_sfm.network import prepare_image

        with torch.inference_mode():
            image = prepare_image(view.render(), name).to(self.device)
            code = self.network.encode(image)
            if self.codes != "float32":
                code = code.to(getattr(torch, self.codes))
            return EncodedView(view, code, alignment.gray(image, code.high_size) if self._aligns else None)

    def _shrunk(self, encoded: EncodedView, factor: float, known: dict) -> EncodedView:
        """The code of the view made smaller, computed once for each size.

        It stays on a canvas of the same size: the network's 256x256 branch would undo mere resizing.
        """
        if factor == 1:
            return encoded
        view = encoded.view.zoomed(factor)
        key = (id(view.source), view.size, view.original_from_view.tobytes())
        if key not in known:
            known[key] = self._encode(view)
        return known[key]

    def _kept_pixels(self, image: np.ndarray, size: tuple[int, int]) -> np.ndarray:
        if not self.settings.needs_pixels:
            return np.zeros((0, 0, 3), np.uint8)
        kept = (DETAIL * size[0], DETAIL * size[1])
        return resize_image(image, kept) if image.shape[1] > kept[0] else image


def aligns(network: PDCNet) -> bool:
    """Whether a network's flow is aligned by default: the published networks are used as published."""
    return network.settings.backbone != "vgg16"


def _small(view: View) -> View:
    return view.scaled(min(1.0, SEARCH_SIDE / min(view.size)))


def _grays(pairs: Sequence[tuple[EncodedView, EncodedView]]) -> tuple[list[Gray], list[Gray]]:
    """Of the references, and of the queries."""
    return [reference.gray for reference, _ in pairs], [query.gray for _, query in pairs]


def _batch(codes: list[ImageCode]) -> ImageCode:
    return codes[0] if len(codes) == 1 else codes[0].cat(codes)


def _original(output, reference: EncodedView, query: EncodedView, index: int) -> DenseEstimate:
    """The network's output for a pair of views, as an estimate of the original pair."""
    whole, view = reference.view.is_whole, reference.view
    sizes = view.original_size if whole else view.size, query.view.original_size
    through = (
        {} if query.view.is_whole else dict(view_size=query.view.size, query_from_view=query.view.original_from_view)
    )
    estimate = from_level(output, *sizes, index=index, **through)
    if whole:
        return estimate
    cells = tuple(max(1, round(side / estimate.stride)) for side in view.seen_size)
    return estimate.over_image(view.original_size, view.original_from_view, cells)
