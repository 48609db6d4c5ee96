"""A plain scene folder as ground truth for pairs of its pictures."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from pdc_sfm.errors import FormatError
from pdc_sfm.scenes.layouts.plain import read_cameras, read_depth
from pdc_sfm.scenes.render.camera import Camera
from pdc_sfm.scenes.render.flow import flow_from_depth

COARSE = 8  # overlap is measured at every so many pixels


class SceneTruth:
    """A plain scene folder: cameras, and depth that is read when needed."""

    def __init__(self, folder: Path):
        self.folder, self.cameras = Path(folder), read_cameras(folder)
        if not (self.folder / "depth").is_dir():
            raise FormatError(f"{folder} has no depth: render the scene with depth=true")
        self._small: dict[str, tuple[Camera, np.ndarray]] = {}

    def flow(self, first: str, second: str) -> tuple[np.ndarray, np.ndarray]:
        """Flow (H, W, 2) from the first image to the second, and where it is visible (H, W); nothing that moves is."""
        (depth0, moving0), (depth1, moving1) = (read_depth(self.folder / "depth" / name) for name in (first, second))
        flow, visible = flow_from_depth(self.cameras[first], depth0, self.cameras[second], depth1)
        visible &= ~moving0
        y, x = np.nonzero(visible)
        height, width = moving1.shape
        u, v = np.clip(np.rint(np.stack([x, y], -1) + flow[y, x]), 0, (width - 1, height - 1)).astype(int).T
        visible[y[moving1[v, u]], x[moving1[v, u]]] = False
        return flow, visible

    def overlap(self, first: str, second: str) -> float:
        """About which share of the first image the second shows."""
        return float(flow_from_depth(*self._coarse(first), *self._coarse(second))[1].mean())

    def _coarse(self, name: str) -> tuple[Camera, np.ndarray]:
        """Camera and depth of an image with fewer pixels, kept: each is compared with many others."""
        if name not in self._small:
            depth = read_depth(self.folder / "depth" / name)[0]
            camera = self.cameras[name]
            width, height = camera.width // COARSE, camera.height // COARSE
            small = Camera(width, height, camera.focal / COARSE, camera.cam_from_world)
            self._small[name] = small, depth[COARSE // 2 :: COARSE, COARSE // 2 :: COARSE][:height, :width].copy()
        return self._small[name]
