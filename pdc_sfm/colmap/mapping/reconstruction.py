"""Cameras and points from images alone: `reconstruct`, and hloc's `reconstruction.main`."""

from __future__ import annotations

import dataclasses
import logging
import shutil
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast

import pycolmap

from pdc_sfm.colmap.georeference.align import PositionSettings, find_positions, georeference_models
from pdc_sfm.colmap.io import database as db
from pdc_sfm.colmap.io.cameras import CameraMode, CameraSettings
from pdc_sfm.colmap.io.frame import write_frame
from pdc_sfm.colmap.io.inputs import MappingInputs, open_inputs
from pdc_sfm.colmap.io.models import (
    SUMMARY,
    MappingResult,
    ReconstructionError,
    Verdict,
    keep_model_apart,
    model_poses,
    named,
    save_model,
    summarize,
    write_model,
)
from pdc_sfm.colmap.io.rigs import RIG_FILE, Rigs, apply_rigs, check_images, read_rig_file, write_rig_file
from pdc_sfm.colmap.mapping.intrinsics import Adjusted, Cameras, adjusted, tells_focal_lengths, used_cameras
from pdc_sfm.colmap.mapping.mappers import (
    Models,
    drop_bad_images,
    map_globally,
    map_incrementally,
    read_cameras,
)
from pdc_sfm.colmap.mapping.parts import CheckedParts, check_parts, holds
from pdc_sfm.colmap.mapping.remarks import STOOD_STILL, camera_remarks, explain_unregistered, remark_others
from pdc_sfm.colmap.mapping.rig_calibration import estimate_rigs, rig_remarks, rigs_of
from pdc_sfm.colmap.mapping.two_stage import subsample_matches, triangulate_all
from pdc_sfm.colmap.mapping.verdict import join_verdicts, judge, judge_views
from pdc_sfm.colmap.mapping.verification import VerificationSettings
from pdc_sfm.colmap.mapping.verified_database import fill_verified
from pdc_sfm.colmap.options import keep_distortion, pipeline_options
from pdc_sfm.colmap.quiet import colmap_log
from pdc_sfm.colmap.refinement.photometric import points_only, refine_keypoints
from pdc_sfm.errors import ImageError, SettingsError
from pdc_sfm.files import atomic_folder, exclusive
from pdc_sfm.settings import require, to_dict
from pdc_sfm.store.control import Control, read_control
from pdc_sfm.store.positions import Positions

log = logging.getLogger(__name__)

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
    # parts of a map that only a pair of small patches joins become models of their own, and images that pairs disagree on
    # are left out; false: they stay
    split_weak_links: bool = True
    # map again where a map is poor, up to four times in all: without images whose intrinsics ran away, with fixed
    # intrinsics where all did or left what EXIF says, and by the surest matches alone where few images register; false: once
    retry: bool = True
    positions: PositionSettings = dataclasses.field(default_factory=PositionSettings)
    refine_keypoints: bool = True  # move observations to where the images themselves agree, then adjust once more
    keep_outliers: bool = False  # stray points stay in points.ply; the model keeps all
    seed: int = 0  # of RANSAC and of the mapper
    # equal runs give equal maps, to the last bit: all is done on one thread; false: on all; null: up to 50 images cameras
    # are found on one, so that equal runs differ by rounding alone
    reproducible: bool | None = None
    # adjust how the cameras of a rig stand to each other; null: where the rig file does not say it
    refine_rig: bool | None = None
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
    rig: Path | str | Rigs = (),
    *,
    positions: Path | str | Positions | None = None,
    control: Path | str | Control | None = None,
) -> MappingResult:
    """Reconstruct the images of a pair list (or those of `image_list`). The largest model goes to `output`.

    `rig` is a file of cameras that are fixed to each other (`io.rigs`). Where it does not say how, that is estimated from a
    map made without it. `positions` (else EXIF's GPS) and `control` bring the model into metres, where they are enough.
    """
    settings, images = settings or ReconstructionSettings(), Path(images)
    if not images.is_dir():
        raise ImageError(f"{images} is not a folder of images")
    keep_model_apart(images, (pairs, features, matches, *([] if isinstance(rig, tuple) else [rig])), output)
    rigs = rig if isinstance(rig, tuple) else read_rig_file(rig)
    if settings.refine_rig is None:
        settings = dataclasses.replace(settings, refine_rig=not all(one.is_known for one in rigs))
    control = read_control(control) if isinstance(control, Path | str) else control
    chosen = None if image_list is None else set(image_list)
    with (
        exclusive(output),
        open_inputs(pairs, features, matches, chosen, "the chosen images") as inputs,
        atomic_folder(output, SUMMARY) as folder,
        colmap_log(verbose),
    ):
        check_images(rigs, inputs.names)
        known = find_positions(positions, images, inputs.names, settings.positions)
        database, split = folder / "database.db", settings.split_weak_links
        with db.writing(database):
            stillness = fill_verified(database, images, inputs, settings, rigs)
        job = _MappingJob(database, images, settings, mapper_options, rigs)
        models, cameras = job.run(), read_cameras(database)
        few = models[0].num_reg_images() < MIN_REGISTERED_RATIO * len(inputs.names)
        if settings.retry and few and _some_are_surer(inputs, settings.min_score):
            models = _attempt_with_sure_matches(job, models, inputs)
        main, others = _largest_proven(job, models, cameras, split)
        model = main.model
        bundle = job.options(main.adjusted).get_global_bundle_adjustment()
        # its metres are the map's
        has_size = bool(rigs) and all(one.is_known and one.has_size and one.in_metres for one in rigs)
        placed = georeference_models([model, *others], images, known, control, settings.positions, bundle, has_size)
        summary = summarize(model, inputs.listed)
        verdict = join_verdicts(judge(model, summary, cameras, main.untold), main.parts.verdict)
        verdict = join_verdicts(verdict, judge_views(model, stillness.same_views))
        if placed[0].doubts:
            verdict = join_verdicts(Verdict("doubtful", placed[0].doubts), verdict)
        remarks = explain_unregistered(model, database, inputs.names, main.joined, main.parts.disputed)
        remarks += remark_others(others) + camera_remarks(model, settings.camera, main.adjusted) + placed[0].remarks
        remarks += rig_remarks(model, rigs, job.rigs) + ((STOOD_STILL,) if stillness.moving else ())
        notes: dict[str, Any] = {"settings": to_dict(job.settings), "left_out": inputs.left_out, "remarks": remarks}
        notes |= {"metres": True} if has_size else {}
        notes |= {"verdict": dataclasses.asdict(verdict), "inputs": named(images, features), **job.notes}
        save_model(folder, model, summary, notes, settings.keep_outliers, placed[0].frame)
        if rigs:
            in_metres = has_size or placed[0].frame is not None
            write_rig_file(folder / RIG_FILE, rigs_of(model, job.rigs, in_metres))
        for number, other in enumerate(others, start=1):
            (folder / "models" / str(number)).mkdir(parents=True)
            write_model(folder / "models" / str(number), other)
            write_frame(folder / "models" / str(number), placed[number].frame)
    return MappingResult(model, summary, inputs.left_out, remarks, verdict)


