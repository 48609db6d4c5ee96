"""A network and a strategy to use it with: two images, each encoded once, give one `DenseEstimate` of the original pair.

The network sees views of the two images; whatever a view does to the pixels is undone exactly: final query point =
query_from_view(fine flow's point).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal

import numpy as np

from pdc_sfm.dense.confidence import require_reachable
from pdc_sfm.dense.estimate import DenseEstimate, from_level, on_host
from pdc_sfm.dense.settings import DenseSettings
from pdc_sfm.dense.strategies import find_strategy
from pdc_sfm.dense.view_codes import ViewCodes
from pdc_sfm.dense.views import View
from pdc_sfm.errors import ImageError
from pdc_sfm.images import Photograph, fitted_size, resize_image
from pdc_sfm.orientation import UPRIGHT, Orientation
from pdc_sfm.pixels import COARSE_SIDE, MIN_SIDE

if TYPE_CHECKING:
    from pdc_sfm.dense.field import Field
    from pdc_sfm.dense.gray import Gray
    from pdc_sfm.network import ImageCode, LevelOutput, PDCNet

DETAIL = 2  # images are kept at up to twice the network's resolution: as much as a search magnifies


@dataclass(frozen=True)
class EncodedView:
    """A view of an image and its code."""

    view: View
    code: ImageCode
    gray: Gray | None = None  # for sub-pixel alignment
    views: ViewCodes | None = None  # of the same image, if the strategy compares them
    orientation: Orientation = UPRIGHT  # of the pixels as they are stored: the view is of the upright picture

    @property
    def sizes(self) -> tuple:
        """What images must share to be in one batch: the size the network sees, and their own."""
        return self.code.high_size, tuple(self.view.original_size)

    @property
    def nbytes(self) -> int:
        gray = 0 if self.gray is None else self.gray.nbytes
        views = 0 if self.views is None else self.views.nbytes
        return self.code.nbytes + self.view.source.nbytes + gray + views


@dataclass(frozen=True, eq=False)
class Estimator:
    """A network and the strategy to use it with. Nothing is remembered between calls."""

    network: PDCNet
    settings: DenseSettings = field(default_factory=DenseSettings)
    device: str = "cpu"
    codes: Literal["float32", "float16"] = (
        "float32"  # as which codes are kept; the network computes in its own precision
    )

    def encode(self, image: np.ndarray | Photograph, name: str = "image") -> EncodedView:
        """The code of an image, (H, W, 3) uint8, at the resolution of the settings, of a photograph as it is seen upright."""
        photograph = image if isinstance(image, Photograph) else Photograph(image)
        image, orientation = photograph
        if image.ndim != 3 or image.shape[2] != 3 or image.dtype != np.uint8:
            raise ImageError(f"{name} is {image.dtype} {image.shape}: expected RGB, (H, W, 3) uint8")
        image = np.ascontiguousarray(orientation.upright(image))
        height, width = image.shape[:2]
        if min(height, width) < MIN_SIDE:
            raise ImageError(f"{name} is {width}x{height} pixels: at least {MIN_SIDE}x{MIN_SIDE} are needed")
        size = fitted_size((width, height), self.settings.min_side, self.settings.max_side)
        encoded = self.encode_view(View.whole(image, (width, height), size), name)
        view = replace(encoded.view, source=self._kept_pixels(image, size))
        encoded = replace(encoded, view=view, orientation=orientation)
        return (
            replace(encoded, views=self.views(encoded)) if find_strategy(self.settings.method).needs_views else encoded
        )

    def estimate(self, reference: EncodedView, query: EncodedView) -> DenseEstimate:
        """Where every cell of the reference lies in the query, by the strategy of the settings, in stored pixels."""
        return self._stored([(reference, query)])[0]

    def estimate_both(self, image0: EncodedView, image1: EncodedView) -> tuple[DenseEstimate, DenseEstimate]:
        """Both directions: image0 as reference, then image1 as reference."""
        forward, backward = self._stored([(image0, image1), (image1, image0)])
        return forward, backward

    def estimate_batch(self, pairs: Sequence[tuple[EncodedView, EncodedView]]) -> list[DenseEstimate]:
        """As `estimate` for (reference, query) pairs; of a strategy that is one pass those of equal sizes run as one batch."""
        if self.settings.needs_pixels:
            return [self.estimate(reference, query) for reference, query in pairs]
        return [_in_stored(one, *pair) for one, pair in zip(self.one_pass(pairs), pairs)]

    def _stored(self, directions: Sequence[tuple[EncodedView, EncodedView]]) -> list[DenseEstimate]:
        return [_in_stored(one, *pair) for one, pair in zip(self._turned(directions), directions)]

    # --- the query turned --------------------------------------------------------------------------------------------

    def _turned(self, directions: Sequence[tuple[EncodedView, EncodedView]]) -> list[DenseEstimate]:
        """The directions of one pair by the strategy, the query turned first by the angle that suits it best."""
        estimate = find_strategy(self.settings.method).estimate
        angle = self._best_angle(*directions[0])
        if not angle:
            return estimate(self, directions)
        angles = (angle, -angle)
        turned = [
            (reference, self.encode_view(query.view.rotated(turn)))
            for (reference, query), turn in zip(directions, angles)
        ]
        found = estimate(self, turned)
        return [replace(one, method=f"rotated {turn % 360:g}, {one.method}") for one, turn in zip(found, angles)]

    def _best_angle(self, reference: EncodedView, query: EncodedView) -> float:
        """The turn of the query, in degrees, after which most cells of the reference are confident."""
        count = self.settings.rotations
        if count == 1:
            return 0.0
        small = self.encode_view(_small(reference.view))
        angles = [360.0 * k / count for k in range(count)]
        confident = []
        for angle in angles:
            turned = self.encode_view(_small(query.view).rotated(angle))
            estimate = self.one_pass([(small, turned)], subpixel=False)[0]
            confident.append(int(self.sure(estimate).sum()))
        return angles[int(np.argmax(confident))]

    # --- views and passes: what strategies are made of ---------------------------------------------------------------

    def sure(self, estimate: DenseEstimate) -> np.ndarray:
        """(h, w) bool: cells that are matches."""
        return estimate.valid & (estimate.confidence > self.settings.threshold)

    def views(self, encoded: EncodedView) -> ViewCodes:
        """The views of an image, which are encoded when they are first compared."""
        if encoded.views is not None:
            return encoded.views
        channels = encoded.code.features[4].shape[1]
        return ViewCodes(self.network, encoded.view, channels, self.device)

    def encode_view(self, view: View, name: str = "image") -> EncodedView:
        """The code of a view of an image."""
        import torch

        from pdc_sfm.dense.gray import gray
        from pdc_sfm.network import prepare_image

        with torch.inference_mode():
            image = prepare_image(view.render(), name).to(self.device)
            code = self.network.encode(image)
            if self.codes != "float32":
                code = code.to(getattr(torch, self.codes))
            return EncodedView(view, code, gray(image, code.high_size) if self._subpixel else None)

    def coarse(
        self,
        pairs: Sequence[tuple[EncodedView, EncodedView]],
        passes: int | None = None,
        start: LevelOutput | None = None,
    ) -> LevelOutput:
        """The 256x256 levels for (reference, query) pairs of images of any sizes, left where they were computed.

        `passes` is the most of them, `start` what earlier ones found.
        """
        import torch

        from pdc_sfm.network import LevelOutput

        with torch.inference_mode():
            if not self.on_host:
                return self._coarse(pairs, passes, start)
            # as `direct`: a CPU takes as long for a batch, whose last digits differ
            starts = [None if start is None else start.take([row]) for row in range(len(pairs))]
            return LevelOutput.cat([self._coarse([pair], passes, begun) for pair, begun in zip(pairs, starts)])

    def one_pass(
        self,
        pairs: Sequence[tuple[EncodedView, EncodedView]],
        subpixel: bool = True,
        coarse: LevelOutput | None = None,
    ) -> list[DenseEstimate]:
        """One pass of the network for each pair, in batches of equal sizes; aligned to sub-pixels if the settings want it.

        `coarse` is what `coarse` found of them.
        """
        import torch

        from pdc_sfm.dense.subpixel import align_likely

        # Not padded to one size: on 9 pairs of photographs that cost 1.38 times the area, moved common cells by up to 0.97 px in
        # the median, and a pair's matches would depend on what it is batched with.
        groups: dict[tuple, list[int]] = {}
        for number, (reference, query) in enumerate(pairs):
            groups.setdefault((reference.code.high_size, query.code.high_size), []).append(number)
        found: dict[int, DenseEstimate] = {}
        for numbers in groups.values():
            some = [pairs[n] for n in numbers]
            with torch.inference_mode():
                output = self._decode(some, None if coarse is None else coarse.take(numbers))
                if subpixel and self._subpixel:
                    output = align_likely(output, *_grays(some), self.network.confidence_head)
            output = on_host(output)
            for index, number in enumerate(numbers):
                found[number] = _original(output, *pairs[number], index)
        return [found[number] for number in range(len(pairs))]

    def field(self, pairs: Sequence[tuple[EncodedView, EncodedView]], coarse: LevelOutput | None = None) -> Field:
        """One pass for (reference, query) pairs of whole images with equal `sizes`, left where it was computed."""
        import torch

        from pdc_sfm.dense.field import field_of
        from pdc_sfm.dense.subpixel import align_likely

        with torch.inference_mode():
            output = self._decode(pairs, coarse)
            if self._subpixel:
                output = align_likely(output, *_grays(pairs), self.network.confidence_head)
            return field_of(output, *(encoded.view.original_size for encoded in pairs[0]))

    def _decode(
        self, pairs: Sequence[tuple[EncodedView, EncodedView]], coarse: LevelOutput | None = None
    ) -> LevelOutput:
        if coarse is None:
            codes = self._batch([reference.code for reference, _ in pairs], [query.code for _, query in pairs])
            return self.network.decode(*codes)[-1]
        parts = {id(encoded.code): encoded.code.fine for pair in pairs for encoded in pair}
        codes = self._batch(*([parts[id(encoded.code)] for encoded in side] for side in zip(*pairs)))
        return self.network.decode(*codes, coarse=coarse)[-1]

    def _coarse(
        self, pairs: Sequence[tuple[EncodedView, EncodedView]], passes: int | None, start: LevelOutput | None
    ) -> LevelOutput:
        parts = {id(encoded.code): encoded.code.coarse for pair in pairs for encoded in pair}
        codes = self._batch(*([parts[id(encoded.code)] for encoded in side] for side in zip(*pairs)))
        found = self.network.decode(*codes, last_level=3, passes=passes, coarse=start)
        last = found[-1] if found else start  # none: it was the last pass
        assert last is not None
        return last

    def _batch(self, references: Sequence[ImageCode], queries: Sequence[ImageCode]) -> tuple[ImageCode, ImageCode]:
        joined = references[0].cat_both(references, queries)
        if self.codes == "float32":
            return joined
        import torch

        return joined[0].to(torch.float32), joined[1].to(torch.float32)

    @property
    def on_host(self) -> bool:
        """Whether numbers are there as soon as they are computed."""
        return self.device.startswith("cpu")

    def require_reachable(self, radius: float, threshold: float) -> None:
        """Refuse a radius or a threshold of confidence that makes no sense for this network as it is used."""
        require_reachable(self.network.settings, self._subpixel, radius, threshold)

    @property
    def _subpixel(self) -> bool:
        """As the settings say, else unless the network is to give its published numbers."""
        return subpixel_by_default(self.network) if self.settings.subpixel is None else self.settings.subpixel

    def _kept_pixels(self, image: np.ndarray, size: tuple[int, int]) -> np.ndarray:
        if not self.settings.needs_pixels:
            return np.zeros((0, 0, 3), np.uint8)
        kept = (DETAIL * size[0], DETAIL * size[1])
        return resize_image(image, kept) if image.shape[1] > kept[0] else image


def subpixel_by_default(network: PDCNet) -> bool:
    """Whether a network's flow is aligned to sub-pixels: the published networks are used as published."""
    return network.settings.backbone != "vgg16"


