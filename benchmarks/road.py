"""The whole pipeline on photographs with true cameras, in processor seconds per step, for us and for SIFT.

    python benchmarks/road.py datasets/benchmarks/indoor/kitchen outputs/road/kitchen [--retrieved 5] [--seeds 5] [key=value ...]

Images under `db/` become a map from their true poses, each matched with the eight nearest that look the same way; for the others
images of the map are retrieved, matched, and a pose is found: the steps of `pdc-sfm demo`. SIFT matches every query with every
image of the map. What was made before is made anew. The map that is left in the folder is one for `rounds.py` and `serve.py`.
`--seeds` finds the poses again with so many seeds of RANSAC: how far errors spread without any change.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import resource
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from data import needed
from knee_photographs import known_cameras

from pdc_sfm.colmap.mapping.sift_files import match_sift
from pdc_sfm.demo.method import Method, Scene
from pdc_sfm.demo.settings import demo_settings
from pdc_sfm.demo.true_cameras import write_queries
from pdc_sfm.engine.pairing import nearest_pose_pairs
from pdc_sfm.pipeline.matching import engine_matcher
from pdc_sfm.retrieval import retrieve
from pdc_sfm.scenes import Camera
from pdc_sfm.store.pair_lists import unique_pairs, write_pairs

STEPS = ("match", "triangulate", "retrieve", "match queries", "localize")


def processor_seconds() -> float:
    """Of this process and of those it started and has waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


class TimedSteps:
    """In the place of a run's chain of steps: each is done, and its processor seconds are kept."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def run(self, name: str, _: Any, __: Any, work: Callable[[], str], ___: Any = ()) -> None:
        start = processor_seconds()
        said = work()
        self.seconds[name] = processor_seconds() - start
        print(f"{name:<20} {self.seconds[name]:7.1f} s  {said}", flush=True)


def errors(method: Method) -> str:
    """Of the queries' poses."""
    found = json.loads(method.file("localization.json").read_text(encoding="utf-8"))["queries"].values()
    posed = [one for one in found if one["localized"]]
    right = sum(one["metres"] <= 0.25 and one["degrees"] <= 2 for one in posed)
    if not posed:
        return "no pose"
    centimetres = [100 * one["metres"] for one in posed]
    return (
        f"{np.median(centimetres):.2f} cm {np.median([one['degrees'] for one in posed]):.3f} deg in the median,"
        f" nine tenths within {np.quantile(centimetres, 0.9):.2f} cm, {right} of {len(found)} within 0.25 m and 2 deg"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scene", type=Path, help="a folder with images and cameras.json")
    parser.add_argument("run", type=Path, help="folder to write")
    parser.add_argument("--retrieved", type=int, default=5, help="images matched with each query")
    parser.add_argument("--seeds", type=int, default=1, help="of RANSAC, with which poses are found")
    parser.add_argument("--no-sift", action="store_true")
    parser.add_argument("settings", nargs="*", help="key=value, of pdc-sfm demo")
    args = parser.parse_args()
    common = ["match.device=cpu", "retrieve.device=cpu", "triangulation.threads=1", "localization.threads=1"]
    sizes = ["match.tracks.max_keypoints=4096", f"retrieved={args.retrieved}"]
    settings = demo_settings(None, [*common, *sizes, *args.settings])
    known = known_cameras(needed(args.scene / "cameras.json"))
    cameras = {
        name: Camera(one["width"], one["height"], one["fx"], np.c_[one["R_cam_from_world"], one["t_cam_from_world"]])
        for name, one in sorted(known.items())
    }
    database = {name: camera for name, camera in cameras.items() if name.startswith("db/")}
    queries = {name: camera for name, camera in cameras.items() if name not in database}
    shutil.rmtree(args.run, ignore_errors=True)
    (args.run / "sift").mkdir(parents=True)
    (args.run / "images").symlink_to((args.scene / "images").resolve())
    (args.run / "cameras.json").write_text(json.dumps(known), encoding="utf-8")
    write_queries(args.run / "queries.txt", queries)
    poses = {name: camera.cam_from_world for name, camera in database.items()}
    pairs = unique_pairs(nearest_pose_pairs(poses, settings.neighbors, settings.max_angle))
    write_pairs(args.run / "pairs.txt", pairs)
    print(f"{len(database)} images, {len(pairs)} pairs, {len(queries)} queries", flush=True)
    scene = Scene(args.run / "images", args.run / "pairs.txt", database, queries, settings)

    def by_retrieval(path: Path) -> str:
        return str(retrieve(scene.images, list(queries), list(database), path, args.retrieved, settings.retrieve))

    def by_all(path: Path) -> str:
        write_pairs(path, [(query, image) for query in queries for image in database])
        return "all"

    methods = [Method("pdc_sfm", args.run, engine_matcher(settings.match), by_retrieval, None, None)]
    if not args.no_sift:
        methods.append(Method("SIFT", args.run / "sift", match_sift, by_all, None, None))
    table = {}
    for method in methods:
        print(method.name)
        timed = TimedSteps()
        method.run(timed, scene)  # type: ignore[arg-type]
        table[method.name] = timed.seconds
        print(errors(method), flush=True)
        for seed in range(1, args.seeds):
            again = dataclasses.replace(settings, localization=dataclasses.replace(settings.localization, seed=seed))
            method._localize(dataclasses.replace(scene, settings=again))
            print(f"seed {seed}: {errors(method)}", flush=True)
    print(f"\n{'':<10}" + "".join(f"{step:>15}" for step in STEPS) + f"{'sum':>10}")
    for name, seconds in table.items():
        print(f"{name:<10}" + "".join(f"{seconds[step]:>15.1f}" for step in STEPS) + f"{sum(seconds.values()):>10.1f}")


if __name__ == "__main__":
    main()
