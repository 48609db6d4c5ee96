"""Two calls of COLMAP on a filled database: points with fixed cameras, then poses of the queries with fixed intrinsics."""

from __future__ import annotations

import dataclasses
import logging
from pathlib import Path

import pycolmap

from pdc_sfm.colmap.io.models import (
    SUMMARY,
    ModelSummary,
    ReconstructionError,
    load_model,
    save_model,
    summarize,
)
from pdc_sfm.colmap.mapping.known_poses import judge_poses
from pdc_sfm.colmap.mapping.verification import VerificationSettings
from pdc_sfm.colmap.options import pipeline_options
from pdc_sfm.files import atomic_folder
from pdc_sfm.progress import progress

log = logging.getLogger(__name__)


def triangulate_database(
    reference: Path, database: Path, images: Path, output: Path, seed: int = 0, threads: int = 0
) -> ModelSummary:
    """Points of the verified matches between the images of `reference`; poses and intrinsics stay as they are.

    Whether these agree with the matches is said in the log and the summary.
    """
    options = pipeline_options(seed, threads, two_view_tracks=False, refine_cameras=False)
    with atomic_folder(output, SUMMARY) as folder:
        model = pycolmap.triangulate_points(load_model(reference), database, images, folder, options=options)
        if model.num_points3D() == 0:
            raise ReconstructionError("COLMAP triangulated no point: are these matches of this dataset's images?")
        summary, verdict = summarize(model), judge_poses(model, database, VerificationSettings(), seed)
        notes = {"seed": seed, "verdict": dataclasses.asdict(verdict)}
        save_model(folder, model, summary, notes, keep_outliers=False)
    for reason in verdict.reasons:
        log.warning("%s: %s", verdict.kind, reason)
    return summary


def register_images(model: Path, database: Path, output: Path, seed: int = 0, threads: int = 0) -> list[str]:
    """Poses of the images of a database that a model lacks, as COLMAP's image registrator; nothing else moves.

    Images are tried in the order of their ids. Returns the names of those that were registered.
    """
    options = pipeline_options(seed, threads, two_view_tracks=False, refine_cameras=False)
    loaded = load_model(model)
    registered = _register(loaded, database, options)
    with atomic_folder(output, SUMMARY) as folder:
        save_model(folder, loaded, summarize(loaded), {"seed": seed}, keep_outliers=False)
    return registered


def _register(
    model: pycolmap.Reconstruction, database: Path, options: pycolmap.IncrementalPipelineOptions
) -> list[str]:
    # all images: the mapper does not know what to do with one of the model that is not in the cache
    cache_options = pycolmap.DatabaseCacheOptions(min_num_matches=options.min_num_matches, load_all_images=True)
    with pycolmap.Database.open(database) as opened:
        cache = pycolmap.DatabaseCache.create(opened, cache_options)
    mapper_options = options.get_mapper()
    mapper_options.abs_pose_refine_focal_length = False
    mapper_options.abs_pose_refine_extra_params = False
    mapper = pycolmap.IncrementalMapper(cache)
    mapper.begin_reconstruction(model)  # adds the images of the cache
    waiting = sorted(image_id for image_id, image in model.images.items() if not image.has_pose)
    registered = []
    for image_id in progress(waiting, "registration", "image"):
        if mapper.register_next_image(mapper_options, image_id):
            registered.append(model.image(image_id).name)
    mapper.end_reconstruction(False)
    del mapper  # before the cache, which it refers to
    return registered
