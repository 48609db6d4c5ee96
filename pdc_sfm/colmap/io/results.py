"""Poses in the format of the benchmarks, and the record of how each was found."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pycolmap

from pdc_sfm.errors import FormatError, SettingsError
from pdc_sfm.files import atomic_path, write_text
from pdc_sfm.paths import read_text
from pdc_sfm.store.pair_lists import BOM, check_name


def result_names(queries: Iterable[str], prepend_camera_name: bool = False) -> dict[str, str]:
    """Query -> its name in a results file: the base name, or `camera/base` (RobotCar)."""
    names: dict[str, str] = {}
    owner: dict[str, str] = {}
    for query in queries:
        parts = query.split("/")
        names[query] = "/".join(parts[-2:] if prepend_camera_name else parts[-1:])
        other = owner.setdefault(names[query], query)
        if other != query:
            hint = "queries must differ in their last two parts" if prepend_camera_name else "use prepend_camera_name"
            raise SettingsError(f"{other} and {query} would both be called {names[query]} in the results: {hint}")
    return names


def write_poses(path: Path | str, poses: Mapping[str, pycolmap.Rigid3d], prepend_camera_name: bool = False) -> None:
    """One line a query, `name qw qx qy qz tx ty tz`, camera from world. At once or not at all."""
    names = result_names(poses, prepend_camera_name)
    lines = []
    for query, cam_from_world in poses.items():
        numbers = (*cam_from_world.rotation.quat[[3, 0, 1, 2]], *cam_from_world.translation)
        if names[query].split() != [names[query]]:
            raise FormatError(f"'{query}' cannot stand in a results file, which separates words by blanks: rename it")
        check_name(query)
        if names[query].startswith(BOM):  # who reads the file takes it for a mark of its encoding
            raise FormatError(f"{query!a} cannot begin a line of a results file: rename it")
        if not np.isfinite(numbers).all():
            raise FormatError(f"the pose of {query} is not a number")
        lines.append(pose_line(names[query], cam_from_world))
    write_text(path, "".join(lines))


def pose_line(name: str, pose: pycolmap.Rigid3d) -> str:
    """`name qw qx qy qz tx ty tz`, as a line of a results file."""
    return " ".join((name, *(repr(float(n)) for n in (*pose.rotation.quat[[3, 0, 1, 2]], *pose.translation)))) + "\n"


def read_poses(path: Path | str) -> dict[str, np.ndarray]:
    """Name in the file -> cam_from_world (3, 4)."""
    poses: dict[str, np.ndarray] = {}
    try:
        lines = read_text(path).split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise FormatError(f"cannot read the results {path}: {error}") from None
    for number, line in enumerate(lines, start=1):
        words = line.split()
        if not words:
            continue
        name, pose = words[0], _parse_pose(words[1:])
        if pose is None:
            raise FormatError(f"{path} line {number}: expected `name qw qx qy qz tx ty tz`")
        if name in poses:
            raise FormatError(f"{path} line {number}: {name} has a pose already")
        poses[name] = pose
    return poses


def _parse_pose(words: list[str]) -> np.ndarray | None:
    """cam_from_world (3, 4) of `qw qx qy qz tx ty tz`; None if that is no pose."""
    try:
        numbers = np.array([float(word) for word in words])
    except ValueError:
        return None
    if numbers.shape != (7,) or not (np.abs(numbers) < 1e100).all():  # NaN is not below either
        return None
    length = np.linalg.norm(numbers[:4])
    if length < 1e-6:
        return None
    rotation = pycolmap.Rotation3d(numbers[[1, 2, 3, 0]] / length)
    return np.asarray(pycolmap.Rigid3d(rotation, numbers[4:]).matrix())


def log_files(results: Path | str) -> tuple[Path, Path]:
    """The files beside the results that tell how each was found: for hloc's tools, and for everyone else."""
    return Path(f"{results}_logs.pkl"), Path(f"{results}_logs.json")


def write_logs(results: Path | str, logs: Mapping[str, Any], record: Mapping[str, Any]) -> None:
    """`{results}_logs.pkl` for hloc's tools, and `{results}_logs.json`, which is safe to read, for everyone else."""
    pickled, readable = log_files(results)
    with atomic_path(pickled) as partial:
        partial.write_bytes(pickle.dumps(dict(logs)))
    write_text(readable, json.dumps(record, indent=1) + "\n")
