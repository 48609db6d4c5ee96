"""Do maps say so when they are wrong? Over forty maps with true cameras: what is registered, what of it is right, what is said.

    python benchmarks/honesty.py --work outputs/benchmarks/honesty

Towns, rooms, things on turntables (some of which look the same from several sides), real photographs, all and thinned out,
with images upside down, two scenes mixed, images twice and images of elsewhere. An image is right if it stands within
5 degrees of its truth, and within .15 of the depth of what it shows, once the map is laid over the true cameras by its largest
part that agrees with them. A map is silently wrong if an image is wrong and the verdict is "consistent"; a false alarm is a
map that is right, and was so before it fell apart, and is not called consistent. Thresholds are looked at on the development
half alone; `--half held-out` reports.

Each pair is matched once, into WORK/matches, and what is matched and mapped is not done again: stopped, the same command goes on,
and other rules are tried in seconds a map (`--label` names the rows, in WORK/rows). `--without MEASURE` leaves one measure out,
`--sift` gives the rows of COLMAP's SIFT, `--disk` those of DISK + LightGlue (`disk_lightglue.py` says what to install),
`--show LABEL ...` prints what was run side by side, and which measures spoke.
Words like `min_support_ratio=0` are settings of `pdc-sfm reconstruct`.
`--map TITLE` maps others (`honesty_maps.build_map` says how they are named).
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import importlib
import json
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import disk_lightglue
import pycolmap
from honesty_maps import Map, build_maps
from honesty_truth import count_right, median_depths
from sift_baseline import reconstruct_sift

from pdc_sfm.colmap.io.models import MappingResult, ReconstructionError, load_model, model_poses
from pdc_sfm.colmap.mapping.reconstruction import ReconstructionSettings, reconstruct
from pdc_sfm.engine.run import MatchingSettings, match_pairs
from pdc_sfm.files import atomic_path, write_text
from pdc_sfm.settings import load_settings
from pdc_sfm.store.pair_lists import write_pairs

# What each measure hangs on, and the value that takes it away.
WITHOUT: dict[str, dict[str, float]] = {
    "stillness": {"verified_database.MOST_STILL": 2.0},
    "cells": {"links.MIN_CELLS": 0.0, "links.FEWEST_CELLS": 0.0},
    "contradictions": {"links.MAX_AGAINST": float("inf"), "links.MAX_ALTERNATIVE": float("inf")},
    "missing": {"links.MAX_MISSED": 2.0},
    "fit": {"links.MIN_FIT": 0.0},
    "places": {"places.SAME_PLACE": 2.0, "verified_database.SAME_VIEW": 2.0},
    "repeats": {"repeats.MIN_REPEATED": 2.0},
    "drift": {"intrinsics.MAX_DRIFT": float("inf")},
}
# What the lines of a verdict have in them, by the measure that says them.
SAID_BY = {
    "little holds": "cells",
    "no verified pair": "cells",
    "may show another thing": "missing",
    "pairs disagree": "contradictions",
    "of the matches that hold": "fit",
    "at exactly one place": "places",
    "may belong elsewhere": "repeats",
    "tell focal lengths": "focal lengths",
    "focal lengths left": "focal lengths",
}
MATCHING = ["dense.min_side=null", "device=cpu", "memory=1GB"]
KEYPOINTS = 2048  # of DISK in each image: 320 pixels hold no more
FILES = ("pairs.txt", "features.h5", "matches.h5")
Method = Literal["ours", "sift", "disk"]


def match(one: Map, work: Path) -> tuple[Path, Path, Path]:
    """Pair list, features and matches of one map. Maps whose first images are of one world share a journal of raw matches."""
    folder, world = work / "maps" / file_name(one), Path(one.names[0]).parent.name
    files = tuple(folder / name for name in FILES)
    if not all(path.is_file() for path in files):
        settings = load_settings(MatchingSettings, None, MATCHING)
        pairs = sorted({tuple(sorted(pair)) for pair in one.pairs})
        paths = {"features": work / "matches" / f"{world}_features.h5", "matches": work / "matches" / f"{world}.h5"}
        made = match_pairs(work / "pool", pairs, work / "matches", settings, **paths, overwrite="tracks", wait=True)
        folder.mkdir(parents=True, exist_ok=True)
        write_pairs(files[0], pairs)
        for source, target in zip((made.features, made.matches), files[1:]):
            with atomic_path(target) as partial:
                shutil.copyfile(source, partial)
    return files


def match_disk(one: Map, work: Path) -> tuple[Path, Path, Path]:
    """The same of DISK + LightGlue."""
    folder = work / "disk" / file_name(one)
    if not (folder / "pairs.txt").is_file():
        disk_lightglue.run(work / "pool", one.names, one.pairs, folder, KEYPOINTS)
    return tuple(folder / name for name in FILES)


@contextlib.contextmanager
def leave_out(measure: str | None) -> Iterator[None]:
    """Without a measure, if one is named."""
    before = {}
    for place, value in WITHOUT[measure].items() if measure else ():
        module, name = place.split(".")
        found = importlib.import_module(f"pdc_sfm.colmap.mapping.{module}")
        before[found, name] = getattr(found, name)
        setattr(found, name, value)
    try:
        yield
    finally:
        for (found, name), value in before.items():
            setattr(found, name, value)


def file_name(one: Map) -> str:
    return one.title.replace(" ", "_").replace("/", "-").replace(",", "")


def run(one: Map, method: Method, output: Path, work: Path, words: list[str]) -> dict[str, Any]:
    """One row: map, compare with the truth, keep what the map says of itself.

    The check knows what dense matches cover, not keypoints: maps of others stay as they are, and say nothing.
    """
    words = ["split_weak_links=false", *words] if method == "disk" else words
    settings = load_settings(ReconstructionSettings, None, words)
    settings = dataclasses.replace(settings, camera=one.camera, threads=1)
    shutil.rmtree(output, ignore_errors=True)
    pool = work / "pool"
    files = {"ours": match, "disk": match_disk}[method](one, work) if method != "sift" else ()
    start = time.process_time()
    try:
        if method == "sift":
            result = reconstruct_sift(pool, output, settings, one.names)
        else:
            result = reconstruct(pool, *files, output, settings)
    except ReconstructionError as error:
        return {
            "registered": 0,
            "right": 0,
            "wrong": [],
            "verdict": "no map",
            "says": [str(error)],
            "images": len(one.names),
        }
    seconds = time.process_time() - start
    poses = model_poses(result.model)
    said = _verdict(result) if method == "ours" else {"verdict": "consistent", "says": []}
    row = {"images": len(one.names), "registered": len(poses), "seconds": seconds, **said}
    depths = median_depths(result.model)
    row |= count_right(poses, depths, one) if one.has_truth else {"right": None, "wrong": []}
    if one.has_truth and method == "ours" and result.verdict.parts:
        for part in _parts(output, result.verdict.parts):
            poses, depths = poses | model_poses(part), depths | median_depths(part)
        row["wrong_before_it_fell_apart"] = count_right(poses, depths, one)["wrong"]
    return row


def _parts(output: Path, parts: tuple[tuple[str, ...], ...]) -> list[pycolmap.Reconstruction]:
    """The parts that were cut from a map: they stand as they did in it."""
    models = [load_model(folder) for folder in sorted((output / "models").glob("*"))]
    return [model for model in models if tuple(sorted(model_poses(model))) in parts]


def _verdict(result: MappingResult) -> dict[str, Any]:
    return {"verdict": result.verdict.kind, "says": list(result.verdict.reasons)}


def table(maps: list[Map], work: Path, labels: list[str]) -> None:
    """Rows of each label side by side, and what they come to."""
    rows = {label: {m.title: _read(work, label, m) for m in maps} for label in labels}
    print(f"{'map':<42} {'images':>6} " + " ".join(f"| {label:<30}" for label in labels))
    for one in maps:
        cells = [_cell(rows[label][one.title]) for label in labels]
        print(f"{one.title:<42} {len(one.names):>6} " + " ".join(f"| {cell:<30}" for cell in cells))
    for label in labels:
        some = [(m, rows[label][m.title]) for m in maps]
        print(f"{label}: {summary(some)}")
        for measure, (spoke, alone) in speakers([row for _, row in some if row is not None]).items():
            print(f"    {measure}: speaks of {spoke} wrong maps, alone of {alone}")


def _read(work: Path, label: str, one: Map) -> dict[str, Any] | None:
    path = work / "rows" / label / f"{file_name(one)}.json"
    return json.loads(path.read_text()) if path.is_file() else None


def _cell(row: dict[str, Any] | None) -> str:
    if row is None:
        return "-"
    right = "?" if row["right"] is None else row["right"]
    silent = " SILENT" if row["wrong"] and row["verdict"] == "consistent" else ""
    return f"{row['registered']:>2} reg {right:>2} right {row['verdict']}{silent}"


def summary(rows: list[tuple[Map, dict[str, Any] | None]]) -> str:
    """The three figures that count, and time."""
    done = [(m, row) for m, row in rows if row is not None]
    known = [row for m, row in done if m.has_truth]
    mapped = [row for row in known if row["verdict"] != "no map"]
    wrong = [row for row in mapped if row["wrong"]]
    silent = sum(row["verdict"] == "consistent" for row in wrong)
    sound = [row for row in mapped if not row["wrong"]]
    alarms = sum(row["verdict"] != "consistent" and not row.get("wrong_before_it_fell_apart") for row in sound)
    return (
        f"{len(done)} maps: {len(wrong)} wrong, {silent} silently; {alarms} false alarms on {len(sound)} right maps; "
        f"{sum(r['registered'] for r in known)} registered, {sum(r['right'] for r in known)} right; "
        f"{sum(row.get('seconds', 0) for _, row in done):.0f} s of CPU"
    )


def speakers(rows: list[dict[str, Any]]) -> dict[str, tuple[int, int]]:
    """Of each measure the wrong maps that it speaks of, and those of which it alone does: silent without it."""
    found = [
        {name for line in row["says"] for key, name in SAID_BY.items() if key in line} for row in rows if row["wrong"]
    ]
    names = dict.fromkeys(SAID_BY.values())
    return {name: (sum(name in said for said in found), sum(said == {name} for said in found)) for name in names}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, default=Path("outputs/benchmarks/honesty"))
    parser.add_argument("--half", choices=("development", "held-out", "all"), default="all")
    parser.add_argument("--label", help="name of the rows (default: ours, sift, or what is left out)")
    parser.add_argument("--sift", action="store_true", help="COLMAP's SIFT instead of the network's matches")
    parser.add_argument("--disk", action="store_true", help="DISK + LightGlue instead of the network's matches")
    parser.add_argument("--without", choices=WITHOUT, help="leave a measure out")
    parser.add_argument("--only", default="", help="maps whose title has this in it")
    parser.add_argument("--map", nargs="+", metavar="TITLE", help="these maps instead of the suite's")
    parser.add_argument("--show", nargs="+", metavar="LABEL", help="print tables of these, run nothing")
    parser.add_argument("settings", nargs="*", help="key=value of the reconstruction")
    args = parser.parse_args()
    half = {"all": None, "development": False, "held-out": True}[args.half]
    suite = build_maps(args.work, half, args.only, args.map)
    if args.show:
        return table(list(suite), args.work, args.show)
    method: Method = "sift" if args.sift else "disk" if args.disk else "ours"
    label = args.label or (f"without_{args.without}" if args.without else method)
    maps = []
    for one in suite:
        maps.append(one)
        path = args.work / "rows" / label / f"{file_name(one)}.json"
        if path.is_file():
            continue
        with leave_out(args.without):
            row = run(one, method, args.work / "models" / label / file_name(one), args.work, args.settings)
        write_text(path, json.dumps(row, indent=1))
        print(f"{one.title:<42} {_cell(row)}", flush=True)
    table(maps, args.work, [label])


if __name__ == "__main__":
    main()
