"""COLMAP's two mappers: one image after another, or all at once (GLOMAP)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import pycolmap

from pdc_sfm.colmap.io.cameras import intrinsic_limits
from pdc_sfm.colmap.mapping.intrinsics import Cameras, drifted_cameras, runaway_cameras, used_cameras
from pdc_sfm.colmap.options import keep_distortion, keep_intrinsics, merge_options, pipeline_options, thread_count
from pdc_sfm.progress import progress

Models = list[pycolmap.Reconstruction]  # the one with most images first
# Images whose cameras one thread finds in a few minutes: those of 11 took 22 s of the 95 s of a reconstruction.
SMALL_SET = 50
SAME_POINTS = 0.9  # of a map's points: held intrinsics that are wrong lose more, since observations end 4 px off
FEWEST = 15  # points an image must see to count as registered: as many as COLMAP asks of a pair


class MapperSettings(Protocol):
    """What the mappers need to know of a reconstruction's settings."""

    @property
    def seed(self) -> int: ...
    @property
    def threads(self) -> int: ...
    @property
    def reproducible(self) -> bool | None: ...
    @property
    def retry(self) -> bool: ...
    @property
    def two_view_tracks(self) -> bool | None: ...
    @property
    def refine_rig(self) -> bool | None: ...


def mapper_threads(settings: MapperSettings, images: int) -> int:
    """One where equal runs shall give equal maps.

    On several, COLMAP starts from whichever pair of images a thread finds first (they race), and bundle adjustment adds
    up in another order each time; where photographs say little of their cameras, both end in another map.
    """
    one = images <= SMALL_SET if settings.reproducible is None else settings.reproducible
    return 1 if one else thread_count(settings.threads)


def read_cameras(database: Path) -> dict[int, pycolmap.Camera]:
    """Cameras as they are before mapping: given, from EXIF, or guessed."""
    with pycolmap.Database.open(database) as opened:
        return {camera.camera_id: camera for camera in opened.read_all_cameras()}


def map_incrementally(
    database: Path,
    images: Path,
    scratch: Path,
    settings: MapperSettings,
    refine_cameras: bool,
    extra: Mapping[str, Any] | None = None,
) -> Models:
    """Grow models from good pairs, image by image. `extra` are fields of pycolmap.IncrementalPipelineOptions.

    With `retry`, a model is grown again where the intrinsics of some images ran away, without these images; where those
    of all did, or left what is known of them, with intrinsics as they were before, or with distortion alone as it was,
    whichever explains more.
    """
    cameras = read_cameras(database)
    limits = intrinsic_limits(cameras.values())
    with pycolmap.Database.open(database) as opened:
        count = opened.num_images()
    threads = mapper_threads(settings, count)
    tracks, rig = bool(settings.two_view_tracks), bool(settings.refine_rig)
    options = pipeline_options(settings.seed, threads, tracks, refine_cameras, extra, limits, rig)
    started = 0
    with progress(None, "mapping", "image", count) as bar:

        def start_model() -> None:
            nonlocal started
            started += 1
            if (
                started > 1
            ):  # the count begins again: COLMAP tries another first pair, or images are left for another model
                bar.set_description_str(f"mapping, attempt {started}", refresh=False)
            bar.reset(count)
            bar.update(2)

        def add_image() -> None:
            bar.update(bar.n < count)  # an image that was taken out and found again is not one more

        def grow(name: str, options: pycolmap.IncrementalPipelineOptions, start: Path | str = "") -> Models:
            folder = scratch / name
            folder.mkdir(parents=True)
            found = pycolmap.incremental_mapping(
                database,
                images,
                folder,
                options,
                start,
                initial_image_pair_callback=start_model,
                next_image_callback=add_image,
            )
            return _by_size(found)

        models = grow("first", options)
        dropped = drop_bad_images(models[0], cameras) if models else 0
        if dropped and settings.retry:
            (scratch / "start").mkdir()
            models[0].write(scratch / "start")
            bar.reset(count)
            bar.update(models[0].num_reg_images())
            again = grow("again", options, scratch / "start")
            if again and again[0].num_reg_images() >= models[0].num_reg_images():
                models[0] = again[0]
        elif models and settings.retry and (runaway_cameras(models[0], limits) or _can_be_held(models[0], cameras)):
            ran_away = bool(runaway_cameras(models[0], limits))
            found = grow("held", keep_intrinsics(options))
            if ran_away and options.ba_refine_extra_params:
                other = grow("undistorted", keep_distortion(options))
                sane = bool(other) and not (runaway_cameras(other[0], limits) or drifted_cameras(other[0], cameras))
                if sane and (not found or _explained(other[0]) > _explained(found[0])):
                    found = other
            if found and (ran_away or _explains_as_much(found[0], models[0])):
                models = found
    for model in models:
        drop_bad_images(model, cameras)
    return _by_size(dict(enumerate(models)))


