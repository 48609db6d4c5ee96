"""Reconstruction and localisation of real scenes: SIFT's row beside ours.

Needs folders `fountain-P11` (with cameras.json), `sacre_coeur` and `sceaux_castle`, each with `images/`:

    python benchmarks/mapping.py --scenes ../shared/data/scenes --work outputs/benchmarks/mapping
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pycolmap

from pdc_sfm.colmap.cameras import CameraSettings
from pdc_sfm.colmap.correspondences import PointLookup
from pdc_sfm.colmap.models import ReconstructionError, load_model, model_poses, summarize
from pdc_sfm.colmap.query import PoseSettings, Query, localize_query
from pdc_sfm.colmap.quiet import colmap_log
from pdc_sfm.colmap.reconstruction import ReconstructionSettings
from pdc_sfm.colmap.sift import map_sift, reconstruct_sift
from pdc_sfm.evaluation.poses import align, camera_center, reconstruction_errors, rotation_angle
from pdc_sfm.images import list_images

# A method reconstructs the named images of a folder with given cameras and leaves a model in the output folder.
Method = Callable[[Path, list[str], Path, ReconstructionSettings], None]


def sift(images: Path, names: list[str], output: Path, settings: ReconstructionSettings) -> None:
    reconstruct_sift(images, output, settings, names)


METHODS: dict[str, Method] = {"SIFT": sift}


def read_cameras(path: Path) -> tuple[CameraSettings, dict[str, np.ndarray]]:
    """The one camera of a scene, kept fixed, and cam_from_world of every image."""
    content = json.loads(path.read_text())
    first = next(iter(content.values()))
    params = tuple(first[key] for key in ("fx", "fy", "cx", "cy"))
    camera = CameraSettings(model="PINHOLE", params=params, mode="single", refine=False)
    poses = {n: np.c_[np.array(c["R_cam_from_world"]), np.array(c["t_cam_from_world"])] for n, c in content.items()}
    return camera, poses


def mapping_row(method: str, title: str, images: Path, names: list[str], work: Path, settings, true=None) -> str:
    """Reconstruct (unless it was done before) and measure."""
    output = work / f"{title.replace(' ', '_')}_{method}"
    if not (output / "summary.json").exists():
        try:
            METHODS[method](images, names, output, settings)
        except ReconstructionError as error:
            return f"{title:<24} {method:<8} {error}"
    model = load_model(output)
    figures = summarize(model, len(names))
    row = f"{title:<24} {method:<8} {figures.registered:>4}/{figures.images:<4} {figures.points:>8,} "
    row += f"{figures.mean_track_length:>6.2f} {figures.reprojection_error:>6.2f}"
    if true is not None:
        errors = reconstruction_errors(model_poses(model), {name: true[name] for name in names})
        row += f" {np.median(errors.degrees):>8.3f} {np.median(errors.percents):>8.3f}"
    return row


def leave_one_out(images: Path, names: list[str], work: Path, settings: ReconstructionSettings, true) -> None:
    """Each image localised by SIFT in the model of the others, which is laid over the true cameras."""
    database_path = work / "fountain_SIFT" / "database.db"
    errors = []
    for name in names:
        others = [other for other in names if other != name]
        with colmap_log():
            model = map_sift(database_path, images, work / "scratch", settings, others)[0]
        with pycolmap.Database.open(database_path) as database:
            ids = {image.name: image.image_id for image in database.read_all_images()}
            camera = database.read_camera(database.read_image_with_name(name).camera_id)
            keypoints = database.read_keypoints(ids[name])[:, :2]
            found = []
            for image_id in sorted(model.reg_image_ids()):
                matches = database.read_matches(ids[name], image_id).astype(np.int64)
                found.append((image_id, matches, np.ones(len(matches))))
        localized = localize_query(Query(name, camera, keypoints, found), PointLookup(model), PoseSettings())
        if localized.attempt is None:
            print(f"leave one out            SIFT     {name} failed: {localized.attempts[0].reason}")
            continue
        pose = np.asarray(localized.attempt.estimate["cam_from_world"].matrix())
        errors.append(_aligned_error(pose, model_poses(model), true, name))
        print(
            f"leave one out            SIFT     {name} {localized.attempt.num_inliers:>6} inliers "
            f"{errors[-1][0]:>8.4f} m {errors[-1][1]:>8.3f} deg"
        )
    meters, degrees = np.median(errors, axis=0)
    print(f"leave one out            SIFT     median {len(errors)}/{len(names)} {meters:.4f} m {degrees:.3f} deg")


def _aligned_error(pose: np.ndarray, poses: dict, true: dict, name: str) -> tuple[float, float]:
    """Metres and degrees of a pose in a model's world, which is laid over the true one by its other cameras."""
    similarity = align(*(camera_center(np.stack([source[n] for n in poses])) for source in (poses, true)))
    distance = np.linalg.norm(similarity.apply(camera_center(pose)) - camera_center(true[name]))
    return float(distance), float(rotation_angle(pose[:, :3] @ similarity.rotation.T, true[name][:, :3]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scenes", type=Path, required=True)
    parser.add_argument("--work", type=Path, default=Path("outputs/benchmarks/mapping"))
    parser.add_argument("--threads", type=int, default=0)
    args = parser.parse_args()
    args.work.mkdir(parents=True, exist_ok=True)

    fountain = args.scenes / "fountain-P11" / "images"
    names = list_images(fountain)
    camera, true = read_cameras(fountain.parent / "cameras.json")
    known = ReconstructionSettings(camera=camera, threads=args.threads)
    print(f"{'scene':<24} {'method':<8} {'images':>9} {'points':>8} {'track':>6} {'px':>6} {'deg':>8} {'% extent':>8}")
    for method in METHODS:
        print(mapping_row(method, "fountain", fountain, names, args.work, known, true), flush=True)
    for method in METHODS:
        print(mapping_row(method, "fountain every fourth", fountain, names[::4], args.work, known, true), flush=True)
    for scene in ("sacre_coeur", "sceaux_castle"):
        folder = args.scenes / scene / "images"
        unknown = ReconstructionSettings(threads=args.threads)
        for method in METHODS:
            print(mapping_row(method, scene, folder, list_images(folder), args.work, unknown), flush=True)
    leave_one_out(fountain, names, args.work, known, true)


if __name__ == "__main__":
    main()
