"""Backpropagation on fake CUDA tensors, node by node, because torch's own engine needs a CUDA driver.

The nodes are torch's own, and so are their gradients. What the engine does between them is done here: it sums what arrives at
a node, and holds every gradient to the device, type and shape of the tensor that it belongs to.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import BackwardCFunction


@torch.no_grad()
def backward(loss: Tensor, gradient: Tensor | None = None) -> None:
    """What `loss.backward(gradient)` does: gradients of all leaves that require them are added to their `grad`."""
    node = loss.grad_fn
    assert node is not None  # as the engine: a loss without any parameter is a mistake
    arrived: dict[Any, list[Tensor | None]] = {}
    queue: list[tuple[int, int, Any]] = []  # the latest operation first: all that need its gradient came after it

    def arrive(node: Any, place: int, gradient: Tensor | None) -> None:
        if node not in arrived:
            arrived[node] = [None] * len(node._input_metadata)
            heapq.heappush(queue, (-node._sequence_nr(), len(arrived), node))
        before = arrived[node][place]
        arrived[node][place] = gradient if before is None or gradient is None else before + gradient

    arrive(node, loss.output_nr, torch.ones_like(loss) if gradient is None else gradient)
    while queue:
        node = heapq.heappop(queue)[-1]
        gradients = arrived.pop(node)
        found = node.apply(*_without_none(node, gradients)) if isinstance(node, BackwardCFunction) else node(*gradients)
        found = found if isinstance(found, tuple) else (found,)
        for (parent, place), value in zip(node.next_functions, found):
            if parent is not None and value is not None:
                arrive(parent, place, _held(value, parent._input_metadata[place], node))


def _without_none(node: Any, gradients: Sequence[Tensor | None]) -> list[Tensor]:
    """A `torch.autograd.Function` gets zeros for what nothing depends on."""
    return [
        torch.zeros(tuple(of.shape), dtype=of.dtype, device=of.device) if x is None else x
        for x, of in zip(gradients, node._input_metadata)
    ]


def _held(gradient: Tensor, of: Any, node: Any) -> Tensor:
    """A gradient as the tensor it is of: broadcast dimensions summed, its type; another device is an error."""
    if gradient.device != of.device and gradient.dim():
        raise RuntimeError(f"{node.name()}: gradient on two devices, {gradient.device} of a tensor on {of.device}")
    return gradient.sum_to_size(tuple(of.shape)).to(device=of.device, dtype=of.dtype)
