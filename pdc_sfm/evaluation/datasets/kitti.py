"""KITTI optical flow, training splits 2012 and 2015: pairs of frames 000000_10 and 000000_11 with flow_occ/000000_10.png."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from pdc_sfm.errors import FormatError
from pdc_sfm.evaluation.datasets.flow_pair import FlowPair
from pdc_sfm.pixels import Size

IMAGES = ("image_2", "colored_0", "image_0")  # 2015, 2012 in color, 2012 in gray


def kitti_pairs(folder: Path) -> list[FlowPair]:
    """All pairs of a split's folder `training` (or its parent)."""
    folder = Path(folder) / "training" if (Path(folder) / "training").is_dir() else Path(folder)
    flows = sorted((folder / "flow_occ").glob("*_10.png"))
    images = next((folder / name for name in IMAGES if (folder / name).is_dir()), None)
    if not flows or images is None:
        raise FormatError(
            f"{folder} needs flow_occ/*_10.png and one of {', '.join(IMAGES)}: give KITTI's training folder"
        )
    return [
        FlowPair(path.stem, images / path.name, images / path.name.replace("_10.png", "_11.png"), _Truth(path))
        for path in flows
    ]


class _Truth:
    """Pixels with known flow."""

    def __init__(self, path: Path):
        self.path = path

    def __call__(self, reference: Size, query: Size) -> tuple[np.ndarray, np.ndarray]:
        flow, known = read_flow(self.path)
        if known.shape[::-1] != tuple(reference):
            raise FormatError(
                f"{self.path} is {known.shape[1]}x{known.shape[0]}, its image {reference[0]}x{reference[1]}"
            )
        y, x = np.nonzero(known)
        points = np.stack([x, y], -1).astype(np.float64)
        return points, points + flow[y, x]


def read_flow(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """KITTI's 16-bit flow: (H, W, 2) float32 pixels and (H, W) bool where it is known."""
    import cv2

    image = cv2.imread(str(path), cv2.IMREAD_UNCHANGED)  # blue, green, red: known, v, u
    if image is None or image.dtype != np.uint16 or image.ndim != 3:
        raise FormatError(f"{path} is not a 16-bit flow of KITTI's")
    return (image[..., 2:0:-1].astype(np.float32) - 2**15) / 64, image[..., 0] > 0
