"""ETH3D as GLU-Net distributes it: info_ETH3D_files/SEQUENCE_every_5_rate_of_INTERVAL list pairs with correspondences.

A list is a pickle of [{"source_image", "target_image", "Xs", "Ys", "Xt", "Yt"}, ...]; it is read without executing anything.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from pdc_sfm.errors import FormatError
from pdc_sfm.evaluation.datasets.flow_pair import FlowPair
from pdc_sfm.pixels import Size
from pdc_sfm.training.npz import read_pickle

NAME = re.compile(r"(.+)_every_5_rate_of_(\d+)$")


def eth3d_pairs(folder: Path) -> dict[int, list[FlowPair]]:
    """Pairs by interval; the sequence is a pair's group."""
    files = [(path, NAME.match(path.name)) for path in sorted((Path(folder) / "info_ETH3D_files").glob("*_rate_of_*"))]
    found = [(path, match.group(1), int(match.group(2))) for path, match in files if match]
    if not found:
        raise FormatError(
            f"{folder} needs info_ETH3D_files/SEQUENCE_every_5_rate_of_N beside multiview_*: see GLU-Net's page"
        )
    intervals: dict[int, list[FlowPair]] = {}
    for path, sequence, interval in sorted(found, key=lambda item: item[2]):
        entries = read_pickle(path)
        try:
            pairs = [_pair(Path(folder), entry, sequence) for entry in entries]
        except (KeyError, TypeError, ValueError) as error:
            raise FormatError(f"{path} is not a list of pairs: {error!r}") from None
        intervals.setdefault(interval, []).extend(pairs)
    return intervals


def _pair(folder: Path, entry: dict, sequence: str) -> FlowPair:
    source, target = (np.stack([np.asarray(entry[f"{c}{k}"], float) for c in "XY"], -1) for k in "st")
    if source.shape != target.shape or source.ndim != 2:
        raise ValueError(f"points of shapes {source.shape} and {target.shape}")
    names = str(entry["target_image"]), str(entry["source_image"])

    def correspondences(reference: Size, query: Size) -> tuple[np.ndarray, np.ndarray]:
        return target, source

    return FlowPair(" ".join(names), folder / names[0], folder / names[1], correspondences, sequence)
