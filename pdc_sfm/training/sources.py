"""Where the trainer's pairs come from. SyntheticPair number `index` of a size is the same whenever and wherever it is made."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from pdc_sfm.pixels import ImageShape
from pdc_sfm.processes import in_order
from pdc_sfm.synthetic.pairs import PhotoSource, SyntheticPair, SyntheticPairSettings, make_pair, validation_pairs
from pdc_sfm.training.schedule import SizeSettings


@dataclass(frozen=True)
class Sample:
    """One pair for the trainer, as arrays."""

    reference: np.ndarray  # (H, W, 3) uint8
    query: np.ndarray  # (H, W, 3) uint8
    flow: np.ndarray  # (H, W, 2) float32
    valid: np.ndarray  # (H, W) bool: the likelihood is asked for here
    hidden: np.ndarray  # (H, W) bool: known to have no counterpart
    points: np.ndarray | None = None  # (N, 4) float32: correspondences, instead of dense flow

    @classmethod
    def of(cls, pair: SyntheticPair) -> Sample:
        """A synthetic pair knows of every pixel whether it is seen."""
        return cls(pair.reference, pair.query, pair.flow, pair.mask, ~pair.visible)


class Source(Protocol):
    """Anything that gives pairs by number."""

    def sample(self, index: int, size: ImageShape) -> Sample:
        """SyntheticPair number `index`, with images of (height, width)."""


@dataclass(frozen=True)
class SyntheticSource:
    """Self-supervised pairs of photographs."""

    photos: PhotoSource
    cutouts: Sequence[np.ndarray] | None
    settings: SyntheticPairSettings
    seed: int

    def sample(self, index: int, size: ImageShape) -> Sample:
        """SyntheticPair number `index`."""
        rng = np.random.default_rng([self.seed, index])
        return Sample.of(make_pair(self.photos, self.cutouts, replace(self.settings, size=size), rng))


@dataclass(frozen=True)
class MixedSource:
    """Other pairs among synthetic ones: training on sparse correspondences alone spoils the uncertainty (appendix B)."""

    synthetic: Source
    others: tuple[tuple[Source, float], ...]  # each with its share of the pairs
    seed: int

    def sample(self, index: int, size: ImageShape) -> Sample:
        """SyntheticPair number `index`; chance, fixed by the number, decides of which kind it is."""
        place = np.random.default_rng([self.seed, index, 1]).random()
        for source, share in self.others:
            if place < share:
                return source.sample(index, size)
            place -= share
        return self.synthetic.sample(index, size)


@dataclass(frozen=True)
class FixedPairs:
    """The pairs a network is judged on, from photographs kept out of training."""

    photos: PhotoSource
    cutouts: Sequence[np.ndarray] | None
    settings: SyntheticPairSettings
    real_source: Source | None = None

    def moderate(self, count: int, size: ImageShape) -> list[Sample]:
        """Homographies of moderate strength with mild changes of light."""
        return [Sample.of(pair) for pair in validation_pairs(self.photos, count, 0, size)]

    def hard(self, count: int, size: ImageShape) -> list[Sample]:
        """Pairs as hard as those of training: rotations, zooms, objects, perturbations, night."""
        source = SyntheticSource(self.photos, self.cutouts, replace(self.settings, unrelated=0), 0)
        return [source.sample(index, size) for index in range(count)]

    def real(self, count: int, size: ImageShape) -> list[Sample]:
        """Pairs with correspondences that training does not see."""
        return [self.real_source.sample(index, size) for index in range(count)] if self.real_source else []

    def unrelated(self, count: int, size: ImageShape) -> list[Sample]:
        """Photographs of different places."""
        if len(self.photos) < 2:
            return []
        source = SyntheticSource(self.photos, self.cutouts, replace(self.settings, unrelated=1), 0)
        return [source.sample(index, size) for index in range(count)]


@dataclass(frozen=True)
class SampleStream:
    """The samples of each iteration. Those of iteration n depend on n alone, whoever makes them and whenever."""

    source: Source
    sizes: SizeSettings
    rank: int = 0  # of this process among `world` that train together
    world: int = 1

    def pair_numbers(self, iteration: int) -> range:
        """The pairs of an iteration in this process."""
        batch = self.sizes.phase(iteration).batch
        first = self.sizes.pairs_before(iteration) * self.world + self.rank * batch
        return range(first, first + batch)

    def samples(self, iteration: int) -> list[Sample]:
        """The samples of an iteration, all of one size."""
        size = self.sizes.image_size(iteration)
        return [self.source.sample(number, size) for number in self.pair_numbers(iteration)]

    def run(self, start: int, stop: int, workers: int) -> Generator[list[Sample], None, None]:
        """The samples of iterations `start` to `stop`, made ahead by worker processes."""
        return in_order(self.samples, start, stop, workers=workers)
