"""Reconstruction and localization of real scenes: SIFT's row, ours, and any other method's beside them.

Needs folders `fountain-P11` (with cameras.json), `sacre_coeur` and `sceaux_castle`, each with `images/`:

    python benchmarks/mapping.py --scenes datasets/benchmarks/scenes --work outputs/benchmarks/mapping

`--scene FOLDER` adds a scene: `images/` and, if its cameras are known, cameras.json (as for `pdc-sfm evaluate epipolar`).
`--picture` draws the point cloud of our first scene, colored, to fountain.png in the work folder.
`--method NAME=FOLDER` adds a method by its hloc files: FOLDER/SCENE/{pairs.txt,features.h5,matches.h5}. What was computed
in `--work` is not computed again, unless other weights, settings or files made it.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import itertools
import json
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pycolmap
from data import DATA, needed
from sift_baseline import map_sift, reconstruct_sift

from pdc_sfm.colmap.io.cameras import CameraSettings, make_camera
from pdc_sfm.colmap.io.models import ReconstructionError, load_model, model_poses, summarize
from pdc_sfm.colmap.io.point_lookup import PointLookup
from pdc_sfm.colmap.io.pointcloud import read_ply
from pdc_sfm.colmap.localization.localize_sfm import localize
from pdc_sfm.colmap.localization.query import PoseSettings, Query, localize_query
from pdc_sfm.colmap.mapping.reconstruction import ReconstructionSettings, reconstruct
from pdc_sfm.colmap.quiet import colmap_log
from pdc_sfm.colmap.render import draw, overview
from pdc_sfm.engine.pairing import exhaustive_pairs
from pdc_sfm.engine.run import MatchingSettings, MatchResult, match_pairs
from pdc_sfm.engine.weights_file import WeightsFile
from pdc_sfm.errors import CheckpointError, SettingsError
from pdc_sfm.evaluation.measures.poses import align, camera_center, reconstruction_errors, rotation_angle
from pdc_sfm.files import write_text
from pdc_sfm.images import list_images, write_image
from pdc_sfm.pipeline.matching import query_settings
from pdc_sfm.settings import load_settings, to_dict
from pdc_sfm.store.journal import RawStore
from pdc_sfm.store.pair_lists import write_pairs
from pdc_sfm.weights import sha256

MADE_BY = "made_by.json"  # in the folder of a model


@dataclasses.dataclass(frozen=True)
class Scene:
    """Images to reconstruct, with which cameras, and the truth where it is known."""

    title: str
    source: str  # folder of the scene; several scenes may be parts of one
    images: Path
    names: list[str]
    settings: ReconstructionSettings
    true: dict[str, np.ndarray] | None = None


class Method(Protocol):
    """A way to get from images to a model, and from one more image to its pose in it."""

    def made_by(self, scene: Scene) -> dict[str, Any]:
        """What decides the matches, as plain values."""
        ...

    def reconstruct(self, scene: Scene, output: Path) -> None: ...

    def localize(self, scene: Scene, name: str, work: Path) -> tuple[np.ndarray | None, dict[str, np.ndarray], int]:
        """Pose of one image (None if it fails), poses of the others' model, and the number of inliers."""
        ...


class Sift:
    """COLMAP's own features, matched exhaustively."""

    def made_by(self, scene: Scene) -> dict[str, Any]:
        return {}

    def reconstruct(self, scene: Scene, output: Path) -> None:
        reconstruct_sift(scene.images, output, scene.settings, scene.names)

    def localize(self, scene: Scene, name: str, work: Path) -> tuple[np.ndarray | None, dict[str, np.ndarray], int]:
        path = work.parent / "database.db"
        others = [other for other in scene.names if other != name]
        with colmap_log():
            model = map_sift(path, scene.images, work / "scratch", scene.settings, others)[0]
        with pycolmap.Database.open(path) as database:
            query_id = database.read_image_with_name(name).image_id
            camera = database.read_camera(database.read_image_with_name(name).camera_id)
            keypoints = database.read_keypoints(query_id)[:, :2]
            matches = {i: database.read_matches(query_id, i).astype(np.int64) for i in sorted(model.reg_image_ids())}
        found = [(image_id, some, np.ones(len(some))) for image_id, some in matches.items()]
        result = localize_query(Query(name, camera, keypoints, found), PointLookup(model), PoseSettings())
        if result.attempt is None:
            return None, model_poses(model), 0
        return result.attempt.estimate["cam_from_world"].matrix(), model_poses(model), result.attempt.num_inliers


