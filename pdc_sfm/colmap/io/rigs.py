"""Rigs: cameras that are fixed to each other, in the JSON of COLMAP's rig_configurator.

[{"cameras": [{"image_prefix": "left/", "ref_sensor": true},
              {"image_prefix": "right/", "cam_from_rig_rotation": [w, x, y, z], "cam_from_rig_translation": [x, y, z]}]}]

Images whose names are equal but for the prefixes of one rig were taken at one moment: a frame. A camera without a pose in the
rig has one that is to be estimated. `camera_model_name` and `camera_params` may give its intrinsics. A rig whose size was
estimated without any metres says so: "unit": "unknown" beside its cameras, which COLMAP passes over.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pycolmap

from pdc_sfm.colmap.io.cameras import camera_parameters
from pdc_sfm.errors import FormatError, SettingsError
from pdc_sfm.paths import read_text

RIG_FILE = "rig.json"  # of a model that was made with a rig
METRES, UNKNOWN = "metres", "unknown"  # units of a rig
KEYS = {
    "image_prefix",
    "ref_sensor",
    "cam_from_rig_rotation",
    "cam_from_rig_translation",
    "camera_model_name",
    "camera_params",
}


@dataclasses.dataclass(frozen=True)
class RigCamera:
    """A camera of a rig."""

    prefix: str  # of the names of its images
    is_reference: bool  # its frame is the rig's
    cam_from_rig: pycolmap.Rigid3d | None  # None: not known
    model: str = ""  # of its intrinsics; empty: not known
    params: tuple[float, ...] = ()


@dataclasses.dataclass(frozen=True)
class CameraRig:
    """Cameras that are fixed to each other."""

    cameras: tuple[RigCamera, ...]
    in_metres: bool = True  # the places of its cameras

    @property
    def is_known(self) -> bool:
        """Whether the poses of all its cameras are."""
        return all(camera.cam_from_rig is not None for camera in self.cameras)

    @property
    def has_size(self) -> bool:
        """Whether its cameras stand apart: what it takes has the scale of the rig."""
        poses = [camera.cam_from_rig for camera in self.cameras if camera.cam_from_rig is not None]
        return any(np.linalg.norm(pose.translation) > 0 for pose in poses)

    def camera_of(self, name: str) -> RigCamera | None:
        """The camera that took an image."""
        return next((camera for camera in self.cameras if name.startswith(camera.prefix)), None)

    def frames(self, names: Collection[str]) -> dict[str, dict[str, RigCamera]]:
        """Images of one moment, with the camera of each, under the name that they share."""
        found: dict[str, dict[str, RigCamera]] = {}
        for name in names:
            camera = self.camera_of(name)
            if camera is not None:
                found.setdefault(name.removeprefix(camera.prefix), {})[name] = camera
        return found


Rigs = tuple[CameraRig, ...]


def read_rig_file(path: Path | str) -> Rigs:
    """Rigs of a file; an error that says what is wrong in it, and where."""
    try:
        content = json.loads(read_text(path))
    except (OSError, ValueError) as error:
        raise FormatError(f"cannot read the rig file {path}: {error}") from None
    if not isinstance(content, list) or not content or not all(isinstance(rig, dict) for rig in content):
        raise FormatError(f'{path} is no rig file of COLMAP: it begins [{{"cameras": [...]}}]')
    rigs = tuple(_parse_rig(rig, f"{path}: rig {number}") for number, rig in enumerate(content, start=1))
    prefixes = [camera.prefix for rig in rigs for camera in rig.cameras]
    for k, prefix in enumerate(prefixes):
        for other in prefixes[:k]:
            if prefix.startswith(other) or other.startswith(prefix):
                raise FormatError(f"{path}: names that begin with {prefix} and {other} are of two cameras at once")
    return rigs


def write_rig_file(path: Path, rigs: Rigs) -> None:
    """As COLMAP and `read_rig_file` read it."""
    path.write_text(json.dumps(rig_entries(rigs), indent=1) + "\n", encoding="utf-8")


def rig_entries(rigs: Rigs) -> list[dict[str, Any]]:
    """The content of a rig file."""
    content: list[dict[str, Any]] = []
    for rig in rigs:
        cameras = []
        for camera in rig.cameras:
            entry: dict[str, Any] = {"image_prefix": camera.prefix}
            if camera.is_reference:
                entry["ref_sensor"] = True
            elif camera.cam_from_rig is not None:
                quaternion = camera.cam_from_rig.rotation.quat[[3, 0, 1, 2]]
                entry["cam_from_rig_rotation"] = (quaternion * (1 if quaternion[0] >= 0 else -1)).tolist()
                entry["cam_from_rig_translation"] = np.asarray(camera.cam_from_rig.translation).tolist()
            if camera.model:
                entry |= {"camera_model_name": camera.model, "camera_params": list(camera.params)}
            cameras.append(entry)
        content.append({"cameras": cameras} | ({} if rig.in_metres else {"unit": UNKNOWN}))
    return content


def check_images(rigs: Rigs, names: Sequence[str], source: str = "the images") -> None:
    """Refuse rigs that name cameras without images, or of which no two images are of one moment."""
    for rig in rigs:
        for camera in rig.cameras:
            if not any(name.startswith(camera.prefix) for name in names):
                raise FormatError(
                    f"the rig file has a camera {camera.prefix}, and none of {source} has a name that begins so (they are as "
                    f"{names[0] if names else 'none'})"
                )
        if len(rig.cameras) > 1 and all(len(images) == 1 for images in rig.frames(names).values()):
            first, second = rig.cameras[:2]
            raise FormatError(
                f"no two of {source} are of one moment: names must be equal but for {first.prefix} and {second.prefix}"
            )


def rename_cameras(rigs: Rigs, rename: Callable[[str], str]) -> Rigs:
    """For images under other names."""
    return tuple(
        dataclasses.replace(
            rig, cameras=tuple(dataclasses.replace(camera, prefix=rename(camera.prefix)) for camera in rig.cameras)
        )
        for rig in rigs
    )


def give_poses(rigs: Rigs, poses: Mapping[str, pycolmap.Rigid3d], replace: bool = False) -> Rigs:
    """Rigs whose unknown poses, by prefix, are known now; `replace`: also those that were."""

    def known(camera: RigCamera) -> RigCamera:
        own, found = camera.cam_from_rig, poses.get(camera.prefix)
        return dataclasses.replace(camera, cam_from_rig=(found or own) if replace else (own or found))

    return tuple(dataclasses.replace(rig, cameras=tuple(map(known, rig.cameras))) for rig in rigs)


def apply_rigs(database: pycolmap.Database, rigs: Rigs) -> None:
    """Write rigs and frames into a database whose images of one prefix have one camera."""
    configs = []
    for rig in rigs:
        cameras = []
        for camera in rig.cameras:
            config = pycolmap.RigConfigCamera()
            config.image_prefix, config.ref_sensor = camera.prefix, camera.is_reference
            if not camera.is_reference:
                config.cam_from_rig = camera.cam_from_rig
            cameras.append(config)
        configs.append(pycolmap.RigConfig(cameras=cameras))
    pycolmap.apply_rig_config(configs, database)


def _parse_rig(content: Mapping[str, Any], where: str) -> CameraRig:
    cameras = content.get("cameras")
    if not isinstance(cameras, list) or not all(isinstance(camera, dict) for camera in cameras):
        raise FormatError(f"{where} has no list of cameras")
    found = tuple(_parse_camera(camera, f"{where}, camera {number}") for number, camera in enumerate(cameras, start=1))
    if sum(camera.is_reference for camera in found) != 1:
        raise FormatError(f'{where} needs one camera with "ref_sensor": true, whose frame is the rig\'s')
    unit = content.get("unit", METRES)
    if unit not in (METRES, UNKNOWN):
        raise FormatError(f'{where}: unit is "{METRES}" or "{UNKNOWN}", not {unit!r}')
    return CameraRig(found, unit == METRES)


def _parse_camera(entry: Mapping[str, Any], where: str) -> RigCamera:
    if unknown := sorted(set(entry) - KEYS):
        raise FormatError(f"{where} has {', '.join(unknown)}: known are {', '.join(sorted(KEYS))}")
    prefix, reference = entry.get("image_prefix"), entry.get("ref_sensor", False)
    if not isinstance(prefix, str) or not prefix:
        raise FormatError(f"{where} has no image_prefix: what the names of its images begin with")
    if not isinstance(reference, bool):
        raise FormatError(f"{where}: ref_sensor is true or false")
    rotation, translation = (_numbers(entry, f"cam_from_rig_{key}", where) for key in ("rotation", "translation"))
    if (rotation is None) != (translation is None):
        raise FormatError(f"{where} ({prefix}) needs cam_from_rig_rotation and cam_from_rig_translation, or neither")
    if reference and rotation is not None:
        raise FormatError(f"{where} ({prefix}) is the rig's reference: it has no cam_from_rig")
    pose = pycolmap.Rigid3d() if reference else None
    if rotation is not None and translation is not None:
        if len(rotation) != 4 or len(translation) != 3 or abs(np.linalg.norm(rotation) - 1) > 0.01:
            raise FormatError(
                f"{where} ({prefix}): cam_from_rig_rotation is a unit quaternion w, x, y, z, cam_from_rig_translation x, y, z"
            )
        w, x, y, z = rotation / np.linalg.norm(rotation)
        pose = pycolmap.Rigid3d(pycolmap.Rotation3d(np.array([x, y, z, w])), translation)
    model, params = entry.get("camera_model_name", ""), _numbers(entry, "camera_params", where)
    if bool(model) != (params is not None):
        raise FormatError(f"{where} ({prefix}) needs camera_model_name and camera_params, or neither")
    if params is not None:
        try:
            expected = camera_parameters(str(model))
        except SettingsError as error:
            raise FormatError(f"{where} ({prefix}): {error}") from None
        if len(params) != len(expected):
            raise FormatError(f"{where} ({prefix}): {model} takes {', '.join(expected)}, not {len(params)} numbers")
    return RigCamera(prefix, reference, pose, str(model), () if params is None else tuple(params.tolist()))


def _numbers(entry: Mapping[str, Any], key: str, where: str) -> np.ndarray | None:
    if key not in entry:
        return None
    values = entry[key]
    well = isinstance(values, list) and all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in values)
    if not well or not np.isfinite(values).all():
        raise FormatError(f"{where}: {key} is a list of numbers")
    return np.array(values, np.float64)