def _small(view: View) -> View:
    """The smallest that the network works at."""
    return view.scaled(min(1.0, COARSE_SIDE / min(view.size)))


def _grays(pairs: Sequence[tuple[EncodedView, EncodedView]]) -> tuple[list[Gray], list[Gray]]:
    """Of the references, and of the queries."""
    return [_gray(reference) for reference, _ in pairs], [_gray(query) for _, query in pairs]


def _gray(encoded: EncodedView) -> Gray:
    assert encoded.gray is not None  # an estimator that aligns made it together with the code
    return encoded.gray


def _in_stored(estimate: DenseEstimate, reference: EncodedView, query: EncodedView) -> DenseEstimate:
    """An estimate of the upright pictures, in pixels as they are stored."""
    return estimate.stored(reference.orientation, query.orientation)


def _original(output: LevelOutput, reference: EncodedView, query: EncodedView, index: int) -> DenseEstimate:
    """The network's output for a pair of views, as an estimate of the original pair."""
    whole, view = reference.view.is_whole, reference.view
    sizes = view.original_size if whole else view.size, query.view.original_size
    through = None if query.view.is_whole else query.view
    estimate = from_level(
        output,
        *sizes,
        view_size=None if through is None else through.size,
        query_from_view=None if through is None else through.original_from_view,
        index=index,
    )
    if whole:
        return estimate
    columns, rows = (max(1, round(side / estimate.stride)) for side in view.seen_size)
    return estimate.over_image(view.original_size, view.original_from_view, (columns, rows))
