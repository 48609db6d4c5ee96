"""New images in a finished model: registered, triangulated and adjusted, while the old ones stay where they are."""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Collection, Mapping
from pathlib import Path

import numpy as np
import pycolmap

from pdc_sfm.colmap.io import database as db
from pdc_sfm.colmap.io.cameras import copy_camera, intrinsic_limits
from pdc_sfm.colmap.io.frame import read_frame
from pdc_sfm.colmap.io.inputs import MappingInputs, open_inputs
from pdc_sfm.colmap.io.models import (
    SUMMARY,
    MappingResult,
    ReconstructionError,
    keep_model_apart,
    load_model,
    model_poses,
    named,
    save_model,
    summarize,
)
from pdc_sfm.colmap.mapping.mappers import FEWEST, read_cameras
from pdc_sfm.colmap.mapping.parts import check_parts
from pdc_sfm.colmap.mapping.remarks import explain_unregistered
from pdc_sfm.colmap.mapping.verdict import join_verdicts, judge
from pdc_sfm.colmap.mapping.verification import VerificationSettings, verify_by_estimation
from pdc_sfm.colmap.options import pipeline_options, thread_count
from pdc_sfm.colmap.quiet import colmap_log
from pdc_sfm.errors import FormatError
from pdc_sfm.files import atomic_folder, check_room, exclusive
from pdc_sfm.progress import progress
from pdc_sfm.settings import require, to_dict

DATABASE = "database.db"


@dataclasses.dataclass(frozen=True)
class ExtensionSettings:
    """How images are added to a model."""

    adjust: bool = False  # all poses and points are adjusted, not only the new ones; the map's frame stays
    refine_cameras: bool = (
        True  # intrinsics of new cameras are refined; those of the map are as they were, or with adjust
    )
    verification: VerificationSettings = dataclasses.field(default_factory=VerificationSettings)
    min_score: float = 0.0  # matches of a lower probability of being right are not used
    two_view_tracks: bool = False  # also points seen by two images only
    keep_outliers: bool = False  # stray points stay in points.ply; the model keeps all
    seed: int = 0  # of RANSAC and of the mapper
    threads: int = 0  # 0: all cores

    def __post_init__(self) -> None:
        require(self.min_score >= 0, f"min_score={self.min_score} must not be negative")
        require(self.threads >= 0, f"threads={self.threads} must not be negative (0: all cores)")


def extend_model(
    reference: Path | str,
    images: Path | str,
    pairs: Path | str,
    features: Path | str,
    matches: Path | str,
    cameras: Mapping[str, pycolmap.Camera],
    output: Path | str,
    settings: ExtensionSettings | None = None,
    verbose: bool = False,
) -> MappingResult:
    """Add the images that `cameras` names to the model in `reference`, by the matches of their pairs.

    A camera with the id of one of the model is that one; others are new. `images` and `features` hold the model's images too.
    """
    settings, reference, images = settings or ExtensionSettings(), Path(reference), Path(images)
    keep_model_apart(images, (pairs, features, matches), output, (reference,))
    model = load_model(reference)
    old = set(model_poses(model))
    clash = old & set(cameras)
    if clash:
        raise FormatError(f"{min(clash)} is an image of the map already: an added image needs a name of its own")
    with (
        exclusive(output),
        open_inputs(pairs, features, matches, old | set(cameras), "the map or the added images") as inputs,
        atomic_folder(output, SUMMARY) as folder,
        colmap_log(verbose),
    ):
        database = folder / DATABASE
        with db.writing(database):
            _copy_database(reference, model, database, inputs)
            _add_images(database, cameras, inputs, settings)
        before = read_cameras(database)
        model = _grow(reference, database, images, folder / "models", set(model.cameras), inputs, settings)
        if settings.adjust:
            back_to_frame(model, load_model(reference))
        _drop_blind(model, set(cameras))
        joined = set(model_poses(model))
        (model, *_), links, disputed = check_parts(model, database, images)
        summary = summarize(model, len(old) + len(cameras))
        verdict = join_verdicts(judge(model, summary, before), links)
        unregistered = explain_unregistered(model, database, list(cameras), joined, disputed)
        remarks = (_said(model, old, cameras), *unregistered)
        notes = {"settings": to_dict(settings), "left_out": inputs.left_out, "remarks": remarks}
        notes |= {"verdict": dataclasses.asdict(verdict), "inputs": named(images, features), "extends": str(reference)}
        frame = read_frame(reference)
        save_model(folder, model, summary, notes, settings.keep_outliers, frame)
    return MappingResult(model, summary, inputs.left_out, remarks, verdict)


