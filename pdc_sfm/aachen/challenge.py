"""The local-feature challenge: fixed pairs, fixed poses and intrinsics, night queries registered by COLMAP.

The steps are those of the benchmark's own script (README of CHALLENGE_SITE), only the matcher is ours.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

from pdc_sfm.aachen.dataset import AachenDataset, LayoutError, check_files, check_images, describe_dataset
from pdc_sfm.aachen.reference import write_reference
from pdc_sfm.colmap.io.cameras import read_camera_list
from pdc_sfm.colmap.io.database_images import read_database_images
from pdc_sfm.colmap.io.inputs import open_inputs
from pdc_sfm.colmap.io.models import SUMMARY, load_model
from pdc_sfm.colmap.io.results import write_poses
from pdc_sfm.colmap.mapping.filled_database import fill_database, verify_database
from pdc_sfm.colmap.mapping.registration import register_images, triangulate_database
from pdc_sfm.colmap.quiet import colmap_log
from pdc_sfm.colmap.types import Rigid3d
from pdc_sfm.errors import FormatError
from pdc_sfm.files import exclusive, file_digest
from pdc_sfm.paths import keep_apart
from pdc_sfm.pipeline.matching import ListMatcher
from pdc_sfm.pipeline.steps import Steps
from pdc_sfm.settings import require, require_file_name
from pdc_sfm.store.pair_lists import read_pairs, unique_pairs, write_pairs


@dataclasses.dataclass(frozen=True)
class ChallengeSettings:
    """The settings that the protocol leaves open."""

    method: str = "pdcnet_plus"  # in the name of the result
    seed: int = 0  # of all random numbers
    threads: int = 0  # 0: all cores

    def __post_init__(self) -> None:
        require_file_name(self.method, "method")
        require(self.threads >= 0, f"threads={self.threads} must not be negative (0: all cores)")


@dataclasses.dataclass(frozen=True)
class ChallengeResult:
    """The file to upload, and which night queries are in it."""

    path: Path
    poses: dict[str, Rigid3d]
    unregistered: tuple[str, ...]
    left_out: tuple[str, ...]  # what of the pair list could not be used

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


@dataclasses.dataclass(frozen=True)
class _ChallengeRun:
    """The files of a run, and its steps."""

    dataset: AachenDataset
    output: Path
    match: ListMatcher
    settings: ChallengeSettings

    def file(self, name: str) -> Path:
        return self.output / name

    def write_pairs(self) -> None:
        """The official list without its reversed repetitions."""
        write_pairs(self.file("pairs.txt"), unique_pairs(read_pairs(self.dataset.challenge_pairs)))

    def write_reference(self) -> None:
        write_reference(self.dataset, self.file("sfm_empty"), self.dataset.challenge_database)

    def match_all(self) -> None:
        self.match(self.dataset.images, *map(self.file, ("pairs.txt", "features.h5", "matches.h5")))

    def fill_database(self) -> None:
        inputs = map(self.file, ("database.db", "pairs.txt", "features.h5", "matches.h5"))
        fill_database(self.dataset.challenge_database, *inputs)

    def verify(self) -> None:
        verify_database(self.file("database.db"), self.file("pairs.txt"), self.settings.seed)

    def triangulate(self) -> None:
        empty, database, output = map(self.file, ("sfm_empty", "database.db", "sfm_database"))
        triangulate_database(empty, database, self.dataset.images, output, self.settings.seed, self.settings.threads)

    def register(self) -> None:
        model, database, registered = map(self.file, ("sfm_database", "database.db", "sfm_registered"))
        register_images(model, database, registered, self.settings.seed, self.settings.threads)


def run_challenge(
    dataset: AachenDataset,
    output: Path | str,
    match: ListMatcher,
    settings: ChallengeSettings | None = None,
    matching: Any = None,
    verbose: bool = False,
) -> ChallengeResult:
    """From the dataset's folder to the file one uploads, in `output`.

    `matching` describes `match` (its settings): if it changes, matching and what follows is repeated.
    """
    settings, output = settings or ChallengeSettings(), Path(output)
    check_challenge(dataset)
    keep_apart(images=[dataset.images], inputs=[dataset.root], folders=[output])
    output.mkdir(parents=True, exist_ok=True)
    run = _ChallengeRun(dataset, output, match, settings)
    features, matches, database = map(run.file, ("features.h5", "matches.h5", "database.db"))
    given = {"pairs": file_digest(dataset.challenge_pairs), "database": file_digest(dataset.challenge_database)}
    version = {**describe_dataset(dataset), **given}
    with exclusive(run.file("steps.json")), colmap_log(verbose):
        steps = Steps(output)
        steps.run("pairs", version, [run.file("pairs.txt")], run.write_pairs)
        steps.run("reference poses", None, [run.file("sfm_empty") / SUMMARY], run.write_reference)
        steps.run("matching", matching, [features, matches], run.match_all, [run.file("matches.raw")])
        steps.run("database", None, [database], run.fill_database)
        steps.run("verification", settings.seed, [database], run.verify)
        steps.run("triangulation", None, [run.file("sfm_database") / SUMMARY], run.triangulate)
        steps.run("registration", None, [run.file("sfm_registered") / SUMMARY], run.register)
        poses, unregistered = night_poses(run.file("sfm_registered"), dataset)
        result = run.file(dataset.result_name(settings.method, challenge=True))
        write_poses(result, poses)
        with open_inputs(run.file("pairs.txt"), features, matches) as inputs:
            return ChallengeResult(result, poses, unregistered, inputs.left_out)


def night_poses(model: Path, dataset: AachenDataset) -> tuple[dict[str, Rigid3d], tuple[str, ...]]:
    """Poses of the night queries in a model, and those that are not in it."""
    loaded = load_model(model)
    found = {image.name: image for image in (loaded.image(i) for i in loaded.reg_image_ids())}
    queries = list(read_camera_list(dataset.night_queries))
    poses = {name: found[name].cam_from_world() for name in queries if name in found}
    return poses, tuple(name for name in queries if name not in found)
