"""Reading hloc feature and match files, ours or hloc's own: both pair orders, old names, short `matches0`."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from pdc_sfm.errors import FormatError, UserError
from pdc_sfm.store.pair_lists import pair_key


@contextlib.contextmanager
def reading(path: Path | str, kind: str) -> Iterator[None]:
    """Turn any exception of h5py for a damaged file into a one-line error."""
    try:
        yield
    except UserError:
        raise
    except (
        OSError,
        RuntimeError,
        ValueError,
        TypeError,
        KeyError,
        AttributeError,
        MemoryError,
        OverflowError,
    ) as error:
        reason = " ".join(str(error).split())
        raise FormatError(f"cannot read {kind} {path}: {reason}; make it again") from None


@dataclasses.dataclass(frozen=True)
class ImageKeypoints:
    """Keypoints of one image, as pixel indices (see `pdc_sfm.pixels`)."""

    points: np.ndarray  # (N, 2) float32
    uncertainty: np.ndarray | float | None  # pixels, for the image or (N,) for each keypoint; None if not recorded
    image_size: tuple[int, int] | None  # (width, height); None if not recorded


class FeatureFile:
    """An open feature file."""

    def __init__(self, file: h5py.File):
        self._file = file

    def __contains__(self, name: str) -> bool:
        with self._reading():
            return isinstance(self._file.get(f"{name}/keypoints"), h5py.Dataset)

    def _reading(self) -> contextlib.AbstractContextManager[None]:
        return reading(self._file.filename, "feature file")

    def names(self) -> list[str]:
        """The images of the file, sorted."""
        names: list[str] = []

        def visit(path: str, item: h5py.Group | h5py.Dataset) -> None:
            if isinstance(item, h5py.Dataset) and path.endswith("/keypoints"):
                names.append(path.removesuffix("/keypoints"))

        with self._reading():
            self._file.visititems(visit)
        return sorted(names)

    def keypoints(self, name: str) -> ImageKeypoints:
        """Keypoints of an image of the file."""
        if name not in self:
            raise FormatError(f"{self._file.filename} has no keypoints of {name}: was it made from other images?")
        with self._reading():
            group = self._file[name]
            points = np.asarray(group["keypoints"][()]).astype(np.float32)
            uncertainty = group["keypoints"].attrs.get("uncertainty")
            size = tuple(int(s) for s in group["image_size"][()]) if "image_size" in group else None
        if points.ndim != 2 or points.shape[1] < 2:
            raise FormatError(f"{self._file.filename}: keypoints of {name} have shape {points.shape}, expected (N, 2)")
        if not np.isfinite(points).all():
            raise FormatError(f"{self._file.filename}: a keypoint of {name} is not a number: make the file again")
        if size is not None and (len(size) != 2 or min(size) < 1):
            raise FormatError(f"{self._file.filename}: the image size of {name} is {size}, expected (width, height)")
        return ImageKeypoints(points[:, :2], uncertainty, size)

    def attribute(self, name: str, key: str) -> Any:
        """An attribute of an image's group; None if it has none."""
        with self._reading():
            return self._file[name].attrs.get(key)

    def copy_image(self, name: str, target: h5py.File, descriptors: bool = True) -> None:
        """Copy the group of an image to another file, with or without its descriptors."""
        group = target.create_group(name)
        group.attrs.update(self._file[name].attrs)
        for key, item in self._file[name].items():
            if isinstance(item, h5py.Dataset) and (descriptors or key != "descriptors"):
                self._file.copy(item, group, key)

    def scores(self, name: str) -> np.ndarray | None:
        """Scores (N,) float32 of an image's keypoints, under either of hloc's names; None if not recorded."""
        with self._reading():
            for key in ("scores", "score"):
                if f"{name}/{key}" in self._file:
                    return np.asarray(self._file[f"{name}/{key}"][()]).astype(np.float32)
        return None


class MatchFile:
    """An open match file."""

    def __init__(self, file: h5py.File):
        self._file = file

    def __contains__(self, pair: tuple[str, str]) -> bool:
        return self._find(*pair) is not None

    def matches(self, name0: str, name1: str) -> tuple[np.ndarray, np.ndarray]:
        """Indices (M, 2) int32 of matched keypoints of the two images, and scores (M,) float32."""
        found = self._find(name0, name1)
        if found is None:
            raise FormatError(f"{self._file.filename} has no matches of {name0} {name1}: was another list matched?")
        group, reversed_pair = found
        with self._reading():
            matches0 = np.asarray(group["matches0"][()])
            scores0 = np.asarray(group["matching_scores0"][()]) if "matching_scores0" in group else None
        fits = scores0 is None or scores0.shape == matches0.shape
        if matches0.ndim != 1 or matches0.dtype.kind not in "iu" or not fits:
            raise FormatError(
                f"{self._file.filename}: matches of {name0} {name1} are {matches0.dtype} of shape {matches0.shape}, "
                "expected indices (N,) and as many scores"
            )
        index = np.flatnonzero(matches0 >= 0)
        matches = np.stack([index, matches0[index]], axis=1).astype(np.int32)
        scores = np.ones(len(index), np.float32) if scores0 is None else scores0[index].astype(np.float32)
        return matches[:, ::-1] if reversed_pair else matches, scores

    def _find(self, name0: str, name1: str) -> tuple[h5py.Group, bool] | None:
        """The group of a pair and whether it is stored in the other order. Without `matches0` it is unfinished."""
        with self._reading():
            for separator in ("/", "_"):  # "_": files of older hloc versions
                for first, second in ((name0, name1), (name1, name0)):
                    group = self._file.get(pair_key(first, second, separator))
                    if isinstance(group, h5py.Group) and isinstance(group.get("matches0"), h5py.Dataset):
                        return group, first != name0
        return None

    def _reading(self) -> contextlib.AbstractContextManager[None]:
        return reading(self._file.filename, "match file")


@contextlib.contextmanager
def open_features(path: Path | str) -> Iterator[FeatureFile]:
    """Open a feature file for reading."""
    with _open(path, "feature") as file:
        yield FeatureFile(file)


@contextlib.contextmanager
def open_matches(path: Path | str) -> Iterator[MatchFile]:
    """Open a match file for reading."""
    with _open(path, "match") as file:
        yield MatchFile(file)


def _open(path: Path | str, kind: str) -> h5py.File:
    path = Path(path)
    if not path.is_file():
        raise FormatError(f"there is no {kind} file {path}")
    try:
        return h5py.File(path, "r", libver="latest")
    except OSError as error:
        raise FormatError(f"{path} is not a readable {kind} file (h5): {error}") from None
