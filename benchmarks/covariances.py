"""Does bundle adjustment gain from each observation's own covariance? Camera errors, and whether stated covariances are true.

    python benchmarks/covariances.py --work outputs/benchmarks/covariances

Scenes with true cameras: Strecha's, a kitchen (those not in datasets/benchmarks are left out) and rendered towns. Each is
matched and mapped with the true intrinsics, which stay fixed; then its cameras and points are adjusted again, with three
covariances of the same observations:

  equal       one pixel in all directions
  confidence  of the probability that the keypoint is right (Eq. 7), the same in all directions
  alignment   of the alignment of patches: across an edge well known, along it little; of what does not look alike, a pixel

Each is scaled so that half of the observations lie within what it states for half. A Cauchy loss bounds what is wrong. Printed
are median errors of cameras, in per cent of their extent and in degrees, and "true by stated": the root of the mean square of all
camera errors normalized by the covariance that the adjustment states (1: true; 3: errors are three times as large as stated).
"""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from pathlib import Path

import h5py
import numpy as np
import pycolmap
import scipy.sparse as sparse
from data import DATA
from scipy.spatial.transform import Rotation

from pdc_sfm.colmap.io.cameras import CameraSettings
from pdc_sfm.colmap.io.models import load_model, model_poses
from pdc_sfm.colmap.localization.pose_refinement import inverse_variance
from pdc_sfm.colmap.mapping.reconstruction import ReconstructionSettings, reconstruct
from pdc_sfm.colmap.refinement import patches, photometric
from pdc_sfm.colmap.refinement.observations import Observations, surfaces
from pdc_sfm.engine.pairing import exhaustive_pairs
from pdc_sfm.engine.run import MatchingSettings, match_pairs
from pdc_sfm.evaluation.measures.poses import align, camera_center, reconstruction_errors
from pdc_sfm.images import list_images
from pdc_sfm.scenes import SceneSettings, write_scene
from pdc_sfm.settings import load_settings
from pdc_sfm.store.pair_lists import write_pairs

HALF = 2 * np.log(2)  # of two coordinates with unit variance, the median of the sum of squares
LOSS_SCALE = 2.0  # of normalized residuals
ITERATIONS = 40
SCENES = {  # folder below the data: every so many images
    "scenes/fountain-P11": 1,
    "scenes/Herz-Jesus-P8": 1,
    "scenes/entry-P10": 1,
    "scenes/castle-P19": 2,
    "indoor/kitchen": 1,
}


