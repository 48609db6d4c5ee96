"""What the training process asks of the machine: threads, denormals, malloc, several processes through torchrun."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from dataclasses import dataclass

import torch

from pdc_sfm.errors import UserError


class TrainingError(UserError):
    """Training cannot go on."""


def prepare_process(threads: int) -> None:
    """Settings of this process alone, before its first parallel operation."""
    torch.set_num_threads(threads)
    torch.set_flush_denormal(True)  # vanishing activations otherwise cost a hundred times a normal product
    keep_memory()


def keep_memory() -> bool:
    """Let malloc keep freed memory instead of giving it back and faulting it in again every iteration (glibc only)."""
    try:
        libc = ctypes.CDLL("libc.so.6")
        libc.gnu_get_libc_version  # noqa: B018  musl has no such name, and its malloc no such options
        mallopt = libc.mallopt
    except (OSError, AttributeError):
        return False
    trim_threshold, mmap_max = -1, -4  # M_TRIM_THRESHOLD, M_MMAP_MAX of malloc.h
    return bool(mallopt(mmap_max, 0)) and bool(mallopt(trim_threshold, -1))


@dataclass(frozen=True)
class Group:
    """The processes that train together."""

    rank: int = 0
    world: int = 1
    local_rank: int = 0

    @property
    def leads(self) -> bool:
        """Whether this process writes files and prints."""
        return self.rank == 0

    def any(self, flag: bool, device: torch.device) -> bool:
        """Whether the flag is up in any process, so that all stop at the same iteration."""
        if self.world == 1:
            return flag
        flags = torch.tensor([float(flag)], device=device)
        torch.distributed.all_reduce(flags, op=torch.distributed.ReduceOp.MAX)
        return bool(flags.item() > 0)


def say(text: str) -> None:
    """A line for the user, from one process only."""
    if os.environ.get("RANK", "0") == "0":
        print(text, file=sys.stderr, flush=True)


def join_group(device: str) -> Group:
    """This process's place among those torchrun started; alone if it started none."""
    world = int(os.environ.get("WORLD_SIZE", "1"))
    if world == 1:
        return Group()
    group = Group(int(os.environ["RANK"]), world, int(os.environ.get("LOCAL_RANK", "0")))
    if not torch.distributed.is_initialized():
        if device.startswith("cuda"):
            torch.cuda.set_device(group.local_rank)
        torch.distributed.init_process_group("nccl" if device.startswith("cuda") else "gloo")
    return group


class StopSignal:
    """Turns SIGTERM and Ctrl-C into a flag the loop reads between iterations; a second Ctrl-C is not held back."""

    def __init__(self) -> None:
        self.received: int | None = None
        self._before: dict[int, object] = {}

    def __enter__(self) -> StopSignal:
        try:
            for number in (signal.SIGTERM, signal.SIGINT):
                self._before[number] = signal.signal(number, self._receive)
        except ValueError:  # not in the main thread: the caller keeps its handlers
            pass
        return self

    def _receive(self, number: int, frame: object) -> None:
        if self.received is not None and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.received = number

    def __exit__(self, *error: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)


def choose_device(name: str) -> torch.device:
    """`auto` is the GPU if there is a usable one."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        raise TrainingError(f"device={name} is not a device: use cpu, cuda or auto") from None
    if device.type == "cuda" and not torch.cuda.is_available():
        raise TrainingError("device=cuda: this machine has no usable GPU; use device=cpu")
    return device
