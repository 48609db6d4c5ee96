"""COLMAP's two mappers: one image after another, or all at once (GLOMAP)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import pycolmap

from pdc_sfm.colmap.io.cameras import INTRINSIC_LIMITS
from pdc_sfm.colmap.options import merge_options, pipeline_options, thread_count
from pdc_sfm.progress import progress

Models = list[pycolmap.Reconstruction]  # the one with most images first
FEWEST = 15  # points an image must see to count as registered


class MapperSettings(Protocol):
    """What the mappers need to know of a reconstruction's settings."""

    seed: int
    threads: int
    two_view_tracks: bool | None


def map_incrementally(
    database: Path,
    images: Path,
    scratch: Path,
    settings: MapperSettings,
    refine_cameras: bool,
    extra: Mapping[str, Any] | None = None,
) -> Models:
    """Grow models from good pairs, image by image. `extra` are fields of pycolmap.IncrementalPipelineOptions."""
    options = pipeline_options(settings.seed, settings.threads, settings.two_view_tracks, refine_cameras, extra)
    with pycolmap.Database.open(database) as opened:
        count = opened.num_images()
    with progress(None, "mapping", "image", count) as bar:

        def start_model() -> None:
            bar.reset(count)
            bar.update(2)

        def grow(folder: Path, start: Path | str = "") -> Models:
            folder.mkdir(parents=True)
            calls = {"initial_image_pair_callback": start_model, "next_image_callback": lambda: bar.update(1)}
            return _by_size(pycolmap.incremental_mapping(database, images, folder, options, start, **calls))

        models = grow(scratch / "first")
        if models and drop_bad_images(models[0], database):  # its last adjustment ran away: once more without them
            (scratch / "start").mkdir()
            models[0].write(scratch / "start")
            again = grow(scratch / "again", scratch / "start")
            if again and again[0].num_reg_images() >= models[0].num_reg_images():
                models[0] = again[0]
    for model in models:
        drop_bad_images(model)
    return _by_size(dict(enumerate(models)))


def drop_bad_images(model: pycolmap.Reconstruction, database: Path | None = None) -> int:
    """Take images out of a model that see next to none of its points, or whose camera is none. Returns how many.

    With a `database`, their cameras are again what it holds. A model that would lose all its images stays as it is.
    """
    manager = pycolmap.ObservationManager(model)
    frames = manager.filter_frames(*INTRINSIC_LIMITS, FEWEST)
    if len(frames) > model.num_reg_frames() - 2:
        return 0
    for frame_id in frames:
        manager.deregister_frame(frame_id)
    if frames and database is not None:
        used = {model.image(image_id).camera_id for image_id in model.reg_image_ids()}
        with pycolmap.Database.open(database) as opened:
            known = {camera.camera_id: camera for camera in opened.read_all_cameras()}
        for camera_id in set(model.cameras) - used:
            model.camera(camera_id).params = known[camera_id].params
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
    with pycolmap.Database.open(database) as opened:
        known = all(camera.has_prior_focal_length for camera in opened.read_all_cameras())
    if not known:  # unlike the incremental mapper, it cannot start from a guessed focal length
        pycolmap.calibrate_view_graph(database)
    options = pycolmap.GlobalPipelineOptions()
    options.random_seed = settings.seed
    options.num_threads = thread_count(settings.threads)
    options.mapper.retriangulation.ignore_two_view_tracks = not settings.two_view_tracks
    options.mapper.bundle_adjustment.refine_focal_length = refine_cameras
    options.mapper.bundle_adjustment.refine_extra_params = refine_cameras
    merge_options(options, extra)
    return _by_size(pycolmap.global_mapping(database, images, scratch, options))


def _by_size(found: Mapping[int, pycolmap.Reconstruction]) -> Models:
    return sorted(found.values(), key=lambda model: (-model.num_reg_images(), -model.num_points3D()))
