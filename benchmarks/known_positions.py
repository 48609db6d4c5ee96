"""Known camera positions in a rendered town: how far off its cameras are without them, with GPS, and with wrong ones.

    pdc-sfm scene --output outputs/town
    pdc-sfm map outputs/town/images/db --output outputs/town_map
    python benchmarks/known_positions.py outputs/town outputs/town_map

The same matches are mapped each time. Without positions a map has no metres: it is laid over the truth by a similarity. With
them nothing is aligned: errors are those of the coordinates that a user gets, beside those after such a similarity, which is what
is left of the map's own shape. GPS errs independently from image to image, the hardest case for it, once with each seed.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import NamedTuple

import numpy as np

from pdc_sfm.colmap.io.models import load_model, model_poses
from pdc_sfm.colmap.mapping.reconstruction import reconstruct
from pdc_sfm.evaluation.measures.poses import camera_center, reconstruction_errors
from pdc_sfm.store.positions import Positions


class Case(NamedTuple):
    """How positions err: metres sideways and up, and what is wrong with them altogether."""

    name: str
    across: float
    up: float
    fault: str = ""


CASES = (
    Case("surveyed, 3 cm", 0.03, 0.03),
    Case("GPS, 1 m, 2 m in height", 1.0, 2.0),
    Case("GPS, 3 m, 6 m in height", 3.0, 6.0),
    Case("GPS, 3 m; one image 200 m off", 3.0, 6.0, "wild"),
    Case("GPS, 1 m; two axes exchanged", 1.0, 2.0, "exchanged"),
)
AWAY = 200.0  # metres: of the wild one


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scene", type=Path, help="folder of `pdc-sfm scene`")
    parser.add_argument("run", type=Path, help="folder of `pdc-sfm map` of its database images")
    parser.add_argument("--work", type=Path, default=Path("outputs/benchmarks/positions"))
    parser.add_argument("--seeds", type=int, default=1, help="of the errors")
    args = parser.parse_args()
    cameras = json.loads((args.scene / "cameras.json").read_text(encoding="utf-8"))
    true = {
        name.removeprefix("db/"): np.c_[camera["R_cam_from_world"], camera["t_cam_from_world"]]
        for name, camera in cameras.items()
        if name.startswith("db/")
    }
    print(f"{'':<32} {'images':>7} {'mean error':>11} {'worst':>8} {'turn':>9} {'aligned':>9}  what is said")
    _map(args.run, args.work, "no positions", None, true)
    for seed in range(args.seeds):
        for case in CASES:
            _map(args.run, args.work, f"{case.name}, seed {seed}", given(true, case, seed), true)


def given(true: dict[str, np.ndarray], case: Case, seed: int) -> Positions:
    """Positions in the town's own frame (x, y, z up), with the errors of the case; none says how large they are."""
    rng = np.random.default_rng((seed, round(1000 * case.across)))
    places = {
        name: camera_center(true[name]) + rng.normal(0, (case.across, case.across, case.up)) for name in sorted(true)
    }
    if case.fault == "wild":
        name = sorted(true)[len(true) // 2]
        places[name] = places[name] + (AWAY, 0, 0)
    if case.fault == "exchanged":
        places = {name: place[[1, 0, 2]] for name, place in places.items()}
    return Positions({name: tuple(map(float, place)) for name, place in places.items()}, {}, False, case.name)


def _map(run: Path, work: Path, what: str, positions: Positions | None, true: dict[str, np.ndarray]) -> None:
    output = work / what.replace(" ", "_").replace(",", "").replace(";", "")
    if not (output / "summary.json").is_file():
        lists = run / "pairs.txt", run / "features.h5", run / "matches.h5"
        reconstruct(run / "images", *lists, output, positions=positions)
    poses = model_poses(load_model(output))
    summary = json.loads((output / "summary.json").read_text(encoding="utf-8"))
    aligned, frame = reconstruction_errors(poses, true), _frame(output)
    names = sorted(poses.keys() & true.keys())
    metres, degrees = aligned.distances, aligned.degrees
    if frame is not None:
        found = np.stack([camera_center(poses[name]) for name in names]) + np.asarray(frame.get("offset") or 0.0)
        metres = np.linalg.norm(found - np.stack([camera_center(true[name]) for name in names]), axis=1)
    said = f"scale to {frame['scale_sigma']:.1%}" if frame is not None else "no metres"
    doubts = [text for text in summary.get("doubts", []) + summary.get("remarks", []) if "position" in text]
    print(
        f"{what:<32} {f'{len(names)}/{len(true)}':>7} {metres.mean():>9.3f} m {metres.max():>6.2f} m {degrees.mean():>5.2f} deg "
        f"{aligned.distances.mean():>7.3f} m  {'; '.join([said, *doubts])}"
    )


def _frame(output: Path) -> dict | None:
    path = output / "frame.json"
    frame = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None
    return frame if frame is not None and frame["unit"] == "metres" else None


if __name__ == "__main__":
    main()
