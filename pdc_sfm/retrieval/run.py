"""From two lists of images to a retrieval list: the function behind `pdc-sfm retrieve`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pdc_sfm.engine.cache import parse_bytes
from pdc_sfm.errors import ImageError, SettingsError
from pdc_sfm.files import exclusive
from pdc_sfm.retrieval.names import read_names
from pdc_sfm.retrieval.settings import RetrievalSettings
from pdc_sfm.run_folder import write_json
from pdc_sfm.settings import require, to_dict
from pdc_sfm.store.journal import CountStore, open_raw_store
from pdc_sfm.store.pair_lists import write_pairs

if TYPE_CHECKING:
    from pdc_sfm.network import PDCNet

Pair = tuple[str, str]
QUERY_BLOCK, DATABASE_BLOCK = 64, 256  # pairs given to the engine at a time: it orders them so that codes are reused


class Found(NamedTuple):
    """A database image retrieved for a query."""

    name: str
    count: int  # confident matches


@dataclass
class RetrievalResult:
    """What was retrieved, and what was left out."""

    pairs: Path
    found: dict[str, list[Found]] = field(default_factory=dict)  # query -> images, best first
    bad: dict[str, str] = field(default_factory=dict)  # image -> why it could not be used

    @property
    def silent(self) -> list[str]:
        """Queries without a confident match in any image."""
        return [query for query, images in self.found.items() if not images]

    def __str__(self) -> str:
        total = sum(map(len, self.found.values()))
        answered = len(self.found) - len(self.silent)
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
    network: PDCNet | None = None,
    show: bool = False,
) -> RetrievalResult:
    """Rank the database images for each query by their number of confident matches; write pairs, best first.

    Counts are kept in `counts` (by default beside the output): the same call continues where it was stopped, and
    another `top` or `best` counts only what is new. `codes` is a folder of database codes that other calls may share.
    """
    settings, images, output = settings or RetrievalSettings(), Path(images), Path(output)
    require(top >= 1, f"--top {top} must be at least 1")
    if not images.is_dir():
        raise ImageError(f"{images} is not a folder of images")
    lists = [list(x) if not isinstance(x, Path | str) else read_names(x, images) for x in (queries, database)]
    counts = Path(counts) if counts else output.with_suffix(".counts")
    with exclusive(output), ExitStack() as stack:
        job = _Job(images, *lists, settings, counts, Path(codes) if codes else counts / "codes", network, show, stack)
        result = RetrievalResult(output, bad=job.bad)
        ranked = job.cascade(top) if settings.mode == "cascade" else job.exhaustive()
        result.found = {query: found[:top] for query, found in ranked.items()}
        record = {"settings": to_dict(settings), "top": top, "queries": result.found, "silent": result.silent}
        write_json(output.with_suffix(".json"), record)
        write_pairs(output, [(query, image.name) for query, found in result.found.items() for image in found])
    return result


class _Job:
    """One retrieval: its lists, its stores, its network."""

    def __init__(self, images, queries, database, settings, counts, codes, network, show, stack: ExitStack):
        self.images: Path = images
        self.queries: list[str] = queries
        self.database: list[str] = database
        self.settings: RetrievalSettings = settings
        self.counts: Path = counts
        self.codes: Path = codes
        self.show: bool = show
        self.bad: dict[str, str] = {}
        self._network: PDCNet | None = network
        self._stack = stack
        self._made_by = {"network": "given"} if network is not None else {"weights": _fingerprint(settings.weights)}
        if settings.precision != "float32":
            self._made_by["precision"] = settings.precision

    @property
    def network(self) -> PDCNet:
        if self._network is None:
            from pdc_sfm.weights import load_network

            self._network = load_network(self.settings.weights, self.settings.device, self.settings.precision)
        if self._network.settings.uncertainty == "none":
            raise SettingsError("this network predicts no uncertainty, by which retrieval ranks: use other weights")
        return self._network

    def exhaustive(self) -> dict[str, list[Found]]:
        """The paper's: every database image through the full network."""
        store = self._count_full(self._blocks(), len(self.queries) * len(self.database))
        return {query: self._rank(query, self.database, store, self.settings.min_matches) for query in self.queries}

    def cascade(self, top: int) -> dict[str, list[Found]]:
        """Features of all, the 256-pixel branch for some, the full network for the best of them."""
        best, kept = {}, max(self.settings.best, top)  # all that is retrieved was seen by the full network
        if len(self.database) > kept:
            low = self._count_low()
            for query in self.queries:
                best[query] = [found.name for found in self._rank(query, self.database, low, 0)[:kept]]
        chosen = {query: best.get(query, self.database) for query in self.queries}
        pairs = [(query, image) for query in self.queries for image in chosen[query] if query != image]
        full = self._count_full([pairs], len(pairs))
        return {query: self._rank(query, chosen[query], full, self.settings.min_matches) for query in self.queries}

    def _blocks(self) -> Iterator[list[Pair]]:
        for row in range(0, len(self.queries), QUERY_BLOCK):
            for column in range(0, len(self.database), DATABASE_BLOCK):
                some = self.queries[row : row + QUERY_BLOCK], self.database[column : column + DATABASE_BLOCK]
                yield [(query, image) for query in some[0] for image in some[1] if query != image]

    @staticmethod
    def _rank(query: str, images: Sequence[str], store: CountStore, at_least: int) -> list[Found]:
        """Images with enough matches, most first; of equals the first of the list."""
        pairs = ((query, image) for image in images)
        found = [Found(pair[1], store.count(pair)) for pair in pairs if pair in store]
        return sorted((image for image in found if image.count >= at_least), key=lambda image: -image.count)

    def _count_full(self, blocks: Any, total: int) -> CountStore:
        """Confident matches of pairs by the full network: a single pass, the query being the reference."""
        from pdc_sfm.dense.settings import DenseSettings
        from pdc_sfm.engine.loop import match_missing
        from pdc_sfm.matcher import Matcher, MatchSettings
        from pdc_sfm.matches.select import SelectSettings

        s = self.settings
        dense = DenseSettings(min_side=s.min_side, max_side=s.max_side)
        select = SelectSettings(radius=s.radius, threshold=s.threshold, directions="forward")
        store = self._store("full", {"dense": to_dict(dense), "select": to_dict(select)})
        with self._bar("full network", total, "pair") as bar:

            def match_many(pairs: Sequence[Pair], codes: Sequence[tuple[Any, Any]]) -> Sequence[Any]:
                found = matcher.match_batch(codes)
                bar.update(len(pairs))
                return found

            for block in blocks:
                todo = [pair for pair in block if pair not in store and not self.bad.keys() & set(pair)]
                bar.update(len(block) - len(todo))
                if not todo:
                    continue
                matcher = Matcher(self.network, MatchSettings(dense, select), s.device)
                speed = {"memory": parse_bytes(s.memory), "readers": s.readers, "batch": s.batch}
                report = match_missing(todo, self.images, matcher, store, **speed, match_many=match_many)
                self.bad |= report.bad
                bar.update(len(report.skipped))
        store.flush()
        return store

    def _count_low(self) -> CountStore:
        """Confident matches in the 256-pixel branch, of each query with its candidates."""
        from pdc_sfm.retrieval.codes import CodeFolder, Encoder
        from pdc_sfm.retrieval.low import count_low

        s = self.settings
        store = self._store("low", {"radius": s.low_radius})
        folder = CodeFolder(self.codes, self._made_by)
        encoder = Encoder(self.network, self.images, readers=s.readers, device=s.device)
        with exclusive(self.codes), self._bar("codes", len(self.database) + len(self.queries), "image") as bar:
            folder.add_missing(self.database, encoder, bar.update)
            queries = encoder.encode(self.queries, bar.update)
        self.bad |= encoder.bad
        if queries is None:
            return store
        pairs = self._candidates(queries, folder)
        with self._bar("256 branch", len(pairs), "pair") as bar:
            count_low(self.network, queries, folder.read(self.database), pairs, store, s, bar.update)
        store.flush()
        return store

    def _candidates(self, queries: Any, folder: Any) -> list[Pair]:
        """Each query with the images whose pooled features are most similar to its own."""
        from pdc_sfm.retrieval.low import pooled, similarities

        names: list[str] = []
        columns = []
        some = pooled(queries)
        for part in folder.read(self.database):
            names += part.names
            columns.append(similarities(some, pooled(part)))
        likeness = np.concatenate(columns, 1)  # (Q, N)
        pairs = []
        for row, query in enumerate(queries.names):
            order = (names[column] for column in np.argsort(-likeness[row], kind="stable"))
            pairs += [(query, name) for name in order if name != query][: self.settings.candidates]
        return pairs

    def _store(self, name: str, settings: dict[str, Any]) -> CountStore:
        made_by = {**self._made_by, **settings}
        return self._stack.enter_context(open_raw_store(self.counts / name, made_by, kind=CountStore))

    def _bar(self, label: str, total: int, unit: str) -> Any:
        from tqdm import tqdm

        return tqdm(total=total, desc=label, unit=unit, disable=None if self.show else True, smoothing=0.1)


def _fingerprint(weights: str | None) -> str:
    from pdc_sfm.weights import sha256, weights_path

    return sha256(weights_path(weights))[:16]
