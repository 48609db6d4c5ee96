"""Two photographs of a plane and the homography between them, as one pair with known flow."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from pdc_sfm.errors import FormatError
from pdc_sfm.images import fitted_size, read_image, resize_image
from pdc_sfm.pixels import Size, grid_points, inside, rescale_matrix, transform
from pdc_sfm.synthetic.pairs import SyntheticPair


def read_homography(path: Path) -> np.ndarray:
    """(3, 3) from nine numbers in a text file, or from OpenCV's XML or YAML."""
    if path.suffix.lower() in (".xml", ".yml", ".yaml"):
        return _read_opencv(path)
    try:
        numbers = np.array(path.read_text(encoding="utf-8").replace(",", " ").split(), float)
    except (OSError, ValueError) as error:
        raise FormatError(f"cannot read a homography from {path}: {error}") from None
    return checked_homography(numbers, path)


def _read_opencv(path: Path) -> np.ndarray:
    import cv2

    if not path.is_file():
        raise FormatError(f"cannot read a homography from {path}: no such file")
    try:
        storage = cv2.FileStorage(str(path), cv2.FILE_STORAGE_READ)
        matrices = [storage.getNode(name).mat() for name in storage.root().keys()]
    except (cv2.error, SystemError):  # OpenCV's constructor wraps its own error
        raise FormatError(f"cannot read a homography from {path}: not a file of OpenCV's") from None
    return checked_homography(np.concatenate([m.ravel() for m in matrices if m is not None] or [np.zeros(0)]), path)


def checked_homography(numbers: np.ndarray, path: Path | str) -> np.ndarray:
    """Nine numbers as a matrix; `path` says in errors where they come from."""
    if numbers.size != 9 or not np.isfinite(numbers).all():
        raise FormatError(f"{path} holds {numbers.size} numbers: a homography is nine, row by row")
    matrix = numbers.reshape(3, 3)
    if abs(np.linalg.det(matrix)) < 1e-12:
        raise FormatError(f"{path}: the homography cannot be inverted")
    return matrix


def homography_flow(query_from_reference: np.ndarray, reference: Size, query: Size) -> tuple[np.ndarray, np.ndarray]:
    """Flow (H, W, 2) float32 of a homography between pixel indices, and where it stays in the query (H, W) bool."""
    points = grid_points(reference, reference)
    center = query_from_reference @ [reference[0] / 2, reference[1] / 2, 1.0]
    landed = transform(points, query_from_reference / np.sign(center[2]))
    seen = np.isfinite(landed).all(-1)
    seen &= inside(np.where(seen[..., None], landed, -1e9), query)
    return np.where(seen[..., None], landed - points, 0).astype(np.float32), seen


def load_pair(reference: Path, query: Path, homography: Path, min_side: int | None = None) -> SyntheticPair:
    """The pair, with the flow that the homography (pixels of the first image to pixels of the second) says.

    With `min_side` both are resized so that their smaller side has this length, and so is the truth.
    """
    images = [read_image(path) for path in (reference, query)]
    whole = [image.shape[1::-1] for image in images]
    sizes = [fitted_size(size, min_side, None) for size in whole]
    matrix = rescale_matrix(whole[1], sizes[1]) @ read_homography(homography) @ rescale_matrix(sizes[0], whole[0])
    images = [image if size == old else resize_image(image, size) for image, size, old in zip(images, sizes, whole)]
    flow, seen = homography_flow(matrix, *sizes)
    if not seen.any():
        raise FormatError(f"by {homography} no pixel of {reference} lies in {query}: is it the other way round?")
    return SyntheticPair(images[0], images[1], flow, seen, seen, False)