def _can_be_held(model: pycolmap.Reconstruction, cameras: Cameras) -> bool:
    """Whether focal lengths left what is known of them, and all are known."""
    known = all(cameras[i].has_prior_focal_length for i in used_cameras(model))
    return known and bool(drifted_cameras(model, cameras))


def _explains_as_much(model: pycolmap.Reconstruction, other: pycolmap.Reconstruction) -> bool:
    enough = model.num_points3D() >= SAME_POINTS * other.num_points3D()
    return enough and model.num_reg_images() >= other.num_reg_images()


def _explained(model: pycolmap.Reconstruction) -> tuple[int, float]:
    """How much a model explains: images, then observations, those that are a pixel off by half."""
    points = model.points3D.values()
    return model.num_reg_images(), sum(point.track.length() / (1 + point.error**2) for point in points)


def drop_bad_images(model: pycolmap.Reconstruction, cameras: Cameras | None = None) -> int:
    """Take images out of a model that see next to none of its points, or whose camera is none. Returns how many.

    `cameras` are those before mapping: what was known of them is no reason to drop an image, and those no longer used are
    again as they were. A model that would lose all its images stays as it is.
    """
    cameras = cameras or {}
    manager = pycolmap.ObservationManager(model)
    frames = manager.filter_frames(*intrinsic_limits(cameras.values()), FEWEST)
    if len(frames) > model.num_reg_frames() - 2:
        return 0
    for frame_id in frames:
        manager.deregister_frame(frame_id)
    used = used_cameras(model)
    for camera_id in (cameras.keys() & model.cameras.keys()) - set(used) if frames else ():
        model.camera(camera_id).params = cameras[camera_id].params.tolist()
    return len(frames)


def map_globally(
    database: Path,
    images: Path,
    scratch: Path,
    settings: MapperSettings,
    refine_cameras: bool,
    extra: Mapping[str, Any] | None = None,
) -> Models:
    """Solve all rotations, then all positions (GLOMAP). `extra` are fields of pycolmap.GlobalPipelineOptions."""
    if not all(camera.has_prior_focal_length for camera in read_cameras(database).values()):
        # unlike the incremental mapper, it cannot start from a guessed focal length
        pycolmap.calibrate_view_graph(database)
    options = pycolmap.GlobalPipelineOptions()
    options.random_seed = settings.seed
    with pycolmap.Database.open(database) as opened:
        options.num_threads = mapper_threads(settings, opened.num_images())
    options.mapper.retriangulation.ignore_two_view_tracks = not settings.two_view_tracks
    options.mapper.bundle_adjustment.refine_focal_length = refine_cameras
    options.mapper.bundle_adjustment.refine_extra_params = refine_cameras
    options.mapper.bundle_adjustment.refine_sensor_from_rig = bool(settings.refine_rig)
    merge_options(options, extra)
    return _by_size(pycolmap.global_mapping(database, images, scratch, options))


def _by_size(found: Mapping[int, pycolmap.Reconstruction]) -> Models:
    return sorted(found.values(), key=lambda model: (-model.num_reg_images(), -model.num_points3D()))
