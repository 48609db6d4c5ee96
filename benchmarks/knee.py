"""How many keypoints an image help: errors of queries, points and time against `tracks.max_keypoints`.

    pdc-sfm demo --output outputs/demo
    python benchmarks/knee.py outputs/demo --keypoints 1024 2048 4096 8192 32768

Runs are folders of `pdc-sfm demo` (or of recall_over_seeds.py, or of knee_photographs.py). Their raw matches stay; keypoints, map
and poses are made anew with each number of keypoints, in one thread. Times are processor seconds. `--picture` draws the curves.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import time
from pathlib import Path

import numpy as np
from mapping import StoredMatches

from pdc_sfm.colmap.io.cameras import make_camera
from pdc_sfm.colmap.io.posed_model import posed_model
from pdc_sfm.colmap.localization.localize_sfm import LocalizationSettings, localize
from pdc_sfm.colmap.mapping.triangulation import TriangulationSettings, triangulate
from pdc_sfm.engine.run import MatchingSettings, match_pairs
from pdc_sfm.evaluation.measures.poses import camera_center, rotation_angle
from pdc_sfm.settings import load_settings

INTRINSICS = ("fx", "fy", "cx", "cy")


@dataclasses.dataclass(frozen=True)
class Row:
    """One run with so many keypoints an image."""

    run: str
    keypoints: int
    points: int
    triangulate: float  # seconds
    localize: float  # seconds a query
    metres: list[float]  # of each query; infinite if it has no pose
    degrees: list[float]

    def __str__(self) -> str:
        right = np.mean([(m < 0.25) & (d < 2) for m, d in zip(self.metres, self.degrees)])
        return (
            f"{self.run:<12} {self.keypoints:>9} {self.points:>9,} {self.triangulate:>11.1f} {self.localize:>9.2f} "
            f"{100 * np.median(self.metres):>9.1f} cm {np.median(self.degrees):>6.3f}° {100 * right:>11.1f} %"
            f"   {'-'.join(f'{100 * value:.1f}' for value in np.quantile(self.metres, (0.25, 0.75)))} cm"
        )


HEADER = (
    f"{'run':<12} {'keypoints':>9} {'points':>9} {'triangulate':>11} {'s a query':>9} {'median error':>21} "
    f"{'0.25 m, 2°':>13}   quarters"
)


def measure(run: Path, keypoints: int, work: Path) -> Row:
    """Keypoints, map and poses of a run from its raw matches."""
    known, images = json.loads((run / "cameras.json").read_text(encoding="utf-8")), run / "images"
    poses = {name: np.c_[one["R_cam_from_world"], one["t_cam_from_world"]] for name, one in known.items()}
    cameras = {
        name: make_camera("PINHOLE", *(one[key] for key in ("width", "height")), [one[key] for key in INTRINSICS])
        for name, one in known.items()
    }
    database = [name for name in cameras if name.startswith("db/")]
    queries = [name for name in cameras if name not in database]
    truth = posed_model({name: poses[name] for name in database}, {name: cameras[name] for name in database})
    features, matches, sfm = work / "features.h5", work / "matches.h5", work / "sfm"
    settings = load_settings(MatchingSettings, None, [f"tracks.max_keypoints={keypoints}"])
    given = {"matcher": StoredMatches(run / "matches.raw"), "overwrite": "all"}
    match_pairs(images, run / "pairs.txt", work, settings, features=features, matches=matches, **given)
    start = time.process_time()
    single = TriangulationSettings(threads=1)
    made = triangulate(truth, images, run / "pairs.txt", features, matches, sfm, single)
    between = time.process_time()
    settings = load_settings(MatchingSettings, None, ["tracks.max_keypoints=null"])
    files = {"features": work / "features-query.h5", "matches": work / "matches-query.h5", "features_ref": [features]}
    given["matcher"] = StoredMatches(run / "matches-query.raw")
    match_pairs(images, run / "retrieval.txt", work, settings, **files, **given)
    triangulated, start = between - start, time.process_time()
    found = localize(
        sfm,
        {name: cameras[name] for name in queries},
        run / "retrieval.txt",
        files["features"],
        files["matches"],
        work / "results.txt",
        LocalizationSettings(threads=1, prepend_camera_name=True),
    )
    seconds = (time.process_time() - start) / len(queries)
    metres, degrees = [], []
    for name in queries:
        pose = np.asarray(found.poses[name].matrix()) if name in found.poses else None
        true = poses[name]
        metres.append(
            float("inf") if pose is None else float(np.linalg.norm(camera_center(pose) - camera_center(true)))
        )
        degrees.append(180.0 if pose is None else float(rotation_angle(pose[:, :3], true[:, :3])))
    return Row(run.name, keypoints, made.model.num_points3D(), triangulated, seconds, metres, degrees)


def draw(rows: list[Row], path: Path) -> None:
    """Errors stay, times grow."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    figure, (errors, times) = plt.subplots(1, 2, figsize=(10, 3.4), layout="constrained")
    for run in dict.fromkeys(row.run for row in rows):
        some = sorted((row for row in rows if row.run == run), key=lambda row: row.keypoints)
        count = [row.keypoints for row in some]
        errors.plot(count, [100 * np.median(row.metres) for row in some], "o-", label=run)
        (line,) = times.plot(count, [row.triangulate for row in some], "o-", label=run)
        times.plot(count, [row.localize for row in some], "s--", color=line.get_color())
    for axes, title in ((errors, "median error of queries, cm"), (times, "processor seconds (dashed: a query)")):
        axes.set(xscale="log", xlabel="keypoints an image", title=title)
        axes.set_yscale("log")
    figure.legend(*errors.get_legend_handles_labels(), fontsize="small", loc="outside right upper")
    figure.savefig(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path, nargs="*", metavar="RUN", help="folders of `pdc-sfm demo`")
    parser.add_argument("--kept", type=Path, nargs="*", default=[], help="files knee.json of earlier runs, shown again")
    parser.add_argument("--keypoints", type=int, nargs="+", default=[1024, 2048, 4096, 8192, 32768])
    parser.add_argument("--work", type=Path, default=Path("outputs/benchmarks/knee"))
    parser.add_argument("--picture", type=Path, help="draw the curves to this file")
    args = parser.parse_args()
    print(HEADER)
    rows = [Row(**row) for path in args.kept for row in json.loads(path.read_text(encoding="utf-8"))]
    for row in rows:
        print(row)
    for run in args.runs:
        for keypoints in args.keypoints:
            work = args.work / f"{run.name}_{keypoints}"
            work.mkdir(parents=True, exist_ok=True)
            rows.append(measure(run, keypoints, work))
            print(rows[-1], flush=True)
    if args.runs:
        kept = json.dumps([dataclasses.asdict(row) for row in rows])
        (args.work / "knee.json").write_text(kept, encoding="utf-8")
    if args.picture:
        draw(rows, args.picture)


if __name__ == "__main__":
    main()
