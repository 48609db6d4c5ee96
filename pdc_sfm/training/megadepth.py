"""MegaDepth as a source of real pairs: depth maps, poses and intrinsics in D2-Net's layout (appendix B).

    ROOT/scene_info/0000.npz    image_paths, depth_paths, intrinsics, poses, overlap_matrix of a scene
    ROOT/<image path>           undistorted photographs
    ROOT/<depth path>           h5 files with a dataset `depth`

Every pixel of the reference with known depth is projected into the query; it corresponds to where it lands if the
query's own depth there agrees. Intrinsics are COLMAP's: (0, 0) is the corner of the image.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from pdc_sfm.errors import FormatError, UserError
from pdc_sfm.images import read_image
from pdc_sfm.pixels import from_colmap, to_colmap
from pdc_sfm.store.depth import read_depth
from pdc_sfm.training.npz import read_npz
from pdc_sfm.training.supervision import Directions, RealPair, SupervisionSettings

FIELDS = ("image_paths", "depth_paths", "intrinsics", "poses", "overlap_matrix")


def open_megadepth(root: Path | str, settings: SupervisionSettings) -> list[MegaDepthScene]:
    """All scenes of a MegaDepth folder that have usable pairs."""
    root = Path(root)
    files = sorted((root / "scene_info").glob("*.npz"))
    if not files:
        raise FormatError(f"{root / 'scene_info'} holds no .npz file: prepare MegaDepth as D2-Net describes")
    scenes = [scene for scene in (MegaDepthScene(root, file, settings) for file in files) if len(scene)]
    if not scenes:
        raise UserError(f"no scene of {root} has a pair with {settings.min_overlap:.0%} overlap")
    return scenes


class MegaDepthScene:
    """One scene: its photographs, and the pairs of them that overlap enough."""

    def __init__(self, root: Path, info: Path, settings: SupervisionSettings):
        self.root, self.settings = root, settings
        self.images, self.depths, self.intrinsics, self.poses, overlap = read_npz(info, FIELDS)
        if overlap.shape != (len(self.images),) * 2:
            raise FormatError(f"{info}: overlap_matrix has shape {overlap.shape} for {len(self.images)} images")
        known = np.array([image is not None and depth is not None for image, depth in zip(self.images, self.depths)])
        enough = (overlap.astype(np.float64) >= settings.min_overlap) & known[:, None] & known
        np.fill_diagonal(enough, False)
        self.pairs = Directions(np.argwhere(enough))

    def __len__(self) -> int:
        return len(self.pairs)

    def pair(self, index: int, rng: np.random.Generator) -> RealPair:
        """SyntheticPair number `index`, in one of its directions, with up to `max_points` correspondences."""
        first, second = self.pairs.draw(index, rng)
        views = [self._view(number) for number in (first, second)]
        reference, query = (image for image, *_ in views)
        xy = random_pixels(views[0][1], 2 * self.settings.max_points, rng)
        points = project_by_depth(xy, *views[0][1:], *views[1][1:], self.settings.depth_tolerance)
        return RealPair(reference, query, points[: self.settings.max_points])

    def _view(self, number: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Image, depth map, intrinsics (3, 3) and cam_from_world (4, 4)."""
        image = read_image(self.root / str(self.images[number]))
        depth = read_depth(self.root / str(self.depths[number]))
        if depth.shape != image.shape[:2]:
            raise FormatError(
                f"{self.depths[number]} is {depth.shape[1]}x{depth.shape[0]} px, its image "
                f"{image.shape[1]}x{image.shape[0]}: use the undistorted images of the depth maps"
            )
        intrinsics, pose = (np.asarray(m[number], np.float64) for m in (self.intrinsics, self.poses))
        return image, depth, intrinsics, pose


def random_pixels(depth: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """(N, 2) distinct pixels of known depth, at most `count`, in random order."""
    known = np.flatnonzero(depth > 0)
    chosen = rng.permutation(known)[:count] if len(known) <= 4 * count else rng.choice(known, count, replace=False)
    return np.stack([chosen % depth.shape[1], chosen // depth.shape[1]], 1)


def project_by_depth(
    xy: np.ndarray,
    depth: np.ndarray,
    intrinsics: np.ndarray,
    cam_from_world: np.ndarray,
    query_depth: np.ndarray,
    query_intrinsics: np.ndarray,
    query_cam_from_world: np.ndarray,
    tolerance: float,
) -> np.ndarray:
    """Pixels of the reference (N, 2) and where the query shows them: (M, 4) float32, without those it does not show."""
    distance = depth[xy[:, 1], xy[:, 0]].astype(np.float64)
    rays = np.column_stack([to_colmap(xy.astype(np.float64)), np.ones(len(xy))]) @ np.linalg.inv(intrinsics).T
    query_from_reference = query_cam_from_world @ np.linalg.inv(cam_from_world)
    in_query = (rays * distance[:, None]) @ query_from_reference[:3, :3].T + query_from_reference[:3, 3]
    front = in_query[:, 2] > 0
    image = in_query[front] @ query_intrinsics.T
    landed = from_colmap(image[:, :2] / image[:, 2:])
    nearest = np.rint(landed).astype(np.int64)
    height, width = query_depth.shape
    inside = ((nearest >= 0) & (nearest < (width, height))).all(1)
    seen = query_depth[nearest[inside, 1], nearest[inside, 0]]
    expected = in_query[front][inside, 2]
    agree = (seen > 0) & (np.abs(seen - expected) <= tolerance * expected)
    return np.hstack([xy[front][inside][agree], landed[inside][agree]]).astype(np.float32)
