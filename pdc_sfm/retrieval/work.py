"""What a worker does for retrieval: codes of the 256-pixel branch, counts by it, counts by the full network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pdc_sfm.dense.settings import DenseSettings
from pdc_sfm.device import resolve_device
from pdc_sfm.engine.cache import parse_bytes
from pdc_sfm.engine.weights_file import WeightsFile
from pdc_sfm.engine.work import PairWork
from pdc_sfm.errors import SettingsError
from pdc_sfm.matcher import Matcher, PairSettings
from pdc_sfm.matches.masks import Masks
from pdc_sfm.matches.select import SelectSettings
from pdc_sfm.retrieval.coarse import CoarsePairs, score_coarse
from pdc_sfm.retrieval.codes import CoarseCodes, Encoder
from pdc_sfm.retrieval.settings import RetrievalSettings
from pdc_sfm.store.journal import MatchCount
from pdc_sfm.store.pair_lists import Pair
from pdc_sfm.workers import Block

if TYPE_CHECKING:
    from pdc_sfm.network import PDCNet


def full_settings(settings: RetrievalSettings) -> PairSettings:
    """A single pass of the full network, the query being the reference."""
    # counts need no alignment, and a query has many images to be found by
    dense = DenseSettings(settings.min_side, settings.max_side, method=settings.method, subpixel=False, windows=False)
    return PairSettings(
        dense, SelectSettings(radius=settings.radius, threshold=settings.threshold, directions="forward")
    )


class RetrievalWork:
    """The network and the images of one worker."""

    def __init__(
        self,
        images: Path,
        settings: RetrievalSettings,
        network: PDCNet | None,
        weights: WeightsFile | None = None,
        masks: Masks | None = None,
    ):
        if network is None:
            from pdc_sfm.weights import load_network

            device = resolve_device(settings.device, settings.precision)
            network = load_network(weights.here() if weights else settings.weights, device, settings.precision)
        else:
            device = _device_of(network)
        if network.settings.uncertainty == "none":
            raise SettingsError("this network predicts no uncertainty, by which retrieval ranks: use other weights")
        settings = replace(settings, device=device)  # from here on the one that is meant on this machine
        self._images, self._settings, self._network = images, settings, network
        self._masks = masks
        self._matcher = Matcher(network, full_settings(settings), device)
        memory = parse_bytes(settings.memory)
        self._pairs = PairWork(
            images,
            self._matcher,
            memory=memory,
            readers=settings.readers,
            batch=settings.batch,
            match_many=self._count,
            masks=masks,
        )
        self.code_bytes, self.match = self._pairs.code_bytes, self._pairs.match
        self.close = self._pairs.close

    def encode(self, parts: Sequence[Sequence[str]], block: Block) -> tuple[CoarseCodes | None, dict[str, str]]:
        """Codes of one part of the images by the 256-pixel branch, and what is wrong with the others."""
        encoder = Encoder(self._network, self._images, readers=self._settings.readers, device=self._settings.device)
        return encoder.encode(parts[block.start]), encoder.bad

    def score_coarse(self, queries: CoarseCodes, batches: Sequence[CoarsePairs]) -> list[list[int]]:
        """Expected matches of pairs in the 256-pixel branch, in hundredths."""
        return [score_coarse(self._network, queries, batch, self._settings) for batch in batches]

    def _count(self, pairs: Sequence[Pair], codes: Sequence[tuple[Any, Any]]) -> list[MatchCount]:
        """Of confident matches only the number is wanted."""
        found = self._matcher.match_batch(codes)
        if self._masks is not None:
            found = [self._masks.drop(pair, matches) for pair, matches in zip(pairs, found)]
        return [MatchCount(len(matches)) for matches in found]


def _device_of(network: PDCNet) -> str:
    """Where a network lies that was given; stand-ins without parameters compute on the CPU."""
    parameters = network.parameters() if hasattr(network, "parameters") else ()
    return next((str(parameter.device) for parameter in parameters), "cpu")