def _said(model: pycolmap.Reconstruction, old: Collection[str], cameras: Mapping[str, pycolmap.Camera]) -> str:
    there = set(model_poses(model))
    lost = len(set(old) - there)
    gone = f"; {lost} of the map's own images are not in it any more" if lost else ""
    return f"{len(there & set(cameras))} of {len(cameras)} images added to {len(old)}{gone}"


def _copy_database(reference: Path, model: pycolmap.Reconstruction, target: Path, inputs: MappingInputs) -> None:
    """The model's own database, or one made of the model where there is none."""
    own = reference / DATABASE
    if own.is_file():
        check_room(target.parent, db.ROOM + 3 * own.stat().st_size)  # twice, and what is added
        shutil.copyfile(own, target)
        return
    ids = db.create_from_model(target, model)
    with pycolmap.Database.open(target) as database:
        db.write_keypoints(database, ids, [name for name in ids if name in inputs.names], inputs.keypoints)


def _add_images(
    path: Path, cameras: Mapping[str, pycolmap.Camera], inputs: MappingInputs, settings: ExtensionSettings
) -> None:
    """New images with their cameras, keypoints and verified matches."""
    with pycolmap.Database.open(path) as database:
        every = database.read_all_rigs()
        rigs = {rig.ref_sensor_id.id: rig.rig_id for rig in every if rig.num_sensors() == 1}
        together = [rig for rig in every if rig.num_sensors() > 1]
        # a camera is of one rig only: an image that comes alone gets one like it
        copies = dict.fromkeys(
            (sensor.id for rig in together for sensor in (rig.ref_sensor_id, *rig.non_ref_sensors)), 0
        )
        known = {camera.camera_id for camera in database.read_all_cameras()}
        for name, camera in sorted(cameras.items()):
            camera_id = camera.camera_id
            if camera_id in copies:
                copies[camera_id] = copies[camera_id] or database.write_camera(copy_camera(camera))
                camera_id = copies[camera_id]
            elif camera_id not in known:
                camera_id = database.write_camera(camera)
            if camera_id not in rigs:
                rig = pycolmap.Rig()
                rig.add_ref_sensor(pycolmap.sensor_t(type=pycolmap.SensorType.CAMERA, id=camera_id))
                rigs[camera_id] = database.write_rig(rig)
            image = pycolmap.Image(name=name, camera_id=camera_id)
            image.image_id = database.write_image(image)
            frame = pycolmap.Frame()
            frame.rig_id = rigs[camera_id]
            frame.add_data_id(image.data_id)
            database.write_frame(frame)
        ids = {image.name: image.image_id for image in database.read_all_images()}
        by_id = {camera.camera_id: camera for camera in database.read_all_cameras()}
        camera_of = {image.name: by_id[image.camera_id] for image in database.read_all_images()}
        new = [name for name in inputs.names if name in cameras]
        db.write_keypoints(database, ids, progress(new, "keypoints", "image"), inputs.keypoints)

        def verify(name0: str, name1: str, found: np.ndarray) -> pycolmap.TwoViewGeometry:
            both = camera_of[name0], camera_of[name1]
            points = inputs.keypoints.points(name0), inputs.keypoints.points(name1)
            return verify_by_estimation(both, points, found, settings.verification, settings.seed)

        pairs = progress(inputs.pairs, "verification", "pair")
        threads = thread_count(settings.threads)
        kept = db.write_matches(
            database, ids, pairs, inputs.matches, inputs.keypoints, verify, settings.min_score, threads
        )
    if kept == 0:
        raise ReconstructionError(
            f"none of {len(inputs.pairs)} pairs of added images has matches that agree with one geometry: do they show the "
            "same place as the map?"
        )


