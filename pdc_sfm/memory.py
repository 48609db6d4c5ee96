"""Keeps freed memory for reuse: feature maps are allocated and freed hundreds of times a second, and
returning them to the system each time costs more than some layers (a fifth of an encoding)."""

from __future__ import annotations

import ctypes

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _MMAP_MAX = -1, -3, -4  # of malloc.h
LARGEST_BLOCK = 32 << 20  # the most that malloc lets this threshold be
MOST_KEPT = 512 << 20  # bytes: what is freed beyond them goes back to the system


def keep_freed(everything: bool = False) -> bool:
    """Let malloc keep blocks of up to 32 MB and 512 MB in all, or everything; returns whether it can (glibc only)."""
    try:
        libc = ctypes.CDLL("libc.so.6")
        libc.gnu_get_libc_version  # noqa: B018  musl has no such name, and its malloc no such options
        mallopt = libc.mallopt
    except (OSError, AttributeError):
        return False
    if everything:
        return bool(mallopt(_MMAP_MAX, 0)) and bool(mallopt(_TRIM_THRESHOLD, -1))
    return bool(mallopt(_MMAP_THRESHOLD, LARGEST_BLOCK)) and bool(mallopt(_TRIM_THRESHOLD, MOST_KEPT))
