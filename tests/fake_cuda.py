"""CUDA without a GPU: run code on fake CUDA tensors, count what a GPU would do, fail where tensors lie on two devices.

    with FakeCuda() as gpu:
        network, image = gpu.put(network), gpu.put(torch.rand(1, 3, 480, 640))
        with gpu.counting() as count:
            network.encode(image)
    count.kernels, count.syncs

The tensors are torch's FakeTensors: they have a device, a type and a shape, and mixing devices raises what CUDA would. Where
a branch or a shape depends on values (`.item()`, `nonzero`), use `FakeCuda(values=True)`: every tensor then also carries its
values, computed on the CPU beside it.

What counts, one for each aten operation that reaches the device:
- kernel: whatever computes or copies on the device. Views and other changes of metadata do not, nor does allocation
  (`empty`), nor copies between host and device. An operation that launches several kernels (a sort) counts as one.
- sync: where the host waits. Reading a value (`.item()`, `bool`, `int`); shapes that depend on values (`nonzero`, an index by
  a mask); copies between host and device that are not `non_blocking` (`.cpu()`, `new_tensor`, `torch.tensor(..., device=)`
  of Python numbers, an index on the CPU into a tensor on the device). A CPU tensor without dimensions in arithmetic is passed
  as a number and costs nothing.
"""

from __future__ import annotations

import contextlib
import copy
import ctypes
import dataclasses
import traceback
from collections import Counter
from pathlib import Path
from unittest import mock

import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode, unset_fake_temporarily
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

CUDA = torch.device("cuda:0")  # with its number: an installation without CUDA cannot ask which one is meant
aten = torch.ops.aten
FREE = {
    "empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "resize_", "_unsafe_view", "lift_fresh", "set_",
    "detach_",
}  # fmt: skip
WAITING = {
    "_local_scalar_dense", "nonzero", "masked_select", "unique_dim", "_unique", "_unique2", "unique_consecutive", "equal",
    "repeat_interleave", "bincount", "linalg_lstsq",
}  # fmt: skip
MADE_OF_OTHERS = torch._C.DispatchKey.CompositeImplicitAutograd
COPYING = {"_to_copy", "copy_"}
INDEXING = {"index", "index_put", "index_put_", "_index_put_impl_"}


@dataclasses.dataclass
class Count:
    """What a stretch of code would do on a GPU."""

    by_operation: Counter = dataclasses.field(default_factory=Counter)  # operation -> kernels
    waits: list[str] = dataclasses.field(default_factory=list)  # operation and the line of this project that it comes from

    @property
    def kernels(self) -> int:
        return self.by_operation.total()

    @property
    def syncs(self) -> int:
        return len(self.waits)

    def __str__(self) -> str:
        often = ", ".join(f"{name} {count}" for name, count in self.by_operation.most_common(12))
        waits = "".join(f"\n  {count} x {line}" for line, count in Counter(self.waits).most_common())
        return f"{self.kernels} kernels ({often}), {self.syncs} syncs{waits}"


class FakeCuda:
    """While entered, tensors of this thread are fake, and `cuda:0` exists. `put` brings what was made before onto it."""

    def __init__(self, values: bool = False):
        self.values = values
        self.mode = FakeTensorMode()
        self._watch = _Watch(values)
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> FakeCuda:
        for context in (
            self.mode,
            self._watch,
            # asks for the current device, which there is none of; on a GPU it does just this
            mock.patch.object(Tensor, "new_tensor", _new_tensor),
            mock.patch("torch.cuda.amp.common.amp_definitely_not_available", return_value=False),
            mock.patch("torch.cuda.is_bf16_supported", return_value=True),
            _device_guard(),
            torch.autograd.set_multithreading_enabled(False),  # there is no thread of a device
        ):
            self._stack.enter_context(context)
        return self

    def __exit__(self, *error) -> None:
        self._stack.close()

    @contextlib.contextmanager
    def counting(self):
        """Count until left: kernels, and host syncs with where they are."""
        with self._watch.telling(Count()) as count:
            yield count

    def put(self, thing, device: torch.device = CUDA):
        """A real tensor, a module (a copy of it), or a container or dataclass of them, on the fake device. Not counted."""
        if isinstance(thing, nn.Module):
            with _disable_current_modes():
                thing = copy.deepcopy(thing)
            for module in thing.modules():
                for name, x in module._parameters.items():
                    if x is not None:
                        module._parameters[name] = nn.Parameter(self.put(x, device), x.requires_grad)
                module._buffers.update({name: self.put(x, device) for name, x in module._buffers.items()})
            return thing
        if isinstance(thing, Tensor):
            with _disable_current_modes():
                real = thing.detach().clone()
            with self._watch.telling(None):
                fake = self.mode.from_tensor(real).to(device)
            fake.value = real if self.values else None
            return fake
        if dataclasses.is_dataclass(thing):
            fields = {f.name: self.put(getattr(thing, f.name), device) for f in dataclasses.fields(thing)}
            return dataclasses.replace(thing, **fields)
        if isinstance(thing, dict):
            return {key: self.put(x, device) for key, x in thing.items()}
        if isinstance(thing, list | tuple) and any(isinstance(x, Tensor) for x in thing):
            return type(thing)(self.put(x, device) for x in thing)
        return thing


