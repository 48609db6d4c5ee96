"""NVM files (VisualSFM), in which Aachen's reference poses come: rotation as quaternion, and the camera's center."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

import numpy as np

from pdc_sfm.errors import FormatError
from pdc_sfm.paths import check_regular


@dataclasses.dataclass(frozen=True)
class NvmModel:
    """Cameras of a model, and which of them observe which point."""

    names: tuple[str, ...]
    quaternions: np.ndarray  # (N, 4) w x y z, camera from world
    centers: np.ndarray  # (N, 3) in the world
    points: np.ndarray  # (P, 3)
    observed_image: np.ndarray  # (O,) index of the camera of each observation
    observed_point: np.ndarray  # (O,) and of its point

    def poses(self) -> np.ndarray:
        """(N, 3, 4) camera from world: t = -R c."""
        w, x, y, z = (self.quaternions / np.linalg.norm(self.quaternions, axis=1, keepdims=True)).T
        rotation = np.stack(
            [
                [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
                [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
                [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
            ]
        )
        rotation = np.moveaxis(rotation, -1, 0)  # (N, 3, 3)
        translation = -np.einsum("nij,nj->ni", rotation, self.centers)
        return np.concatenate([rotation, translation[:, :, None]], axis=2)


def read_nvm(path: Path | str, points: bool = True) -> list[NvmModel]:
    """All models of a file, in its order; without `points` only their cameras."""
    path = Path(path)
    try:
        check_regular(path)
        with open(path, encoding="utf-8-sig") as file:
            lines = _Lines(file)
            if next(lines, "").split()[:1] != ["NVM_V3"]:  # NVM_V3_R9T has other numbers in the same places
                raise FormatError(f"{path} is not an NVM_V3 file")
            return list(_read_models(lines, points))
    except (OSError, UnicodeDecodeError) as error:
        raise FormatError(f"cannot read {path}: {error}") from None
    except (ValueError, IndexError, OverflowError) as error:
        raise FormatError(f"{path} line {lines.number} is not as NVM_V3 wants it: {error}") from None


class _Lines(Iterator[str]):
    """Lines that are not blank, with the number of the last one."""

    def __init__(self, file: TextIO):
        self._file = file
        self.number = 0

    def __next__(self) -> str:
        while True:
            self.number += 1
            line = self._file.readline()
            if not line:
                raise StopIteration
            if line.strip():
                return line

    def need(self) -> str:
        """The next line, which must be there."""
        for line in self:
            return line
        raise ValueError("the file ends too early")


def _read_models(lines: _Lines, points: bool) -> Iterator[NvmModel]:
    """A model is a number of cameras, so many lines, a number of points, so many lines; 0 cameras end the list."""
    while count := _count(next(lines, "0")):
        poses: dict[str, list[float]] = {}
        for _ in range(count):
            name, _focal_length, *pose = lines.need().split()[:9]  # then distortion and a 0
            if name in poses:
                raise ValueError(f"{name} has a pose already")
            poses[name] = _pose(pose)
        numbers = np.array(list(poses.values()))
        yield NvmModel(tuple(poses), numbers[:, :4], numbers[:, 4:], *_read_points(lines, count, points))


def _count(line: str) -> int:
    count = int(line)
    if count < 0:
        raise ValueError(f"a number of {count}")
    return count


def _pose(words: list[str]) -> list[float]:
    """Quaternion and center."""
    numbers = [float(word) for word in words]
    if len(numbers) != 7 or not all(abs(n) < 1e100 for n in numbers) or not any(abs(n) > 1e-6 for n in numbers[:4]):
        raise ValueError("a camera is `name focal_length qw qx qy qz cx cy cz distortion 0`")
    return numbers


def _read_points(lines: _Lines, cameras: int, wanted: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """`x y z r g b count`, then `camera feature x y` for each observation."""
    xyz: list[list[float]] = []
    images: list[np.ndarray] = []
    for _ in range(_count(next(lines, "0"))):
        line = lines.need()
        if wanted:
            words = line.split()
            if len(words) < 7 or len(words) < 7 + 4 * _count(words[6]):
                raise ValueError("a point is `x y z r g b count` and `camera feature x y` for each observation")
            xyz.append([float(word) for word in words[:3]])
            images.append(np.array(words[7 : 7 + 4 * int(words[6]) : 4], np.int32))
    lengths = [len(part) for part in images]
    observed_image = np.fromiter(itertools.chain.from_iterable(images), np.int32, sum(lengths))
    strangers = observed_image[(observed_image < 0) | (observed_image >= cameras)]
    if len(strangers):
        raise ValueError(f"an observation by camera {strangers[0]} of {cameras}")
    points = np.array(xyz).reshape(-1, 3)
    if not np.isfinite(points).all():
        raise ValueError("a point whose place is not a number")
    return points, observed_image, np.repeat(np.arange(len(images)), lengths)
