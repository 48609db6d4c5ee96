"""Points of a scene whose cameras are known: `triangulate`, and hloc's `triangulation.main`."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pycolmap

from pdc_sfm.colmap.io import database as db
from pdc_sfm.colmap.io.cameras import rays_of
from pdc_sfm.colmap.io.frame import read_frame
from pdc_sfm.colmap.io.inputs import MappingInputs, open_inputs
from pdc_sfm.colmap.io.models import (
    SUMMARY,
    MappingResult,
    ReconstructionError,
    keep_model_apart,
    load_model,
    named,
    save_model,
    summarize,
)
from pdc_sfm.colmap.mapping.known_poses import judge_poses
from pdc_sfm.colmap.mapping.verdict import join_verdicts, judge
from pdc_sfm.colmap.mapping.verification import (
    VerificationSettings,
    unverified,
    verify_by_estimation,
    verify_with_poses,
)
from pdc_sfm.colmap.options import pipeline_options, thread_count
from pdc_sfm.colmap.quiet import colmap_log
from pdc_sfm.colmap.refinement.photometric import points_only, refine_keypoints
from pdc_sfm.errors import ImageError
from pdc_sfm.files import atomic_folder, exclusive
from pdc_sfm.progress import progress
from pdc_sfm.settings import require, to_dict

Geometry = Literal["known", "estimated", "none"]


@dataclasses.dataclass(frozen=True)
class TriangulationSettings:
    """How points are made from matches and known cameras."""

    # known: matches must agree with the known poses, within each keypoint's own uncertainty; estimated: with a
    # geometry estimated from themselves; none: they are taken as they are
    geometry: Geometry = "known"
    verification: VerificationSettings = dataclasses.field(default_factory=VerificationSettings)
    min_score: float = 0.0  # matches of a lower probability of being right are not used
    two_view_tracks: bool = False  # also points seen by two images only
    refine_keypoints: bool = (
        True  # move observations to where the images themselves agree, then place the points once more
    )
    keep_outliers: bool = False  # stray points stay in points.ply; the model keeps all
    seed: int = 0  # of RANSAC
    threads: int = 0  # 0: all cores

    def __post_init__(self) -> None:
        require(self.min_score >= 0, f"min_score={self.min_score} must not be negative")
        require(self.threads >= 0, f"threads={self.threads} must not be negative (0: all cores)")


def triangulate(
    reference: Path | str | pycolmap.Reconstruction,
    images: Path | str,
    pairs: Path | str,
    features: Path | str,
    matches: Path | str,
    output: Path | str,
    settings: TriangulationSettings | None = None,
    mapper_options: Mapping[str, Any] | None = None,
    verbose: bool = False,
) -> MappingResult:
    """Triangulate matches between the posed images of `reference`. The model in `output` has the same poses."""
    settings = settings or TriangulationSettings()
    given = () if isinstance(reference, pycolmap.Reconstruction) else (reference,)
    frame = read_frame(given[0]) if given else None  # poses stay, and with them the frame
    keep_model_apart(images, (pairs, features, matches), output, given)
    if isinstance(reference, pycolmap.Reconstruction):
        reference = pycolmap.Reconstruction(reference)  # it will be filled with points
    else:
        reference = load_model(reference)
    posed = {reference.image(i).name for i in reference.reg_image_ids()}
    with (
        exclusive(output),
        open_inputs(pairs, features, matches, posed, "the model") as inputs,
        atomic_folder(output, SUMMARY) as folder,
        colmap_log(verbose),
    ):
        absent = (
            [name for name in inputs.names if not (Path(images) / name).is_file()] if settings.refine_keypoints else []
        )
        if absent:
            raise ImageError(
                f"{len(absent)} images are not in {images} (first: {absent[0]}); refine_keypoints=false needs none"
            )
        with db.writing(folder / "database.db"):
            _fill_database(folder / "database.db", reference, inputs, settings)
        options = pipeline_options(settings.seed, settings.threads, settings.two_view_tracks, False, mapper_options)
        model = _run(reference, folder, Path(images), options)
        notes = {"settings": to_dict(settings), "inputs": named(images, features), "left_out": inputs.left_out}
        if settings.refine_keypoints:
            bundle = points_only(options.get_global_bundle_adjustment())
            notes["refined_keypoints"] = dataclasses.asdict(refine_keypoints(model, Path(images), bundle, rounds=1))
        summary = summarize(model, len(posed))
        poses = judge_poses(model, folder / "database.db", settings.verification, settings.seed)
        verdict = join_verdicts(judge(model, summary), poses)
        notes["verdict"] = dataclasses.asdict(verdict)
        save_model(folder, model, summary, notes, settings.keep_outliers, frame)
    return MappingResult(model, summary, inputs.left_out, verdict=verdict)


def _fill_database(
    path: Path, reference: pycolmap.Reconstruction, inputs: MappingInputs, settings: TriangulationSettings
) -> None:
    image_ids = db.create_from_model(path, reference)
    with pycolmap.Database.open(path) as database:
        db.write_keypoints(database, image_ids, progress(inputs.names, "keypoints", "image"), inputs.keypoints)
        kept = db.write_matches(
            database,
            image_ids,
            progress(inputs.pairs, "verification", "pair"),
            inputs.matches,
            inputs.keypoints,
            _verifier(reference, image_ids, inputs.keypoints, settings),
            settings.min_score,
            thread_count(settings.threads),
        )
    if kept == 0:
        raise ReconstructionError(
            f"no match of {len(inputs.pairs)} pairs agrees with the geometry ({settings.geometry}): "
            "do model, features and matches come from the same images?"
        )


def _verifier(
    reference: pycolmap.Reconstruction,
    image_ids: dict[str, int],
    keypoints: db.DatabaseKeypoints,
    settings: TriangulationSettings,
) -> db.Verifier:
    cameras = {name: reference.camera(reference.image(i).camera_id) for name, i in image_ids.items()}
    poses = {name: reference.image(i).cam_from_world() for name, i in image_ids.items() if reference.image(i).has_pose}
    rays = functools.lru_cache(512)(lambda name: rays_of(cameras[name], keypoints.points(name)))

    def verify(name0: str, name1: str, matches: np.ndarray) -> pycolmap.TwoViewGeometry:
        both = cameras[name0], cameras[name1]
        if settings.geometry == "none":
            return unverified(matches)
        if settings.geometry == "estimated":
            points = keypoints.points(name0), keypoints.points(name1)
            return verify_by_estimation(both, points, matches, settings.verification, settings.seed)
        uncertainties = keypoints.uncertainty(name0), keypoints.uncertainty(name1)
        cam1_from_cam0 = poses[name1] * poses[name0].inverse()
        both_rays = rays(name0), rays(name1)
        return verify_with_poses(both, cam1_from_cam0, both_rays, uncertainties, matches, settings.verification)

    return verify


def _run(
    reference: pycolmap.Reconstruction, folder: Path, images: Path, options: pycolmap.IncrementalPipelineOptions
) -> pycolmap.Reconstruction:
    model = pycolmap.triangulate_points(reference, folder / "database.db", images, folder, options=options)
    if model.num_points3D() == 0:
        raise ReconstructionError(
            "COLMAP triangulated no point from the verified matches: tracks may be seen by two images only "
            "(two_view_tracks=true), or the cameras are too close to each other"
        )
    return model


def main(
    sfm_dir: Path,
    reference_model: Path,
    image_dir: Path,
    pairs: Path,
    features: Path,
    matches: Path,
    skip_geometric_verification: bool = False,
    estimate_two_view_geometries: bool = False,
    min_match_score: float | None = None,
    verbose: bool = False,
    mapper_options: Mapping[str, Any] | None = None,
) -> pycolmap.Reconstruction:
    """`triangulate` with the signature of hloc's `triangulation.main`."""
    geometry: Geometry = (
        "none" if skip_geometric_verification else "estimated" if estimate_two_view_geometries else "known"
    )
    settings = TriangulationSettings(geometry=geometry, min_score=min_match_score or 0.0)
    inputs = (reference_model, image_dir, pairs, features, matches)
    result = triangulate(*inputs, sfm_dir, settings, mapper_options, verbose)
    result.warn()
    return result.model