def _grow(
    reference: Path,
    database: Path,
    images: Path,
    scratch: Path,
    fixed: Collection[int],
    inputs: MappingInputs,
    settings: ExtensionSettings,
) -> pycolmap.Reconstruction:
    """COLMAP's incremental mapper goes on with the model, by the new pairs alone: the old ones are in its points."""
    scratch.mkdir()
    thin = scratch / "new.db"
    shutil.copyfile(database, thin)
    with pycolmap.Database.open(database) as whole, pycolmap.Database.open(thin) as new:
        ids = {image.name: image.image_id for image in whole.read_all_images()}
        new.clear_matches()
        new.clear_two_view_geometries()
        for first, second in inputs.pairs:
            if whole.exists_two_view_geometry(ids[first], ids[second]):
                geometry = whole.read_two_view_geometry(ids[first], ids[second])
                new.write_two_view_geometry(ids[first], ids[second], geometry)
        cameras = whole.read_all_cameras()
        count = len({name for pair in inputs.pairs for name in pair})
    limits = intrinsic_limits(cameras)
    options = pipeline_options(
        settings.seed, settings.threads, settings.two_view_tracks, settings.refine_cameras, limits=limits
    )
    options.load_all_images, options.multiple_models = True, False
    if not settings.adjust:
        options.fix_existing_frames, options.constant_cameras = True, set(fixed)
    with progress(None, "mapping", "image", count) as bar:

        def add_image() -> None:
            bar.update(1)

        found = pycolmap.incremental_mapping(thin, images, scratch, options, reference, next_image_callback=add_image)
    shutil.rmtree(scratch)
    if not found:
        raise ReconstructionError("COLMAP could not go on with the map; --verbose shows what it tried")
    return max(found.values(), key=lambda model: model.num_reg_images())


def back_to_frame(model: pycolmap.Reconstruction, reference: pycolmap.Reconstruction) -> None:
    """An adjusted model back into the frame of the old one, by the images that both have.

    How it turned is told by where the cameras look: their places say nothing of it on a straight street.
    """
    old, now = (
        {image.name: image for image in map(source.image, source.reg_image_ids())} for source in (reference, model)
    )
    names = sorted(old.keys() & now.keys())
    turns = [old[n].cam_from_world().rotation.inverse() * now[n].cam_from_world().rotation for n in names]
    left, _, right = np.linalg.svd(np.sum([turn.matrix() for turn in turns], axis=0))  # their mean
    rotation = left @ np.diag([1, 1, np.linalg.det(left @ right)]) @ right
    places, target = (np.array([some[n].projection_center() for n in names]) for some in (now, old))
    middle, goal = places.mean(axis=0), target.mean(axis=0)
    turned, wanted = (places - middle) @ rotation.T, target - goal
    size = float((turned * wanted).sum() / max((turned**2).sum(), 1e-12))
    if size > 0:
        model.transform(pycolmap.Sim3d(size, pycolmap.Rotation3d(rotation), goal - size * rotation @ middle))


def _drop_blind(model: pycolmap.Reconstruction, added: Collection[str]) -> None:
    """Added images that see next to none of the points were not registered."""
    manager = pycolmap.ObservationManager(model)
    for image_id in list(model.reg_image_ids()):
        image = model.image(image_id)
        if image.name in added and image.num_points3D < FEWEST:
            manager.deregister_frame(image.frame_id)
