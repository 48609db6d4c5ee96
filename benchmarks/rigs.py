"""Rigs and panoramas in a rendered town, whose cameras are known: position errors with and without the rig.

python benchmarks/rigs.py

Three cameras fixed to each other, 0.4 m apart and turned by 35 degrees, walk around the square. The same matches are mapped
without the rig, with the rig known, and with a rig of which nothing but the names is known; other moments are localized image by
image and as rigs. Then panoramas, rendered as six faces of a cube, are mapped. What was computed in `--work` is not computed
again.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
from pathlib import Path

import cv2
import numpy as np

from pdc_sfm.colmap.georeference.similarity import Similarity
from pdc_sfm.colmap.io.cameras import CameraSettings
from pdc_sfm.colmap.io.models import load_model, model_poses
from pdc_sfm.colmap.io.results import read_poses
from pdc_sfm.colmap.io.rigs import read_rig_file
from pdc_sfm.colmap.mapping.reconstruction import ReconstructionSettings, reconstruct
from pdc_sfm.demo import panorama_settings, run_photographs
from pdc_sfm.demo.queries import localize_in_map, open_map
from pdc_sfm.engine.pairing import exhaustive_pairs
from pdc_sfm.engine.run import MatchingSettings
from pdc_sfm.evaluation.measures.poses import (
    RECALL_THRESHOLDS,
    align,
    camera_center,
    pose_error,
    reconstruction_errors,
    rotation_angle,
)
from pdc_sfm.images import write_image
from pdc_sfm.pipeline.matching import engine_matcher
from pdc_sfm.scenes import Camera, SceneSettings, Town, build_scene, plan_shots, render_image
from pdc_sfm.settings import load_settings
from pdc_sfm.store.pair_lists import write_pairs

APART, TURNED = 0.4, 35.0  # metres and degrees between neighbors of the rig
PREFIXES = ("left/", "middle/", "right/")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, default=Path("outputs/benchmarks/rigs"))
    parser.add_argument("--seed", type=int, default=51, help="of the town")
    parser.add_argument("--moments", type=int, default=6, help="of the walk")
    parser.add_argument("--queries", type=int, default=2, help="moments elsewhere")
    parser.add_argument("--panoramas", type=int, default=4, help="0: none")
    parser.add_argument("--only", choices=("rig", "panoramas"), help="one of the two")
    args = parser.parse_args()
    settings = SceneSettings(
        seed=args.seed,
        width=400,
        height=300,
        database=args.moments,
        day_queries=args.queries,
        night_queries=0,
        sky_directions=5,
        shadow_texel=0.1,
    )
    town = build_scene(settings)
    if args.only != "panoramas":
        measure_rig(args.work / "rig", town, settings)
    if args.only != "rig" and args.panoramas:
        measure_panoramas(args.work / "panoramas", town, dataclasses.replace(settings, database=args.panoramas))


def cam_from_rig(prefix: str) -> np.ndarray:
    """(3, 4) of a camera of the rig; the left one is the reference."""
    number = PREFIXES.index(prefix)
    turn = cv2.Rodrigues(np.radians([0, -TURNED * number, 0]))[0]
    return np.c_[turn, -turn @ np.array([APART * number, 0, 0.05 * number])]


def measure_rig(work: Path, town: Town, settings: SceneSettings) -> None:
    """Maps with and without a rig, then queries."""
    cameras = take_rig_pictures(work, town, settings)
    names = sorted(cameras["db"])
    pairs, features, matches = work / "pairs.txt", work / "features.h5", work / "matches.h5"
    write_pairs(pairs, exhaustive_pairs(names))
    matching = load_settings(MatchingSettings, None, ["dense.min_side=null"])
    engine_matcher(matching)(work / "db", pairs, features, matches)
    true = {name: camera.cam_from_world for name, camera in cameras["db"].items()}
    print(f"{len(names)} images of {len(names) // 3} moments of three cameras, town {settings.seed}")
    print(f"{'':<28} {'images':>7} {'points':>8} {'mean error':>11} {'worst':>8} {'turn':>8}   in metres by itself")
    for what in ("without the rig", "rig known", "rig estimated"):
        output = work / what.replace(" ", "_")
        rig = () if what == "without the rig" else write_rig(work / f"{output.name}.json", what == "rig known")
        chosen = ReconstructionSettings(camera=CameraSettings(mode="per_folder"))
        if not (output / "summary.json").is_file():
            reconstruct(work / "db", pairs, features, matches, output, chosen, rig=rig)
        model = load_model(output)
        print_errors(what, model_poses(model), true, f"{model.num_points3D():>8,}")
        if what == "rig estimated":
            print_calibration(output / "rig.json")
    localize_both(work, true, cameras["query"], matching)


def take_rig_pictures(work: Path, town: Town, settings: SceneSettings) -> dict[str, dict[str, Camera]]:
    """Pictures of all moments, `db/left/0001.jpg` and so on; cameras by name."""
    found: dict[str, dict[str, Camera]] = {"db": {}, "query": {}}
    for shot in plan_shots(settings, town.taken):
        role = "db" if shot.role == "db" else "query"
        empty = dataclasses.replace(shot.conditions, people=0, cars=0)  # what moves is drawn anew for each picture
        for number, prefix in enumerate(PREFIXES):
            pose = _compose(cam_from_rig(prefix), shot.camera.cam_from_world)
            camera = Camera(settings.width, settings.height, 0.82 * settings.width, pose)
            name = f"{prefix}{shot.number:04d}.jpg"
            found[role][name] = camera
            if not (work / role / name).is_file():
                write_image(
                    work / role / name, render_image(town, camera, empty, 10 * shot.seed % 2**31 + number).image
                )
    return found


def write_rig(path: Path, known: bool, intrinsics: tuple[float, ...] = ()) -> Path:
    """COLMAP's rig file."""
    import pycolmap

    cameras = []
    for prefix in PREFIXES:
        entry: dict = {"image_prefix": prefix}
        if prefix == PREFIXES[0]:
            entry["ref_sensor"] = True
        elif known:
            pose = pycolmap.Rigid3d(cam_from_rig(prefix))
            entry["cam_from_rig_rotation"] = pose.rotation.quat[[3, 0, 1, 2]].tolist()
            entry["cam_from_rig_translation"] = np.asarray(pose.translation).tolist()
        if intrinsics:
            entry |= {"camera_model_name": "SIMPLE_PINHOLE", "camera_params": list(intrinsics)}
        cameras.append(entry)
    path.write_text(json.dumps([{"cameras": cameras}]))
    return path


