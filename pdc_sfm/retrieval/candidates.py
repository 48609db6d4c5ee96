"""Which pairs the 256-pixel branch sees, and these in batches with the codes they need."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence

from pdc_sfm.files import exclusive
from pdc_sfm.pixels import Size
from pdc_sfm.retrieval.coarse import CoarsePairs, pooled, similarities
from pdc_sfm.retrieval.codes import CoarseCodes, CodeFolder
from pdc_sfm.retrieval.index import DescriptorIndex
from pdc_sfm.store.pair_lists import Pair
from pdc_sfm.workers import Block


def candidates(
    queries: CoarseCodes,
    folder: CodeFolder,
    database: Sequence[str],
    shortlist: int,
    count: int,
    index: DescriptorIndex | None = None,
) -> dict[str, list[str]]:
    """For each query the images whose pooled features are most similar to its own; of equals the first of the list.

    In a database of more than `shortlist` images only so many are looked at, by their descriptors (`retrieval.index`): by an
    `index` that is up to date, or by what the folder has.
    """
    listed = _shortlists(queries, folder, database, shortlist, index)
    wanted: dict[str, list[int]] = {}
    for row, names in enumerate(listed):
        for name in names:
            wanted.setdefault(name, []).append(row)
    likeness: list[dict[str, float]] = [{} for _ in queries.names]
    some = pooled(queries)
    for part, columns in folder.rows(list(wanted)):
        names = [folder.images[part][column][0] for column in columns]
        rows = sorted({row for name in names for row in wanted[name]})
        alike = similarities(some[rows], pooled(folder.read(part, columns, levels=(4,))))
        place = {row: i for i, row in enumerate(rows)}
        for column, name in enumerate(names):
            for row in wanted[name]:
                likeness[row][name] = float(alike[place[row], column])
    order = {name: i for i, name in enumerate(database)}
    found = {}
    for query, known in zip(queries.names, likeness):
        best = sorted(known, key=lambda name: (-known[name], order[name]))
        found[query] = [name for name in best if name != query][:count]
    return found


def _shortlists(
    queries: CoarseCodes, folder: CodeFolder, database: Sequence[str], count: int, index: DescriptorIndex | None
) -> list[list[str]] | list[Sequence[str]]:
    if len(database) <= count:
        return [database] * len(queries)
    if index is None:
        index = DescriptorIndex(folder)
        with exclusive(folder.folder, wait=True):
            index.update()
    return index.shortlist(queries, database, count + 1)  # one of them may be the query itself


class CoarseBatches:
    """Pairs in batches of one part of the codes each, in the order in which the codes are on disk."""

    def __init__(self, folder: CodeFolder, queries: CoarseCodes, pairs: Sequence[Pair], size: int):
        self.pairs = len(pairs)
        self._queries, self._images = queries, folder.images
        row_of = {name: row for row, name in enumerate(queries.names)}
        wanted: dict[str, list[int]] = {}
        for query, image in pairs:
            wanted.setdefault(image, []).append(row_of[query])
        self._batches: list[tuple[int, list[tuple[int, int]]]] = []  # part, and (row of the query, row in the part)
        rows = dict(folder.rows(list(wanted)))
        self._place = {part: {column: i for i, column in enumerate(columns)} for part, columns in rows.items()}
        self._part = functools.lru_cache(1)(lambda part: folder.read(part, rows[part]))
        for part, columns in rows.items():
            todo = [(row, column) for column in columns for row in wanted[folder.images[part][column][0]]]
            self._batches += [(part, todo[start : start + size]) for start in range(0, len(todo), size)]

    def __len__(self) -> int:
        return len(self._batches)

    def load(self, block: Block) -> list[CoarsePairs]:
        """The batches of a block with their codes."""
        return [self._load(*batch) for batch in self._batches[block.start : block.stop]]

    def _load(self, part: int, todo: list[tuple[int, int]]) -> CoarsePairs:
        columns = sorted({column for _, column in todo})
        place = {column: i for i, column in enumerate(columns)}
        codes = self._part(part).some([self._place[part][column] for column in columns])
        return CoarsePairs(codes, [row for row, _ in todo], [place[column] for _, column in todo])

    def results(self, block: Block, counts: Sequence[Sequence[int]]) -> Iterator[tuple[Pair, int, tuple[Size, Size]]]:
        """The pairs of a block with what was counted and the sizes of their images."""
        for (part, todo), found in zip(self._batches[block.start : block.stop], counts):
            for (row, column), count in zip(todo, found):
                name, size = self._images[part][column]
                yield (self._queries.names[row], name), count, (self._queries.sizes[row], size)
