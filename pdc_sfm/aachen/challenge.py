"""The local-feature challenge: fixed pairs, fixed poses and intrinsics, night queries registered by COLMAP.

The steps are those of the benchmark's own script (README of CHALLENGE_SITE), only the matcher is ours.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pycolmap

from pdc_sfm.aachen.challenge_database import fill_database, verify_database
from pdc_sfm.aachen.dataset import AachenDataset, LayoutError, check_files, check_images
from pdc_sfm.aachen.reference import build_reference, read_database_images, read_intrinsics, read_reference
from pdc_sfm.aachen.registration import register_images
from pdc_sfm.aachen.steps import Steps
from pdc_sfm.colmap.cameras import read_camera_list
from pdc_sfm.colmap.models import SUMMARY, ReconstructionError, load_model, save_model, summarize
from pdc_sfm.colmap.options import pipeline_options, thread_count
from pdc_sfm.colmap.quiet import colmap_log
from pdc_sfm.colmap.results import write_poses
from pdc_sfm.errors import FormatError
from pdc_sfm.files import atomic_folder, exclusive
from pdc_sfm.settings import require, to_dict
from pdc_sfm.store.pair_lists import read_pairs, unique_pairs, write_pairs

# Matches a pair list: (images, pairs, features, matches), the last two are hloc files it writes, going on where it was.
Matcher = Callable[[Path, Path, Path, Path], None]


@dataclasses.dataclass(frozen=True)
class ChallengeSettings:
    """The protocol leaves no choice but these."""

    method: str = "pdcnet_plus"  # in the name of the result
    seed: int = 0
    threads: int = 0  # 0: all cores

    def __post_init__(self) -> None:
        require(self.method != "" and "/" not in self.method, f"method={self.method} must be a word without slashes")
        require(self.threads >= 0, f"threads={self.threads} must not be negative (0: all cores)")


@dataclasses.dataclass(frozen=True)
class ChallengeResult:
    """The file to upload, and which night queries are in it."""

    path: Path
    poses: dict[str, pycolmap.Rigid3d]
    unregistered: tuple[str, ...]

    def __str__(self) -> str:
        total = len(self.poses) + len(self.unregistered)
        return f"{len(self.poses)} of {total} night queries registered"


def check_challenge(dataset: AachenDataset) -> None:
    """Everything the challenge needs, before hours of matching; all that is missing is said at once."""
    problems = check_files(dataset, challenge=True)
    if problems:
        raise LayoutError(dataset, problems)
    ids = read_database_images(dataset.challenge_database)
    pairs = read_pairs(dataset.challenge_pairs)
    listed = sorted({name for pair in pairs for name in pair})
    unknown = [name for name in listed if name not in ids]
    if unknown:
        raise FormatError(
            f"{dataset.challenge_database} does not know {len(unknown)} images of {dataset.challenge_pairs} "
            f"(first: {unknown[0]}): it belongs to another version than {dataset.version}"
        )
    queries = list(read_camera_list(dataset.night_queries))
    strangers = [name for name in queries if name not in ids]
    if strangers:
        raise FormatError(
            f"{dataset.challenge_database} does not know {len(strangers)} queries of {dataset.night_queries} "
            f"(first: {strangers[0]}): it belongs to another version than {dataset.version}"
        )
    problems = check_images(dataset, listed)
    if problems:
        raise LayoutError(dataset, problems)


def run_challenge(
    dataset: AachenDataset,
    output: Path | str,
    match: Matcher,
    settings: ChallengeSettings | None = None,
    matching: Any = None,
    say: Callable[[str], None] = print,
    verbose: bool = False,
) -> ChallengeResult:
    """From the dataset's folder to the file one uploads, in `output`. `matching` describes `match` (its settings)."""
    settings, output = settings or ChallengeSettings(), Path(output)
    check_challenge(dataset)
    output.mkdir(parents=True, exist_ok=True)
    pairs, features, matches = output / "pairs.txt", output / "features.h5", output / "matches.h5"
    empty, database = output / "sfm_empty", output / "database.db"
    triangulated, registered = output / "sfm_database", output / "sfm_registered"
    result = output / dataset.result_name(settings.method, challenge=True)
    with exclusive(output / "steps.json"), colmap_log(verbose):
        steps = Steps(output, say)
        version = {"version": dataset.version, "root": str(dataset.root.resolve())}
        steps.run("pairs", version, [pairs], lambda: _write_unique(dataset.challenge_pairs, pairs))
        steps.run("reference poses", None, [empty / SUMMARY], lambda: _write_empty(dataset, empty))
        steps.run("matching", matching, [features, matches], lambda: match(dataset.images, pairs, features, matches))
        source = dataset.challenge_database
        steps.run("database", None, [database], lambda: fill_database(source, database, pairs, features, matches))
        steps.run("verification", settings.seed, [database], lambda: verify_database(database, pairs, settings.seed))
        work = lambda: _triangulate(empty, database, dataset.images, triangulated, settings)  # noqa: E731
        steps.run("triangulation", None, [triangulated / SUMMARY], work)
        work = lambda: _register(triangulated, database, registered, settings)  # noqa: E731
        steps.run("registration", None, [registered / SUMMARY], work)
        poses, unregistered = night_poses(load_model(registered), dataset)
        write_poses(result, poses)
    return ChallengeResult(result, poses, unregistered)


def night_poses(
    model: pycolmap.Reconstruction, dataset: AachenDataset
) -> tuple[dict[str, pycolmap.Rigid3d], tuple[str, ...]]:
    """Poses of the night queries in a model, and those that are not in it."""
    found = {image.name: image for image in (model.image(i) for i in model.reg_image_ids())}
    queries = list(read_camera_list(dataset.night_queries))
    poses = {name: found[name].cam_from_world() for name in queries if name in found}
    return poses, tuple(name for name in queries if name not in found)


def _write_unique(source: Path, target: Path) -> None:
    write_pairs(target, unique_pairs(read_pairs(source)))


def _write_empty(dataset: AachenDataset, output: Path) -> None:
    ids = read_database_images(dataset.challenge_database)
    model = build_reference(read_reference(dataset, points=False), read_intrinsics(dataset), ids, str(dataset.nvm))
    with atomic_folder(output, SUMMARY) as folder:
        save_model(folder, model, summarize(model), {}, keep_outliers=True)


def _triangulate(
    empty: Path, database: Path, images: Path, output: Path, settings: ChallengeSettings
) -> None:
    """The points of the database images, with poses and intrinsics as they are."""
    options = pipeline_options(settings.seed, settings.threads, False, False, None)
    with atomic_folder(output, SUMMARY) as folder:
        model = pycolmap.triangulate_points(load_model(empty), database, images, folder, options=options)
        if model.num_points3D() == 0:
            raise ReconstructionError("COLMAP triangulated no point: are these matches of this dataset's images?")
        save_model(folder, model, summarize(model), {"settings": to_dict(settings)}, keep_outliers=False)


def _register(triangulated: Path, database: Path, output: Path, settings: ChallengeSettings) -> None:
    model = load_model(triangulated)
    options = pipeline_options(settings.seed, thread_count(settings.threads), False, False, None)
    register_images(model, database, options)
    with atomic_folder(output, SUMMARY) as folder:
        save_model(folder, model, summarize(model), {"settings": to_dict(settings)}, keep_outliers=False)