@dataclass
class Problem:
    """Cameras and points, and the observations (O) that tie them, in pixels of images with square pixels and no distortion."""

    names: list[str]
    poses: np.ndarray  # (I, 3, 4)
    xyz: np.ndarray  # (P, 3)
    image: np.ndarray  # (O,) row of poses
    point: np.ndarray  # (O,)
    rays: np.ndarray  # (O, 2)
    focal: np.ndarray  # (O,)
    roots: np.ndarray  # (O, 2, 2): the inverse square roots of the covariances

    def residuals(self, poses: np.ndarray, xyz: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(O, 2) normalized, and the points in the cameras' frames (O, 3)."""
        local = np.einsum("oij,oj->oi", poses[self.image, :, :3], xyz[self.point]) + poses[self.image, :, 3]
        off = self.focal[:, None] * (local[:, :2] / local[:, 2:] - self.rays)
        return np.einsum("oij,oj->oi", self.roots, off), local

    def normal_equations(self, residuals: np.ndarray, local: np.ndarray, poses: np.ndarray) -> tuple:
        """Of cameras (I, 6, 6), of points (P, 3, 3), of both (sparse, 6I x 3P), and the gradients of both."""
        robust = 1 / (1 + (residuals**2).sum(1) / LOSS_SCALE**2)
        x, y, z = local.T
        zero = np.zeros_like(x)
        by_place = np.stack([1 / z, zero, -x / z**2, zero, 1 / z, -y / z**2], 1).reshape(-1, 2, 3)
        turned = np.stack([zero, z, -y, -z, zero, x, y, -x, zero], 1).reshape(-1, 3, 3)  # by a small turn of the camera
        scaled = np.einsum("o,oij->oij", self.focal, self.roots)
        by_place = scaled @ by_place
        by_camera = np.concatenate((by_place @ turned, by_place), 2)  # (O, 2, 6)
        by_point = by_place @ poses[self.image, :, :3]
        weighed = by_camera * robust[:, None, None], by_point * robust[:, None, None]
        cameras, points = np.zeros((len(poses), 6, 6)), np.zeros((len(self.xyz), 3, 3))
        np.add.at(cameras, self.image, np.einsum("oki,okj->oij", weighed[0], by_camera))
        np.add.at(points, self.point, np.einsum("oki,okj->oij", weighed[1], by_point))
        both = np.einsum("oki,okj->oij", weighed[0], by_point)
        rows = np.broadcast_to((6 * self.image[:, None] + np.arange(6))[..., None], both.shape).ravel()
        columns = np.broadcast_to((3 * self.point[:, None] + np.arange(3))[:, None], both.shape).ravel()
        mixed = sparse.csr_matrix((both.ravel(), (rows, columns)), (6 * len(poses), 3 * len(self.xyz)))
        pull, pull_points = np.zeros((len(poses), 6)), np.zeros((len(self.xyz), 3))
        np.add.at(pull, self.image, np.einsum("oki,ok->oi", weighed[0], residuals))
        np.add.at(pull_points, self.point, np.einsum("oki,ok->oi", weighed[1], residuals))
        return cameras, points, mixed, pull.ravel(), pull_points.ravel()

    def adjust(self) -> tuple[np.ndarray, np.ndarray]:
        """Levenberg-Marquardt with the points eliminated. Returns poses and the information of the cameras (6I, 6I)."""
        poses, xyz, damping = self.poses, self.xyz, 1e-4
        residuals, local = self.residuals(poses, xyz)
        for _ in range(ITERATIONS):
            cameras, points, mixed, pull, pull_points = self.normal_equations(residuals, local, poses)
            steps = _solve(_damped(cameras, damping), _damped(points, damping), mixed, pull, pull_points)
            turns = Rotation.from_rotvec(steps[0].reshape(-1, 6)[:, :3]).as_matrix()
            trial = turns @ poses
            trial[..., 3] += steps[0].reshape(-1, 6)[:, 3:]
            moved = xyz + steps[1].reshape(-1, 3)
            found, there = self.residuals(trial, moved)
            if _cost(found) < _cost(residuals):
                done = _cost(residuals) - _cost(found) < 1e-7 * _cost(residuals)
                poses, xyz, residuals, local, damping = trial, moved, found, there, max(damping / 5, 1e-9)
                if done:
                    break
            else:
                damping *= 10
        cameras, points, mixed, _, _ = self.normal_equations(residuals, local, poses)
        return poses, _reduced(cameras, points, mixed)[0]


def _cost(residuals: np.ndarray) -> float:
    return float(np.log1p((residuals**2).sum(1) / LOSS_SCALE**2).sum())


def _damped(blocks: np.ndarray, damping: float) -> np.ndarray:
    return blocks + damping * np.einsum("nii,ij->nij", blocks, np.eye(blocks.shape[1])) + 1e-9 * np.eye(blocks.shape[1])


def _reduced(cameras: np.ndarray, points: np.ndarray, mixed: sparse.csr_matrix) -> tuple[np.ndarray, sparse.csr_matrix]:
    """The normal equations of the cameras alone, dense, and what takes the points out of them."""
    inverse = sparse.block_diag(list(np.linalg.inv(points + 1e-9 * np.eye(3))), format="csr")
    taken = mixed @ inverse
    return sparse.block_diag(list(cameras)).toarray() - (taken @ mixed.T).toarray(), taken


def _solve(cameras, points, mixed, pull, pull_points) -> tuple[np.ndarray, np.ndarray]:
    reduced, taken = _reduced(cameras, points, mixed)
    step = -np.linalg.solve(reduced, pull - taken @ pull_points)
    inverse = np.linalg.inv(points)
    of_points = -np.einsum("pij,pj->pi", inverse, (pull_points + mixed.T @ step).reshape(-1, 3))
    return step, of_points.ravel()


def covariances(model: pycolmap.Reconstruction, images: Path, features: Path) -> tuple[Observations, dict]:
    """The observations of a model, and (O, 2, 2) covariances of each kind, in pixels."""
    seen = Observations.of(model)
    squares, shrink = surfaces(model, seen), photometric._shrink(model)
    aligned = np.broadcast_to(np.eye(2), (len(seen.point), 2, 2)).copy()
    confidence = np.ones(len(seen.point))
    templates = np.empty((len(seen.xyz), len(patches.GRID)), np.float32)
    for of_best in (True, False):  # templates are taken first
        for image_id in np.unique(seen.image_id).tolist():
            image = model.image(image_id)
            mine = np.flatnonzero(seen.image_id == image_id)
            best = squares.best[seen.point[mine]] == mine
            which = mine[best] if of_best else mine
            xyz, along = seen.xyz[seen.point[which]], squares.steps[seen.point[which]]
            steps, shown = photometric._project_steps(model, image_id, xyz, along)
            gray, scale = photometric._gray(images / image.name, shrink)
            if of_best:
                templates[seen.point[which]] = patches.sample(gray, seen.places[which] * scale, steps)
                continue
            with h5py.File(features) as file:
                confidence[which] = file[image.name]["score"][()][seen.index[which]]
            template, contrast = patches._centerd(templates[seen.point[which]])
            found, spread = patches._centerd(patches.sample(gray, seen.places[which] * scale, steps))
            alike = np.einsum("ns,ns,s->n", found, template, patches.WINDOW)
            alike /= np.maximum(spread * contrast, patches.FAINTEST**2)
            slopes = patches._slopes(template)
            trust = patches.INDEPENDENT * len(patches.GRID)
            trust = trust / (patches.NOISE**2 + (patches.CONTRAST_NOISE * contrast) ** 2)
            normal = np.einsum("nsa,nsb,s->nab", slopes, slopes, patches.WINDOW) * trust[:, None, None]
            normal += steps @ steps.transpose(0, 2, 1)  # known to a pixel before
            pixels = np.einsum("nia,nij,njb->nab", steps, np.linalg.inv(normal), steps)
            good = shown & (alike > photometric.MIN_NCC)
            aligned[which[good]] = pixels[good]
    equal = np.broadcast_to(np.eye(2), aligned.shape)
    by_confidence = equal / inverse_variance(confidence)[:, None, None]
    return seen, {"equal": equal, "confidence": by_confidence, "alignment": aligned}


def make_problem(model: pycolmap.Reconstruction, seen: Observations, covariance: np.ndarray) -> Problem:
    ids, image = np.unique(seen.image_id, return_inverse=True)
    images = [model.image(i) for i in ids.tolist()]
    cameras = [model.camera(one.camera_id) for one in images]
    rays = np.empty((len(seen.point), 2))
    for number, camera in enumerate(cameras):
        rays[image == number] = camera.cam_from_img(seen.places[image == number])
    focal = np.array([camera.mean_focal_length() for camera in cameras])[image]
    poses = np.stack([np.asarray(one.cam_from_world().matrix()) for one in images])
    roots = np.linalg.inv(np.linalg.cholesky(covariance))
    problem = Problem([one.name for one in images], poses, seen.xyz, image, seen.point, rays, focal, roots)
    middle = np.median((problem.residuals(poses, seen.xyz)[0] ** 2).sum(1))
    problem.roots = roots * np.sqrt(HALF / middle)
    return problem


def true_by_stated(problem: Problem, poses: np.ndarray, information: np.ndarray, true: dict) -> float:
    """The root of the mean square of the errors, normalized by their covariance; what no photograph tells is taken out."""
    truth = np.stack([true[name] for name in problem.names])
    place = align(camera_center(truth), camera_center(poses))
    rotation = truth[:, :, :3] @ place.rotation.T
    centers = place.scale * camera_center(truth) @ place.rotation.T + place.translation
    errors = np.empty((len(poses), 6))
    turns = poses[:, :, :3] @ np.swapaxes(rotation, 1, 2)
    errors[:, :3] = Rotation.from_matrix(turns).as_rotvec()
    moved = -np.einsum("nij,nj->ni", rotation, centers)
    errors[:, 3:] = poses[:, :, 3] - np.einsum("nij,nj->ni", turns, moved)
    # the turn, place and size of the whole are free: what errors have of them is fitted away
    free = _gauge(rotation, moved, centers)
    fitted = np.linalg.lstsq(free.T @ information @ free, free.T @ information @ errors.ravel(), rcond=None)[0]
    left = errors.ravel() - free @ fitted
    return float(np.sqrt(left @ information @ left / (len(left) - 7)))


def _gauge(rotation: np.ndarray, moved: np.ndarray, centers: np.ndarray) -> np.ndarray:
    """(6I, 7): how cameras (small turn and shift of their frames) change when the world turns, moves or grows."""
    columns = []
    for axis in np.eye(3):
        along = rotation @ axis
        columns.append(np.c_[along, np.cross(moved, along)])
        columns.append(np.c_[np.zeros_like(along), along])
    columns.append(np.c_[np.zeros_like(moved), moved])
    return np.stack([column.ravel() for column in columns], 1)


def read_truth(folder: Path) -> tuple[dict[str, np.ndarray], CameraSettings]:
    """Poses, and the one camera of a scene."""
    content = json.loads((folder / "cameras.json").read_text())
    entries = content.get("images", content)
    known = {name: np.c_[e["R_cam_from_world"], e["t_cam_from_world"]] for name, e in entries.items()}
    first = next(iter(entries.values()))
    params = content["camera"]["params"] if "camera" in content else [first[key] for key in ("fx", "fy", "cx", "cy")]
    camera = CameraSettings(model="PINHOLE", params=tuple(map(float, params)), mode="single", refine=False)
    return known, camera


def run(title: str, folder: Path, names: list[str], work: Path) -> None:
    """Match and map a scene (once), adjust it with each kind of covariance, print a line of each."""
    true, camera = read_truth(folder)
    output = work / title
    output.mkdir(parents=True, exist_ok=True)
    write_pairs(output / "pairs.txt", exhaustive_pairs(names))
    settings = load_settings(MatchingSettings, None, ["device=cpu"])
    made = match_pairs(folder / "images", output / "pairs.txt", output, settings)
    if not (output / "sfm/summary.json").is_file():
        files = (output / "pairs.txt", made.features, made.matches)
        reconstruct(folder / "images", *files, output / "sfm", ReconstructionSettings(camera=camera))
    model = load_model(output / "sfm")
    count = len(model_poses(model))
    seen, kinds = covariances(model, folder / "images", made.features)
    for kind, covariance in kinds.items():
        problem = make_problem(model, seen, covariance)
        poses, information = problem.adjust()
        errors = reconstruction_errors(dict(zip(problem.names, poses)), {n: true[n] for n in problem.names})
        ratio = true_by_stated(problem, poses, information, true)
        figures = f"{np.median(errors.percents):8.3f} {np.median(errors.degrees):8.4f} {ratio:8.1f}"
        print(f"{title:16} {count:3}/{len(names):<3} {kind:12} {figures}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, default=Path("outputs/benchmarks/covariances"))
    parser.add_argument("--seeds", type=int, nargs="+", default=[905, 906, 907], help="of the rendered towns")
    parser.add_argument("--only", nargs="+", help="these scenes: the last words of their folders, town")
    args = parser.parse_args()
    print(f"{'scene':16} {'images':7} {'covariance':12} {'% extent':>8} {'degrees':>8} {'true by stated':>8}")
    for place, step in SCENES.items():
        folder, title = DATA / place, Path(place).name
        if folder.is_dir() and (not args.only or title in args.only):
            names = list_images(folder / "images")
            names = [name for name in names if not name.startswith("query/")][::step]
            run(title, folder, names, args.work)
    for seed in args.seeds:
        title = f"town {seed}"
        if not args.only or "town" in args.only:
            folder = args.work / "worlds" / f"town{seed}"
            write_scene(folder, SceneSettings(seed=seed, database=16, day_queries=0, night_queries=0, depth=False))
            run(title, folder, list_images(folder / "images"), args.work)


if __name__ == "__main__":
    main()
