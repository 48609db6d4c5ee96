"""Compact storage of matches: coordinates to 1/64 pixel, as differences from match to match, compressed.

Dense matches stand on the cells of one image row by row, and what lies side by side there mostly does so in the other image:
differences between one match and the next are small and repeat. On the demo's pairs a match takes 4 bytes, where five float32
take 20.
"""

from __future__ import annotations

import zlib

import numpy as np

from pdc_sfm.matches.types import RawMatches

PLACES = 64  # steps of a pixel: no place is moved by more than 1/128 pixel along an axis, 0.011 pixels in all
SCORES = 4095  # steps of a probability
FARTHEST = 2.0**23 / PLACES  # pixels: differences stay below 2^25 steps, which 32 bits hold with a sign


def fits(matches: RawMatches) -> bool:
    """Whether packing keeps what the matches say: places that are numbers and near, scores that are probabilities."""
    places = all((np.abs(points) < FARTHEST).all() for points in (matches.keypoints0, matches.keypoints1))
    return bool(places and ((matches.scores >= 0) & (matches.scores <= 1)).all())


def pack(matches: RawMatches) -> bytes:
    """The matches as bytes. Those that do not fit must not be packed."""
    places = np.rint(np.concatenate((matches.keypoints0, matches.keypoints1), axis=1) * PLACES).astype(np.int32)
    steps = np.diff(places, axis=0, prepend=np.zeros((1, 4), np.int32))
    unsigned = ((steps << 1) ^ (steps >> 31)).astype(
        "<u4"
    )  # 0, -1, 1, -2, ... become 0, 1, 2, 3, ...: high bytes are zero
    scores = np.rint(matches.scores * SCORES).astype("<u2")
    return zlib.compress(_by_byte(unsigned.T) + _by_byte(scores[None]), 1)


def unpack(packed: bytes, count: int) -> RawMatches:
    """The matches of `pack`. Raises ValueError for other bytes."""
    try:
        planes = np.frombuffer(zlib.decompressobj().decompress(packed, 18 * count + 1), np.uint8)
    except zlib.error as error:
        raise ValueError(str(error)) from None
    if len(planes) != 18 * count:
        raise ValueError(f"{len(planes)} bytes are not {count} matches")
    unsigned = planes[: 16 * count].reshape(4, 4, count).transpose(2, 0, 1).copy().view("<u4")[..., 0]  # (N, 4)
    steps = (unsigned >> 1).astype(np.int32) ^ -(unsigned & 1).astype(np.int32)
    places = (np.cumsum(steps, axis=0, dtype=np.int32) / np.float32(PLACES)).astype(np.float32)
    scores = planes[16 * count :].reshape(2, count).T.copy().view("<u2")[:, 0]
    return RawMatches(places[:, :2], places[:, 2:], scores / np.float32(SCORES))


def rounded(matches: RawMatches) -> RawMatches:
    """The matches as `pack` and `unpack` give them back, or as they are, if they do not fit."""
    if not fits(matches):
        return matches
    points = (np.rint(points * PLACES).astype(np.int32) for points in (matches.keypoints0, matches.keypoints1))
    keypoints0, keypoints1 = ((places / np.float32(PLACES)).astype(np.float32) for places in points)
    return RawMatches(keypoints0, keypoints1, np.rint(matches.scores * SCORES).astype("<u2") / np.float32(SCORES))


def _by_byte(rows: np.ndarray) -> bytes:
    """Of each row (R, N) first the lowest bytes of all numbers, then the next: equal ones stand together."""
    rows = np.ascontiguousarray(rows)
    return rows.view(np.uint8).reshape(len(rows), -1, rows.itemsize).transpose(0, 2, 1).tobytes()
