"""Cascade against exhaustive retrieval on a generated database: the same first five, and how much faster.

    python benchmarks/retrieval.py                 200 and 1,000 images, 8 queries, a sample of exhaustive: 4 minutes
    python benchmarks/retrieval.py --complete      20 queries, all of exhaustive, every photograph rendered: hours

The database (`benchmarks/places.py`) is rendered: places of several towns, ten photographs each; a query is one more
photograph of a place, on another day, every fourth by night. Exhaustive is the paper's way: every image through the full
network at a smaller side of 400. Both start from nothing, with the same network; `codes kept` is the cascade with the
database's codes of an earlier run. Times are core seconds, which depend little on what else the machine does.

Without --complete all of the cascade is timed, and exhaustive retrieval of all queries in two small random parts of the
database, of which the larger less the smaller gives the time of each further image. Of the images that the cascade leaves
out, some for each query go through the full network all the same: the next ones in its own order, and the random ones. A
query counts as `same 5` if none of them enters its first five. Rendered images are kept for the next run.
"""

from __future__ import annotations

import argparse
import os
import shutil
import time
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from places import PHOTOGRAPHS, TOWN, photograph_places

from pdc_sfm.network import PDCNet
from pdc_sfm.retrieval import RetrievalResult, RetrievalSettings, retrieve
from pdc_sfm.settings import load_settings
from pdc_sfm.weights import load_network

FIRST = 5
AIMS = {200: 5, 1000: 15}  # images -> times faster than exhaustive
FEW = 2  # images of the smaller part of the database
Ranked = dict[str, list[str]]  # query -> images, best first


@dataclass(frozen=True)
class Data:
    images: Path
    queries: list[str]
    database: list[str]


@dataclass(frozen=True)
class Comparison:
    """Core seconds of each way, and per cent of the queries for which they agree."""

    size: int
    queries: int
    exhaustive: float
    cascade: float
    kept: float
    same: float  # the same first five
    ordered: float  # in the same order
    own_place: float  # of the first five of exhaustive: how far the counts themselves can be trusted
    checked: str  # how exhaustive retrieval was measured

    def __str__(self) -> str:
        return (
            f"{self.size:>6} {self.queries:>7} {self.exhaustive:>10.1f} {self.cascade:>7.1f} "
            f"{self.exhaustive / self.cascade:>5.1f} {self.kept:>10.1f} {self.exhaustive / self.kept:>5.1f} "
            f"{self.same:>6.1f} % {self.ordered:>6.1f} % {self.own_place:>7.1f} %  {self.checked}"
        )


HEADER = (
    f"{'images':>6} {'queries':>7} {'exhaustive':>10} {'cascade':>7} {'ratio':>5} {'codes kept':>10} {'ratio':>5} "
    f"{'same 5':>8} {'ordered':>8} {'own place':>9}  exhaustive was"
)


