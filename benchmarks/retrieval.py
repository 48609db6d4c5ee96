"""Cascade against exhaustive retrieval on a generated database: the same first five, and how much faster.

    python benchmarks/retrieval.py [--sizes 200 1000] [--work outputs/benchmarks/retrieval] [--small]

The database (`benchmarks/places.py`) is rendered: places of several towns, ten photographs each; 20 queries, each one
more photograph of a place, on another day, every fourth by night. Exhaustive is the paper's way: every image through the
full network at a smaller side of 400. Both start from nothing, with the same network; `codes kept` is the cascade with
the database's codes of an earlier run. Rendered images are kept for the next run.
"""

from __future__ import annotations

import argparse
import os
import shutil
import time
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from places import TOWN, photograph_places

from pdc_sfm.network import PDCNet
from pdc_sfm.retrieval import RetrievalResult, RetrievalSettings, retrieve
from pdc_sfm.settings import load_settings
from pdc_sfm.weights import load_network

FIRST = 5


@dataclass(frozen=True)
class Data:
    images: Path
    queries: list[str]
    database: list[str]


def timed(
    data: Data, output: Path, settings: RetrievalSettings, network: PDCNet, top: int
) -> tuple[float, RetrievalResult]:
    start = time.monotonic()
    result = retrieve(data.images, data.queries, data.database, output, top, settings, network=network, show=True)
    return time.monotonic() - start, result


def compare(data: Data, work: Path, settings: RetrievalSettings, network: PDCNet, top: int) -> dict[str, float]:
    """Print one row and return it: seconds of each way, and for how many queries the first five agree."""
    size = len(data.database)
    outputs = [work / f"{mode}_{size}.txt" for mode in ("cascade", "exhaustive")]
    for output in outputs:
        shutil.rmtree(output.with_suffix(".counts"), ignore_errors=True)
    cascade, found = timed(data, outputs[0], settings, network, top)
    for counts in ("low", "full"):
        shutil.rmtree(outputs[0].with_suffix(".counts") / counts)
    kept, _ = timed(data, outputs[0], settings, network, top)
    exhaustive, truth = timed(data, outputs[1], replace(settings, mode="exhaustive"), network, top)
    same, ordered, shared = agreement(found, truth)
    print(
        f"{size:>6} {exhaustive:>12.1f} {cascade:>9.1f} {exhaustive / cascade:>6.1f} {kept:>12.1f} "
        f"{exhaustive / kept:>6.1f} {same:>6.1f} % {ordered:>6.1f} % {shared:>8.1f} %  {own_place(truth):>6.1f} %",
        flush=True,
    )
    return {"exhaustive": exhaustive, "cascade": cascade, "kept": kept, "same": same, "shared": shared}


def agreement(found: RetrievalResult, truth: RetrievalResult) -> tuple[float, float, float]:
    """Per cent of queries with the same first five, in the same order, and of first fives in common."""
    pairs = [([i.name for i in found.found[q][:FIRST]], [i.name for i in truth.found[q][:FIRST]]) for q in truth.found]
    same = [set(a) == set(b) for a, b in pairs]
    shared = [len(set(a) & set(b)) / max(1, len(b)) for a, b in pairs]
    return tuple(100 * sum(x) / len(x) for x in (same, [a == b for a, b in pairs], shared))


def own_place(result: RetrievalResult) -> float:
    """Per cent of the first five that show the query's own place: how far the counts themselves can be trusted."""
    right = [
        i.name.rpartition("/")[0] == q.rpartition("/")[0] for q, images in result.found.items() for i in images[:5]
    ]
    return 100 * sum(right) / max(1, len(right))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[200, 1000])
    parser.add_argument("--queries", type=int, default=20)
    parser.add_argument("--top", type=int, default=20)
    parser.add_argument("--work", type=Path, default=Path("outputs/benchmarks/retrieval"))
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--small", action="store_true", help="minutes instead of hours: 40 and 80 images, 4 queries")
    parser.add_argument("settings", nargs="*", metavar="key=value", help="settings of `pdc-sfm retrieve`")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    settings = load_settings(RetrievalSettings, None, args.settings)
    sizes, queries, work, town = args.sizes, args.queries, args.work, TOWN
    if args.small:
        sizes, queries, work = [40, 80], 4, args.work / "small"
        town = replace(TOWN, width=320, height=240)
    data = {}
    for size in sizes:
        start = time.monotonic()
        asked, names = photograph_places(work / "images", size, queries, town, workers=args.threads)
        data[size] = Data(work / "images", asked, names)
        print(f"{size} images and {len(asked)} queries photographed in {time.monotonic() - start:.0f} s", flush=True)
    network = load_network(settings.weights, settings.device)
    print(
        f"{'images':>6} {'exhaustive s':>12} {'cascade s':>9} {'ratio':>6} {'codes kept s':>12} {'ratio':>6} "
        f"{'same 5':>8} {'ordered':>8} {'in common':>10} {'own place':>9}"
    )
    for size in sizes:
        compare(data[size], work, settings, network, args.top)


if __name__ == "__main__":
    main()
