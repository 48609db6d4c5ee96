"""The Aachen Day-Night dataset on disk, versions 1.0 and 1.1: where everything is, and what is missing."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Literal

from pdc_sfm.errors import FormatError
from pdc_sfm.files import file_digest

Version = Literal["1.0", "1.1"]
VERSIONS: tuple[Version, ...] = ("1.0", "1.1")
DATASET_SITE = "visuallocalization.net/datasets"
CHALLENGE_SITE = "github.com/tsattler/visuallocalizationbenchmark, local_feature_evaluation/data/aachen-day-night"


class LayoutError(FormatError):
    """A dataset folder in which something is missing: `problems`, one line each."""

    def __init__(self, dataset: AachenDataset, problems: list[str]):
        self.problems = problems
        things = "1 thing is" if len(problems) == 1 else f"{len(problems)} things are"
        super().__init__(
            f"Aachen {dataset.version} in {dataset.root} is not complete, {things} missing: {'; '.join(problems)}. "
            "datasets/README.md tells where to get everything"
        )


@dataclasses.dataclass(frozen=True)
class AachenDataset:
    """Paths of one version, below the folder of the dataset."""

    root: Path
    version: Version

    def __post_init__(self) -> None:
        object.__setattr__(self, "root", Path(self.root))
        if self.version not in VERSIONS:
            raise FormatError(f"there is no Aachen version {self.version}: choose from {', '.join(VERSIONS)}")

    @property
    def images(self) -> Path:
        """The archive unpacks to `images_upright`; the challenge's instructions put that below `images`."""
        below = self.root / "images" / "images_upright"
        return below if below.is_dir() else self.root / "images_upright"

    @property
    def nvm(self) -> Path:
        new = self.root / "3D-models" / "aachen_v_1_1" / "aachen_v_1_1.nvm"
        return new if self.version == "1.1" else self.root / "3D-models" / "aachen_cvpr2018_db.nvm"

    @property
    def intrinsics(self) -> Path:
        new = self.root / "3D-models" / "aachen_v_1_1" / "database_intrinsics_v1_1.txt"
        return new if self.version == "1.1" else self.root / "3D-models" / "database_intrinsics.txt"

    @property
    def queries(self) -> Path:
        """A glob of the day and night lists."""
        return self.root / "queries" / "*_time_queries_with_intrinsics.txt"

    @property
    def night_queries(self) -> Path:
        return self.root / "queries" / "night_time_queries_with_intrinsics.txt"

    @property
    def challenge_database(self) -> Path:
        return self.root / ("database_v1_1.db" if self.version == "1.1" else "database.db")

    @property
    def challenge_pairs(self) -> Path:
        name = "image_pairs_to_match_v1_1.txt" if self.version == "1.1" else "image_pairs_to_match.txt"
        return self.root / name

    def result_name(self, method: str, challenge: bool = False) -> str:
        """The name of the file one uploads."""
        version = "Aachen_v1_1" if self.version == "1.1" else "Aachen"
        return f"{version}_eval_[{method}].txt" if challenge else f"{version}_{method}.txt"


def check_files(dataset: AachenDataset, challenge: bool) -> list[str]:
    """What of the dataset's files is missing: one line each, with the place where it is expected."""
    if not dataset.root.is_dir():
        return [f"there is no folder {dataset.root}"]
    missing = []

    def expect(path: Path, what: str, source: str) -> None:
        if not path.exists():
            missing.append(f"{what}: expected at {path} (from {source})")

    expect(dataset.images / "db", "database images", DATASET_SITE)
    if dataset.version == "1.1":
        expect(dataset.images / "sequences", "images of version 1.1's sequences", DATASET_SITE)
    expect(dataset.nvm, "reference poses", DATASET_SITE)
    expect(dataset.intrinsics, "intrinsics of the database images", DATASET_SITE)
    if challenge:
        expect(dataset.night_queries, "night queries", DATASET_SITE)
        expect(dataset.challenge_database, "the challenge's database", CHALLENGE_SITE)
        expect(dataset.challenge_pairs, "the challenge's pair list", CHALLENGE_SITE)
    elif not list(dataset.queries.parent.glob(dataset.queries.name)):
        missing.append(f"query lists: expected at {dataset.queries} (from {DATASET_SITE})")
    return missing


def describe_dataset(dataset: AachenDataset) -> dict[str, str]:
    """What of the dataset decides a run, wherever its folder lies; images are known by their names."""
    lists = sorted(dataset.queries.parent.glob(dataset.queries.name))
    files = {"poses": dataset.nvm, "intrinsics": dataset.intrinsics, **{path.name: path for path in lists}}
    return {"version": dataset.version, **{name: file_digest(path) for name, path in files.items()}}


def check_images(dataset: AachenDataset, names: list[str]) -> list[str]:
    """Images that are listed and not there, one line for each folder of them."""
    absent: dict[str, list[str]] = {}
    for name in names:
        if not (dataset.images / name).is_file():
            absent.setdefault(name.rpartition("/")[0], []).append(name)
    return [
        f"{len(some)} images of {folder or 'the dataset'}: expected at {dataset.images / folder} (first: {some[0]})"
        for folder, some in sorted(absent.items())
    ]
