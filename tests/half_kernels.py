"""16-bit convolutions as a GPU computes them: 16 bits in and out, sums in float32. The CPU's own take minutes a step."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

HALF = (torch.float16, torch.bfloat16)
aten = torch.ops.aten
SUMMING = {  # those that autocast runs in 16 bits
    op.default for op in (aten.convolution, aten.convolution_backward, aten.addmm, aten.mm, aten.bmm, aten.baddbmm)
}


class HalfKernels(TorchDispatchMode):
    """While entered, operations that sum products of 16-bit numbers do so in float32; `count` is how many did."""

    count = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        dtype = next((x.dtype for x in args if isinstance(x, Tensor) and x.dtype in HALF), None)
        if func not in SUMMING or dtype is None:
            return func(*args, **(kwargs or {}))
        self.count += 1
        args, kwargs = tree_map(lambda x: x.float() if isinstance(x, Tensor) else x, (args, kwargs or {}))
        return tree_map(lambda x: x.to(dtype) if isinstance(x, Tensor) else x, func(*args, **kwargs))
