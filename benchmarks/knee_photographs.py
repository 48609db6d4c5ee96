"""A run for `knee.py` from photographs with true cameras: matches of a map's pairs, and of queries with images near them.

    python benchmarks/knee_photographs.py datasets/benchmarks/indoor/kitchen outputs/knee/kitchen
    python benchmarks/knee_photographs.py datasets/benchmarks/scenes/castle-P19 outputs/knee/castle --query-every 3
    python benchmarks/knee.py outputs/knee/kitchen outputs/knee/castle

Images under `db/` are the map's; where there are none, every third image of the list is a query and the others are the map's.
Partners are the nearest cameras that look the same way, from the true poses: retrieval is measured elsewhere. `--take 2` leaves
every second image out.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from data import needed

from pdc_sfm.engine.pairing import nearest_pose_pairs
from pdc_sfm.engine.run import MatchingSettings, match_pairs
from pdc_sfm.evaluation.measures.poses import camera_center
from pdc_sfm.settings import load_settings
from pdc_sfm.store.pair_lists import write_pairs


def known_cameras(path: Path) -> dict[str, dict[str, Any]]:
    """Of a file with one camera an image, or one for all."""
    found = json.loads(path.read_text(encoding="utf-8"))
    if "camera" not in found:
        return found
    camera = found["camera"]
    shared = {key: camera[key] for key in ("width", "height")} | dict(zip(("fx", "fy", "cx", "cy"), camera["params"]))
    return {name: shared | pose for name, pose in found["images"].items()}


def split(names: list[str], every: int, take: int) -> dict[str, str]:
    """Image -> its name in the run."""
    if any(name.startswith("db/") for name in names):
        known = [name for name in names if name.startswith("db/")][::take]
        return {name: name for name in [*known, *[name for name in names if not name.startswith("db/")][::take]]}
    names = names[::take]
    return {name: f"{'query' if number % every == every // 2 else 'db'}/{name}" for number, name in enumerate(names)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scene", type=Path, help="a folder with images and cameras.json")
    parser.add_argument("run", type=Path, help="folder to write")
    parser.add_argument("--query-every", type=int, default=3)
    parser.add_argument("--take", type=int, default=1)
    parser.add_argument("--partners", type=int, default=4)
    args = parser.parse_args()
    known = known_cameras(needed(args.scene / "cameras.json"))
    renamed = split(sorted(known), args.query_every, args.take)
    images = args.run / "images"
    for name, new in renamed.items():
        (images / new).parent.mkdir(parents=True, exist_ok=True)
        if not (images / new).exists():
            (images / new).symlink_to((args.scene / "images" / name).resolve())
    cameras = {new: known[name] for name, new in renamed.items()}
    (args.run / "cameras.json").write_text(json.dumps(cameras), encoding="utf-8")
    poses = {new: np.c_[one["R_cam_from_world"], one["t_cam_from_world"]] for new, one in cameras.items()}
    mapped = {name: pose for name, pose in poses.items() if name.startswith("db/")}
    write_pairs(args.run / "pairs.txt", nearest_pose_pairs(mapped, args.partners, max_angle=60))
    retrieved = [(q, name) for q in poses if q not in mapped for name in _nearest(poses[q], mapped, args.partners)]
    write_pairs(args.run / "retrieval.txt", retrieved)
    for pairs, end in (("pairs.txt", ""), ("retrieval.txt", "-query")):
        settings = load_settings(MatchingSettings, None, ["device=cpu"])
        files = {key: args.run / f"{key}{end}.h5" for key in ("features", "matches")}
        match_pairs(images, args.run / pairs, args.run, settings, **files)
        print(
            f"{args.run.name}: {len((args.run / pairs).read_text().splitlines())} pairs of {pairs} matched", flush=True
        )


def _nearest(pose: np.ndarray, others: dict[str, np.ndarray], count: int) -> list[str]:
    """Those whose centers lie nearest, of cameras that look the same way within 60 degrees."""
    alike = {name: other for name, other in others.items() if pose[2, :3] @ other[2, :3] > 0.5} or others
    away = {name: np.linalg.norm(camera_center(other) - camera_center(pose)) for name, other in alike.items()}
    return sorted(away, key=lambda name: away[name])[:count]


if __name__ == "__main__":
    main()
