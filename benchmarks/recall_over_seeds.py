"""Recall of the demo over several towns: mean, spread and worst, where the demo's own table is of one.

python benchmarks/recall_over_seeds.py

By default towns are smaller than the demo's, 400 x 300 with 16 database images and 6 queries by day and 6 by night, which takes
minutes each; any setting of the demo may be given.

Every town is a run of `pdc-sfm demo` with that seed and those settings. What was computed in `--work` is not computed again.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from pdc_sfm.demo import demo_settings, run_scene
from pdc_sfm.demo.table import GROUPS
from pdc_sfm.evaluation.measures.poses import RECALL_THRESHOLDS

SMALL = (
    "report=false",
    "scene.width=400",
    "scene.height=300",
    "scene.database=16",
    "scene.day_queries=6",
    "scene.night_queries=6",
    "retrieve.best=8",
    "match.dense.min_side=null",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default="31,32,33,34,35", help="separated by commas")
    parser.add_argument("--work", type=Path, default=Path("outputs/benchmarks/recall"))
    parser.add_argument("settings", nargs="*", metavar="key=value", help="settings of the demo")
    args = parser.parse_args()
    seeds = [int(word) for word in args.seeds.split(",")]
    recalls: dict[tuple[str, str], list[list[float]]] = {}
    limits = " ".join(f"{f'{metres:g}m {degrees:g}°':>12}" for metres, degrees in RECALL_THRESHOLDS)
    print(f"{'seed':<6} {'method':<8} {'queries':<9} {limits}")
    for seed in seeds:
        settings = demo_settings(None, [*SMALL, *args.settings, f"scene.seed={seed}"])
        run = run_scene(args.work / f"town{seed}", settings, workers=1)
        for row in run.record["metrics"]:
            for group in (group for group in GROUPS if group in row["queries"]):
                found = row["queries"][group]
                recalls.setdefault((row["method"], group), []).append(found["recall"])
                figures = " ".join(f"{100 * share:>12.1f}" for share in found["recall"])
                print(f"{seed:<6} {row['method']:<8} {group:<5}{found['count']:>4} {figures}", flush=True)
    print(f"\nmean over {len(seeds)} seeds, standard deviation between them")
    for (method, group), rows in recalls.items():
        mean, spread = 100 * np.mean(rows, axis=0), 100 * np.std(rows, axis=0, ddof=1 if len(rows) > 1 else 0)
        figures = " ".join(f"{f'{m:.1f} ± {s:.1f}':>12}" for m, s in zip(mean, spread))
        print(f"{'all':<6} {method:<8} {group:<9} {figures}")


if __name__ == "__main__":
    main()
