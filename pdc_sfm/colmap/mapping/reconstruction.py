"""Cameras and points from images alone: `reconstruct`, and hloc's `reconstruction.main`."""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
import pycolmap

from pdc_sfm.colmap.io import database as db
from pdc_sfm.colmap.io.cameras import CameraMode, CameraSettings
from pdc_sfm.colmap.io.inputs import MappingInputs, open_inputs
from pdc_sfm.colmap.io.models import (
    SUMMARY,
    MappingResult,
    ReconstructionError,
    keep_model_apart,
    model_poses,
    named,
    save_model,
    summarize,
    write_model,
)
from pdc_sfm.colmap.mapping.evidence import weigh_pairs
from pdc_sfm.colmap.mapping.mappers import (
    Cameras,
    Models,
    drop_bad_images,
    map_globally,
    map_incrementally,
    read_cameras,
)
from pdc_sfm.colmap.mapping.parts import holds, separate_parts
from pdc_sfm.colmap.mapping.remarks import camera_remarks, explain_unregistered, remark_others
from pdc_sfm.colmap.mapping.two_stage import subsample_matches, triangulate_all
from pdc_sfm.colmap.mapping.verdict import join_verdicts, judge, judge_links
from pdc_sfm.colmap.mapping.verification import VerificationSettings, unverified, verify_by_estimation
from pdc_sfm.colmap.options import pipeline_options, thread_count
from pdc_sfm.colmap.quiet import colmap_log
from pdc_sfm.colmap.refinement.photometric import points_only, refine_keypoints
from pdc_sfm.errors import ImageError, SettingsError
from pdc_sfm.files import atomic_folder, exclusive
from pdc_sfm.progress import progress
from pdc_sfm.settings import require, to_dict

FEW_PARTNERS = 4  # of an image, on average: a sequence matched with two before and two after has so many
MIN_REGISTERED_RATIO = 0.8  # of the images registered: cameras are not looked for again
HIGH_CONFIDENCE = 0.74  # probability of being right of the matches used then (table in the model's card)


@dataclasses.dataclass(frozen=True)
class ReconstructionSettings:
    """How cameras and points are found."""

    mapper: Literal["incremental", "global"] = "incremental"  # global: GLOMAP
    camera: CameraSettings = dataclasses.field(default_factory=CameraSettings)
    verification: VerificationSettings = dataclasses.field(default_factory=VerificationSettings)
    verify: bool = True  # false: take the matches as they are
    min_score: float = 0.0  # matches of a lower probability of being right are not used
    # also points seen by two images only; null: if images have fewer than four partners
    two_view_tracks: bool | None = None
    # cameras are found by so many of each image, of long tracks, points by all; null: all find cameras
    mapping_keypoints: int | None = 8192
    # pairs with fewer than this share of the matches that link their images otherwise, and that these do not
    # confirm (things that look alike), find no cameras, only points; 0: all find cameras
    min_support_ratio: float = 0.6
    # parts of a map that only a pair of small patches joins become models of their own; false: they stay joined
    split_weak_links: bool = True
    # map again where a map is poor, up to four times in all: without images whose intrinsics ran away, with fixed
    # intrinsics where all did, and by the surest matches alone where few images register; false: once
    retry: bool = True
    refine_keypoints: bool = True  # move observations to where the images themselves agree, then adjust once more
    keep_outliers: bool = False  # stray points stay in points.ply; the model keeps all
    seed: int = 0  # of RANSAC and of the mapper
    # equal runs give equal maps, to the last bit: all is done on one thread; false: on all; null: up to 50 images cameras
    # are found on one, so that equal runs differ by rounding alone
    reproducible: bool | None = None
    threads: int = 0  # 0: all cores

    def __post_init__(self) -> None:
        require(self.min_score >= 0, f"min_score={self.min_score} must not be negative")
        top = self.mapping_keypoints
        require(top is None or top >= 100, f"mapping_keypoints={top} must be at least 100, or null for all")
        require(0 <= self.min_support_ratio <= 1, f"min_support_ratio={self.min_support_ratio} must be a share, 0 to 1")
        require(self.threads >= 0, f"threads={self.threads} must not be negative (0: all cores)")


