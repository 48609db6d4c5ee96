"""Cascade against exhaustive retrieval on a generated database: the same first five, and how much faster.

    python benchmarks/retrieval.py [--sizes 200 1000] [--work outputs/benchmarks/retrieval] [--small]

The database is rendered: towns of 50 images each, 5 queries in each of the first four, 2 of them by night. Exhaustive
is the paper's way: every image through the full network at a smaller side of 400. Both start from nothing, with the
same network; `codes kept` is the cascade with the codes of an earlier run. Rendered images are kept for the next run.
"""

from __future__ import annotations

import argparse
import os
import shutil
import time
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from pdc_sfm.network import PDCNet
from pdc_sfm.retrieval import RetrievalResult, RetrievalSettings, retrieve
from pdc_sfm.scenes import SceneSettings, write_scene
from pdc_sfm.settings import load_settings
from pdc_sfm.weights import load_network

TOWN = SceneSettings(width=640, height=480, database=50, day_queries=3, night_queries=2, depth=False, sky_directions=12)
FIRST = 5


@dataclass(frozen=True)
class Database:
    """Images of several towns in one folder, and their names."""

    images: Path
    queries: list[str]
    database: list[str]


def render(work: Path, size: int, town: SceneSettings, queries: int, workers: int) -> Database:
    """Towns until there are `size` images; those that are there already are taken as they are."""
    names: list[str] = []
    asked: list[str] = []
    for seed in range(-(-size // town.database)):
        start = time.monotonic()
        folder = work / "towns" / f"{seed:02d}"
        write_scene(folder, replace(town, seed=seed), workers)
        if time.monotonic() - start > 1:
            print(f"town {seed} rendered in {time.monotonic() - start:.0f} s", flush=True)
        found = sorted(path.relative_to(work / "towns").as_posix() for path in (folder / "images").rglob("*.jpg"))
        names += [name for name in found if "/db/" in name]
        asked += [name for name in found if "/db/" not in name]
    return Database(work / "towns", asked[:queries], names[:size])


def timed(data: Database, output: Path, settings: RetrievalSettings, network: PDCNet) -> tuple[float, RetrievalResult]:
    start = time.monotonic()
    result = retrieve(data.images, data.queries, data.database, output, 20, settings, network=network, show=True)
    return time.monotonic() - start, result


def compare(data: Database, work: Path, settings: RetrievalSettings, network: PDCNet) -> None:
    """Print one row: seconds of each way, their ratio, and for how many queries the first five agree."""
    size = len(data.database)
    outputs = [work / f"{mode}_{size}.txt" for mode in ("cascade", "exhaustive")]
    for output in outputs:
        shutil.rmtree(output.with_suffix(".counts"), ignore_errors=True)
    cascade, found = timed(data, outputs[0], settings, network)
    for counts in ("low", "full"):
        shutil.rmtree(outputs[0].with_suffix(".counts") / counts)
    kept, _ = timed(data, outputs[0], settings, network)
    exhaustive, truth = timed(data, outputs[1], replace(settings, mode="exhaustive"), network)
    same, ordered, shared = agreement(found, truth)
    print(
        f"{size:>6} {exhaustive:>11.1f} {cascade:>9.1f} {exhaustive / cascade:>7.1f} {kept:>11.1f} "
        f"{exhaustive / kept:>7.1f} {same:>6.1f} % {ordered:>6.1f} % {shared:>8.1f} %   {town_share(truth):>5.1f} %",
        flush=True,
    )


def agreement(found: RetrievalResult, truth: RetrievalResult) -> tuple[float, float, float]:
    """Per cent of queries with the same first five, in the same order, and of first fives in common."""
    pairs = [([i.name for i in found.found[q][:FIRST]], [i.name for i in truth.found[q][:FIRST]]) for q in truth.found]
    same = [set(a) == set(b) for a, b in pairs]
    shared = [len(set(a) & set(b)) / max(1, len(b)) for a, b in pairs]
    return tuple(100 * sum(x) / len(x) for x in (same, [a == b for a, b in pairs], shared))


def town_share(result: RetrievalResult) -> float:
    """Per cent of the first five that are of the query's own town: how far the counts themselves can be trusted."""
    right = [
        image.name.split("/")[0] == q.split("/")[0] for q, images in result.found.items() for image in images[:FIRST]
    ]
    return 100 * sum(right) / max(1, len(right))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[200, 1000])
    parser.add_argument("--queries", type=int, default=20)
    parser.add_argument("--work", type=Path, default=Path("outputs/benchmarks/retrieval"))
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument(
        "--small", action="store_true", help="minutes instead of hours: 40 and 80 small images, 6 queries"
    )
    parser.add_argument("settings", nargs="*", metavar="key=value", help="settings of `pdc-sfm retrieve`")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    settings = load_settings(RetrievalSettings, None, args.settings)
    town, sizes, queries, work = TOWN, args.sizes, args.queries, args.work
    if args.small:
        town = replace(TOWN, width=320, height=240, database=20, sky_directions=4)
        sizes, queries, work = [40, 80], 6, args.work / "small"
        settings = replace(settings, min_side=240, candidates=min(settings.candidates, 30), best=min(settings.best, 8))
    data = {size: render(work, size, town, queries, args.threads) for size in sizes}
    network = load_network(settings.weights, settings.device)
    print(
        f"{'images':>6} {'exhaustive s':>11} {'cascade s':>9} {'ratio':>6} {'codes kept s':>11} {'ratio':>6} "
        f"{'same 5':>8} {'ordered':>8} {'in common':>10}   own town"
    )
    for size in sizes:
        compare(data[size], work, settings, network)


if __name__ == "__main__":
    main()
