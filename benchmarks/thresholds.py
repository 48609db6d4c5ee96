"""What thresholds of confidence do in whole runs: cameras and points of small scenes with known cameras.

  pdc-sfm scene --output outputs/town seed=901 database=10 day_queries=3 night_queries=3
  python benchmarks/thresholds.py --images outputs/town/images --cameras outputs/town/cameras.json
  python benchmarks/thresholds.py --images fountain/images --cameras fountain/cameras.json --every 2

Pairs are matched once, with select.threshold=.05. Then, for each value: tracks are made of matches above it
(tracks.min_score) and cameras are found; cameras are found by the surest of the default's tracks alone (what a
reconstruction that fails is tried again with); and queries, images that are not in db/, are localized by matches above it.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
from pathlib import Path

import numpy as np
import pycolmap
from data import needed

from pdc_sfm.colmap.io.cameras import make_camera
from pdc_sfm.colmap.io.posed_model import posed_model
from pdc_sfm.colmap.localization.localize_sfm import LocalizationSettings, localize
from pdc_sfm.colmap.localization.query import PoseSettings
from pdc_sfm.colmap.mapping.reconstruction import ReconstructionSettings, reconstruct
from pdc_sfm.colmap.mapping.triangulation import TriangulationSettings, triangulate
from pdc_sfm.engine.run import MatchingSettings, match_pairs
from pdc_sfm.errors import UserError
from pdc_sfm.evaluation.datasets.known_cameras import read_camera_file
from pdc_sfm.evaluation.measures.poses import pose_error, reconstruction_errors
from pdc_sfm.images import read_image
from pdc_sfm.settings import load_settings
from pdc_sfm.store.pair_lists import write_pairs
from pdc_sfm.tracks.settings import TrackSettings

LOWEST = 0.05  # of the matches that are kept to choose from
TRACKS = (0.1, 0.3, 0.5)
SUREST = (0.5, 0.74, 0.9)
QUERIES = (0.05, 0.1, 0.3)
KEYPOINTS = 4096  # of an image, and no refinement of points: what is compared are thresholds, and minutes count
ONE_THREAD = ReconstructionSettings(threads=1, reproducible=True, retry=False, refine_keypoints=False)


class Scene:
    """Images with known cameras; those of db/ (or all) make the map, the others are queries."""

    def __init__(self, images: Path, cameras: Path, every: int, work: Path) -> None:
        self.images, self.work = images, work
        known = read_camera_file(cameras)
        names = sorted(name for name in known if (images / name).is_file())
        self.map = [name for name in names if name.startswith("db/")][::every] or names[::every]
        self.queries = [name for name in names if name.split("/")[0] in ("day", "night")]
        self.poses = {name: pose for name, (_, pose) in known.items()}
        self.cameras = {
            name: colmap_camera(images / name, matrix) for name, (matrix, _) in known.items() if name in names
        }

    def match(
        self, name: str, pairs: list[tuple[str, str]], tracks: TrackSettings, fixed: tuple[Path, ...] = ()
    ) -> list[Path]:
        """Pair list, features and matches; the journal is there after the first call."""
        listed = self.work / f"{name}.txt"
        write_pairs(listed, pairs)
        settings = dataclasses.replace(
            load_settings(MatchingSettings, None, [f"select.threshold={LOWEST}"]), tracks=tracks
        )
        files = [self.work / f"{name}-{kind}.h5" for kind in ("features", "matches")]
        files[0].unlink(missing_ok=True)
        match_pairs(
            self.images,
            listed,
            self.work,
            settings,
            features=files[0],
            matches=files[1],
            features_ref=fixed,
            overwrite="tracks",
        )
        return [listed, *files]

    def reconstruct(self, files: list[Path], settings: ReconstructionSettings = ONE_THREAD) -> str:
        """Registered images, points, and how far cameras are off."""
        try:
            found = reconstruct(self.images, *files, self.work / "sfm", settings)
        except UserError as error:
            return f"no model: {error}"
        model = found.model
        poses = {i.name: np.asarray(i.cam_from_world().matrix()) for i in model.images.values() if i.has_pose}
        said = f"{len(poses)}/{len(self.map)} images {model.num_points3D():6} points"
        said += f" {model.compute_mean_reprojection_error():.2f} px"
        if len(poses) < 3:
            return said
        errors = reconstruction_errors(poses, self.poses)
        far, turned = errors.percents, errors.degrees
        said += f"  cameras off {np.median(far):.3f} % {np.median(turned):.3f} deg"
        return f"{said}, the worst {far.max():.2f} % {turned.max():.2f} deg"


def colmap_camera(image: Path, matrix: np.ndarray) -> pycolmap.Camera:
    height, width = read_image(image).shape[:2]
    return make_camera("PINHOLE", width, height, [matrix[0, 0], matrix[1, 1], matrix[0, 2], matrix[1, 2]])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=Path, required=True, help="folder of the images")
    parser.add_argument("--cameras", type=Path, required=True, help="cameras.json")
    parser.add_argument("--every", type=int, default=1, help="only every n-th image of the map")
    parser.add_argument("--work", type=Path, default=Path("outputs/benchmarks/thresholds"))
    args = parser.parse_args()
    scene = Scene(needed(args.images), needed(args.cameras), args.every, args.work)
    args.work.mkdir(parents=True, exist_ok=True)
    pairs = list(itertools.combinations(scene.map, 2))
    default = TrackSettings(max_keypoints=KEYPOINTS)
    print(f"{args.images}: {len(scene.map)} images, {len(pairs)} pairs, {len(scene.queries)} queries", flush=True)
    for value in TRACKS:
        files = scene.match("map", pairs, dataclasses.replace(default, min_score=value))
        print(f"tracks.min_score={value:<5} {scene.reconstruct(files)}", flush=True)
    files = scene.match("map", pairs, default)
    for value in SUREST:
        settings = dataclasses.replace(ONE_THREAD, min_score=value)
        print(f"cameras by those above {value:<5} {scene.reconstruct(files, settings)}", flush=True)
    if scene.queries:
        localize_queries(scene, files, default)


def localize_queries(scene: Scene, files: list[Path], tracks: TrackSettings) -> None:
    """Queries, matched with all images of a map of known cameras, by matches above each value."""
    known = posed_model(
        {name: scene.poses[name] for name in scene.map}, {name: scene.cameras[name] for name in scene.map}
    )
    triangulate(
        known, scene.images, *files, scene.work / "map", TriangulationSettings(threads=1, refine_keypoints=False)
    )
    pairs = list(itertools.product(scene.queries, scene.map))
    found = scene.match("queries", pairs, dataclasses.replace(tracks, max_keypoints=None), (files[1],))
    cameras = {name: scene.cameras[name] for name in scene.queries}
    for value in QUERIES:
        settings = LocalizationSettings(pose=PoseSettings(min_score=value), prepend_camera_name=True, threads=1)
        result = localize(scene.work / "map", cameras, *found, scene.work / "poses.txt", settings)
        errors = {name: pose_error(np.asarray(pose.matrix()), scene.poses[name]) for name, pose in result.poses.items()}
        told = "  ".join(f"{name}: {100 * far:.1f} cm {angle:.2f} deg" for name, (far, angle) in errors.items())
        print(f"queries by those above {value:<5} failed {len(result.failed)}  {told}", flush=True)


if __name__ == "__main__":
    main()
