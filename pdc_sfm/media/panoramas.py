"""Panoramas as rigs: renders pinhole views of an equirectangular image, with cameras at one place.

Column and row of a panorama are longitude and latitude: its middle is straight ahead, its top row above. The rig's frame is the
panorama's: x to the right, y down, z through the middle; the first view looks along z.
"""

from __future__ import annotations

import dataclasses
import json
import logging
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from pdc_sfm.errors import ImageError
from pdc_sfm.files import exclusive, file_digest, write_text
from pdc_sfm.images import list_images, read_image, resize_image, write_image
from pdc_sfm.media.picture_log import append_journal, read_journal
from pdc_sfm.paths import keep_apart
from pdc_sfm.progress import progress
from pdc_sfm.settings import require, to_dict

log = logging.getLogger(__name__)

RIG, JOURNAL = "rig.json", "views.jsonl"
ASPECT = 0.02  # by which width may differ from twice the height, relative


@dataclasses.dataclass(frozen=True)
class PanoramaSettings:
    """Which views are taken of a panorama."""

    views: int = 6  # views around the horizon, at each tilt; the first looks straight ahead
    tilts: tuple[float, ...] = (0.0,)  # degrees above the horizon; the first is the horizon
    angle: float = 90.0  # horizontal and vertical field of view, degrees
    side: int | None = None  # width and height of a view, pixels; null: the resolution of the panorama

    def __post_init__(self) -> None:
        require(self.views >= 3, f"views={self.views} must be at least 3")
        require(bool(self.tilts) and self.tilts[0] == 0, "tilts begin with 0, the horizon")
        require(all(abs(tilt) <= 90 for tilt in self.tilts), "tilts are between -90 and 90 degrees")
        require(20 <= self.angle <= 140, f"angle={self.angle} must be between 20 and 140 degrees")
        require(self.side is None or self.side >= 64, f"side={self.side} must be at least 64 pixels")


@dataclasses.dataclass(frozen=True)
class PanoramaView:
    """A view of a panorama."""

    name: str  # of the folder of its images
    rig_from_view: np.ndarray  # (3, 3)


def panorama_views(settings: PanoramaSettings) -> list[PanoramaView]:
    """All views, the first straight ahead."""
    found = []
    for tilt in settings.tilts:
        for number in range(settings.views):
            turn = 360.0 * number / settings.views
            name = f"turn{turn:03.0f}" + (f"_tilt{tilt:+03.0f}" if tilt else "")
            found.append(PanoramaView(name, _turned(0, turn) @ _turned(tilt, 0)))
    return found


def write_views(panoramas: Path | str, output: Path | str, settings: PanoramaSettings | None = None) -> list[str]:
    """Write the views of all panoramas of a folder, `VIEW/NAME.jpg` each, and their rig; names of the panoramas.

    Stopped, it goes on where it was.
    """
    panoramas, output, settings = Path(panoramas), Path(output), settings or PanoramaSettings()
    keep_apart(images=[panoramas], folders=[output])
    names = list_images(panoramas)
    if not names:
        raise ImageError(f"{panoramas} holds no images")
    owners: dict[str, str] = {}
    for name in names:
        if owners.setdefault(view_name(name), name) != name:
            both = f"{owners[view_name(name)]} and {name}"
            raise ImageError(f"{panoramas} has {both}, whose views would have one name: rename one of them")
    output.mkdir(parents=True, exist_ok=True)
    with exclusive(output / RIG):
        origin = {"panoramas": str(panoramas.resolve()), "settings": to_dict(settings)}
        done = {entry["name"]: entry for entry in read_journal(output / JOURNAL, origin)}
        size: int | None = next((entry["side"] for entry in done.values()), None)
        for name in progress(names, "panoramas", "image"):
            digest = file_digest(panoramas / name)
            if done.get(name, {}).get("digest") == digest:
                continue
            image = _read_panorama(panoramas / name)
            side = size = (
                size or settings.side or round(image.shape[1] / math.pi * math.tan(math.radians(settings.angle) / 2))
            )
            for view, picture in _pictures(image, settings, side):
                write_image(output / view.name / view_name(name), picture)
            append_journal(output / JOURNAL, {"name": name, "digest": digest, "side": side})
        assert size is not None
        write_text(output / RIG, json.dumps(_rig(settings, size), indent=1) + "\n")
    return names


def view_name(name: str) -> str:
    """Of a panorama's views, below the folder of each."""
    return f"{name.rpartition('.')[0]}.jpg"


def _read_panorama(path: Path) -> np.ndarray:
    image = read_image(path)
    height, width = image.shape[:2]
    if abs(width / (2 * height) - 1) > ASPECT:
        raise ImageError(
            f"{path} is {width} x {height}: an equirectangular image of all around is twice as wide as high; leave it out"
        )
    return image


def _pictures(image: np.ndarray, settings: PanoramaSettings, side: int) -> Iterator[tuple[PanoramaView, np.ndarray]]:
    """Each view (side, side, 3)."""
    import cv2

    focal = side / 2 / math.tan(math.radians(settings.angle) / 2)
    native = 2 * math.pi * focal  # as wide as the panorama would be at the views' resolution
    if native < image.shape[1]:
        image = resize_image(image, (round(native), round(native / 2)))
    height, width = image.shape[:2]
    across = (np.arange(side) + 0.5 - side / 2) / focal
    rays = np.stack([*np.meshgrid(across, across), np.ones((side, side))], axis=-1)
    image = np.concatenate([image, image[:, :1]], axis=1)  # the last column is a neighbor of the first
    for view in panorama_views(settings):
        x, y, z = np.moveaxis(rays @ view.rig_from_view.T, -1, 0)
        longitude, latitude = np.arctan2(x, z), np.arctan2(-y, np.hypot(x, z))
        column = np.mod((longitude / (2 * math.pi) + 0.5) * width - 0.5, width)
        row = (0.5 - latitude / math.pi) * height - 0.5
        maps = column.astype(np.float32), row.astype(np.float32)
        yield view, cv2.remap(image, *maps, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)


def _rig(settings: PanoramaSettings, side: int) -> list[dict[str, Any]]:
    """The views as COLMAP's rig file has them."""
    focal = side / 2 / math.tan(math.radians(settings.angle) / 2)
    cameras = []
    for number, view in enumerate(panorama_views(settings)):
        entry: dict[str, Any] = {"image_prefix": f"{view.name}/"}
        if number == 0:
            entry["ref_sensor"] = True
        else:
            entry["cam_from_rig_rotation"] = _quaternion(view.rig_from_view.T)
            entry["cam_from_rig_translation"] = [0.0, 0.0, 0.0]
        entry |= {"camera_model_name": "PINHOLE", "camera_params": [focal, focal, side / 2, side / 2]}
        cameras.append(entry)
    return [{"cameras": cameras}]


def _quaternion(rotation: np.ndarray) -> list[float]:
    """w, x, y, z."""
    from scipy.spatial.transform import Rotation

    x, y, z, w = Rotation.from_matrix(rotation).as_quat(canonical=True)
    return [float(value) for value in (w, x, y, z)]


def _turned(tilt: float, turn: float) -> np.ndarray:
    """(3, 3) rotation about x or y, by degrees."""
    import cv2

    return cv2.Rodrigues(np.radians([tilt, turn, 0.0]))[0]