class HlocFiles:
    """Features and matches that another program wrote."""

    def __init__(self, folder: Path):
        self._folder = folder

    def _files(self, scene: Scene) -> list[Path]:
        return [self._folder / scene.source / name for name in ("pairs.txt", "features.h5", "matches.h5")]

    def made_by(self, scene: Scene) -> dict[str, Any]:
        return {path.name: sha256(path) for path in self._files(scene)}

    def reconstruct(self, scene: Scene, output: Path) -> None:
        reconstruct(scene.images, *self._files(scene), output, scene.settings, scene.names)

    def localize(self, scene: Scene, name: str, work: Path) -> tuple[np.ndarray | None, dict[str, np.ndarray], int]:
        others = [other for other in scene.names if other != name]
        pairs, features, matches = self._files(scene)
        model = reconstruct(scene.images, pairs, features, matches, work / "sfm", scene.settings, others).model
        return _localize_in(model, scene, name, others, features, matches, work)


class Ours:
    """The network's matches. The pairs of a scene are matched once; parts of it use the stored matches."""

    def __init__(self, settings: MatchingSettings, work: Path):
        self._settings, self._work = settings, work

    def made_by(self, scene: Scene) -> dict[str, Any]:
        values = to_dict(self._settings)
        decisive = {name: values[name] for name in ("dense", "select", "precision", "tracks")}
        return {"weights": WeightsFile.of(self._settings.weights).fingerprint, **decisive}

    def reconstruct(self, scene: Scene, output: Path) -> None:
        pairs, features, matches = self._match(
            scene, exhaustive_pairs(scene.names), output.with_name(output.name + "_files")
        )
        reconstruct(scene.images, pairs, features, matches, output, scene.settings)

    def localize(self, scene: Scene, name: str, work: Path) -> tuple[np.ndarray | None, dict[str, np.ndarray], int]:
        others = [other for other in scene.names if other != name]
        pairs, features, matches = self._match(scene, exhaustive_pairs(others), work / "map")
        model = reconstruct(scene.images, pairs, features, matches, work / "sfm", scene.settings).model
        rows = [(name, other) for other in others]
        _, features, matches = self._match(scene, rows, work / "query", features)
        return _localize_in(model, scene, name, others, features, matches, work)

    def _match(
        self, scene: Scene, pairs: list[tuple[str, str]], output: Path, fixed: Path | None = None
    ) -> tuple[Path, Path, Path]:
        matched = self._match_all(scene)
        output.mkdir(parents=True, exist_ok=True)
        write_pairs(output / "pairs.txt", pairs)
        settings = self._settings
        if fixed is not None:
            settings = query_settings(settings)
        given = {"features_ref": [fixed] if fixed else [], "matcher": StoredMatches(matched.raw), "overwrite": "all"}
        part = match_pairs(scene.images, output / "pairs.txt", output, settings, **given)
        return output / "pairs.txt", part.features, part.matches

    def _match_all(self, scene: Scene) -> MatchResult:
        """All pairs of a scene's folder, as stored or, where other weights or settings made that, anew."""
        pairs, whole = exhaustive_pairs(list_images(scene.images)), self._work / f"{scene.source}_matches"
        for overwrite in ("no", "tracks"):
            with contextlib.suppress(SettingsError):
                return match_pairs(scene.images, pairs, whole, self._settings, overwrite=overwrite)
        return match_pairs(scene.images, pairs, whole, self._settings, overwrite="all")