class _Finished(NamedTuple):
    """A model with all its points, and what its check made of it."""

    parts: CheckedParts
    joined: set[str]  # names of the images that it had before the check
    adjusted: Adjusted  # of its intrinsics
    untold: bool  # whether the photographs do not tell focal lengths that nothing else tells

    @property
    def model(self) -> pycolmap.Reconstruction:
        """Its largest part."""
        return self.parts.models[0]


def _largest_proven(job: _MappingJob, models: Models, cameras: Cameras, split: bool) -> tuple[_Finished, Models]:
    """The model whose proven part has most images, and all others: the largest of all may fall apart into small ones."""

    def finished(model: pycolmap.Reconstruction) -> _Finished:
        done = adjusted(model, cameras)
        model = job.finish(model, done)
        drop_bad_images(model, cameras)
        parts, names = check_parts(model, job.database, job.images, split), set(model_poses(model))
        return _Finished(parts, names, done, _are_untold(parts.models[0], done, job))

    best, others = finished(models[0]), []
    for model in models[1:]:
        if model.num_reg_images() <= best.model.num_reg_images():
            others += check_parts(model, job.database, job.images, split).models
            continue
        best, other = sorted((best, finished(model)), key=lambda one: -one.model.num_reg_images())
        others += other.parts.models
    images = set(model_poses(best.model))
    return best, best.parts.models[1:] + [other for other in others if not images.issuperset(model_poses(other))]


def _are_untold(model: pycolmap.Reconstruction, done: Adjusted, job: _MappingJob) -> bool:
    """Whether focal lengths ran away, and what is there instead is hardly better than a guess."""
    known = all(model.camera(i).has_prior_focal_length for i in used_cameras(model))
    if done == "all" or known or not job.settings.camera.refine:
        return False
    return done == "nothing" or not tells_focal_lengths(model, job.options(done).get_global_bundle_adjustment())


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
            fill_verified(path, job.images, inputs, settings, job.rigs)
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
    rigs: Rigs = ()
    dense: bool = False  # whether the database has more matches than the mapper saw
    notes: dict[str, Any] = dataclasses.field(default_factory=dict)

    def run(self) -> Models:
        """All models that COLMAP finds, the one with most images first."""
        if not all(rig.is_known for rig in self.rigs):
            log.info("rig: how its cameras stand to each other is estimated from a map without it ...")
            self.rigs = estimate_rigs(self._map()[0], self.rigs)
            with pycolmap.Database.open(self.database) as database:
                apply_rigs(database, self.rigs)
        return self._map()

    def _map(self) -> Models:
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

    def options(self, refined: Adjusted) -> pycolmap.IncrementalPipelineOptions:
        """Of what is done after mapping, with other intrinsics where these were adjusted."""
        settings = self.settings
        extra = self.mapper_options if settings.mapper == "incremental" else None
        threads, tracks = 1 if settings.reproducible else settings.threads, bool(settings.two_view_tracks)
        options = pipeline_options(
            settings.seed, threads, tracks, refined != "nothing", extra, refine_rig=bool(settings.refine_rig)
        )
        return keep_distortion(options) if refined == "focal lengths" else options

    def finish(self, model: pycolmap.Reconstruction, refined: Adjusted) -> pycolmap.Reconstruction:
        """Sharpen a model, with other intrinsics where these were adjusted, then add the points of all other keypoints."""
        settings, options = self.settings, self.options(refined)
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
