"""A shortlist out of a million images: time, memory, and what short codes lose against comparing all. Distractors are simulated.

    python benchmarks/million.py --images 1000000
    python benchmarks/million.py --images 60000 --against IVF245,SQ8:31,61,122 HNSW32,SQ8:128,512       other kinds of faiss

There are no million photographs here: `distractors.py` makes images of the features of those there are. The images of the
queries' places are real and lie among them. What is searched is the product's (`retrieval.scan`); `--against` are faiss's
factory words and numbers of lists probed or of candidates (HNSW). Processor time of one core. Needs faiss (`pip install
pdc_sfm[retrieval]`).
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from data import DATA
from distractors import Distractors, simulation

from pdc_sfm.retrieval import scan as product
from pdc_sfm.retrieval.scan import DescriptorScan

CHUNK = 20_000
FIRST, SHORTLIST = 5, 100
RANKS = (1, 5, 100, 1000)


class Database:
    """Simulated images with the real ones spread among them, chunk by chunk: a million are 4 GB."""

    def __init__(self, distractors: Distractors, real: np.ndarray, images: int):
        self._distractors, self._real, self.images = distractors, real, images
        self._places = np.linspace(0, images - 1, len(real)).astype(int)

    def __iter__(self) -> Iterator[np.ndarray]:
        for start in range(0, self.images, CHUNK):
            rows = self._distractors.chunk(start, min(CHUNK, self.images - start))
            here = (self._places >= start) & (self._places < start + len(rows))
            rows[self._places[here] - start] = self._real[here]
            yield rows

    def sample(self) -> np.ndarray:
        """Some to learn from, of chunks spread over all."""
        starts = range(0, self.images, max(CHUNK, self.images // 10 // CHUNK * CHUNK))
        size = min(self.images, product.TRAINED_ON) // len(starts)
        return np.concatenate([self._distractors.chunk(start, CHUNK)[:size] for start in starts])


class Exact:
    """The best of comparing all, chunk by chunk."""

    def __init__(self, asked: np.ndarray):
        self._asked, self.best = asked, np.zeros((len(asked), 0), np.float32)
        self.ids, self.seconds, self._seen = np.zeros((len(asked), 0), np.int64), 0.0, 0

    def look_at(self, rows: np.ndarray) -> None:
        start = time.process_time()
        ids = self._seen + np.arange(len(rows))
        best = np.concatenate((self.best, self._asked @ rows.T), 1)
        every = np.concatenate((self.ids, np.broadcast_to(ids, (len(best), len(ids)))), 1)
        order = np.argpartition(-best, min(max(RANKS), best.shape[1] - 1), 1)[:, : max(RANKS)]
        order = np.take_along_axis(order, np.argsort(-np.take_along_axis(best, order, 1), 1), 1)
        self.best, self.ids = np.take_along_axis(best, order, 1), np.take_along_axis(every, order, 1)
        self._seen += len(rows)
        self.seconds += time.process_time() - start


def kept(exact: np.ndarray, found: list[np.ndarray], first: int = FIRST) -> np.ndarray:
    """Of each query the share of the exact first that a shortlist has."""
    return np.array([len({*a[:first]} & {*b.tolist()}) / first for a, b in zip(exact.tolist(), found)])


def timed(search: Callable[[np.ndarray], Any], asked: np.ndarray) -> tuple[list[Any], float]:
    """One query at a time, and seconds of each."""
    search(asked[:1])
    start = time.process_time()
    found = [search(one[None]) for one in asked]
    return found, (time.process_time() - start) / len(asked)


def line(title: str, shares: np.ndarray, groups: dict[str, np.ndarray], milliseconds: float) -> str:
    ends = np.cumsum([len(rows) for rows in groups.values()])
    parts = [f"{shares[end - len(rows) : end].mean():>11.3f}" for rows, end in zip(groups.values(), ends)]
    return f"{title:<28}{''.join(parts)}{shares.mean():>9.4f}{milliseconds:>9.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=1_000_000)
    parser.add_argument(
        "--refined", type=int, nargs="+", default=[1000, 3000, 10000], help="compared whole, of a query"
    )
    parser.add_argument("--against", nargs="*", default=[], metavar="WORDS:NUMBERS")
    parser.add_argument(
        "--data", type=Path, default=DATA, help="photos, places, indoor and scenes of datasets/README.md"
    )
    parser.add_argument("--work", type=Path, default=Path("outputs/benchmarks/million"), help="features are kept here")
    args = parser.parse_args()
    import faiss

    torch.set_num_threads(1)
    faiss.omp_set_num_threads(1)
    distractors, real, groups = simulation(args.data, args.work)
    database, asked = Database(distractors, real, args.images), np.concatenate(list(groups.values())).astype(np.float32)
    start = time.process_time()
    index = DescriptorScan.train(database.sample())
    trained, exact = time.process_time() - start, Exact(asked)

    def looked_at() -> Iterator[np.ndarray]:
        for rows in database:
            exact.look_at(rows)
            yield rows

    with tempfile.TemporaryDirectory(dir=args.work) as folder:
        scan = DescriptorScan.write(Path(folder), index, looked_at())
        size = DescriptorScan.files(Path(folder))[0].stat().st_size
        print(f"{args.images:,} images, {len(real)} of them real; {len(asked)} real queries; one core")
        print("cosines of the images at ranks " + ", ".join(f"{rank:,}" for rank in RANKS))
        ends = np.cumsum([len(rows) for rows in groups.values()])
        for (name, rows), end in zip(groups.items(), ends):
            some = exact.best[end - len(rows) : end, [rank - 1 for rank in RANKS]].mean(0)
            print(f"  {name:<12}" + "".join(f"{value:>8.3f}" for value in some))
        print(f"\nof the {FIRST} best of all, in a shortlist of {SHORTLIST}:")
        print(f"{'':<28}{''.join(f'{name:>11}' for name in groups)}{'all':>9}{'ms':>9}", flush=True)
        for product.REFINED in args.refined:
            found, seconds = timed(lambda one: scan.search(one, SHORTLIST)[0], asked)
            print(
                line(f"short codes, {product.REFINED} whole", kept(exact.ids, found), groups, 1e3 * seconds), flush=True
            )
        print(
            f"training {trained:.1f} s; compared with all: {1e3 * exact.seconds / len(asked):.0f} ms a query (in a batch)"
        )
        print(f"short codes {size / 1e6:.0f} MB in memory, descriptors {2 * args.images * asked.shape[1] / 1e9:.2f} GB on disk;"
              f" this process at most {peak_gigabytes():.1f} GB", flush=True)  # fmt: skip
    for words in args.against:
        compare(words, database, asked, exact, groups)


def compare(words: str, database: Database, asked: np.ndarray, exact: Exact, groups: dict[str, np.ndarray]) -> None:
    """Another kind of index, which gives the shortlist by itself."""
    import faiss

    kind, _, numbers = words.partition(":")
    index = faiss.index_factory(asked.shape[1], kind, faiss.METRIC_INNER_PRODUCT)
    start = time.process_time()
    index.train(database.sample())
    trained, added = time.process_time() - start, 0.0
    for rows in database:
        start = time.process_time()
        index.add(rows)
        added += time.process_time() - start
    print(f"{kind}: training {trained:.0f} s, adding {1e6 * added / index.ntotal:.0f} us an image")
    for number in map(int, numbers.split(",")):
        if hasattr(index, "hnsw"):
            index.hnsw.efSearch = number
        else:
            faiss.extract_index_ivf(index).nprobe = number
        found, seconds = timed(lambda one: index.search(one, SHORTLIST)[1][0], asked)
        print(line(f"{kind} {number}", kept(exact.ids, found), groups, 1e3 * seconds), flush=True)


def peak_gigabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


if __name__ == "__main__":
    main()
