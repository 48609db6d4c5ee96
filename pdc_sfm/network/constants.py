"""Constant tensors, created once per device: copying them from the host would make it wait for a GPU."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar, cast

import torch
from torch import Tensor

LARGEST_MAP = 1 << 30  # bytes: a few such maps fit on a GPU of 8 GB beside the network and the codes

Key = ParamSpec("Key")
Made = TypeVar("Made")


def made_once(make: Callable[Key, Made]) -> Callable[Key, Made]:
    """Keep what a function of sizes, device and dtype makes. It is no part of a graph and may be used in training."""

    @functools.lru_cache(64)
    @functools.wraps(make)
    def kept(*args: Key.args, **kwargs: Key.kwargs) -> Made:
        with torch.inference_mode(False), torch.no_grad():
            return make(*args, **kwargs)

    return cast("Callable[Key, Made]", kept)  # lru_cache forgets the types of arguments


@made_once
def channels(values: tuple[float, ...], device: torch.device, dtype: torch.dtype) -> Tensor:
    """Numbers as (1, C, 1, 1)."""
    return torch.cat([torch.full((1, 1, 1, 1), value, device=device, dtype=dtype) for value in values], 1)


def chunk_size(cached: int, bytes_each: int, device: torch.device) -> int:
    """How many of a list of equal parts are computed together.

    A CPU takes as many as its cache holds. A GPU wants few and large kernels: it takes all, up to a gigabyte of each map.
    """
    return cached if device.type == "cpu" else max(cached, LARGEST_MAP // bytes_each)
