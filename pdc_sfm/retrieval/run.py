"""From two lists of images to a retrieval list: the function behind `pdc-sfm retrieve`."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pdc_sfm.device import check_device
from pdc_sfm.engine.cache import parse_bytes
from pdc_sfm.errors import ImageError
from pdc_sfm.files import exclusive
from pdc_sfm.matches.masks import Masks
from pdc_sfm.paths import keep_apart
from pdc_sfm.progress import progress
from pdc_sfm.retrieval.image_lists import read_names
from pdc_sfm.retrieval.settings import RetrievalSettings
from pdc_sfm.run_folder import write_json
from pdc_sfm.settings import require, to_dict
from pdc_sfm.store.image_marks import check_same_images
from pdc_sfm.store.journal import CountStore, MatchCount, open_store
from pdc_sfm.store.pair_lists import Pair, check_listed, write_pairs
from pdc_sfm.workers import Pool, open_pool

if TYPE_CHECKING:
    from pdc_sfm.network import PDCNet

QUERY_BLOCK, DATABASE_BLOCK = 64, 256  # pairs given to the engine at a time: it orders them so that codes are reused
MANY = 8  # times as many for many workers, which wait for each other at the end


class RetrievedImage(NamedTuple):
    """A database image retrieved for a query."""

    name: str
    matches: int | None = None  # confident ones; None: the full network did not see it


@dataclass
class RetrievalResult:
    """What was retrieved, and what was left out."""

    pairs: Path
    found: dict[str, list[RetrievedImage]] = field(default_factory=dict)  # query -> images, best first
    bad: dict[str, str] = field(default_factory=dict)  # image -> why it could not be used
    unmasked: str | None = None  # what to say of images without a mask

    @property
    def unmatched(self) -> list[str]:
        """Queries without a confident match in any image."""
        return [query for query, images in self.found.items() if not images]

    def __str__(self) -> str:
        total = sum(map(len, self.found.values()))
        answered = len(self.found) - len(self.unmatched)
        return f"{total} images for {answered} of {len(self.found)} queries"


def retrieve(
    images: Path | str,
    queries: Path | str | Sequence[str],
    database: Path | str | Sequence[str],
    output: Path | str,
    top: int = 20,
    settings: RetrievalSettings | None = None,
    *,
    counts: Path | str | None = None,
    codes: Path | str | None = None,
    masks: Path | str | None = None,
    network: PDCNet | None = None,
) -> RetrievalResult:
    """Rank the database images for each query by their number of confident matches; write pairs, best first.

    Counts are kept in `counts` (by default next to the output): the same call continues after a stop, and
    another `top` or `best` only adds missing counts. `codes` is a folder of database codes that other calls may share.
    Matches under a mask of the folder `masks` do not count in the full network.
    """
    settings, images, output = settings or RetrievalSettings(), Path(images), Path(output)
    require(top >= 1, f"--top {top} must be at least 1")
    if network is None:
        check_device(settings.device, settings.precision, settings.engine)
    if not images.is_dir():
        raise ImageError(f"{images} is not a folder of images")
    counts = Path(counts) if counts else output.with_suffix(".counts")
    keep_apart(
        images=[images],
        inputs=[x for x in (queries, database) if isinstance(x, Path | str)],
        files=[output, output.with_suffix(".json")],
        folders=[counts, *([codes] if codes else [])],
    )
    keep_apart(images=[masks] if masks is not None else [], files=[output], folders=[counts])
    lists = [list(x) if not isinstance(x, Path | str) else read_names(x, images) for x in (queries, database)]
    for query in lists[0]:
        check_listed(query)  # now, not after hours
    check_listed(None, *lists[1])
    with exclusive(output), ExitStack() as stack:
        place = Path(codes) if codes else counts / "codes"
        masking = Masks(masks) if masks is not None else None
        unmasked = masking.missing(dict.fromkeys((*lists[0], *lists[1]))) if masking else None
        job = _RetrievalJob(images, lists[0], lists[1], settings, counts, place, network, masking, stack)
        result = RetrievalResult(output, bad=job.bad, unmasked=unmasked)
        ranked = job.cascade(top) if settings.mode == "cascade" else job.exhaustive()
        result.found = {query: found[:top] for query, found in ranked.items()}
        made_with = {key: value for key, value in to_dict(settings).items() if key not in ("engine", "ray")}
        record = {"settings": made_with, "top": top, "queries": result.found, "unmatched": result.unmatched}
        write_json(output.with_suffix(".json"), record)
        write_pairs(output, [(query, image.name) for query, found in result.found.items() for image in found])
    return result


class _RetrievalJob:
    """One retrieval: its lists, its stores, its network."""

    def __init__(
        self,
        images: Path,
        queries: list[str],
        database: list[str],
        settings: RetrievalSettings,
        counts: Path,
        codes: Path,
        network: PDCNet | None,
        masks: Masks | None,
        stack: ExitStack,
    ):
        self.images, self.queries, self.database = images, queries, database
        self.settings, self.counts, self.codes = settings, counts, codes
        self.bad: dict[str, str] = {}
        self._stack, self._masks = stack, masks
        self._made_by = codes_made_by(settings, network)
        self._network: PDCNet | None = network
        self._full: CountStore | None = None  # counts of the full network

    @functools.cached_property
    def pool(self) -> Pool:
        """The workers, when something is to be counted."""
        from pdc_sfm.engine.weights_file import WeightsFile
        from pdc_sfm.retrieval.work import RetrievalWork

        s = self.settings
        make = functools.partial(RetrievalWork, self.images, s, self._network, masks=self._masks)
        if s.engine == "ray":
            weights = WeightsFile.of(s.weights) if self._network is None else None
            make = functools.partial(RetrievalWork, self.images.absolute(), s, self._network, weights, self._masks)
        return self._stack.enter_context(open_pool(s.engine, s.ray, make, device=s.device, block=s.batch))

    def exhaustive(self) -> dict[str, list[RetrievedImage]]:
        """The paper's: every database image through the full network."""
        store = self._count_full(self._blocks(), len(self.queries) * len(self.database))
        return {query: self._rank(query, self.database, store, self.settings.min_matches) for query in self.queries}

    def cascade(self, top: int) -> dict[str, list[RetrievedImage]]:
        """Features of all, the 256-pixel branch for some, the full network for the best of them; the others follow.

        Where the full network finds no match in the best, it sees all that would be retrieved.
        """
        best, order = self.settings.best, {query: self.database for query in self.queries}
        if len(self.database) > best:
            coarse = self._rank_low(max(top, best))
            order = {query: coarse.get(query, [])[: max(top, best)] for query in self.queries}
        if best == 0:
            return {query: [RetrievedImage(name) for name in names] for query, names in order.items()}
        found = self._rank_full({query: names[:best] for query, names in order.items()})
        found |= self._rank_full({query: order[query] for query, images in found.items() if not images})
        seen = {query: {image.name for image in images} | {*order[query][:best]} for query, images in found.items()}
        return {
            query: images + [RetrievedImage(name) for name in order[query] if images and name not in seen[query]]
            for query, images in found.items()
        }

    def _rank_full(self, chosen: dict[str, list[str]]) -> dict[str, list[RetrievedImage]]:
        """Some images of each query by the full network, those with most matches first."""
        pairs = [(query, image) for query, images in chosen.items() for image in images if query != image]
        full = self._count_full([pairs], len(pairs))
        return {query: self._rank(query, images, full, self.settings.min_matches) for query, images in chosen.items()}

    def _blocks(self) -> Iterator[list[Pair]]:
        rows = QUERY_BLOCK * (1 if self.settings.engine == "local" else MANY)
        for row in range(0, len(self.queries), rows):
            for column in range(0, len(self.database), DATABASE_BLOCK):
                some = self.queries[row : row + rows], self.database[column : column + DATABASE_BLOCK]
                yield [(query, image) for query in some[0] for image in some[1] if query != image]

    @staticmethod
    def _rank(query: str, images: Sequence[str], store: CountStore, at_least: int) -> list[RetrievedImage]:
        """Images with enough matches, most first; of equals the first of the list."""
        counts = {image: store.count((query, image)) for image in images if (query, image) in store}
        enough = [image for image in counts if counts[image] >= at_least]
        return [RetrievedImage(image, counts[image]) for image in sorted(enough, key=lambda image: -counts[image])]

    def _count_full(self, blocks: Iterable[list[Pair]], total: int) -> CountStore:
        """Confident matches of pairs by the full network."""
        from pdc_sfm.engine.loop import match_on
        from pdc_sfm.retrieval.work import full_settings

        match = full_settings(self.settings)
        made_by = {"dense": to_dict(match.dense), "select": to_dict(match.select)}
        if self._full is None:
            self._full = self._store("full", made_by | ({"masks": self._masks.digest()} if self._masks else {}))
        store = self._full
        with progress(None, "full network", "pair", total) as bar:
            for block in blocks:
                todo = [pair for pair in block if pair not in store and not self.bad.keys() & set(pair)]
                bar.update(len(block) - len(todo))
                if todo:
                    report = match_on(self.pool, todo, store, memory=parse_bytes(self.settings.memory), bar=bar)
                    self.bad |= report.bad
        store.flush()
        return store

    def _rank_low(self, wanted: int) -> dict[str, list[str]]:
        """Candidates of each query, `wanted` at least, by their expected matches in the 256-pixel branch, most first."""
        from pdc_sfm.retrieval.candidates import candidates
        from pdc_sfm.retrieval.coarse import PASSES
        from pdc_sfm.retrieval.codes import CoarseCodes, CodeFolder

        store = self._store("low", {"radius": self.settings.low_radius, "passes": PASSES})
        folder = CodeFolder(self.codes, self._made_by)
        with exclusive(self.codes), progress(None, "codes", "image", len(self.database) + len(self.queries)) as bar:
            check_same_images(self.codes, self.images, self.database, folder.names)
            missing = folder.missing(self.database)
            bar.update(len(self.database) - len(missing))
            for codes in self._encode(missing, bar):
                folder.add(codes)
            parts = sorted(self._encode(self.queries, bar), key=lambda codes: self.queries.index(codes.names[0]))
        if not parts:
            return {}
        queries, count = CoarseCodes.cat(parts), max(self.settings.candidates, wanted)
        found = candidates(queries, folder, self.database, max(self.settings.shortlist, count), count)
        pairs = [(query, image) for query, images in found.items() for image in images]
        self._score_coarse(pairs, queries, folder, store)
        place = {name: i for i, name in enumerate(self.database)}
        return {
            query: sorted(images, key=lambda image: (-store.count((query, image)), place[image]))
            for query, images in found.items()
        }

    def _encode(self, names: Sequence[str], bar: Any) -> Iterator[Any]:
        """Codes of the readable images, part by part."""
        from pdc_sfm.retrieval.codes import PART

        parts = [names[start : start + PART] for start in range(0, len(names), PART)]
        for block, (codes, bad) in self.pool.run("encode", parts, len(parts), block=1) if parts else ():
            self.bad |= bad
            bar.update(len(parts[block.start]))
            if codes is not None:
                yield codes

    def _score_coarse(self, pairs: list[Pair], queries: Any, folder: Any, store: CountStore) -> None:
        """Expected matches of pairs in the 256-pixel branch."""
        from pdc_sfm.retrieval.candidates import CoarseBatches

        batches = CoarseBatches(
            folder, queries, [pair for pair in pairs if pair not in store], self.settings.coarse_batch
        )
        with progress(None, "256 branch", "pair", len(pairs)) as bar:
            bar.update(len(pairs) - batches.pairs)
            if batches.pairs:
                for block, found in self.pool.run("score_coarse", queries, len(batches), load=batches.load):
                    for pair, count, sizes in batches.results(block, found):
                        store.append(pair, MatchCount(count), sizes)
                        bar.update()
        store.flush()

    def _store(self, name: str, settings: dict[str, Any]) -> CountStore:
        made_by, place = {**self._made_by, **settings}, self.counts / name
        store = self._stack.enter_context(open_store(CountStore, place, made_by))
        counted = {image for pair in store.pairs() for image in pair}
        check_same_images(place, self.images, (*self.queries, *self.database), counted)
        return store


def codes_made_by(settings: RetrievalSettings, network: PDCNet | None) -> dict[str, Any]:
    """What decides codes and counts; `network`: one that was given, and that no file tells of."""
    from pdc_sfm.engine.weights_file import WeightsFile

    made_by = {"network": "given"} if network is not None else {"weights": WeightsFile.of(settings.weights).fingerprint}
    made_by["views"] = "upright"  # by EXIF: sideways codes of earlier versions are not compared with these
    if settings.precision != "float32":
        made_by["precision"] = settings.precision
    return made_by