class Bench:
    """One database, and where results go."""

    def __init__(self, data: Data, work: Path, settings: RetrievalSettings, network: PDCNet, top: int):
        self.data, self.settings, self.network, self.top = data, settings, network, top
        self.work = work / str(len(data.database))
        shutil.rmtree(self.work, ignore_errors=True)

    def compare(self, sample: int) -> Comparison:
        """All of the cascade, and exhaustive retrieval in `sample` random images (0: all)."""
        data, size = self.data, len(self.data.database)
        nothing = replace(self.settings, candidates=1, best=1)
        encoding, _ = self._timed("first", nothing, data.queries[:1], data.database, 1)
        kept, found = self._timed("cascade", self.settings, data.queries, data.database, self.top)
        if sample == 0 or sample >= size:
            exhaustive, truth = self._timed("all", self._exhaustive, data.queries, data.database, self.top)
            best, how = _names(truth), "run"
        else:
            exhaustive, truth = self._sampled(sample)
            best = self._among(found, truth, self._more(sample))
            how = f"run in {sample} images and computed; {2 * sample} left out by the cascade checked"
        five = {query: images[:FIRST] for query, images in _names(found).items()}
        same = [set(five[q]) == set(best[q][:FIRST]) for q in best]
        ordered = [five[q] == best[q][:FIRST] for q in best]
        times = exhaustive, encoding + kept, kept
        return Comparison(size, len(best), *times, _percent(same), _percent(ordered), _own_place(best), how)

    @property
    def _exhaustive(self) -> RetrievalSettings:
        return replace(self.settings, mode="exhaustive")

    def _sampled(self, sample: int) -> tuple[float, RetrievalResult]:
        """Exhaustive retrieval in random images: what it would take in all of them, and what was found."""
        names = np.random.default_rng(0).permutation(self.data.database).tolist()
        few, _ = self._timed("few", self._exhaustive, self.data.queries, names[:FEW], FEW)
        many, found = self._timed("sample", self._exhaustive, self.data.queries, names[: FEW + sample], FEW + sample)
        return few + (len(names) - FEW) * (many - few) / sample, found

    def _more(self, count: int) -> RetrievalResult:
        """The cascade as if it let so many more images of each query through; the others are counted already."""
        top = max(self.settings.best, self.top) + count
        settings = replace(self.settings, best=top, candidates=max(self.settings.candidates, top))
        return self._timed("cascade", settings, self.data.queries, self.data.database, top)[1]

    def _among(self, *results: RetrievalResult) -> Ranked:
        """The ranking of all images that were counted."""
        place = {name: k for k, name in enumerate(self.data.database)}
        ranked = {}
        for query in self.data.queries:
            found = [image for result in results for image in result.found[query]]
            counts = {image.name: image.matches for image in found if image.matches is not None}
            ranked[query] = sorted(counts, key=lambda name: (-counts[name], place[name]))
        return ranked

    def _timed(
        self, name: str, settings: RetrievalSettings, queries: list[str], database: list[str], top: int
    ) -> tuple[float, RetrievalResult]:
        start = time.process_time()
        output, codes = self.work / f"{name}.txt", self.work / "codes"
        output.parent.mkdir(parents=True, exist_ok=True)
        given = {"codes": codes, "network": self.network}
        result = retrieve(self.data.images, queries, database, output, top, settings, **given)
        return time.process_time() - start, result


def _names(result: RetrievalResult) -> Ranked:
    return {query: [image.name for image in images] for query, images in result.found.items()}


def _percent(values: list[bool]) -> float:
    return 100 * sum(values) / max(1, len(values))


def _own_place(ranked: Ranked) -> float:
    return _percent([i.rpartition("/")[0] == q.rpartition("/")[0] for q, images in ranked.items() for i in images[:5]])


def bench(
    work: Path, sizes: list[int], queries: int, sample: int, visitors: int, threads: int, settings, top: int = 20
):
    """Photograph the places and compare, database by database."""
    torch.set_num_threads(threads)
    network, images = load_network(settings.weights, settings.device), work / f"images-{visitors}"
    for size in sizes:
        start = time.monotonic()
        asked, names = photograph_places(images, size, queries, TOWN, visitors=visitors, workers=threads)
        print(f"{size} images and {len(asked)} queries photographed in {time.monotonic() - start:.0f} s", flush=True)
        yield Bench(Data(images, asked, names), work / "runs", settings, network, top).compare(sample)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[200, 1000], help="images of the databases")
    parser.add_argument("--queries", type=int, default=8)
    parser.add_argument("--sample", type=int, default=8, help="images for exhaustive retrieval, see above; 0: all")
    parser.add_argument("--visitors", type=int, default=1, help="photographs of a place that are rendered apart")
    parser.add_argument("--complete", action="store_true", help=f"--queries 20 --sample 0 --visitors {PHOTOGRAPHS}")
    parser.add_argument("--work", type=Path, default=Path("outputs/benchmarks/retrieval"))
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("settings", nargs="*", metavar="key=value", help="settings of `pdc-sfm retrieve`")
    args = parser.parse_args()
    queries, sample, visitors = (20, 0, PHOTOGRAPHS) if args.complete else (args.queries, args.sample, args.visitors)
    settings = load_settings(RetrievalSettings, None, args.settings)
    rows = list(bench(args.work, args.sizes, queries, sample, visitors, args.threads, settings))
    print("\n".join([HEADER, *map(str, rows)]))


if __name__ == "__main__":
    main()
