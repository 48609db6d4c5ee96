"""Matches two images: the one-line API, and the matcher that the engine runs over a pair list."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from pdc_sfm.dense.estimate import DenseEstimate
from pdc_sfm.dense.estimator import EncodedView, Estimator
from pdc_sfm.dense.settings import DenseSettings
from pdc_sfm.dense.strategies import find_strategy
from pdc_sfm.device import Precision, resolve_device
from pdc_sfm.images import Photograph, read_photograph
from pdc_sfm.matches.select import SelectSettings, collect, select_matches
from pdc_sfm.matches.snap import SnappedMatches, SnapSettings, snap_matches
from pdc_sfm.matches.types import RawMatches
from pdc_sfm.orientation import UPRIGHT

Codes = Literal["float32", "float16"]

if TYPE_CHECKING:
    from pdc_sfm.dense.field import Field
    from pdc_sfm.dense.strategies.auto import Triage
    from pdc_sfm.network import LevelOutput, PDCNet

    Starts = Callable[[Sequence[int]], LevelOutput | None]  # directions -> what their fine levels go on from


@dataclass(frozen=True)
class PairSettings:
    """How a pair is matched: the dense estimate, the selection of matches, and the matching of given keypoints."""

    dense: DenseSettings = field(default_factory=DenseSettings)
    select: SelectSettings = field(default_factory=SelectSettings)
    snap: SnapSettings = field(default_factory=SnapSettings)


@dataclass(frozen=True)
class PairResult:
    """The result of `match_images`."""

    matches: RawMatches  # points of image0 and image1, original pixel indices
    forward: DenseEstimate  # image0 is the reference
    backward: DenseEstimate  # image1 is the reference


class Matcher:
    """A network with its settings: encode each image once, match any two codes."""

    sees_upright = True  # `encode` takes a `Photograph`

    def __init__(
        self, network: PDCNet, settings: PairSettings | None = None, device: str = "cpu", codes: Codes = "float32"
    ):
        self.settings = settings or PairSettings()
        self.estimator = Estimator(network, self.settings.dense, device, codes)
        if self.settings.select.confidence == "probability":
            self.estimator.require_reachable(self.settings.select.radius, self.settings.select.threshold)
        self.estimator.require_reachable(self.settings.snap.radius, self.settings.snap.threshold)

    def encode(self, image: np.ndarray | Photograph, name: str = "image") -> EncodedView:
        """The code of an RGB image, (H, W, 3) uint8; `.nbytes` is its size in memory.

        A photograph is encoded upright, by its EXIF orientation; matches are in stored pixels.
        """
        return self.estimator.encode(image, name)

    def match(self, code0: EncodedView, code1: EncodedView) -> RawMatches:
        """Matches in original pixel indices, in the directions of the settings."""
        return self.match_batch([(code0, code1)])[0]

    def match_batch(self, pairs: Sequence[tuple[EncodedView, EncodedView]]) -> list[RawMatches]:
        """As `match` for each pair; pairs of equal sizes go through the network together."""
        return [matches() for matches in self.begin(pairs)]

    def begin(self, pairs: Sequence[tuple[EncodedView, EncodedView]]) -> list[Callable[[], RawMatches]]:
        """As `match_batch`, without waiting for a GPU. Each returned function gives the matches of a pair, from any thread."""
        sort = find_strategy(self.settings.dense.method).triage
        if self.settings.dense.needs_pixels and sort is None:
            found = [self._select(*self._estimates(code0, code1)) for code0, code1 in pairs]
            return [functools.partial(_same, matches) for matches in found]
        triage = None if sort is None else sort(self.estimator, pairs)
        groups: dict[tuple, list[int]] = {}
        for number in range(len(pairs)) if triage is None else triage.upright:
            code0, code1 = pairs[number]
            groups.setdefault((code0.sizes, code1.sizes), []).append(number)
        begun: dict[int, Callable[[], RawMatches]] = {}
        for numbers in groups.values():
            starts = functools.partial(triage.start, numbers) if triage else _from_the_beginning
            begun |= zip(numbers, self._begin([pairs[number] for number in numbers], starts))
        for number in range(len(pairs)):
            if number not in begun and triage is not None:
                begun[number] = functools.partial(_same, self._finish(triage, number, pairs[number]))
        return [begun[number] for number in range(len(pairs))]

    def _finish(self, triage: Triage, number: int, pair: tuple[EncodedView, EncodedView]) -> RawMatches:
        """The matches of a pair for which one pass will not do."""
        directions = [pair, pair[::-1]] if self.settings.select.needs_both else [pair]
        found = triage.finish(self.estimator, number, directions)
        if not any(one.valid.any() for one in found):
            return RawMatches.empty()
        return _in_stored(self._select(found[0], found[1] if len(found) > 1 else None), *pair)

    def _begin(
        self, pairs: Sequence[tuple[EncodedView, EncodedView]], starts: Starts
    ) -> list[Callable[[], RawMatches]]:
        """The same for pairs whose first images have one size, and whose second images too."""
        from pdc_sfm.matches import kept

        select = self.settings.select
        packed = [kept.fetch(kept.pack(*fields, select)) for fields in self._fields(pairs, starts)]
        sizes = pairs[0][0].view.original_size, pairs[0][1].view.original_size

        def matches(number: int) -> RawMatches:
            arrays = [array[number :: len(pairs)] for array in (fetched() for fetched in packed)]
            directions = [direction for array in arrays for direction in array]
            found = collect(directions[: 1 if select.directions == "forward" else 2], sizes, select)
            return _in_stored(found, *pairs[number])

        return [functools.partial(matches, number) for number in range(len(pairs))]

    def _fields(
        self, pairs: Sequence[tuple[EncodedView, EncodedView]], starts: Starts
    ) -> list[tuple[Field, Field | None]]:
        """What is selected from, each with the other direction: both directions are one batch if they can be.

        A GPU does not mind; a CPU takes as long, and its memory is better used by one after the other.
        """
        select, field = self.settings.select, self.estimator.field
        if not select.needs_both:
            return [(field(pairs, starts([0])), None)]
        back = [(code1, code0) for code0, code1 in pairs]
        if pairs[0][0].sizes == pairs[0][1].sizes and not self.estimator.on_host:
            both = field([*pairs, *back], starts([0, 1]))
            return [(both, both.reversed())]
        forward, backward = field(pairs, starts([0])), field(back, starts([1]))
        return [(forward, backward), (backward, forward)]

    @property
    def asynchronous(self) -> bool:
        """Whether `begin` returns before its work is done."""
        return self.estimator.device.startswith("cuda")

    def free_bytes(self) -> int | None:
        """Free memory of the device for codes; None for the host's memory, which `memory=` limits."""
        if not self.asynchronous:
            return None
        import torch

        return torch.cuda.mem_get_info(self.estimator.device)[0]

    def release(self) -> None:
        """Return memory cached by torch to the device, for other libraries."""
        if self.asynchronous:
            import torch

            torch.cuda.empty_cache()

    def match_keypoints(
        self, code0: EncodedView, code1: EncodedView, keypoints0: np.ndarray, keypoints1: np.ndarray
    ) -> SnappedMatches:
        """Match given keypoints (N, 2), original pixel indices, through the flow."""
        snap = self.settings.snap
        if snap.directions == "forward" and snap.cyclic_distance is None:
            forward, backward = self.estimator.estimate(code0, code1), None
        else:
            forward, backward = self.estimator.estimate_both(code0, code1)
        return snap_matches(keypoints0, keypoints1, forward, backward, snap)

    def _estimates(self, code0: EncodedView, code1: EncodedView) -> tuple[DenseEstimate, DenseEstimate | None]:
        if self.settings.select.needs_both:
            return self.estimator.estimate_both(code0, code1)
        return self.estimator.estimate(code0, code1), None

    def _select(self, forward: DenseEstimate, backward: DenseEstimate | None) -> RawMatches:
        return select_matches(forward, backward, self.settings.select)


