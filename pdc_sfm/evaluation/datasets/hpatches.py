"""HPatches: sequences i_* (light) and v_* (viewpoint) with images 1 to 6 and homographies H_1_2 ... H_1_6."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from pdc_sfm.errors import FormatError
from pdc_sfm.evaluation.datasets.flow_pair import FlowPair
from pdc_sfm.evaluation.datasets.homography_pair import read_homography
from pdc_sfm.pixels import Size, grid_points, inside, rescale_matrix, transform

# left out by D2-Net's protocol, because some of their images are too large for some methods
TOO_LARGE = (
    "i_contruction", "i_crownnight", "i_dc", "i_pencils", "i_whitebuilding", "v_artisans", "v_astronautis", "v_talent",
)  # fmt: skip


def sequences(folder: Path, kinds: str = "iv", without: tuple[str, ...] = ()) -> list[Path]:
    """Folders of the sequences whose name begins with one of `kinds`."""
    found = sorted(
        p for p in Path(folder).glob("[iv]_*") if p.is_dir() and p.name[0] in kinds and p.name not in without
    )
    if not found:
        raise FormatError(f"{folder} holds no sequence v_* or i_*: give the folder hpatches-sequences-release")
    return found


def image_path(sequence: Path, number: int) -> Path:
    """Image 1 ... 6 of a sequence."""
    for suffix in (".ppm", ".png", ".jpg"):
        if (sequence / f"{number}{suffix}").is_file():
            return sequence / f"{number}{suffix}"
    raise FormatError(f"{sequence} has no image {number}.ppm")


def dense_pairs(folder: Path, size: Size) -> list[FlowPair]:
    """HP-240: each of images 2 ... 6 of the viewpoint sequences is a reference, image 1 the query.

    The truth is dense at `size`: every pixel of the resized reference that the resized query shows.
    """
    pairs = []
    for sequence in sequences(folder, "v"):
        for number in range(2, 7):
            query_from_reference = np.linalg.inv(read_homography(sequence / f"H_1_{number}"))
            name = f"{sequence.name} {number}-1"
            reference, query = image_path(sequence, number), image_path(sequence, 1)
            pairs.append(FlowPair(name, reference, query, _Dense(query_from_reference, size), f"1-{number}"))
    return pairs


class _Dense:
    """All pixels of a reference resized to `size`, and where a homography of the originals puts them."""

    def __init__(self, query_from_reference: np.ndarray, size: Size):
        self.homography, self.size = query_from_reference, size

    def __call__(self, reference: Size, query: Size) -> tuple[np.ndarray, np.ndarray]:
        points = transform(grid_points(self.size, self.size).reshape(-1, 2), rescale_matrix(self.size, reference))
        center = self.homography @ [reference[0] / 2, reference[1] / 2, 1.0]
        landed = transform(points, self.homography / np.sign(center[2]))
        known = np.isfinite(landed).all(1)
        seen = known & inside(np.where(known[:, None], landed, -1e9), query)
        return points[seen], landed[seen]