def print_errors(what: str, poses: dict[str, np.ndarray], true: dict[str, np.ndarray], more: str) -> None:
    """Errors after the similarity that lays the map over the truth, and the scale of that."""
    errors, scale = reconstruction_errors(poses, true), align_to_truth(poses, true).scale
    metres = errors.distances
    print(
        f"{what:<28} {f'{len(errors.names)}/{len(true)}':>7} {more} {100 * metres.mean():>8.1f} cm {100 * metres.max():>5.1f} cm "
        f"{errors.degrees.mean():>6.2f} deg   scale {scale:.4f}"
    )


def align_to_truth(poses: dict[str, np.ndarray], true: dict[str, np.ndarray]) -> Similarity:
    """The similarity from a map to the town."""
    names = sorted(poses.keys() & true.keys())
    found, truth = (camera_center(np.stack([source[name] for name in names])) for source in (poses, true))
    return align(found, truth)


def in_town(pose: np.ndarray, similarity: Similarity) -> np.ndarray:
    """A pose in a map as one in the town."""
    rotation = pose[:, :3] @ similarity.rotation.T
    return np.c_[rotation, -rotation @ similarity(camera_center(pose))]


def print_calibration(path: Path) -> None:
    """The estimated rig against the true one: angles, and the ratio of distances, as its unit is any."""
    (rig,) = read_rig_file(path)
    places = []
    for camera in rig.cameras[1:]:
        assert camera.cam_from_rig is not None
        true = cam_from_rig(camera.prefix)
        angle = rotation_angle(np.asarray(camera.cam_from_rig.rotation.matrix()), true[:, :3])
        places.append(np.asarray(camera.cam_from_rig.inverse().translation))
        focal = camera.params[0] / (0.82 * 400)
        print(f"  {camera.prefix:<8} turn off by {angle:.2f} deg, focal length by {100 * (focal - 1):+.2f} %")
    truth = camera_center(np.stack([cam_from_rig(prefix) for prefix in PREFIXES[1:]]))
    ratios = np.linalg.norm(places, axis=1) / np.linalg.norm(truth, axis=1)
    print(f"  distances from the left camera: ratio of both to the truth {ratios[1] / ratios[0]:.3f} (1: right)")


