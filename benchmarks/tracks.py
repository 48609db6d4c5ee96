"""Tracks by the flow against hloc's cells, on the built-in scene whose true depth and cameras are known.

  pdc-sfm scene --output outputs/square
  python benchmarks/tracks.py --scene outputs/square                   matches from true depth, with noise
  python benchmarks/tracks.py --scene outputs/square --network         matches of the built-in model

Points are triangulated with the true poses; their error is the distance to the true surface along the ray, in percent of
the depth. Then the day queries are localized in each map.
"""

from __future__ import annotations

import argparse
import itertools
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pycolmap
from data import needed
from scipy.ndimage import gaussian_filter

from pdc_sfm.colmap.io.cameras import make_camera
from pdc_sfm.colmap.io.models import load_model
from pdc_sfm.colmap.localization.localize_sfm import localize
from pdc_sfm.colmap.mapping.triangulation import TriangulationSettings, triangulate
from pdc_sfm.engine.run import MatchingSettings, match_pairs
from pdc_sfm.evaluation.measures.poses import pose_error
from pdc_sfm.matches.types import RawMatches
from pdc_sfm.scenes import Camera, read_cameras, read_depth
from pdc_sfm.scenes.render.flow import sight
from pdc_sfm.settings import load_settings
from pdc_sfm.store.journal import RawStore, open_raw_store
from pdc_sfm.store.pair_lists import write_pairs
from pdc_sfm.tracks.assemble import Outputs, aggregate
from pdc_sfm.tracks.settings import TrackSettings

STEP = 4  # pixels between matches
MIN_OVERLAP = 0.12  # of both images, for a pair to be matched
SIZES = [("hloc", 2, 8), ("hloc", 1, 1), ("flow", 2, 8), ("flow", 2, 2)]  # max_error, cell_size
RULES = {f"{rule} {error}, {cell}": TrackSettings(rule, error, cell, 8192) for rule, error, cell in SIZES}


