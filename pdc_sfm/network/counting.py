"""Counts what a piece of code does on a GPU, operation by operation (`fake_cuda.py` counts without one).

What counts, one for each aten operation that reaches the device:
- kernel: whatever computes or copies on the device. Views and other changes of metadata do not, nor does allocation
  (`empty`), nor copies between host and device. An operation that launches several kernels (a sort) counts as one.
- sync: where the host waits. Reading a value (`.item()`, `bool`, `int`); shapes that depend on values (`nonzero`, an index by
  a mask); copies between host and device that are not `non_blocking` (`.cpu()`, `new_tensor`, `torch.tensor(..., device=)`
  of Python numbers, an index on the CPU into a tensor on the device). A CPU tensor without dimensions in arithmetic is passed
  as a number and costs nothing.
- floating-point operations: of convolutions and matrix products, as `torch.utils.flop_counter` has them.
- bytes: what a kernel reads and writes, each tensor once; and what is copied between host and device.
"""

from __future__ import annotations

import dataclasses
import traceback
from collections import Counter
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree as pytree
from torch.utils.flop_counter import flop_registry

FREE = {
    "empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "resize_", "_unsafe_view", "lift_fresh", "set_",
    "detach_",
}  # fmt: skip
WAITING = {
    "_local_scalar_dense", "nonzero", "masked_select", "unique_dim", "_unique", "_unique2", "unique_consecutive", "equal",
    "repeat_interleave", "bincount", "linalg_lstsq",
}  # fmt: skip
COPYING = {"_to_copy", "copy_"}
INDEXING = {"index", "index_put", "index_put_", "_index_put_impl_"}
OWN = {"counting.py", "fake_cuda.py"}


@dataclasses.dataclass(frozen=True)
class Kernel:
    """One operation on the device."""

    name: str
    flops: int
    nbytes: int  # read and written
    dtype: torch.dtype | None  # of its first tensor


@dataclasses.dataclass
class Count:
    """What a stretch of code would do on a GPU."""

    launched: list[Kernel] = dataclasses.field(default_factory=list)
    copied: int = 0  # bytes between host and device
    waits: list[str] = dataclasses.field(default_factory=list)  # operation, and the line of this project it comes from

    @property
    def by_operation(self) -> Counter:
        """Operation -> kernels."""
        return Counter(kernel.name for kernel in self.launched)

    @property
    def kernels(self) -> int:
        return len(self.launched)

    @property
    def flops(self) -> int:
        return sum(kernel.flops for kernel in self.launched)

    @property
    def nbytes(self) -> int:
        return sum(kernel.nbytes for kernel in self.launched)

    @property
    def syncs(self) -> int:
        return len(self.waits)

    def __str__(self) -> str:
        often = ", ".join(f"{name} {count}" for name, count in self.by_operation.most_common(12))
        waits = "".join(f"\n  {count} x {line}" for line, count in Counter(self.waits).most_common())
        return f"{self.kernels} kernels ({often}), {self.syncs} syncs{waits}"

    def add(self, func: Any, args: Any, kwargs: Any, inputs: list[Tensor], found: Any) -> None:
        """An operation, the tensors among its arguments, and what it gave."""
        name = func._schema.name.split("::")[-1]
        outputs = [x for x in pytree.tree_leaves(found) if isinstance(x, Tensor)]
        devices = {x.device.type for x in (*inputs, *outputs)}
        if "cuda" not in devices:
            return
        between = name in COPYING and len(devices) > 1
        indices = [x for x in pytree.tree_leaves(args[1]) if isinstance(x, Tensor)] if name in INDEXING else []
        from_host = any(x.device.type == "cpu" for x in indices)
        waits = name in WAITING or is_masked(name, args) or from_host
        waits |= between and not (kwargs.get("non_blocking") or (name == "copy_" and len(args) > 2 and args[2]))
        if between:
            self.copied += sum(_nbytes(x) for x in outputs)
        elif not (func.is_view or name in FREE or name == "_local_scalar_dense"):
            flops = flop_registry.get(func.overloadpacket, lambda *_, **__: 0)(*args, **kwargs, out_val=found)
            moved = sum(_nbytes(x) for x in {id(x): x for x in (*inputs, *outputs)}.values())
            self.launched.append(Kernel(name, flops, moved, inputs[0].dtype if inputs else None))
        if waits:
            self.waits.append(f"{name} at {_line()}")


def _nbytes(x: Tensor) -> int:
    """Of the numbers that a tensor refers to: an expanded one repeats its own."""
    numbers = 1
    for size, stride in zip(x.shape, x.stride()):
        numbers *= size if stride or not size else 1
    return numbers * x.element_size()


def is_masked(name: str, args: Any) -> bool:
    """Whether an index is a mask whose True cells must be found; writing one number through it needs no finding."""
    if name not in INDEXING:
        return False
    masks = [x for x in args[1] if isinstance(x, Tensor) and x.dtype in (torch.bool, torch.uint8)]
    return bool(masks) and (name == "index" or args[2].numel() != 1)


def _line() -> str:
    """The innermost line of the package that leads here."""
    frames = [f for f in traceback.extract_stack() if "/pdc_sfm/" in f.filename and Path(f.filename).name not in OWN]
    if not frames:
        return "the test"
    path = Path(frames[-1].filename)
    return f"{path.parent.name}/{path.name}:{frames[-1].lineno}"