def localize_both(
    work: Path, true: dict[str, np.ndarray], cameras: dict[str, Camera], matching: MatchingSettings
) -> None:
    """Queries image by image, and as rigs, in the map that the known rig gave metres; poses in the town's frame."""
    mapped = open_map(work / "rig_known")
    similarity = align_to_truth(model_poses(load_model(mapped.model)), true)
    focal = 0.82 * 400
    rig = write_rig(work / "queries.json", True, (focal, 200.0, 150.0))
    listed = work / "queries.txt"
    listed.write_text("".join(f"{name} SIMPLE_PINHOLE 400 300 {focal} 200 150\n" for name in sorted(cameras)))
    print(f"\n{len(cameras)} queries of {len(cameras) // 3} moments")
    for what, more in (("image by image", {"queries": listed}), ("as rigs", {"queries": listed, "rig": rig})):
        localize_in_map(mapped, work / "query", work / "localized", top=8, matching=matching, **more)
        results = read_poses(work / "localized" / "results.txt")
        moved = {name: in_town(pose, similarity) for name, pose in results.items()}
        errors = np.array([pose_error(moved[name], cameras[name].cam_from_world) for name in sorted(moved)])
        within = [int(((errors[:, 0] <= m) & (errors[:, 1] <= d)).sum()) for m, d in RECALL_THRESHOLDS]
        metres, degrees = errors.T
        print(
            f"{what:<16} {len(results)} localized, median {100 * np.median(metres):.1f} cm {np.median(degrees):.2f} deg, "
            f"worst {100 * metres.max():.1f} cm; within 0.25 m 2 deg, 0.5 m 5 deg, 5 m 10 deg: {within}"
        )


def measure_panoramas(work: Path, town: Town, settings: SceneSettings, side: int = 256) -> None:
    """Panoramas of six rendered faces, mapped by their views."""
    true = {}
    for shot in plan_shots(dataclasses.replace(settings, day_queries=0), town.taken):
        name = f"{shot.number:04d}.png"
        true[name] = shot.camera.cam_from_world
        if not (work / "photos" / name).is_file():
            empty = dataclasses.replace(shot.conditions, people=0, cars=0)
            write_image(work / "photos" / name, render_panorama(town, shot.camera.cam_from_world, empty, side))
    chosen = dataclasses.replace(
        panorama_settings(), report=False, match=load_settings(MatchingSettings, None, ["dense.min_side=null"])
    )
    run = run_photographs(work / "photos", work / "run", chosen, panoramas=True)
    print(f"\n{len(true)} panoramas of {round(math.pi * side)} x {round(math.pi * side / 2)}")
    print_errors("panoramas", read_poses(run / "panoramas.txt"), true, " " * 8)


def render_panorama(town: Town, rig_from_world: np.ndarray, conditions, side: int) -> np.ndarray:  # type: ignore[no-untyped-def]
    """An equirectangular image: every pixel from the face of a cube that its ray meets."""
    width, height = round(math.pi * side), round(math.pi * side / 2)
    longitude = ((np.arange(width) + 0.5) / width - 0.5) * 2 * math.pi
    latitude = (0.5 - (np.arange(height) + 0.5) / height) * math.pi
    longitude, latitude = np.meshgrid(longitude, latitude)
    rays = np.stack([np.cos(latitude) * np.sin(longitude), -np.sin(latitude), np.cos(latitude) * np.cos(longitude)], -1)
    turns = [*((0, turn) for turn in (0, 90, 180, 270)), (90, 0), (-90, 0)]
    faces = [cv2.Rodrigues(np.radians([*turn, 0.0]))[0] for turn in turns]
    largest = np.full(rays.shape[:2], -np.inf)
    panorama = np.zeros((*rays.shape[:2], 3), np.uint8)
    wide = 1.04  # tangent of half the angle: a little more than a face, to interpolate across its edges
    for rig_from_face in faces:
        focal = side / 2 / wide
        pose = _compose(np.c_[rig_from_face.T, np.zeros(3)], rig_from_world)
        face = render_image(town, Camera(side, side, focal, pose), conditions, 1).image
        x, y, z = np.moveaxis(rays @ rig_from_face, -1, 0)
        ahead = np.where(z > 0, z, 1e-9)
        maps = [(focal * u / ahead + side / 2 - 0.5).astype(np.float32) for u in (x, y)]
        seen = cv2.remap(face, maps[0], maps[1], cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
        better = z > largest
        panorama[better], largest = seen[better], np.maximum(largest, z)
    return panorama


def _compose(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    return np.c_[first[:, :3] @ second[:, :3], first[:, :3] @ second[:, 3] + first[:, 3]]


if __name__ == "__main__":
    main()