class Scene:
    def __init__(self, folder: Path):
        self.folder = folder
        self.cameras = read_cameras(folder)
        self.depth = {name: read_depth(folder / "depth" / name)[0] for name in self.cameras}
        self.map = [name for name in self.cameras if name.startswith("db/")]
        self.queries = [name for name in self.cameras if name.startswith("day/")]

    def pairs(self) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
        """Pairs of the map, and of queries with the map, that overlap."""
        map_pairs = itertools.combinations(self.map, 2)
        query_pairs = itertools.product(self.queries, self.map)
        return tuple([pair for pair in some if self.overlap(*pair) > MIN_OVERLAP] for some in (map_pairs, query_pairs))

    def overlap(self, first: str, second: str) -> float:
        return min(self.true_flow(*pair)[2].mean() for pair in ((first, second), (second, first)))

    def true_flow(self, reference: str, query: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """A grid of the reference (h, w, 2), where it lies in the query, and what is seen there (h, w)."""
        camera = self.cameras[reference]
        grid = camera.pixel_grid()[STEP // 2 :: STEP, STEP // 2 :: STEP]
        depth = self.depth[reference][STEP // 2 :: STEP, STEP // 2 :: STEP]
        points = camera.lift(grid, np.where(depth > 0, depth, 1)).reshape(-1, 3)
        there, _, seen = sight(self.cameras[query], self.depth[query], points)
        return grid, there.reshape(grid.shape), seen.reshape(depth.shape) & (depth > 0)


def noisy_matches(scene: Scene, first: str, second: str, random: np.random.Generator) -> RawMatches:
    """Both directions with smooth errors of varying size, white noise, and some wrong matches."""
    halves = []
    for reference, query in ((first, second), (second, first)):
        grid, there, seen = scene.true_flow(reference, query)
        size = 0.5 * np.exp(0.6 * _unit(gaussian_filter(random.normal(size=seen.shape), 8)))
        smooth = [_unit(gaussian_filter(random.normal(size=seen.shape), 2)) for _ in "xy"]
        there = there + np.stack(smooth, -1) * size[..., None] + random.normal(0, 0.3, there.shape)
        score = (1 - np.exp(-np.sqrt(2) / np.hypot(size, 0.3).clip(1))) ** 2  # P_1 of a Laplace distribution
        wrong = random.random(seen.shape) < 0.02
        there[wrong] += random.normal(0, 15, (int(wrong.sum()), 2))
        inside = ((there >= 0) & (there <= np.subtract(scene.cameras[query].size, 1))).all(-1)
        kept = (seen | wrong) & inside & (score > 0.1)
        halves.append((grid[kept], there[kept], score[kept]))
    (a, b, s), (d, c, t) = halves
    return RawMatches(np.concatenate((a, c)), np.concatenate((b, d)), np.concatenate((s, t)))


def _unit(values: np.ndarray) -> np.ndarray:
    return values / values.std()


def simulate(scene: Scene, pairs: list[tuple[str, str]], folder: Path, seed: int) -> RawStore:
    random = np.random.default_rng(seed)
    with open_raw_store(folder, {}, overwrite=True) as store:
        for pair in pairs:
            sizes = tuple(scene.cameras[name].size for name in pair)
            store.append(pair, noisy_matches(scene, *pair, random), sizes)
    return RawStore(folder)


def match(scene: Scene, pairs: list[tuple[str, str]], folder: Path, settings: MatchingSettings) -> RawStore:
    list_path = folder.with_suffix(".txt")
    write_pairs(list_path, pairs)
    return RawStore(match_pairs(scene.folder / "images", list_path, folder, settings).raw)


def evaluate(scene: Scene, label: str, tracks: TrackSettings, stores: list[RawStore], work: Path) -> None:
    pairs, query_pairs = (store.pairs() for store in stores)
    start = time.process_time()
    outputs = Outputs(work / "features.h5", work / "matches.h5", {}, tracks)
    summary = aggregate(stores[0], pairs, outputs)
    seconds = time.process_time() - start
    write_pairs(work / "pairs.txt", pairs)
    write_model(work / "reference", {name: scene.cameras[name] for name in scene.map})
    (work / "images").mkdir()
    triangulate(
        work / "reference", work / "images", work / "pairs.txt", outputs.features, outputs.matches, work / "model",
        TriangulationSettings(threads=1, refine_keypoints=False),  # the tracks themselves are compared
    )  # fmt: skip
    model = load_model(work / "model")
    lengths = np.array([point.track.length() for point in model.points3D.values()])
    errors = 100 * surface_errors(scene, model)
    print(
        f"{label:10} {summary.keypoints / summary.images:6.0f} {len(lengths):7} {lengths.sum():7} {lengths.mean():6.2f} "
        f"{(lengths >= 3).mean():6.0%} {model.compute_mean_reprojection_error():7.2f} {np.median(errors):7.3f} "
        f"{(errors < 0.5).sum():7} {seconds:6.1f}   ",
        end="",
    )
    exact = TrackSettings(tracks.rule, tracks.max_error, tracks.cell_size, None)
    found = Outputs(work / "features.h5", work / "queries.h5", {}, exact, (work / "features.h5",))
    aggregate(stores[1], query_pairs, found)
    write_pairs(work / "queries.txt", query_pairs)
    cameras = {name: colmap_camera(scene.cameras[name]) for name in scene.queries}
    located = localize(model, cameras, work / "queries.txt", found.features, found.matches, work / "poses.txt")
    for name, pose in located.poses.items():
        distance, angle = pose_error(np.asarray(pose.matrix()), scene.cameras[name].cam_from_world)
        print(f"  {100 * distance:.2f} cm {angle:.3f}°", end="")
    print(f"  failed: {len(located.failed)}" if located.failed else "")


def surface_errors(scene: Scene, model: pycolmap.Reconstruction) -> np.ndarray:
    """Of each point the median over its images of |depth - true depth| / true depth."""
    points = list(model.points3D.values())
    places = np.array([point.xyz for point in points])
    errors: list[list[float]] = [[] for _ in points]
    seen_by: dict[int, list[int]] = {}
    for number, point in enumerate(points):
        for element in point.track.elements:
            seen_by.setdefault(element.image_id, []).append(number)
    for image_id, numbers in seen_by.items():
        name = model.image(image_id).name
        pixels, depth = scene.cameras[name].project(places[numbers])
        limits = np.subtract(scene.cameras[name].size, 1)
        x, y = np.rint(pixels).clip(0, limits).astype(int).T
        true = scene.depth[name][y, x]
        for number, error in zip(numbers, np.where(true > 0, np.abs(depth - true) / np.maximum(true, 1e-6), 1.0)):
            errors[number].append(error)
    return np.array([np.median(some) for some in errors])


def colmap_camera(camera: Camera) -> pycolmap.Camera:
    center = (camera.width / 2, camera.height / 2)
    return make_camera("SIMPLE_PINHOLE", camera.width, camera.height, [camera.focal, *center])


def write_model(folder: Path, cameras: dict[str, Camera]) -> None:
    """Posed cameras without points, as COLMAP's text."""
    folder.mkdir(parents=True)
    (folder / "points3D.txt").write_text("")

    def lines() -> Iterator[tuple[str, str]]:
        for number, (name, camera) in enumerate(cameras.items(), 1):
            quaternion = pycolmap.Rotation3d(camera.cam_from_world[:, :3]).quat[[3, 0, 1, 2]]
            pose = " ".join(str(value) for value in (*quaternion, *camera.cam_from_world[:, 3]))
            size = f"{camera.width} {camera.height} {camera.focal} {camera.width / 2} {camera.height / 2}"
            yield f"{number} SIMPLE_PINHOLE {size}\n", f"{number} {pose} {number} {name}\n\n"

    camera_lines, image_lines = zip(*lines())
    (folder / "cameras.txt").write_text("".join(camera_lines))
    (folder / "images.txt").write_text("".join(image_lines))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scene", type=Path, required=True, help="folder of `pdc-sfm scene`")
    parser.add_argument("--work", type=Path, default=Path("outputs/benchmarks/tracks"))
    parser.add_argument("--network", action="store_true", help="match with the network instead of simulating it")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("settings", nargs="*", metavar="key=value", help="settings of matching, for --network")
    args = parser.parse_args()
    scene = Scene(needed(args.scene))
    raw = args.work / ("network" if args.network else "simulated")
    stores = []
    for name, pairs in zip(("map", "queries"), scene.pairs()):
        if args.network:
            stores.append(match(scene, pairs, raw / name, load_settings(MatchingSettings, None, args.settings)))
        else:
            stores.append(simulate(scene, pairs, raw / name, args.seed))
    print(f"{len(scene.map)} images, {len(stores[0])} pairs; {len(scene.queries)} queries, {len(stores[1])} pairs")
    print("rule       keypts  points  observ length    >=3  reproj  err. % <0.5 %  cpu s   queries")
    for label, tracks in RULES.items():
        work = args.work / "rule"
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(parents=True)
        evaluate(scene, label, tracks, stores, work)


if __name__ == "__main__":
    main()
