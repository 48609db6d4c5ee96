"""Checks COLMAP's binary files before pycolmap reads them, since it trusts their counts and hangs on a damaged one."""

from __future__ import annotations

import struct
from pathlib import Path

from pdc_sfm.errors import FormatError

_COUNT = struct.Struct("<Q")
_IMAGE_HEAD = 4 + 7 * 8 + 4  # id, pose, camera
_POINT_2D = 2 * 8 + 8
_POINT_HEAD = 8 + 3 * 8 + 3 + 8  # id, position, color, error
_TRACK_ELEMENT = 2 * 4
_SMALLEST_CAMERA = 4 + 4 + 2 * 8 + 3 * 8
_SMALL_COUNT = struct.Struct("<I")
_POSE = 7 * 8
_SENSOR = 4 + 4  # kind, id
_FRAME_HEAD = 4 + 4 + _POSE  # id, rig, pose


def check_binary_model(folder: Path) -> None:
    """Refuse files whose counts do not add up to their sizes."""
    for name, walk in _WALKS.items():
        path = folder / f"{name}.bin"
        if not path.is_file():  # models of older COLMAPs have neither rigs nor frames
            continue
        data = path.read_bytes()
        try:
            end = walk(data)
        except (struct.error, ValueError, IndexError, OverflowError):
            end = -1
        if end != len(data):
            raise FormatError(
                f"{path} is damaged or cut off ({len(data)} bytes): make the model again, or copy it again"
            )


def _walk_cameras(data: bytes) -> int:
    (count,) = _COUNT.unpack_from(data)
    return len(data) if 8 + count * _SMALLEST_CAMERA <= len(data) else -1


def _walk_images(data: bytes) -> int:
    (count,), place = _COUNT.unpack_from(data), 8
    for _ in range(count):
        place = data.index(b"\0", place + _IMAGE_HEAD) + 1
        (points,) = _COUNT.unpack_from(data, place)
        place += 8 + points * _POINT_2D
    return place


def _walk_points(data: bytes) -> int:
    (count,), place = _COUNT.unpack_from(data), 8
    for _ in range(count):
        (track,) = _COUNT.unpack_from(data, place + _POINT_HEAD)
        place += _POINT_HEAD + 8 + track * _TRACK_ELEMENT
    return place


def _walk_rigs(data: bytes) -> int:
    (count,), place = _COUNT.unpack_from(data), 8
    for _ in range(count):
        (sensors,) = _SMALL_COUNT.unpack_from(data, place + 4)
        place += 8 + (_SENSOR if sensors else 0)
        for _ in range(sensors - 1):
            place += _SENSOR + 1 + (_POSE if data[place + _SENSOR] else 0)
    return place


def _walk_frames(data: bytes) -> int:
    (count,), place = _COUNT.unpack_from(data), 8
    for _ in range(count):
        (images,) = _SMALL_COUNT.unpack_from(data, place + _FRAME_HEAD)
        place += _FRAME_HEAD + 4 + images * (_SENSOR + 8)
    return place


_WALKS = {
    "cameras": _walk_cameras,
    "rigs": _walk_rigs,
    "frames": _walk_frames,
    "images": _walk_images,
    "points3D": _walk_points,
}
