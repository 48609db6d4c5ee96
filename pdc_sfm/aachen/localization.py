"""Full localization: a model of our matches between posed images, then day and night queries in it."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from pdc_sfm.aachen.dataset import AachenDataset, LayoutError, check_files, check_images, describe_dataset
from pdc_sfm.aachen.reference import covisible_pairs, read_reference, write_reference
from pdc_sfm.colmap.io.cameras import read_camera_list
from pdc_sfm.colmap.io.models import SUMMARY
from pdc_sfm.colmap.localization.localize_sfm import LocalizationResult, LocalizationSettings, localize
from pdc_sfm.colmap.mapping.triangulation import TriangulationSettings, triangulate
from pdc_sfm.errors import FormatError
from pdc_sfm.files import exclusive, file_digest
from pdc_sfm.paths import keep_apart
from pdc_sfm.pipeline.matching import ListMatcher
from pdc_sfm.pipeline.steps import Steps
from pdc_sfm.settings import require, require_file_name, result_settings
from pdc_sfm.store.pair_lists import read_retrieval, write_pairs

log = logging.getLogger(__name__)

# Finds database images for queries: (images, queries, database, number, pair list to write).
Retriever = Callable[[Path, list[str], list[str], int, Path], None]


@dataclasses.dataclass(frozen=True)
class AachenSettings:
    """Sizes and settings of the steps."""

    method: str = "pdcnet_plus"  # in the name of the result
    covisible: int = 20  # database images matched with each database image
    retrieved: int = 50  # database images matched with each query
    triangulation: TriangulationSettings = dataclasses.field(default_factory=TriangulationSettings)
    localization: LocalizationSettings = dataclasses.field(default_factory=LocalizationSettings)

    def __post_init__(self) -> None:
        require_file_name(self.method, "method")
        require(self.covisible > 0, f"covisible={self.covisible} must be above 0")
        require(self.retrieved > 0, f"retrieved={self.retrieved} must be above 0")


def check_localization(dataset: AachenDataset, retrieval: Path | None) -> None:
    """Everything the run needs, before hours of matching; all that is missing is said at once."""
    problems = check_files(dataset, challenge=False)
    if problems:
        raise LayoutError(dataset, problems)
    database = list(read_reference(dataset, points=False).names)
    intrinsics = read_camera_list(dataset.intrinsics)
    unknown = [name for name in database if name not in intrinsics]
    if unknown:
        raise FormatError(
            f"{len(unknown)} images of {dataset.nvm} have no line in {dataset.intrinsics} (first: {unknown[0]}): "
            "do both belong to one version?"
        )
    queries = list(read_camera_list(dataset.queries))
    problems = check_images(dataset, [*database, *queries])
    if problems:
        raise LayoutError(dataset, problems)
    if retrieval is not None:
        _check_retrieval(retrieval, queries, set(database))


def _check_retrieval(path: Path, queries: list[str], database: set[str]) -> None:
    retrieved = read_retrieval(path)
    absent = [name for name in queries if name not in retrieved]
    if len(absent) == len(queries):
        raise FormatError(f"{path} retrieves nothing for any query (first: {absent[0]}): is it of other queries?")
    found = {image for images in retrieved.values() for image in images}
    if not found & database:
        raise FormatError(f"{path} retrieves no image of this database (first: {min(found, default='none')})")


def shorten_retrieval(path: Path, queries: Iterable[str], count: int) -> list[tuple[str, str]]:
    """The first `count` images of each query in a retrieval list."""
    listed = read_retrieval(path)
    return [(name, image) for name in queries for image in listed.get(name, [])[:count]]


@dataclasses.dataclass(frozen=True)
class _LocalizationRun:
    """The files of a run, and its steps."""

    dataset: AachenDataset
    output: Path
    match: ListMatcher
    retrieve: Retriever | Path
    settings: AachenSettings
    verbose: bool

    def file(self, name: str) -> Path:
        return self.output / name

    def write_reference(self) -> None:
        """Known poses without points, and each image with those that share most points with it."""
        write_reference(self.dataset, self.file("sfm_reference"))
        write_pairs(self.file("pairs-db.txt"), covisible_pairs(self.dataset, self.settings.covisible))

    def match_database(self) -> None:
        self.match(self.dataset.images, *map(self.file, ("pairs-db.txt", "features.h5", "matches.h5")))

    def triangulate(self) -> None:
        result = triangulate(
            self.file("sfm_reference"),
            self.dataset.images,
            self.file("pairs-db.txt"),
            self.file("features.h5"),
            self.file("matches.h5"),
            self.file("sfm"),
            self.settings.triangulation,
            verbose=self.verbose,
        )
        result.warn()

    def find_pairs(self) -> None:
        """Database images for each query, of the given list or found now."""
        target, count = self.file("pairs-query.txt"), self.settings.retrieved
        queries = list(read_camera_list(self.dataset.queries))
        if isinstance(self.retrieve, Path):
            write_pairs(target, shorten_retrieval(self.retrieve, queries, count))
        else:
            database = list(read_reference(self.dataset, points=False).names)
            self.retrieve(self.dataset.images, queries, database, count, target)

    def match_queries(self) -> None:
        """With the keypoints of the model, which stay as they are."""
        pairs, features, matches = map(self.file, ("pairs-query.txt", "features-query.h5", "matches-query.h5"))
        self.match(self.dataset.images, pairs, features, matches, self.file("features.h5"))

    def localize(self, results: Path) -> LocalizationResult:
        pairs, features, matches = map(self.file, ("pairs-query.txt", "features-query.h5", "matches-query.h5"))
        sfm, queries = self.file("sfm"), self.dataset.queries
        return localize(sfm, queries, pairs, features, matches, results, self.settings.localization)


def run_localization(
    dataset: AachenDataset,
    output: Path | str,
    match: ListMatcher,
    retrieve: Retriever | Path | str,
    settings: AachenSettings | None = None,
    matching: Any = None,
    retrieving: Any = None,
    verbose: bool = False,
) -> tuple[Path, LocalizationResult]:
    """From the dataset's folder to the file one uploads, and its content.

    `retrieve` may be a finished list. `matching` and `retrieving` describe `match` and `retrieve` (their settings): if
    they change, what depends on them is repeated.
    """
    settings, output = settings or AachenSettings(), Path(output)
    retrieve = Path(retrieve) if isinstance(retrieve, str) else retrieve
    given = retrieve if isinstance(retrieve, Path) else None
    check_localization(dataset, given)
    keep_apart(images=[dataset.images], inputs=[dataset.root], folders=[output])
    output.mkdir(parents=True, exist_ok=True)
    run = _LocalizationRun(dataset, output, match, retrieve, settings, verbose)
    results = run.file(dataset.result_name(settings.method))
    version = {**describe_dataset(dataset), "covisible": settings.covisible}
    listed = None if given is None else file_digest(given)
    queries = {"list": listed, "retrieved": settings.retrieved, "settings": retrieving}

    def raw(name: str) -> list[Path]:
        return [run.file(f"{name}.raw")]

    with exclusive(run.file("steps.json")):
        steps = Steps(output)
        poses = [run.file("sfm_reference") / SUMMARY, run.file("pairs-db.txt")]
        steps.run("reference poses", version, poses, run.write_reference)
        steps.run(
            "matching", matching, [run.file("features.h5"), run.file("matches.h5")], run.match_database, raw("matches")
        )
        points = result_settings(settings.triangulation)
        steps.run("triangulation", points, [run.file("sfm") / SUMMARY], run.triangulate)
        counts = [run.file("pairs-query.counts")]
        steps.run("retrieval", queries, [run.file("pairs-query.txt")], run.find_pairs, counts)
        files = [run.file("features-query.h5"), run.file("matches-query.h5")]
        steps.run("matching queries", matching, files, run.match_queries, raw("matches-query"))
        log.info("localization ...")
        return results, run.localize(results)
