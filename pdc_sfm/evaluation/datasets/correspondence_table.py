"""MegaDepth and RobotCar as RANSAC-Flow distributes them: a table of pairs with their correspondences.

    test1600Pairs.csv / test6511.csv   columns scene, source_image, target_image, XA, YA, XB, YB
    test1600Pairs/ / images/           the images

A row's points are numbers joined by ';', A in the source image and B in the target image. Flow goes from target
(reference) to source (query). RobotCar's table has 5 GB, so rows are read one at a time.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from pdc_sfm.errors import FormatError
from pdc_sfm.evaluation.datasets.flow_pair import FlowPair
from pdc_sfm.pixels import Size

COLUMNS = ("source_image", "target_image", "XA", "YA", "XB", "YB")


def read_table(path: Path, images: Path) -> Iterator[FlowPair]:
    """The pairs of a table, in its order."""
    if not path.is_file():
        raise FormatError(f"{path} is not there: RANSAC-Flow's page offers the table for download")
    if not images.is_dir():
        raise FormatError(f"{images} is not a folder: it must hold the images of {path.name}")
    csv.field_size_limit(min(sys.maxsize, 2**31 - 1))  # a row's points are one long field
    with open(path, newline="", encoding="utf-8") as file:
        rows = csv.DictReader(file)
        missing = [name for name in COLUMNS if name not in (rows.fieldnames or ())]
        if missing:
            raise FormatError(f"{path} has no column {missing[0]}; it needs {', '.join(COLUMNS)}")
        for number, row in enumerate(rows, start=2):
            yield _pair(row, images, f"{path} line {number}")


def _pair(row: dict[str, str], images: Path, where: str) -> FlowPair:
    scene = (row.get("scene") or "").strip("/")
    source, target = (images / scene / row[name] for name in ("source_image", "target_image"))
    try:
        a, b = (np.stack([_numbers(row[f"X{k}"]), _numbers(row[f"Y{k}"])], -1) for k in "AB")
    except (ValueError, AttributeError) as error:
        raise FormatError(f"{where}: {error}") from None
    if len(a) != len(b):
        raise FormatError(f"{where}: {len(a)} points in the source image, {len(b)} in the target image")

    def correspondences(reference: Size, query: Size) -> tuple[np.ndarray, np.ndarray]:
        return b, a

    return FlowPair(f"{row['target_image']} {row['source_image']}", target, source, correspondences)


def _numbers(text: str) -> np.ndarray:
    return np.array(text.split(";"), float)
