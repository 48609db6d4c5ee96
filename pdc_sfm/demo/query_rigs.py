"""Queries of a rig: the rig of a file, in the unit of the map."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

from pdc_sfm.colmap.io.cameras import make_camera
from pdc_sfm.colmap.io.models import has_metres
from pdc_sfm.colmap.io.rigs import RIG_FILE, RigCamera, Rigs, check_images, give_poses, read_rig_file
from pdc_sfm.colmap.types import Camera, Rigid3d
from pdc_sfm.errors import FormatError
from pdc_sfm.pixels import Size

SOURCE = "the rig file"  # of intrinsics


def read_query_rigs(path: Path | str, model: Path, names: Collection[str], images: Path) -> Rigs:
    """Rigs of queries with these names. What a file does not say of a rig's poses the map does that was made with it.

    Where the map or the rig has no metres, the size of a rig is what the map found, not what the file says.
    """
    rigs = read_rig_file(path)
    check_images(rigs, list(names), f"the images of {images}")
    known = read_rig_file(model / RIG_FILE) if (model / RIG_FILE).is_file() else ()
    poses = {camera.prefix: camera.cam_from_rig for rig in known for camera in rig.cameras if camera.cam_from_rig}
    if has_metres(model) and all(rig.in_metres for rig in rigs):
        rigs = give_poses(rigs, poses)
    else:
        rigs = give_poses(rigs, poses, replace=True)
        apart = [rig for rig in rigs if rig.has_size and not {camera.prefix for camera in rig.cameras} <= poses.keys()]
        if apart:
            raise FormatError(
                f"the map {model} or the rig of {path} has no metres, and the map was not made with this rig, so that its size "
                "in the map is not known: make the map with --rig"
            )
    unknown = [camera.prefix for rig in rigs for camera in rig.cameras if camera.cam_from_rig is None]
    if unknown:
        raise FormatError(
            f"{path} does not say where {unknown[0]} stands in its rig (cam_from_rig), and the map {model} does not know"
        )
    return rigs


def query_frames(rigs: Rigs, links: Mapping[str, str]) -> dict[str, dict[str, Rigid3d]]:
    """cam_from_rig of the queries of each moment, by their links, under what their names share."""
    found = {}
    for number, rig in enumerate(rigs):
        for moment, images in rig.frames(links).items():
            name = moment if len(rigs) == 1 else f"{number}/{moment}"
            found[name] = {links[image]: camera.cam_from_rig for image, camera in images.items() if camera.cam_from_rig}
    return found


def rig_intrinsics(rigs: Rigs, name: str, size: Size) -> Camera | None:
    """Of the camera that took an image, if a rig says."""
    cameras: list[RigCamera | None] = [rig.camera_of(name) for rig in rigs]
    camera = next((camera for camera in cameras if camera is not None and camera.model), None)
    return None if camera is None else make_camera(camera.model, *size, camera.params)
