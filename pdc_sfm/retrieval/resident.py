"""Retrieval for one photograph at a time, in memory: the stages and numbers of `retrieve`, without its files of counts."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pdc_sfm.errors import ImageError, OtherSettingsError
from pdc_sfm.files import exclusive, remove_folder
from pdc_sfm.images import Photograph
from pdc_sfm.matcher import Matcher
from pdc_sfm.progress import progress
from pdc_sfm.retrieval.candidates import CoarseBatches, candidates
from pdc_sfm.retrieval.coarse import score_coarse
from pdc_sfm.retrieval.codes import PART, CodeFolder, Encoder
from pdc_sfm.retrieval.index import DescriptorIndex
from pdc_sfm.retrieval.run import RetrievedImage, codes_made_by
from pdc_sfm.retrieval.settings import RetrievalSettings
from pdc_sfm.retrieval.work import full_settings
from pdc_sfm.store.image_marks import check_same_images
from pdc_sfm.workers import Block

if TYPE_CHECKING:
    from pdc_sfm.dense.estimator import EncodedView
    from pdc_sfm.network import PDCNet

Report = Callable[[str, int, int], None]  # stage, done so far, of how many


class ResidentRetrieval:
    """A network and the images of a map. Codes of a map of many images are kept in the folder `codes`, made once."""

    def __init__(
        self, images: Path, database: Sequence[str], settings: RetrievalSettings, network: PDCNet, codes: Path
    ):
        self.database, self.settings = list(database), settings
        self._network, self._images = network, images
        self.matcher = Matcher(network, full_settings(settings), settings.device)
        self._codes, self._made_by = codes, codes_made_by(settings, None)
        self._folder = CodeFolder(codes, self._made_by)
        self._index: DescriptorIndex | None = None  # of a map of more images than are compared feature by feature

    def prepare(self) -> None:
        """Make the codes that are compared first, where the map has more images than the full network is to rank."""
        if not self._is_large(self.database):
            return
        with exclusive(self._codes, wait=True):
            try:
                check_same_images(self._codes, self._images, self.database, self._folder.names)
            except OtherSettingsError:  # the map was made anew of other photographs of these names
                remove_folder(self._codes)
                self._folder = CodeFolder(self._codes, self._made_by)
                check_same_images(self._codes, self._images, self.database, ())
            if missing := self._folder.missing(self.database):
                self._make_codes(missing)
            index = DescriptorIndex(self._folder, resident=True)
            if len(self.database) > self.settings.shortlist:
                index.update()
                self._index = index

    def _make_codes(self, names: Sequence[str]) -> None:
        with progress(None, "codes", "image", len(names)) as bar:
            for start in range(0, len(names), PART):
                part = names[start : start + PART]
                codes = self._encoder().encode(part)
                if codes is not None:
                    self._folder.add(codes)
                bar.update(len(part))

    def retrieve(
        self,
        photograph: Photograph,
        top: int,
        code_of: Callable[[str], EncodedView],
        report: Report,
        among: Sequence[str] | None = None,
    ) -> list[RetrievedImage]:
        """Images of the map, best first. `code_of` has the codes of their images for `matcher`, the full network."""
        best, order = self.settings.best, self.database if among is None else list(among)
        if self.settings.mode == "exhaustive":
            return self._rank_full(photograph, order, code_of, report)[:top]
        if self._is_large(order):
            order = self._coarse_order(photograph, order, max(top, best))
        if best == 0:
            return [RetrievedImage(name) for name in order[:top]]
        found = self._rank_full(photograph, order[:best], code_of, report)
        found = found or self._rank_full(photograph, order, code_of, report)
        seen = {image.name for image in found} | {*order[:best]}
        return (found + [RetrievedImage(name) for name in order if found and name not in seen])[:top]

    def _is_large(self, database: Sequence[str]) -> bool:
        return self.settings.mode == "cascade" and len(database) > self.settings.best

    def _rank_full(
        self, photograph: Photograph, names: Sequence[str], code_of: Callable[[str], EncodedView], report: Report
    ) -> list[RetrievedImage]:
        """Images by their confident matches, most first."""
        code, counts = self.matcher.encode(photograph), {}
        for number, name in enumerate(names):
            report("retrieve", number, len(names))
            with contextlib.suppress(ImageError):  # an image of the map that can no longer be read
                counts[name] = len(self.matcher.match(code, code_of(name)))
        enough = [name for name in counts if counts[name] >= self.settings.min_matches]
        return [RetrievedImage(name, counts[name]) for name in sorted(enough, key=lambda name: -counts[name])]

    def _coarse_order(self, photograph: Photograph, database: Sequence[str], wanted: int) -> list[str]:
        """So many candidates by their expected matches in the 256-pixel branch, most first."""
        query, count = self._encoder().encode_one(photograph), max(self.settings.candidates, wanted)
        shortlist = max(self.settings.shortlist, count)
        (found,) = candidates(query, self._folder, database, shortlist, count, self._index).values()
        batches = CoarseBatches(
            self._folder, query, [(query.names[0], name) for name in found], self.settings.coarse_batch
        )
        counts: dict[str, int] = {}
        for number in range(len(batches)):
            block = Block(number, number + 1, len(batches))
            scores = [score_coarse(self._network, query, some, self.settings) for some in batches.load(block)]
            counts |= {pair[1]: count for pair, count, _ in batches.results(block, scores)}
        place = {name: i for i, name in enumerate(database)}
        return sorted(found, key=lambda name: (-counts[name], place[name]))[:wanted]

    def _encoder(self) -> Encoder:
        return Encoder(self._network, self._images, readers=self.settings.readers, device=self.settings.device)