def load_matcher(
    weights: Path | str | None = None,
    settings: PairSettings | None = None,
    device: str = "auto",
    precision: Precision = "float32",
    codes: Codes = "float32",
) -> Matcher:
    """A matcher with the weights of a file, or with the built-in model. `device=auto` is a GPU if there is one."""
    from pdc_sfm.weights import load_network

    device = resolve_device(device, precision)
    return Matcher(load_network(weights, device, precision), settings, device, codes)


def match_images(
    image0: Path | str | np.ndarray | Photograph,
    image1: Path | str | np.ndarray | Photograph,
    *,
    matcher: Matcher | None = None,
    settings: PairSettings | None = None,
) -> PairResult:
    """Match two images, files or RGB arrays (H, W, 3) uint8: `match_images("a.jpg", "b.jpg").matches.keypoints0`.

    Without a `matcher` the built-in model is loaded, with `settings`; keep one from `load_matcher` for many pairs.
    """
    if matcher is None:
        matcher = load_matcher(settings=settings)
    elif settings is not None:
        raise ValueError("give the settings to load_matcher, or no matcher")
    codes = [
        matcher.encode(read_photograph(image) if isinstance(image, Path | str) else image, name)
        for image, name in ((image0, _name(image0, 0)), (image1, _name(image1, 1)))
    ]
    forward, backward = matcher.estimator.estimate_both(*codes)
    return PairResult(select_matches(forward, backward, matcher.settings.select), forward, backward)


def _from_the_beginning(_: Sequence[int]) -> None:
    """The fine levels of these directions go on from nothing yet."""


def _same(matches: RawMatches) -> RawMatches:
    return matches


def _in_stored(matches: RawMatches, code0: EncodedView, code1: EncodedView) -> RawMatches:
    """Matches of the upright pictures, in pixels as they are stored."""
    if code0.orientation == code1.orientation == UPRIGHT:
        return matches
    points = zip((matches.keypoints0, matches.keypoints1), (code0, code1))
    keypoints0, keypoints1 = (code.orientation.stored_points(xy, code.view.original_size) for xy, code in points)
    return RawMatches(keypoints0, keypoints1, matches.scores)


def _name(image: Path | str | np.ndarray | Photograph, number: int) -> str:
    return str(image) if isinstance(image, Path | str) else f"image{number}"