def reconstruct(
    images: Path | str,
    pairs: Path | str,
    features: Path | str,
    matches: Path | str,
    output: Path | str,
    settings: ReconstructionSettings | None = None,
    image_list: Collection[str] | None = None,
    mapper_options: Mapping[str, Any] | None = None,
    verbose: bool = False,
) -> MappingResult:
    """Reconstruct the images of a pair list (or those of `image_list`). The largest model goes to `output`."""
    settings, images = settings or ReconstructionSettings(), Path(images)
    if not images.is_dir():
        raise ImageError(f"{images} is not a folder of images")
    keep_model_apart(images, (pairs, features, matches), output)
    chosen = None if image_list is None else set(image_list)
    with (
        exclusive(output),
        open_inputs(pairs, features, matches, chosen, "the chosen images") as inputs,
        atomic_folder(output, SUMMARY) as folder,
        colmap_log(verbose),
    ):
        with db.writing(folder / "database.db"):
            _fill_database(folder / "database.db", images, inputs, settings)
        job = _MappingJob(folder / "database.db", images, settings, mapper_options)
        models, cameras = job.run(), read_cameras(folder / "database.db")
        few = models[0].num_reg_images() < MIN_REGISTERED_RATIO * len(inputs.names)
        if settings.retry and few and _some_are_surer(inputs, settings.min_score):
            models = _attempt_with_sure_matches(job, models, inputs)
        held = settings.camera.refine and _as_guessed(models[0], cameras)
        model, others = job.finish(models[0], settings.camera.refine and not held), models[1:]
        drop_bad_images(model, cameras)
        pairs_found = list(weigh_pairs(model, folder / "database.db"))
        links = judge_links(model, pairs_found)
        joined = set(model_poses(model))
        if settings.split_weak_links:
            model, *apart = separate_parts(model, pairs_found)
            others = apart + others
        summary = summarize(model, inputs.listed)
        verdict = join_verdicts(judge(model, summary, cameras, held), links)
        remarks = explain_unregistered(model, folder / "database.db", inputs.names, joined)
        remarks += remark_others(others) + camera_remarks(model, settings.camera)
        notes = {"settings": to_dict(job.settings), "left_out": inputs.left_out, "remarks": remarks}
        notes |= {"verdict": dataclasses.asdict(verdict), "inputs": named(images, features), **job.notes}
        save_model(folder, model, summary, notes, settings.keep_outliers)
        for number, other in enumerate(others, start=1):
            (folder / "models" / str(number)).mkdir(parents=True)
            write_model(folder / "models" / str(number), other)
    return MappingResult(model, summary, inputs.left_out, remarks, verdict)


def _as_guessed(model: pycolmap.Reconstruction, cameras: Cameras) -> bool:
    """Whether all cameras of a model are as before mapping, though nothing was known of some."""
    used = {model.image(image_id).camera_id for image_id in model.reg_image_ids()}
    same = all(np.array_equal(model.camera(i).params, cameras[i].params) for i in used)
    return same and not all(cameras[i].has_prior_focal_length for i in used)


def _some_are_surer(inputs: MappingInputs, min_score: float) -> bool:
    """Whether the surest are a part of the matches in use: not all, as where scores are missing, and not none."""
    kinds = set()
    for pair in inputs.pairs:
        scores = inputs.matches.matches(*pair)[1]
        kinds |= set((scores[scores >= min_score] >= HIGH_CONFIDENCE).tolist())
        if len(kinds) == 2:
            return True
    return False


def _attempt_with_sure_matches(job: _MappingJob, models: Models, inputs: MappingInputs) -> Models:
    """Cameras by the surest matches alone, which lead astray less: the models of the attempt that has more images."""
    path, settings = job.database.with_name("sure.db"), dataclasses.replace(job.settings, min_score=HIGH_CONFIDENCE)
    try:
        with db.writing(path):
            _fill_database(path, job.images, inputs, settings)
        attempt = dataclasses.replace(job, database=path, settings=settings, notes={})
        other = attempt.run()
    except ReconstructionError:
        return models
    finally:
        path.unlink(missing_ok=True)
    if other[0].num_reg_images() <= models[0].num_reg_images():
        return models
    job.dense = True  # points of all matches
    job.notes |= {**attempt.notes, "cameras_from_matches_above": HIGH_CONFIDENCE}
    return other


def _fill_database(path: Path, images: Path, inputs: MappingInputs, settings: ReconstructionSettings) -> None:
    image_ids = db.create_from_images(path, images, list(inputs.names), settings.camera)
    with pycolmap.Database.open(path) as database:
        by_id = {camera.camera_id: camera for camera in database.read_all_cameras()}
        cameras = {image.name: by_id[image.camera_id] for image in database.read_all_images()}

        def verify(name0: str, name1: str, found: np.ndarray) -> pycolmap.TwoViewGeometry:
            if not settings.verify:
                return unverified(found)
            both = cameras[name0], cameras[name1]
            points = inputs.keypoints.points(name0), inputs.keypoints.points(name1)
            return verify_by_estimation(both, points, found, settings.verification, settings.seed)

        db.write_keypoints(database, image_ids, progress(inputs.names, "keypoints", "image"), inputs.keypoints)
        pairs = progress(inputs.pairs, "verification", "pair")
        threads = thread_count(settings.threads)
        kept = db.write_matches(
            database, image_ids, pairs, inputs.matches, inputs.keypoints, verify, settings.min_score, threads
        )
    if kept == 0:
        raise ReconstructionError(
            f"none of {len(inputs.pairs)} pairs has {settings.verification.min_inliers} matches that agree with one "
            "geometry: the images may not overlap, or features and matches are of other images"
        )


