"""Queries matched with images of the map until their poses are sure, beside all images that were retrieved for them.

    python benchmarks/rounds.py outputs/demo [--top 20] [--sure-only] [key=value of pdc-sfm localize ...]

The folder is one of `pdc-sfm demo` (or has its sfm/, images/, queries.txt and cameras.json). Of each query is printed with how
many images it was matched, the processor's seconds of that, the probability of a right pose and its error; then the recall.
Codes of the map are made before.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import tempfile
import time
from pathlib import Path

import numpy as np

from pdc_sfm.client.answers import Localization
from pdc_sfm.colmap.io.cameras import read_camera_list
from pdc_sfm.commands.shared.query_settings import by_prefix, load_query_settings
from pdc_sfm.demo.queries import open_map
from pdc_sfm.evaluation.measures.poses import pose_error
from pdc_sfm.images import decode_photograph
from pdc_sfm.serve.resident_map import QuerySettings, ResidentMap, Where
from pdc_sfm.weights import load_network

THRESHOLDS = ((0.25, 2.0), (0.5, 5.0), (5.0, 10.0))  # metres and degrees, of visuallocalization.net


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--top", type=int, default=20)
    parser.add_argument("--sure-only", action="store_true", help="leave out all images")
    parser.add_argument("settings", nargs="*", help="key=value, of pdc-sfm localize")
    args = parser.parse_args()
    words = by_prefix(["match.device=cpu", *args.settings], ("match", "retrieve"))
    queries = QuerySettings(*load_query_settings(None, words), top=args.top)
    everything = dataclasses.replace(queries, localization=dataclasses.replace(queries.localization, sure=1.0))
    mapped = open_map(args.folder / "sfm", args.folder / "images", args.folder / "features.h5")
    known, cameras = (
        json.loads((args.folder / "cameras.json").read_text()),
        read_camera_list(args.folder / "queries.txt"),
    )
    network = load_network(queries.matching.weights, "cpu")
    ways = {"until sure": queries} | ({} if args.sure_only else {"all": everything})
    errors: list[list[tuple[float, float]]] = []
    times: list[list[float]] = []
    print(
        f"{'':<16} {' '.join(f'{way:^35}' for way in ways)}\n{'query':<16}"
        + len(ways) * f" {'images':>6} {'CPU s':>6} {'right':>6} {'cm':>6} {'deg':>6} "
    )
    with tempfile.TemporaryDirectory() as codes:
        held = ResidentMap(mapped, Path(codes), everything, network)
        first = next(iter(cameras))
        held.settings = dataclasses.replace(everything, top=len(held.ids))  # so that all codes of the map are made
        localize(held, args.folder / "images" / first, cameras[first])
        for name, camera in cameras.items():
            truth = np.c_[known[name]["R_cam_from_world"], known[name]["t_cam_from_world"]]
            row = f"{name:<16}"
            errors.append([])
            times.append([])
            for held.settings in ways.values():
                seconds, found = localize(held, args.folder / "images" / name, camera)
                off = pose_error(np.array(found.pose.cam_from_world), truth) if found.pose else (np.inf, 180.0)
                errors[-1].append(off)
                times[-1].append(seconds)
                row += f" {len(found.images):>6} {seconds:>6.2f} {found.probability or 0:>6.2f}"
                row += f" {100 * off[0]:>6.1f} {off[1]:>6.2f} "
            print(row, flush=True)
    for number, said in enumerate(ways):
        off, taken = np.array(errors)[:, number], np.array(times)[:, number]
        shares = [100 * np.mean((off[:, 0] <= metres) & (off[:, 1] <= degrees)) for metres, degrees in THRESHOLDS]
        print(
            f"{said}: {' / '.join(f'{share:.1f}' for share in shares)} % within 0.25 m 2 deg / 0.5 m 5 deg / 5 m 10 deg;"
            f" {np.median(taken):.2f} s in the median, {np.percentile(taken, 95):.2f} s at 95 %"
        )


def localize(held: ResidentMap, path: Path, camera: object) -> tuple[float, Localization]:
    content, begun = path.read_bytes(), time.process_time()
    found = held.localize(decode_photograph(content, path.name), content, Where(camera), lambda *_: None)
    return time.process_time() - begun, found


if __name__ == "__main__":
    main()