class _Watch(TorchDispatchMode):
    """Sees every operation before the fake mode does: computes its values, counts it."""

    def __init__(self, values: bool):
        super().__init__()
        self.values, self.count = values, None

    @contextlib.contextmanager
    def telling(self, count: Count | None):
        before, self.count = self.count, count
        try:
            yield count
        finally:
            self.count = before

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func.namespace == "prim":  # which device?
            return func(*args, **kwargs)
        if torch.is_inference_mode_enabled() and torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), MADE_OF_OTHERS):
            with self:  # otherwise they arrive in their parts, here whole
                return func._op_dk(MADE_OF_OTHERS, *args, **kwargs)
        name = func._schema.name.split("::")[-1]
        inputs = [x for x in pytree.tree_leaves((args, kwargs)) if isinstance(x, Tensor)]
        value, known = self._computed(func, args, kwargs, inputs)
        if known and (name in WAITING or _masked(name, args)):
            found = self._of_known_values(name, value, inputs)
        else:
            found = func(*args, **kwargs)
            if name == "lift_fresh":
                found.constant = None  # or the fake mode would compute with it, on the device too
            if known:
                pytree.tree_map_(_attach, found, value)
        if self.count is not None:
            self._tell(func, name, args, kwargs, inputs, found)
        return found

    # --- values -----------------------------------------------------------------------------------------------------

    def _computed(self, func, args, kwargs, inputs):
        """The result on the CPU, and whether it is known: it is if the values of all inputs are."""
        if not self.values:
            return None, False
        if not all(getattr(x, "value", None) is not None or not isinstance(x, FakeTensor) for x in inputs):
            return None, False
        own = lambda x: getattr(x, "value", x) if isinstance(x, Tensor) else _host(x)  # noqa: E731
        plain_args, plain_kwargs = pytree.tree_map(own, (args, kwargs))
        with unset_fake_temporarily(), torch.no_grad():
            return func(*plain_args, **plain_kwargs), True

    @staticmethod
    def _of_known_values(name, value, inputs):
        """What the fake mode cannot know: it is made from the values, on the device of the inputs."""
        device = inputs[0].device

        def fake(x):
            if not isinstance(x, Tensor):
                return x
            made = torch.empty_strided(x.shape, x.stride(), dtype=x.dtype, device=device)
            made.value = x
            return made

        return inputs[0] if name.endswith("_") else pytree.tree_map(fake, value)

    # --- counts -----------------------------------------------------------------------------------------------------

    def _tell(self, func, name, args, kwargs, inputs, found) -> None:
        outputs = [x for x in pytree.tree_leaves(found) if isinstance(x, Tensor)]
        devices = {x.device.type for x in (*inputs, *outputs)}
        if "cuda" not in devices:
            return
        between = name in COPYING and len(devices) > 1
        indices = [x for x in pytree.tree_leaves(args[1]) if isinstance(x, Tensor)] if name in INDEXING else []
        from_host = any(x.device.type == "cpu" for x in indices)
        waits = name in WAITING or _masked(name, args) or from_host
        waits |= between and not (kwargs.get("non_blocking") or (name == "copy_" and len(args) > 2 and args[2]))
        kernel = not (between or func.is_view or name in FREE or name == "_local_scalar_dense")
        self.count.by_operation[name] += kernel
        if waits:
            self.count.waits.append(f"{name} at {_line()}")


@contextlib.contextmanager
def _device_guard():
    """Autograd asks each device for its guard. A torch without CUDA has none: the meta device's stands in, which does nothing."""
    library = ctypes.CDLL(str(Path(torch.__file__).parent / "lib" / "libc10.so"))
    guards = (ctypes.c_void_p * 15).in_dll(library, "_ZN3c104impl26device_guard_impl_registryE")
    cuda, meta = 1, 14  # c10::DeviceType
    before = guards[cuda]
    guards[cuda] = before or guards[meta]
    try:
        yield
    finally:
        guards[cuda] = before


def _new_tensor(self: Tensor, data, *, dtype=None, device=None, requires_grad: bool = False) -> Tensor:
    return torch.tensor(data, dtype=dtype or self.dtype, device=device or self.device, requires_grad=requires_grad)


def _masked(name: str, args) -> bool:
    """Whether an index is a mask whose True cells must be found; writing one number through it needs no finding."""
    if name not in INDEXING:
        return False
    masks = [x for x in args[1] if isinstance(x, Tensor) and x.dtype in (torch.bool, torch.uint8)]
    return bool(masks) and (name == "index" or args[2].numel() != 1)


def _attach(fake, own) -> None:
    if isinstance(fake, FakeTensor):
        fake.value = own


def _host(x):
    return torch.device("cpu") if isinstance(x, torch.device) else x


def _line() -> str:
    """The innermost line of the package that leads here."""
    frames = [f for f in traceback.extract_stack() if "/pdc_sfm/" in f.filename]
    if not frames:
        return "the test"
    path = Path(frames[-1].filename)
    return f"{path.parent.name}/{path.name}:{frames[-1].lineno}"