def _settle_tracks(path: Path, settings: ReconstructionSettings) -> ReconstructionSettings:
    """Where images have few partners, most points are seen by two of them, and cameras need these points too."""
    if settings.two_view_tracks is not None:
        return settings
    with pycolmap.Database.open(path) as database:
        partners = 2 * database.num_verified_image_pairs() / max(1, database.num_images())
    return dataclasses.replace(settings, two_view_tracks=partners < FEW_PARTNERS)


@dataclasses.dataclass
class _MappingJob:
    """A filled database and what is to be made of it."""

    database: Path
    images: Path
    settings: ReconstructionSettings
    mapper_options: Mapping[str, Any] | None
    dense: bool = False  # whether the database has more matches than the mapper saw
    notes: dict[str, Any] = dataclasses.field(default_factory=dict)

    def run(self) -> Models:
        """All models that COLMAP finds, the one with most images first."""
        scratch = self.database.with_name("models")  # COLMAP writes every model it tries
        scratch.mkdir()
        weak = subsample_matches(
            self.database, scratch / "thin.db", self.settings.mapping_keypoints, self.settings.min_support_ratio
        )
        self.dense, self.notes["min_support_ratio"] = weak is not None, weak or 0
        chosen = scratch / "thin.db" if self.dense else self.database
        self.settings = settings = _settle_tracks(chosen, self.settings)
        mapper = map_incrementally if settings.mapper == "incremental" else map_globally
        models = mapper(chosen, self.images, scratch, settings, settings.camera.refine, self.mapper_options)
        shutil.rmtree(scratch)
        models = [model for model in models if holds(model)]
        if not models:
            raise ReconstructionError(
                "COLMAP found no model: no two images have enough verified matches seen from different places "
                "(more overlap, camera.params, or a lower min_score may help; --verbose shows what COLMAP tried)"
            )
        return models

    def finish(self, model: pycolmap.Reconstruction, refine: bool) -> pycolmap.Reconstruction:
        """Sharpen a model, with other intrinsics if `refine`, then add the points of all other keypoints."""
        settings = self.settings
        extra = self.mapper_options if settings.mapper == "incremental" else None
        threads, tracks = 1 if settings.reproducible else settings.threads, bool(settings.two_view_tracks)
        options = pipeline_options(settings.seed, threads, tracks, refine, extra)
        bundle = options.get_global_bundle_adjustment()
        if settings.refine_keypoints:
            self.notes["refined_keypoints"] = dataclasses.asdict(refine_keypoints(model, self.images, bundle))
        if not self.dense:
            return model
        dense = triangulate_all(pycolmap.Reconstruction(model), self.database, self.images, options)
        if dense.num_points3D() < model.num_points3D():  # cameras too close together for new points
            return model
        if settings.refine_keypoints:
            refine_keypoints(dense, self.images, points_only(bundle), rounds=1)
        return dense


def main(
    sfm_dir: Path,
    image_dir: Path,
    pairs: Path,
    features: Path,
    matches: Path,
    camera_mode: pycolmap.CameraMode | str = pycolmap.CameraMode.AUTO,
    verbose: bool = False,
    skip_geometric_verification: bool = False,
    min_match_score: float | None = None,
    image_list: Collection[str] | None = None,
    image_options: Mapping[str, Any] | None = None,
    mapper_options: Mapping[str, Any] | None = None,
) -> pycolmap.Reconstruction:
    """`reconstruct` with the signature of hloc's `reconstruction.main`. It raises where hloc returns None."""
    image_options = dict(image_options or {})
    params = str(image_options.pop("camera_params", ""))
    camera = CameraSettings(
        model=str(image_options.pop("camera_model", "SIMPLE_RADIAL")),
        params=tuple(float(p) for p in params.split(",")) if params else (),
        mode=cast(CameraMode, getattr(camera_mode, "name", str(camera_mode)).lower()),  # checked by its settings
    )
    if image_options:
        raise SettingsError(f"image_options know camera_model and camera_params, not {', '.join(image_options)}")
    settings = ReconstructionSettings(
        camera=camera, verify=not skip_geometric_verification, min_score=min_match_score or 0.0
    )
    inputs = (image_dir, pairs, features, matches)
    result = reconstruct(*inputs, sfm_dir, settings, image_list, mapper_options, verbose)
    result.warn()
    return result.model