class StoredMatches:
    """Stands for the network: gives the raw matches that it found before."""

    identity = "stored"

    def __init__(self, raw: Path):
        self._raw = RawStore(raw)

    def encode(self, image: np.ndarray, name: str) -> str:
        return _Name(name)

    def match(self, code0: str, code1: str):
        if (code0, code1) in self._raw:
            return self._raw.read((str(code0), str(code1)))
        return self._raw.read((str(code1), str(code0))).swapped()


class _Name(str):
    """An image's name in the place of its code."""

    nbytes = 1


def _localize_in(model, scene: Scene, name: str, others: list[str], features: Path, matches: Path, work: Path):
    camera = scene.settings.camera
    size = next(iter(model.cameras.values()))
    query = {name: make_camera(camera.model, size.width, size.height, camera.params)}
    write_pairs(work / "retrieval.txt", [(name, other) for other in others])
    result = localize(model, query, work / "retrieval.txt", features, matches, work / "results.txt")
    pose = result.poses[name].matrix() if name in result.poses else None
    return pose, model_poses(model), result.inliers.get(name, 0)


def read_cameras(path: Path) -> tuple[CameraSettings, dict[str, np.ndarray]]:
    """The one camera of a scene, kept fixed, and cam_from_world of every image."""
    content = json.loads(path.read_text())
    first = next(iter(content.values()))
    params = tuple(first[key] for key in ("fx", "fy", "cx", "cy"))
    camera = CameraSettings(model="PINHOLE", params=params, mode="single", refine=False)
    poses = {n: np.c_[np.array(c["R_cam_from_world"]), np.array(c["t_cam_from_world"])] for n, c in content.items()}
    return camera, poses


def mapping_row(scene: Scene, label: str, method: Method, work: Path) -> str:
    """Reconstruct (unless it was done before, by the same) and measure."""
    output = work / f"{scene.title.replace(' ', '_')}_{label}"
    head = f"{scene.title:<22} {label:<16}"
    how = dataclasses.replace(scene.settings, threads=0)
    record = json.dumps({"images": scene.names, "mapping": to_dict(how), **method.made_by(scene)}, indent=1)
    if not is_written(output / MADE_BY, record):
        try:
            method.reconstruct(scene, output)
        except ReconstructionError as error:
            return f"{head} {error}"
        write_text(output / MADE_BY, record)
    model = load_model(output)
    figures = summarize(model, len(scene.names))
    row = f"{head} {figures.registered:>4}/{figures.images:<4} {figures.points:>8,} "
    row += f"{figures.mean_track_length:>6.2f} {figures.reprojection_error:>6.2f}"
    if scene.true is not None:
        errors = reconstruction_errors(model_poses(model), {name: scene.true[name] for name in scene.names})
        row += f" {np.median(errors.degrees):>8.3f} {np.median(errors.percents):>8.3f}"
    return row


def is_written(path: Path, text: str) -> bool:
    return path.is_file() and path.read_text(encoding="utf-8") == text


def draw_model(folder: Path, output: Path) -> None:
    """A picture of points.ply and the cameras, from behind them and a little above."""
    points, colors = read_ply(folder / "points.ply")
    poses = np.stack(list(model_poses(load_model(folder)).values()))
    write_image(output, draw(points, colors, poses, overview(poses, points, (1600, 1000))))


def leave_one_out(scene: Scene, label: str, method: Method, work: Path) -> None:
    """Each image localized in the model of the others, which is laid over the true cameras."""
    errors = []
    for name in scene.names:
        folder = work / f"{scene.title}_{label}" / f"without_{name}"
        folder.mkdir(parents=True, exist_ok=True)
        pose, poses, inliers = method.localize(scene, name, folder)
        if pose is None:
            print(f"leave one out          {label:<16} {name} failed")
            continue
        errors.append(_aligned_error(np.asarray(pose), poses, scene.true, name))
        meters, degrees = errors[-1]
        print(f"leave one out          {label:<16} {name} {inliers:>6} inliers {meters:>8.4f} m {degrees:>8.3f} deg")
    meters, degrees = np.median(errors, axis=0)
    print(
        f"leave one out          {label:<16} median of {len(errors)}/{len(scene.names)} {meters:.4f} m {degrees:.3f} deg"
    )


