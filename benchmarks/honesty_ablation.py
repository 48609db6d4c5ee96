"""What each measure of a map's verdict is worth: one map, judged with all of them, without each, and without any.

    python benchmarks/honesty_ablation.py --map TITLE ...

Maps are those of `honesty.py`, matched there or here, mapped once with nothing taken out, and then checked each way in a second.
`stillness` and `drift` change the map itself: `honesty.py --without` maps again.
"""

from __future__ import annotations

import argparse
import contextlib
from pathlib import Path
from typing import Any

import numpy as np
from honesty import file_name, leave_out, match, summary
from honesty_maps import Map, build_maps
from honesty_truth import count_right, median_depths

from pdc_sfm.colmap.io.models import SUMMARY, ReconstructionError, load_model, model_poses, summarize
from pdc_sfm.colmap.mapping.intrinsics import used_cameras
from pdc_sfm.colmap.mapping.mappers import read_cameras
from pdc_sfm.colmap.mapping.parts import check_parts
from pdc_sfm.colmap.mapping.reconstruction import ReconstructionSettings, reconstruct
from pdc_sfm.colmap.mapping.verdict import join_verdicts, judge

MEASURES = ("cells", "missing", "contradictions", "fit", "places", "repeats")  # of the verdict on links alone


def map_whole(one: Map, work: Path) -> Path | None:
    """The folder of a map of which nothing was taken out; None if there is no map."""
    folder = work / "models" / "whole" / file_name(one)
    if not (folder / SUMMARY).is_file():
        settings = ReconstructionSettings(camera=one.camera, threads=1, split_weak_links=False)
        try:
            reconstruct(work / "pool", *match(one, work), folder, settings)
        except ReconstructionError:
            return None
    return folder


def check(one: Map, folder: Path, images: Path, without: tuple[str, ...]) -> dict[str, Any]:
    """A row of `honesty.py` for a stored map."""
    whole, database = load_model(folder), folder / "database.db"
    cameras = read_cameras(database)
    for camera_id, camera in whole.cameras.items():  # a model's files do not say it
        camera.has_prior_focal_length = cameras[camera_id].has_prior_focal_length
    same = all(np.array_equal(whole.camera(i).params, cameras[i].params) for i in used_cameras(whole))
    with contextlib.ExitStack() as measures:
        for measure in without:
            measures.enter_context(leave_out(measure))
        (model, *_), links, _ = check_parts(whole, database, images)
        verdict = join_verdicts(
            judge(model, summarize(model, len(one.names)), cameras, one.camera.refine and same), links
        )
    poses = model_poses(model)
    row = {"registered": len(poses), "verdict": verdict.kind, "says": list(verdict.reasons)}
    row |= count_right(poses, median_depths(model), one)
    if verdict.parts:
        row["wrong_before_it_fell_apart"] = count_right(model_poses(whole), median_depths(whole), one)["wrong"]
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, default=Path("outputs/benchmarks/honesty"))
    parser.add_argument("--map", nargs="+", metavar="TITLE", help="these maps instead of the suite's")
    args = parser.parse_args()
    maps = [one for one in build_maps(args.work, titles=args.map) if one.has_truth]
    folders = [(one, folder) for one in maps if (folder := map_whole(one, args.work))]
    for without in ((), *((measure,) for measure in MEASURES), MEASURES):
        name = "all measures" if not without else "none of them" if without == MEASURES else f"without {without[0]}"
        rows = [(one, check(one, folder, args.work / "pool", without)) for one, folder in folders]
        print(f"{name:<24} {summary(rows)}", flush=True)
        for one, row in rows:
            if row["wrong"] and row["verdict"] == "consistent":
                print(f"    silently wrong: {one.title}, {row['registered']} registered, {row['right']} right")


if __name__ == "__main__":
    main()
