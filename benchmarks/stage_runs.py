"""Whole runs of `retrieve`, with its stages as they are and as they were: processor seconds a query, and what comes first.

    python benchmarks/stage_runs.py --queries 5

The data and measures of `stages.py`: gardenspoint by night in its day images, and a kitchen. `before` has no shortlist by
descriptors, 100 candidates for the 256-pixel branch and 20 for the full network; `mapping` is what `map` and `localize --map` ask
for, which match all that is retrieved anyway. Codes of the database are made before the clock starts; those of queries count.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from data import DATA, needed
from stages import overlap

from pdc_sfm.images import list_images
from pdc_sfm.retrieval import retrieve
from pdc_sfm.retrieval.settings import RetrievalSettings
from pdc_sfm.settings import load_settings
from pdc_sfm.weights import load_network

KINDS = {
    "before": ["shortlist=1000000", "candidates=100", "best=20"],
    "after": [],
    "mapping": ["best=0"],
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queries", type=int, default=5, help="of each set, spread over it")
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=list(KINDS))
    args = parser.parse_args()
    torch.set_num_threads(1)
    network = load_network(None, "cpu")
    walk, kitchen = needed(DATA / "places/gardenspoint"), needed(DATA / "indoor/kitchen")
    night, day = ([f"{name}/{file}" for file in list_images(walk / name)] for name in ("night_right", "day_right"))
    truth = json.loads((kitchen / "cameras.json").read_text())
    poses = {n: np.c_[c["R_cam_from_world"], c["t_cam_from_world"]] for n, c in truth["images"].items()}
    known = [name for name in sorted(poses) if name.startswith("db/")]
    others = [name for name in sorted(poses) if name not in known]

    def near(query: str, image: str) -> float:
        return float(abs(night.index(query) - day.index(image)) <= 1)

    def shown(query: str, image: str) -> float:
        return overlap(poses[query], poses[image], truth["camera"])

    print(f"{'':<14} {'stages':<10} {'s a query':>9}   first")
    for title, images, queries, database, measure in (
        ("night -> day", walk, night, day, near),
        ("kitchen", kitchen / "images", others, known, shown),
    ):
        some = queries[:: max(1, len(queries) // args.queries)][: args.queries]
        with tempfile.TemporaryDirectory() as work:
            codes = Path(work) / "codes"
            mapping = load_settings(RetrievalSettings, None, ["device=cpu", "readers=0", "best=0"])
            retrieve(images, some[:1], database, Path(work) / "first.txt", 5, mapping, codes=codes, network=network)
            for kind in args.kinds:
                settings = load_settings(RetrievalSettings, None, ["device=cpu", "readers=0", *KINDS[kind]])
                start = time.process_time()
                output = Path(work) / f"{kind}.txt"
                found = retrieve(images, some, database, output, 5, settings, codes=codes, network=network).found
                seconds = (time.process_time() - start) / len(some)
                first = np.mean([measure(query, found[query][0].name) for query in some])
                print(f"{title:<14} {kind:<10} {seconds:>9.2f}   {first:.2f}", flush=True)


if __name__ == "__main__":
    main()
