"""COLMAP's two mappers: one image after another, or all at once (GLOMAP)."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import pycolmap

from pdc_sfm.colmap.io.cameras import intrinsic_limits
from pdc_sfm.colmap.options import merge_options, pipeline_options, thread_count
from pdc_sfm.progress import progress

Models = list[pycolmap.Reconstruction]  # the one with most images first
# Images whose cameras one thread finds in a few minutes: those of 11 took 22 s of the 95 s of a reconstruction.
SMALL_SET = 50
Cameras = Mapping[int, pycolmap.Camera]  # by id
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
    of all did, with intrinsics as they were before.
    """
    cameras = read_cameras(database)
    limits = intrinsic_limits(cameras.values())
    with pycolmap.Database.open(database) as opened:
        count = opened.num_images()
    threads = mapper_threads(settings, count)
    options = pipeline_options(settings.seed, threads, bool(settings.two_view_tracks), refine_cameras, extra, limits)
    with progress(None, "mapping", "image", count) as bar:

        def start_model() -> None:
            bar.reset(count)
            bar.update(2)

        def add_image() -> None:
            bar.update(1)

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
            again = grow("again", options, scratch / "start")
            if again and again[0].num_reg_images() >= models[0].num_reg_images():
                models[0] = again[0]
        elif models and settings.retry and runaway_cameras(models[0], limits):
            held = copy.deepcopy(options)
            held.ba_refine_focal_length = held.ba_refine_extra_params = held.ba_refine_principal_point = False
            models = grow("held", held) or models
    for model in models:
        drop_bad_images(model, cameras)
    return _by_size(dict(enumerate(models)))


def runaway_cameras(model: pycolmap.Reconstruction, limits: tuple[float, float, float]) -> list[pycolmap.Camera]:
    """Cameras of registered images with intrinsics outside the limits, by id."""
    used = sorted({model.image(image_id).camera_id for image_id in model.reg_image_ids()})
    return [model.camera(i) for i in used if model.camera(i).has_bogus_params(*limits)]


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
    used = {model.image(image_id).camera_id for image_id in model.reg_image_ids()}
    for camera_id in (cameras.keys() & model.cameras.keys()) - used if frames else ():
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
    merge_options(options, extra)
    return _by_size(pycolmap.global_mapping(database, images, scratch, options))


def _by_size(found: Mapping[int, pycolmap.Reconstruction]) -> Models:
    return sorted(found.values(), key=lambda model: (-model.num_reg_images(), -model.num_points3D()))
