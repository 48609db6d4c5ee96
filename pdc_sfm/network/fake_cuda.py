"""CUDA without a GPU: runs code on fake CUDA tensors, counts operations, fails if tensors are on two devices.

    with FakeCuda() as gpu:
        network, image = gpu.put(network), gpu.put(torch.rand(1, 3, 480, 640))
        with gpu.counting() as count:
            network.encode(image)
    count.kernels, count.syncs, count.flops

The tensors are torch's FakeTensors: they have a device, a type and a shape, and mixing devices raises what CUDA would. Where
a branch or a shape depends on values (`.item()`, `nonzero`), use `FakeCuda(values=True)`: every tensor then also carries its
values, computed on the CPU beside it. Without them `.numpy()` gives zeros. `counting.py` says what counts.
"""

from __future__ import annotations

import contextlib
import copy
import ctypes
import dataclasses
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode, unset_fake_temporarily
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

from pdc_sfm.network.counting import WAITING, Count, is_masked
from pdc_sfm.network.fake_backward import backward

CUDA = torch.device("cuda:0")  # with its number: an installation without CUDA cannot ask which one is meant
aten = torch.ops.aten
MADE_OF_OTHERS = torch._C.DispatchKey.CompositeImplicitAutograd


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
            mock.patch.object(Tensor, "numpy", _numpy),
            mock.patch.object(Tensor, "backward", backward),
            mock.patch.object(Tensor, "__deepcopy__", _deepcopy),
            mock.patch("torch.cuda.Event"),  # there is nothing to wait for
            mock.patch("torch.cuda.amp.common.amp_definitely_not_available", return_value=False),
            mock.patch("torch.cuda.is_bf16_supported", return_value=True),
            # as a GPU's own tensors: many at a time in one kernel
            mock.patch("torch.optim.optimizer._foreach_supported_types", [Tensor, nn.Parameter, FakeTensor]),
            mock.patch("torch.utils._foreach_utils._foreach_supported_types", [Tensor, nn.Parameter, FakeTensor]),
            _device_guard(),
            torch.autograd.set_multithreading_enabled(False),  # there is no thread of a device
        ):
            self._stack.enter_context(context)
        _forget_constants()
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()
        _forget_constants()

    @contextlib.contextmanager
    def counting(self) -> Iterator[Count]:
        """Count until left: kernels, and host syncs with where they are."""
        with self._watch.telling(Count()) as count:
            yield count

    def put(self, thing: Any, device: torch.device = CUDA) -> Any:
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
        if dataclasses.is_dataclass(thing) and not isinstance(thing, type):
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
        self.values = values
        self.count: Count | None = None

    @contextlib.contextmanager
    def telling(self, count: Count | None) -> Iterator[Any]:
        before, self.count = self.count, count
        try:
            yield count
        finally:
            self.count = before

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func.namespace == "prim":  # which device?
            return func(*args, **kwargs)
        inputs = [x for x in pytree.tree_leaves((args, kwargs)) if isinstance(x, Tensor)]
        inference = torch.is_inference_mode_enabled() or any(x.is_inference() for x in inputs)
        if inference and torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), MADE_OF_OTHERS):
            with self:  # otherwise they arrive in their parts, here whole
                return func._op_dk(MADE_OF_OTHERS, *args, **kwargs)
        name = func._schema.name.split("::")[-1]
        if name.startswith("convolution") or "_foreach_" in name:  # the fake mode lets these pass
            devices = {x.device for x in inputs if x.dim()}
            if len(devices) > 1:
                raise RuntimeError(f"{name}: all tensors must be on the same device, found two devices: {devices}")
        value, known = self._computed(func, args, kwargs, inputs)
        if known and (name in WAITING or is_masked(name, args)):
            found = self._of_known_values(name, value, inputs)
        else:
            found = func(*args, **kwargs)
            if name == "lift_fresh":
                found.constant = None  # or the fake mode would compute with it, on the device too
            if known:
                pytree.tree_map_(_attach, found, value)
        if self.count is not None:
            self.count.add(func, args, kwargs, inputs, found)
        return found

    # --- values -----------------------------------------------------------------------------------------------------

    def _computed(self, func: Any, args: Any, kwargs: Any, inputs: list[Tensor]) -> tuple[Any, bool]:
        """The result on the CPU, and whether it is known: it is if the values of all inputs are."""
        if not self.values:
            return None, False
        if not all(getattr(x, "value", None) is not None or not isinstance(x, FakeTensor) for x in inputs):
            return None, False
        own = lambda x: getattr(x, "value", x) if isinstance(x, Tensor) else _host(x)  # noqa: E731
        plain_args, plain_kwargs = pytree.tree_map(own, (args, kwargs))
        plain_kwargs.pop("pin_memory", None)  # for copies that do not wait; without CUDA there is no such memory
        with unset_fake_temporarily(), torch.no_grad():
            return func(*plain_args, **plain_kwargs), True

    @staticmethod
    def _of_known_values(name: str, value: Any, inputs: list[Tensor]) -> Any:
        """What the fake mode cannot know: it is made from the values, on the device of the inputs."""
        device = inputs[0].device

        def fake(x: Any) -> Any:
            if not isinstance(x, Tensor):
                return x
            made = torch.empty_strided(x.shape, x.stride(), dtype=x.dtype, device=device)
            made.value = x
            return made

        return inputs[0] if name.endswith("_") else pytree.tree_map(fake, value)


@contextlib.contextmanager
def _device_guard() -> Iterator[None]:
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


def _forget_constants() -> None:
    """Tensors that the package keeps would be real ones inside, and fake ones outside."""
    for name, module in list(sys.modules.items()):
        if name.startswith("pdc_sfm."):
            for thing in vars(module).values():
                if hasattr(thing, "cache_clear"):
                    thing.cache_clear()


def _new_tensor(
    self: Tensor, data: Any, *, dtype: Any = None, device: Any = None, requires_grad: bool = False
) -> Tensor:
    return torch.tensor(data, dtype=dtype or self.dtype, device=device or self.device, requires_grad=requires_grad)


OWN_NUMPY = Tensor.numpy


def _numpy(self: Tensor, *, force: bool = False) -> np.ndarray:
    """What the tensor holds; zeros if that is not known."""
    with _disable_current_modes():
        known = self if not isinstance(self, FakeTensor) else getattr(self, "value", None)
        known = torch.zeros(self.shape, dtype=self.dtype) if known is None else known
        return OWN_NUMPY(known.detach())


def _deepcopy(self: Tensor, memo: dict[int, Any]) -> Tensor:
    """By a copy on the device: the fake one has no memory that torch could copy."""
    if id(self) not in memo:
        made = self.detach().clone()
        memo[id(self)] = nn.Parameter(made, self.requires_grad) if isinstance(self, nn.Parameter) else made
    return memo[id(self)]


def _attach(fake: Any, own: Any) -> None:
    if isinstance(fake, FakeTensor):
        fake.value = own


def _host(x: Any) -> Any:
    return torch.device("cpu") if isinstance(x, torch.device) else x
