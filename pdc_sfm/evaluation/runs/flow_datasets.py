"""Each dataset with the paper's protocol: what is read, at which size, how it is averaged, and the rows to print."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pdc_sfm.evaluation import published
from pdc_sfm.evaluation.measures.dense_scores import DenseScores
from pdc_sfm.evaluation.runs.flow_pairs import FlowProtocol, FlowSettings, evaluate_flow
from pdc_sfm.evaluation.tables import number, percent, table
from pdc_sfm.matcher import Matcher

ORIGINAL = ("dense.min_side=null", "dense.max_side=null")
AT_480 = ("dense.min_side=480", "dense.max_side=null")

MEASURES = {"aepe": "AEPE", "pck_1": "PCK-1", "pck_3": "PCK-3", "pck_5": "PCK-5", "fl": "Fl"}


@dataclass(frozen=True)
class FlowDataset:
    """A dataset of flow. `words` are its settings, which the user's words override."""

    title: str
    words: tuple[str, ...]
    protocol: FlowProtocol
    measures: tuple[str, ...]
    average: str = "dataset"  # of PCK: over all pixels of the dataset, over images, or over images of a sequence
    note: str = ""


FLOW_DATASETS = {
    "megadepth": FlowDataset(
        "MegaDepth, smaller side 480, PCK over the dataset",
        AT_480,
        FlowProtocol(min_side=480),
        ("pck_1", "pck_3", "pck_5"),
    ),
    "robotcar": FlowDataset(
        "RobotCar, smaller side 480, PCK over the dataset",
        AT_480,
        FlowProtocol(min_side=480),
        ("pck_1", "pck_3", "pck_5"),
    ),
    "hpatches240": FlowDataset(
        "HPatches, viewpoint sequences at 240x240", ORIGINAL, FlowProtocol(exact=(240, 240)), ("aepe", "pck_1", "pck_5")
    ),
    "kitti": FlowDataset("KITTI, training split, original size", ORIGINAL, FlowProtocol(), ("aepe", "fl")),
    "eth3d": FlowDataset(
        "ETH3D, PCK per image, averaged by sequence", ORIGINAL, FlowProtocol(), ("aepe", "pck_1", "pck_5"), "sequence"
    ),
}


@dataclass
class DatasetResult:
    """Parts (ETH3D: intervals) with their scores and the paper's rows."""

    dataset: FlowDataset
    parts: dict[str, DenseScores] = field(default_factory=dict)
    rows: dict[str, dict[str, dict[str, float]]] = field(default_factory=dict)  # published, by part

    def summary(self) -> dict[str, Any]:
        """Every figure, and the published ones apart."""
        measured = {name: {**scores.summary(), **self.headline(scores)} for name, scores in self.parts.items()}
        return {"protocol": self.dataset.title, "measured": measured, "published": self.rows}

    def headline(self, scores: DenseScores) -> dict[str, float]:
        """The measures of the paper's table, averaged as there; shares in 0..1."""
        tally, by = scores.tally, self.dataset.average
        aepe = tally.aepe_by_group if by == "sequence" else tally.aepe
        pck = {"dataset": tally.pck_per_dataset, "image": tally.pck_per_image, "sequence": tally.pck_by_group}[by]
        values = {"aepe": aepe, "fl": tally.fl}
        return {m: values[m]() if m in values else pck(float(m[4:])) for m in self.dataset.measures}

    def text(self, method: str) -> str:
        """The table: ours, then the paper's rows marked as published."""
        head = [
            "part",
            "method",
            "pairs",
            *(MEASURES[m] for m in self.dataset.measures),
            "AUSE",
            "kept %",
            "PCK-5 there",
        ]
        rows = []
        for name, scores in self.parts.items():
            summary, headline = scores.summary(), self.headline(scores)
            cells = [number(v) if m == "aepe" else percent(v, 2) for m, v in headline.items()]
            ause = number(summary["ause"]["AEPE"].get("confidence"), 3)
            kept = [percent(summary.get("kept")), percent(summary.get("kept_pck_5"))]
            rows.append([name, method, str(summary["pairs"]), *cells, ause, *kept])
            for title, values in self.rows.get(name, {}).items():
                rows.append(
                    [
                        name,
                        f"{title}, published",
                        "",
                        *(number(values.get(m)) for m in self.dataset.measures),
                        "",
                        "",
                        "",
                    ]
                )
        note = "published: the paper's own figures of the authors' network, not measured here"
        return table(head, rows, self.dataset.title) + f"\n{note}"


def open_parts(name: str, folder: Path, images: Path | None, pairs: Path | None) -> dict[str, Iterable[Any]]:
    """The pairs of a dataset, by part."""
    from pdc_sfm.evaluation.datasets import correspondence_table, eth3d, hpatches, kitti

    if name == "eth3d":
        return {f"interval {k}": listed for k, listed in eth3d.eth3d_pairs(folder).items()}
    if name == "hpatches240":
        size = FLOW_DATASETS[name].protocol.exact
        assert size is not None
        return {"all": hpatches.dense_pairs(folder, size)}
    if name == "kitti":
        return {_kitti_year(folder): kitti.kitti_pairs(folder)}
    listed, shown = {"megadepth": ("test1600Pairs.csv", "test1600Pairs"), "robotcar": ("test6511.csv", "images")}[name]
    return {"all": correspondence_table.read_table(pairs or folder / listed, images or folder / shown)}


def evaluate_dataset(
    name: str,
    parts: dict[str, Iterable[Any]],
    matcher: Matcher,
    settings: FlowSettings,
    limit: int | None = None,
    progress: Callable[[str], None] | None = None,
) -> DatasetResult:
    """All parts, or the first `limit` pairs of each."""
    dataset = FLOW_DATASETS[name]
    result = DatasetResult(dataset)
    for part, pairs in parts.items():
        few = itertools.islice(pairs, limit)
        result.parts[part] = evaluate_flow(few, matcher, dataset.protocol, settings, progress)
        result.rows[part] = _published(name, part)
    return result


def count_pairs(parts: dict[str, Iterable[Any]], limit: int | None) -> int | None:
    """How many pairs will be judged, if that is known beforehand."""
    counts = [len(pairs) for pairs in parts.values() if isinstance(pairs, Sequence)]
    return sum(min(count, limit or count) for count in counts) if len(counts) == len(parts) else limit


def _published(name: str, part: str) -> dict[str, dict[str, float]]:
    if name == "eth3d":
        return published.eth3d(int(part.split()[-1]))
    return published.FLOW.get(part if name == "kitti" else name, {})


def _kitti_year(folder: Path) -> str:
    """2015 has its images in image_2; 2012 has not."""
    return "kitti2015" if any((Path(folder) / sub / "image_2").is_dir() for sub in ("", "training")) else "kitti2012"
