"""Matching of pair lists: encodings per image, ordering, aggregation, pairs per second.

python benchmarks/matching.py                 all parts; order needs Aachen's lists (datasets/README.md)
python benchmarks/matching.py order engine    some parts: order, million, aggregation, engine
python benchmarks/matching.py engine --weights FILE --side 256
"""

from __future__ import annotations

import argparse
import functools
import tempfile
import time
from collections import OrderedDict
from pathlib import Path

import numpy as np
from data import DATA
from dictionary_rule import aggregate_by_dictionary

from pdc_sfm.engine.cache import CodeCache
from pdc_sfm.engine.order import order_pairs
from pdc_sfm.matches.types import RawMatches

CAPACITIES = (100, 400, 1000)
LISTS = {
    "hloc covisibility, pairs-db-covis20": "hloc_pairs/pairs-db-covis20.txt",
    "hloc retrieval, pairs-query-netvlad20": "hloc_pairs/pairs-query-netvlad20.txt",
    "challenge v1.0": "local_feature_challenge/image_pairs_to_match.txt",
    "challenge v1.1": "local_feature_challenge/image_pairs_to_match_v1_1.txt",
}


class Code:
    nbytes = 1


# --- encodings per image ----------------------------------------------------------------------------------------------


def encodings_table(folder: Path) -> None:
    print("Encodings per image with room for 100 / 400 / 1,000 codes")
    for title, name in LISTS.items():
        if not (folder / name).is_file():
            print(f"  {folder / name} is not here")
            continue
        names, pairs = read_list(folder / name)
        print(f"  {title}: {len(names)} images, {len(pairs)} unique pairs")
        rows = {
            "as in the file, least recently used": (pairs, lru),
            "sorted by name, least recently used": (sorted_by_name(names, pairs), lru),
            "reverse Cuthill-McKee, least recently used": (swept(pairs, cuthill_mckee(pairs)), lru),
            "spectral bisection, least recently used": (swept(pairs, bisection(pairs)), lru),
            "spectral bisection, needed latest": (swept(pairs, bisection(pairs)), belady),
        }
        for label, (order, cache) in rows.items():
            print_row(label, [cache(order, capacity) / len(names) for capacity in CAPACITIES])
        for label, cache in (("least recently used", lru), ("needed latest", belady)):
            values = [cache(pairs[order_pairs(pairs, capacity)], capacity) / len(names) for capacity in CAPACITIES]
            print_row(f"ours, {label}", values)


def read_list(path: Path) -> tuple[list[str], np.ndarray]:
    from pdc_sfm.store.pair_lists import read_pairs, unique_pairs

    pairs = unique_pairs(read_pairs(path))
    number = {name: i for i, name in enumerate(dict.fromkeys(name for pair in pairs for name in pair))}
    return list(number), np.array([(number[a], number[b]) for a, b in pairs])


def sorted_by_name(names: list[str], pairs: np.ndarray) -> np.ndarray:
    """The pairs with their images numbered and ordered by name."""
    ranks = np.sort(np.argsort(np.argsort(names))[pairs], 1)
    return ranks[np.lexsort((ranks[:, 1], ranks[:, 0]))]


def belady(pairs: np.ndarray, capacity: int) -> int:
    steps = pairs.tolist()
    cache = CodeCache(steps, capacity)
    for step in steps:
        for image in step:
            if cache.get(image) is None:
                cache.put(image, Code())
        cache.finish_step()
    return cache.misses


def lru(pairs: np.ndarray, capacity: int) -> int:
    kept, misses = OrderedDict(), 0
    for image in pairs.reshape(-1).tolist():
        if image in kept:
            kept.move_to_end(image)
            continue
        misses += 1
        kept[image] = None
        if len(kept) > capacity:
            kept.popitem(last=False)
    return misses


def swept(pairs: np.ndarray, order: np.ndarray) -> np.ndarray:
    """Pairs in the order in which an order of images completes them."""
    place = np.empty(len(order), int)
    place[order] = np.arange(len(order))
    ends = np.sort(place[pairs], 1)
    return pairs[np.lexsort((ends[:, 0], ends[:, 1]))]


def graph_of(pairs: np.ndarray):
    from scipy.sparse import coo_array

    count = int(pairs.max()) + 1
    both = np.concatenate((pairs, pairs[:, ::-1]))
    return coo_array((np.ones(len(both)), both.T), (count, count)).tocsr()


def cuthill_mckee(pairs: np.ndarray) -> np.ndarray:
    from scipy.sparse.csgraph import reverse_cuthill_mckee

    return reverse_cuthill_mckee(graph_of(pairs), symmetric_mode=True)


