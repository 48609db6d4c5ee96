"""Do maps say so when they are wrong? Over forty maps with true cameras: what is registered, what of it is right, what is said.

    python benchmarks/honesty.py --work outputs/benchmarks/honesty --half development

Towns, rooms, things on turntables (some of which look the same from several sides), real photographs, all and thinned out,
with images upside down, two scenes mixed, images twice and images of elsewhere. An image is right if it stands within
5 degrees of its truth, and within half of the cameras' extent, once the map is laid over the true cameras by its largest
part that agrees with them. A map is silently wrong if an image is wrong and the verdict is "consistent"; a false alarm is a
map that is right and is not called consistent. Thresholds are looked at on the development half alone; `--half held-out` reports.

Pairs are matched once, into WORK/matches; `--label` names a set of rows, in WORK/rows, and what is there is not run again.
`--sift` gives the same rows for COLMAP's SIFT, `--show LABEL ...` prints tables of what was run. Words like
`min_support_ratio=0` are settings of `pdc-sfm reconstruct`.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import shutil
import time
from pathlib import Path
from typing import Any

from honesty_maps import Map, build_maps
from honesty_truth import count_right
from mapping import StoredMatches
from sift_baseline import reconstruct_sift

from pdc_sfm.colmap.io.models import MappingResult, ReconstructionError, model_poses
from pdc_sfm.colmap.mapping.reconstruction import ReconstructionSettings, reconstruct
from pdc_sfm.engine.run import MatchingSettings, match_pairs
from pdc_sfm.files import write_text
from pdc_sfm.settings import load_settings
from pdc_sfm.store.pair_lists import write_pairs

MATCHING = ["dense.min_side=null", "device=cpu"]
TRACKS = ["tracks.cell_size=4", "tracks.max_keypoints=2048"]  # enough for small images, and a map takes seconds


def match_all(maps: list[Map], work: Path) -> Path:
    """The raw matches of all pairs of all maps."""
    pairs = list(dict.fromkeys(tuple(sorted(pair)) for one in maps for pair in one.pairs))
    write_pairs(work / "pairs.txt", pairs)
    settings = load_settings(MatchingSettings, None, MATCHING)
    return match_pairs(work / "pairs.txt", work / "pool", work / "matches", settings, overwrite="tracks").raw


def assemble(one: Map, raw: Path, work: Path) -> tuple[Path, Path, Path]:
    """Pair list, features and matches of one map, from the matches of all."""
    folder = work / "maps" / file_name(one)
    if not (folder / "done").is_file():
        folder.mkdir(parents=True, exist_ok=True)
        write_pairs(folder / "pairs.txt", one.pairs)
        settings = load_settings(MatchingSettings, None, [*MATCHING, *TRACKS])
        given = {"matcher": StoredMatches(raw), "overwrite": "all"}
        result = match_pairs(folder / "pairs.txt", work / "pool", folder, settings, **given)
        write_text(folder / "done", json.dumps([str(result.features), str(result.matches)]))
    features, matches = json.loads((folder / "done").read_text())
    return folder / "pairs.txt", Path(features), Path(matches)


def file_name(one: Map) -> str:
    return one.title.replace(" ", "_").replace("/", "-").replace(",", "")


def run(one: Map, files: tuple[Path, Path, Path] | None, output: Path, pool: Path, words: list[str]) -> dict[str, Any]:
    """One row: map, compare with the truth, keep what the map says of itself. `files` None: SIFT."""
    settings = load_settings(ReconstructionSettings, None, words)
    settings = dataclasses.replace(settings, camera=one.camera, threads=1)
    shutil.rmtree(output, ignore_errors=True)
    start = time.process_time()
    try:
        if files is None:
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
    row = {"images": len(one.names), "registered": len(poses), "seconds": seconds, **_verdict(result)}
    row |= count_right(poses, one) if one.has_truth else {"right": None, "wrong": []}
    return row


def _verdict(result: MappingResult) -> dict[str, Any]:
    return {"verdict": result.verdict.kind, "says": list(result.verdict.reasons)}


def table(maps: list[Map], work: Path, labels: list[str]) -> None:
    """Rows of each label side by side, and what they come to."""
    rows = {label: {m.title: _read(work, label, m) for m in maps} for label in labels}
    print(f"{'map':<28} {'images':>6} " + " ".join(f"| {label:<30}" for label in labels))
    for one in maps:
        cells = [_cell(rows[label][one.title]) for label in labels]
        print(f"{one.title:<28} {len(one.names):>6} " + " ".join(f"| {cell:<30}" for cell in cells))
    for label in labels:
        print(f"{label}: {summary([(m, rows[label][m.title]) for m in maps])}")


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
    alarms = sum(row["verdict"] != "consistent" for row in sound)
    return (
        f"{len(done)} maps: {len(wrong)} wrong, {silent} silently; {alarms} false alarms on {len(sound)} right maps; "
        f"{sum(r['registered'] for r in known)} registered, {sum(r['right'] for r in known)} right; "
        f"{sum(row.get('seconds', 0) for _, row in done):.0f} s of CPU"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, default=Path("outputs/benchmarks/honesty"))
    parser.add_argument("--half", choices=("development", "held-out", "all"), default="all")
    parser.add_argument("--label", default="ours", help="name of the rows")
    parser.add_argument("--sift", action="store_true", help="COLMAP's SIFT instead of the network's matches")
    parser.add_argument("--only", default="", help="maps whose title has this in it")
    parser.add_argument("--show", nargs="+", metavar="LABEL", help="print tables of these, run nothing")
    parser.add_argument("settings", nargs="*", help="key=value of the reconstruction")
    args = parser.parse_args()
    every = build_maps(args.work)
    maps = [m for m in every if args.half == "all" or m.held_out == (args.half == "held-out")]
    maps = [m for m in maps if args.only in m.title]
    if args.show:
        return table(maps, args.work, args.show)
    raw = None if args.sift else match_all(every, args.work)
    for one in maps:
        path = args.work / "rows" / args.label / f"{file_name(one)}.json"
        if path.is_file():
            continue
        files = None if raw is None else assemble(one, raw, args.work)
        output = args.work / "models" / args.label / file_name(one)
        row = run(one, files, output, args.work / "pool", args.settings)
        write_text(path, json.dumps(row, indent=1))
        print(f"{one.title:<28} {_cell(row)}", flush=True)
    table(maps, args.work, [args.label])


if __name__ == "__main__":
    main()
