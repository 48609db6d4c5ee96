"""A shortlist out of a million images: time, memory, and what the index loses against comparing all. Descriptors are simulated.

    python benchmarks/million.py --images 1000000

There are no million photographs here. Descriptors (`retrieval.vocabulary`) of real photographs give a mean and directions in
which they vary; a simulated place is a random point in these, and a visit to it a point nearby, as near as two photographs of one
place are to each other (`--same`, their mean cosine, 0.745 of gardenspoint by day and by night). A query is one more visit. The
index is the product's (`retrieval.index`). Needs faiss (`pip install pdc_sfm[retrieval]`) and photographs to learn from.
"""

from __future__ import annotations

import argparse
import resource
import time
from pathlib import Path

import numpy as np
import torch
from data import DATA, needed

from pdc_sfm.images import list_images
from pdc_sfm.retrieval.codes import Encoder
from pdc_sfm.retrieval.index import TRAINED_ON, list_count, search_index, train_index
from pdc_sfm.retrieval.vocabulary import Vocabulary
from pdc_sfm.weights import load_network

VISITS = 5  # photographs of a place
CHUNK = 20_000
FIRST, SHORTLIST = 5, 100


class Simulated:
    """Descriptors of visits to random places, from the statistics of real ones (N, D)."""

    def __init__(self, real: np.ndarray, same: float):
        self._mean = real.mean(0)
        _, scale, axes = np.linalg.svd(real - self._mean, full_matrices=False)
        count = int((scale > 1e-6 * scale[0]).sum())
        self._axes = (scale[:count, None] * axes[:count] / np.sqrt(len(real))).astype(np.float32)
        # cosines are shares of the mean, which all have in common, and of the place; the rest is the visit's own
        common = float(self._mean @ self._mean)
        self._place = float(np.clip((same - common) / (1 - common), 0.01, 0.99))

    def visits(self, places: np.ndarray, visit: int) -> np.ndarray:
        """(N, D) unit: one visit to each of the places (N,)."""
        shape = len(places), len(self._axes)
        centers = np.random.default_rng([1, int(places[0])]).standard_normal(shape, dtype=np.float32)
        own = np.random.default_rng([2, int(places[0]), visit]).standard_normal(shape, dtype=np.float32)
        found = self._mean + (self._place**0.5 * centers + (1 - self._place) ** 0.5 * own) @ self._axes
        return (found / np.linalg.norm(found, axis=1, keepdims=True)).astype(np.float32)


class Exact:
    """The shortlist of comparing all, chunk by chunk."""

    def __init__(self, asked: np.ndarray):
        self._asked, self._best = asked, np.zeros((len(asked), 0), np.float32)
        self.ids, self.seconds = np.zeros((len(asked), 0), np.int64), 0.0

    def look_at(self, rows: np.ndarray, ids: np.ndarray) -> None:
        start = time.process_time()
        best = np.concatenate((self._best, self._asked @ rows.T), 1)
        every = np.concatenate((self.ids, np.broadcast_to(ids, (len(best), len(ids)))), 1)
        order = np.argpartition(-best, min(SHORTLIST, best.shape[1] - 1), 1)[:, :SHORTLIST]
        order = np.take_along_axis(order, np.argsort(-np.take_along_axis(best, order, 1), 1), 1)
        self._best, self.ids = np.take_along_axis(best, order, 1), np.take_along_axis(every, order, 1)
        self.seconds += time.process_time() - start


def real_descriptors(photos: Path, count: int) -> np.ndarray:
    """Of photographs, with the built-in model."""
    names = list_images(photos)
    codes = Encoder(load_network(None, "cpu"), photos).encode(names[:: max(1, len(names) // count)][:count])
    assert codes is not None
    maps = codes.code.features[4].numpy()
    return Vocabulary.learn(maps).describe(maps)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=1_000_000)
    parser.add_argument("--queries", type=int, default=100)
    parser.add_argument("--photos", type=Path, default=DATA / "photos")
    parser.add_argument("--same", type=float, default=0.745, help="mean cosine of two photographs of one place")
    args = parser.parse_args()
    photos = needed(args.photos)
    import faiss

    torch.set_num_threads(1)
    faiss.omp_set_num_threads(1)
    simulated = Simulated(real_descriptors(photos, 300), args.same)
    step = CHUNK // VISITS
    chunks = [np.arange(start, start + step) for start in range(0, args.images // VISITS, step)]

    def chunk(places: np.ndarray) -> np.ndarray:
        return np.concatenate([simulated.visits(places, visit) for visit in range(VISITS)])

    start = time.process_time()
    trainees = -(-list_count(args.images) * TRAINED_ON // CHUNK)
    sample = [chunk(chunks[i]) for i in np.linspace(0, len(chunks) - 1, min(trainees, len(chunks))).astype(int)]
    index = train_index(np.concatenate(sample)[: list_count(args.images) * TRAINED_ON], args.images)
    del sample
    trained = time.process_time() - start
    asked = simulated.visits(chunks[0], VISITS)[: args.queries]  # another visit to the first places
    exact, added = Exact(asked), 0.0
    for number, places in enumerate(chunks):
        rows = chunk(places)
        here = number * CHUNK + np.arange(len(rows))
        start = time.process_time()
        index.add_with_ids(rows, here)
        added += time.process_time() - start
        exact.look_at(rows, here)
    start = time.process_time()
    found = np.concatenate([search_index(index, one[None], SHORTLIST) for one in asked])
    searched = (time.process_time() - start) / len(asked)
    own = np.arange(len(asked))[:, None]  # the query's place

    def recall(ids: np.ndarray) -> float:
        """The share of the visits to the query's place that a shortlist has."""
        return float(((ids // CHUNK * step + ids % CHUNK % step) == own).sum(1).mean() / VISITS)

    kept = np.mean([len(set(a) & set(b)) / FIRST for a, b in zip(exact.ids[:, :FIRST].tolist(), found.tolist())])
    print(f"{index.ntotal:,} simulated images of {args.images // VISITS:,} places, {index.nlist} lists; one core")
    there = f"the {VISITS} images of the query's place in a shortlist of {SHORTLIST}"
    print(f"{there}: {recall(found):.3f}; where all are compared: {recall(exact.ids):.3f}")
    print(f"training {trained:.0f} s, adding {1e6 * added / index.ntotal:.0f} us an image")
    print(f"a query: {1e3 * searched:.1f} ms; compared with all: {1e3 * exact.seconds / len(asked):.0f} ms")
    print(f"of the first {FIRST} of all, whatever they show, in the index's shortlist of {SHORTLIST}: {kept:.3f}")
    print(f"the index: {index.ntotal * (index.d + 8) / 1e9:.2f} GB; this process at most {peak_gigabytes():.1f} GB")


def peak_gigabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


if __name__ == "__main__":
    main()