def _aligned_error(pose: np.ndarray, poses: dict, true: dict, name: str) -> tuple[float, float]:
    """Metres and degrees of a pose in a model's world, which is laid over the true one by its cameras."""
    similarity = align(*(camera_center(np.stack([source[n] for n in poses])) for source in (poses, true)))
    distance = np.linalg.norm(similarity(camera_center(pose)) - camera_center(true[name]))
    return float(distance), float(rotation_angle(pose[:, :3] @ similarity.rotation.T, true[name][:, :3]))


def read_scenes(folder: Path, more: list[Path], threads: int) -> list[Scene]:
    fountain, *others = (
        read_scene(path, threads)
        for path in (folder / "fountain-P11", folder / "sacre_coeur", folder / "sceaux_castle", *more)
    )
    fountain = dataclasses.replace(fountain, title="fountain")
    part = dataclasses.replace(fountain, title="fountain every fourth", names=fountain.names[::4])
    return [fountain, part, *others]


def read_scene(folder: Path, threads: int) -> Scene:
    """A folder with `images/`; with cameras.json its camera is known to the methods, and the poses to the measure."""
    settings, true = ReconstructionSettings(threads=threads), None
    if (folder / "cameras.json").is_file():
        camera, true = read_cameras(folder / "cameras.json")
        settings = dataclasses.replace(settings, camera=camera)
    return Scene(folder.name, folder.name, folder / "images", list_images(folder / "images"), settings, true)


def read_methods(args: argparse.Namespace) -> dict[str, Method]:
    methods: dict[str, Method] = {"SIFT": Sift()}
    for word in args.method:
        label, _, folder = word.partition("=")
        methods[label] = HlocFiles(Path(folder))
    try:
        from pdc_sfm.weights import built_in_path

        settings = load_settings(MatchingSettings, args.config, args.settings)
        if settings.weights is None:
            built_in_path()
        methods[args.label] = Ours(settings, args.work)
    except CheckpointError as error:
        print(f"no row of ours: {error}")
    return methods


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scenes", type=Path, default=DATA / "scenes", help="folder of the three scenes")
    parser.add_argument("--scene", type=Path, action="append", default=[], metavar="FOLDER", help="one more")
    parser.add_argument("--work", type=Path, default=Path("outputs/benchmarks/mapping"))
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--method", action="append", default=[], metavar="NAME=FOLDER", help="hloc files of another")
    parser.add_argument("--config", type=Path, help="settings of our matching")
    parser.add_argument("--label", default="ours", help="name of our row")
    parser.add_argument("--picture", action="store_true", help="draw our model of the first scene")
    parser.add_argument("--skip-leave-one-out", action="store_true")
    parser.add_argument("settings", nargs="*", metavar="key=value", help="settings of our matching")
    args = parser.parse_args()
    scenes, methods = read_scenes(needed(args.scenes), args.scene, args.threads), read_methods(args)
    args.work.mkdir(parents=True, exist_ok=True)
    head = f"{'scene':<22} {'method':<16} {'images':>9} {'points':>8} {'track':>6} {'px':>6} {'deg':>8} {'% extent':>8}"
    rows = (mapping_row(scene, label, method, args.work) for scene in scenes for label, method in methods.items())
    table = []
    for line in itertools.chain([head], rows):
        print(line, flush=True)
        table.append(line.rstrip())
    write_text(args.work / "table.txt", "\n".join(table) + "\n")
    if args.picture and args.label in methods:
        draw_model(args.work / f"{scenes[0].title}_{args.label}", args.work / f"{scenes[0].title}.png")
    if not args.skip_leave_one_out:
        for label, method in methods.items():
            leave_one_out(scenes[0], label, method, args.work)


if __name__ == "__main__":
    main()
