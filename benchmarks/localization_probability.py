"""Fit the probability of a query's pose on rendered scenes, and print how true it is on scenes that it did not see.

python benchmarks/localization_probability.py --fit town0 town5 room1000 court1000 --check town31 room1001 court1001

A name is a kind of scene (town, room, court) and a seed. `--photos` is a folder whose pictures cover rooms and courts. The
weights that it prints stand in `pdc_sfm/colmap/localization/probability.py`;
--as-it-is prints the table of those that stand there.
What was rendered, matched and mapped in `--work` is not done again.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from query_maps import QueryMap, town_maps, world_maps

from pdc_sfm.colmap.localization.evidence import PoseEvidence
from pdc_sfm.colmap.localization.localize_sfm import LocalizationSettings, localize
from pdc_sfm.colmap.localization.probability import DEGREES, PLACE, PRECISION, features, pose_probability
from pdc_sfm.demo.true_cameras import colmap_camera
from pdc_sfm.errors import UserError
from pdc_sfm.evaluation.measures.poses import pose_error
from pdc_sfm.images import list_images

ELSEWHERE = 10  # tolerances and times 2 degrees, beyond which a pose is at another place
RIDGE = 1.0
BINS = (0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 0.95, 1.0)


@dataclasses.dataclass(frozen=True)
class Sample:
    """A pose that was found, with its figures, and what is true of it."""

    scene: str
    title: str
    evidence: PoseEvidence
    right: bool
    place: bool  # whether it is at the right place at least


def samples(work: Path, scene: str, photos: list[Path], words: tuple[str, ...], unit: str) -> list[Sample]:
    """All poses that are found in the maps of a scene."""
    kind = scene.rstrip("0123456789")
    seed = int(scene.removeprefix(kind))
    maps: Iterator[QueryMap]
    if kind == "town":
        maps = town_maps(work, seed, words)
    else:
        other = work / f"{'court' if kind == 'room' else 'room'}{seed}" / "images/db/0003.jpg"
        maps = world_maps(work, kind, seed, photos, other if other.is_file() else None)
    return [sample for query_map in maps for sample in _judge(query_map, scene, unit)]


def _judge(query_map: QueryMap, scene: str, unit: str) -> Iterator[Sample]:
    cameras = {name: colmap_camera(camera) for name, camera in query_map.queries.items()}
    results = query_map.folder / f"results-{query_map.retrieval}"
    settings = LocalizationSettings(unit=unit, threads=1, prepend_camera_name=True)
    try:
        result = localize(query_map.model, cameras, *query_map.files(), results, settings)
    except UserError as error:  # no query has a match
        print(f"{query_map.folder}: {error}")
        return
    for name, judged in result.judged.items():
        metres, degrees = pose_error(np.asarray(result.poses[name].matrix()), query_map.queries[name].cam_from_world)
        off = max(metres / judged.evidence.tolerance, degrees / DEGREES)
        known = name not in query_map.nowhere
        yield Sample(scene, query_map.title, judged.evidence, known and off <= 1, known and off <= ELSEWHERE)


def fit(chosen: list[Sample], names: list[str], label: str) -> dict[str, float]:
    """Weights of a logistic function of features, by maximum likelihood with a ridge on standardized features."""
    from scipy.optimize import minimize

    x = np.array([[features(sample.evidence)[name] for name in names] for sample in chosen])
    y = np.array([getattr(sample, label) for sample in chosen], float)
    kinds = np.array([sample.scene.rstrip("0123456789") for sample in chosen])
    share = np.array([1 / np.sqrt((kinds == kind).sum()) for kind in kinds])  # the many towns shall not drown the rest
    share *= len(share) / share.sum()
    mean, scale = x[:, 1:].mean(0), x[:, 1:].std(0) + 1e-9
    z = np.c_[x[:, 0], (x[:, 1:] - mean) / scale]

    def loss(weights: np.ndarray) -> tuple[float, np.ndarray]:
        t = z @ weights
        slope = z.T @ (share * (1 / (1 + np.exp(-t)) - y))
        ridge = np.r_[0, weights[1:]]
        return float((share * (np.logaddexp(0, t) - y * t)).sum() + RIDGE / 2 * ridge @ ridge), slope + RIDGE * ridge

    found = minimize(loss, np.zeros(len(names)), jac=True).x
    weights = np.r_[found[0] - (found[1:] * mean / scale).sum(), found[1:] / scale]
    return {name: round(float(weight), 2) for name, weight in zip(names, weights)}


def table(chosen: list[Sample]) -> str:
    """Stated probability and share of right poses, by probability, then by kind of scene."""
    stated = np.array([pose_probability(sample.evidence).probability for sample in chosen])
    right = np.array([sample.right for sample in chosen])
    lines = [f"{'stated':<14} {'poses':>6} {'mean':>6} {'right':>6}"]

    def line(head: str, rows: np.ndarray) -> None:
        if rows.any():
            lines.append(f"{head:<14} {rows.sum():>6} {stated[rows].mean():>6.2f} {right[rows].mean():>6.2f}")

    for low, high in itertools.pairwise(BINS):
        line(f"{low:.2f} to {high:.2f}", (stated >= low) & (stated < high + (high == 1)))
    for kind in sorted({sample.scene.rstrip("0123456789") for sample in chosen}):
        line(kind, np.array([sample.scene.startswith(kind) for sample in chosen]))
    doubted = stated < LocalizationSettings().doubtful
    score = -np.log(np.where(right, stated, 1 - stated).clip(1e-6)).mean()
    base = right.mean()
    lines.append(
        f"{len(chosen)} poses, {(~right).sum()} wrong, {(doubted & ~right).sum()} of these doubted; {right.sum()} right, "
        f"{(doubted & right).sum()} of these doubted; log loss {score:.3f}, of their share alone "
        f"{-(base * np.log(base) + (1 - base) * np.log(1 - base)):.3f}"
    )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fit", nargs="+", default=[], metavar="SCENE")
    parser.add_argument("--check", nargs="+", default=[], metavar="SCENE")
    parser.add_argument("--unit", choices=("metres", "depth"), default="metres")
    parser.add_argument("--photos", type=Path, help="folder of pictures for rooms and courts; without, they are drawn")
    parser.add_argument("--work", type=Path, default=Path("outputs/benchmarks/localization_probability"))
    parser.add_argument("--town", action="append", default=[], metavar="key=value", help="settings of towns")
    parser.add_argument("--as-it-is", action="store_true", help="no fit: the table of the weights in use")
    args = parser.parse_args()
    photos = [args.photos / name for name in list_images(args.photos)] if args.photos else []
    args.work.mkdir(parents=True, exist_ok=True)

    def gather(scenes: list[str]) -> list[Sample]:
        return [found for scene in scenes for found in samples(args.work, scene, photos, tuple(args.town), args.unit)]

    if not args.as_it_is:
        known = gather(args.fit)
        place = fit(known, list(PLACE), "place")
        precision = fit([sample for sample in known if sample.place], list(PRECISION), "right")
        print(f"PLACE = {place}\nPRECISION = {precision}\n\nScenes of the fit")
        PLACE.update(place)
        PRECISION.update(precision)
        print(table(known))
    if args.check:
        print(f"\nOther scenes\n{table(gather(args.check))}")


if __name__ == "__main__":
    main()