def bisection(pairs: np.ndarray) -> np.ndarray:
    """Recursive spectral bisection of the pair graph, by exact Fiedler vectors."""
    from scipy.sparse.csgraph import connected_components

    graph = graph_of(pairs)

    def halve(nodes: np.ndarray) -> list[np.ndarray]:
        if len(nodes) <= 2:
            return [nodes]
        part = graph[nodes][:, nodes]
        count, label = connected_components(part, directed=False)
        if count > 1:
            return [piece for k in range(count) for piece in halve(nodes[label == k])]
        order = np.argsort(fiedler(part), kind="stable")
        return halve(nodes[order[: len(order) // 2]]) + halve(nodes[order[len(order) // 2 :]])

    return np.concatenate(halve(np.arange(graph.shape[0])))


def fiedler(part) -> np.ndarray:
    from scipy.sparse import diags_array
    from scipy.sparse.linalg import eigsh

    degree = np.asarray(part.sum(1)).reshape(-1)
    if len(degree) < 60:
        return np.linalg.eigh(np.diag(degree) - part.toarray())[1][:, 1]
    scale = diags_array(1 / np.sqrt(degree))
    start = np.random.default_rng(0).normal(size=len(degree))
    return scale @ eigsh(scale @ part @ scale, 2, which="LA", tol=1e-3, v0=start)[1][:, 0]


def print_row(label: str, values: list[float]) -> None:
    print(f"    {label:46}" + " / ".join(f"{value:5.2f}" for value in values))


# --- the other parts ----------------------------------------------------------------------------------------------------


def order_a_million() -> tuple[float, float]:
    """Seconds of the ordering, encodings per image."""
    from scipy.spatial import cKDTree

    points = np.random.default_rng(0).random((90_000, 2))
    near = cKDTree(points).query(points, 22)[1]
    pairs = np.unique(np.sort(np.stack((np.repeat(near[:, 0], 21), near[:, 1:].reshape(-1)), 1), 1), axis=0)
    pairs = np.random.default_rng(0).permutation(pairs)[:1_000_000]
    start = time.process_time()
    order = order_pairs(pairs, 400)
    seconds = time.process_time() - start
    print(f"Ordering {len(pairs)} pairs of 90000 images: {seconds:.1f} s of one core, ", end="")
    encodings = belady(pairs[order], 400) / 90_000
    print(f"{encodings:.2f} encodings per image with 400 codes")
    return seconds, encodings


def aggregation(matches: int = 1_000_000) -> tuple[float, float, bool]:
    """Seconds of ours and of plain dictionaries, and whether both find the same."""
    from pdc_sfm.tracks.spatial import RadiusIndex
    from pdc_sfm.tracks.voting import link, vote_keypoints

    rng = np.random.default_rng(0)
    names = [str(i) for i in range(9)]
    pairs = [(a, b) for a in names for b in names if a < b]
    count = -(-matches // len(pairs))
    raw = {
        pair: RawMatches(*(rng.uniform(0, (1600, 1200), (2, count, 2))), rng.uniform(0.1, 0.57, count))
        for pair in pairs
    }

    def by_tables():
        keypoints = {}
        for name in names:
            own = [m if pair[0] == name else m.swapped() for pair, m in raw.items() if name in pair]
            points, scores = (np.concatenate([getattr(m, key) for m in own]) for key in ("keypoints0", "scores"))
            keypoints[name] = RadiusIndex(vote_keypoints(points, scores, 2, 8)[0].best(8192).points, 2)
        return {pair: link(m, keypoints[pair[0]], keypoints[pair[1]])[0] for pair, m in raw.items()}

    by_tables()
    start = time.process_time()
    ours = by_tables()
    middle = time.process_time()
    _, theirs = aggregate_by_dictionary(raw, 2, 8, 8192)
    end = time.process_time()
    same = all({(*m,) for m in ours[p].tolist()} == {(a, b) for a, b, _ in theirs[p]} for p in pairs)
    print(
        f"Aggregating {count * len(pairs)} matches by hloc's rule: {middle - start:.2f} s, plain dictionaries ", end=""
    )
    print(f"{end - middle:.1f} s: {(end - middle) / (middle - start):.0f} times faster, same matches: {same}")
    return middle - start, end - middle, same


def engine(weights: str | None, side: int) -> dict[str, float]:
    """Seconds of all pairs of 12 images with the codes kept, and encoding both images of every pair."""
    from pdc_sfm.dense.settings import DenseSettings
    from pdc_sfm.engine.loop import match_on
    from pdc_sfm.engine.work import PairWork
    from pdc_sfm.images import write_image
    from pdc_sfm.matcher import PairSettings, load_matcher
    from pdc_sfm.store.journal import open_raw_store
    from pdc_sfm.workers import LocalPool

    matcher = load_matcher(weights, PairSettings(DenseSettings(min_side=side)))
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        names = [f"{i}.png" for i in range(12)]
        for name in names:
            write_image(folder / name, rng.integers(0, 256, (side, side * 4 // 3, 3), np.uint8))
        pairs = [(a, b) for a in names for b in names if a < b]
        seconds = {}
        for label, room in (("engine", 10**10), ("encode per pair", 0)):
            work = functools.partial(PairWork, folder, matcher, memory=room)
            with open_raw_store(folder / label, {}) as store, LocalPool(work) as pool:
                start = time.perf_counter()
                report = match_on(pool, pairs, store, memory=room)
                seconds[label] = time.perf_counter() - start
            print(f"  {label:16} {len(pairs) / seconds[label]:.2f} pairs/s, {report.encoded} encodings")
    print(f"  {seconds['encode per pair'] / seconds['engine']:.2f} times faster")
    return seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", help="order, million, aggregation, engine")
    parser.add_argument("--lists", type=Path, default=DATA / "aachen", help="folder of Aachen's pair lists")
    parser.add_argument("--weights", help="for engine; without it the built-in model")
    parser.add_argument("--side", type=int, default=256, help="for engine: pixels of the smaller side")
    args = parser.parse_args()
    parts = {
        "order": functools.partial(encodings_table, args.lists),
        "million": order_a_million,
        "aggregation": aggregation,
        "engine": functools.partial(engine, args.weights, args.side),
    }
    for name in args.parts or parts:
        if name not in parts:
            parser.error(f"unknown part {name}")
        parts[name]()


if __name__ == "__main__":
    main()
