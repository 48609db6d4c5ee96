"""What the training process asks of the machine: threads, denormals, malloc, several processes through torchrun."""

from __future__ import annotations

import logging
import os
import signal
from dataclasses import dataclass
from typing import Any

import torch

from pdc_sfm.errors import UserError
from pdc_sfm.memory import keep_freed

log = logging.getLogger(__name__)


class TrainingError(UserError):
    """Training cannot go on."""


def prepare_process(threads: int) -> None:
    """Settings of this process alone, before its first parallel operation."""
    torch.set_num_threads(threads)
    torch.set_flush_denormal(True)  # vanishing activations otherwise cost a hundred times a normal product
    keep_freed(everything=True)


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
        log.info("%s", text)


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
        self._before: dict[int, Any] = {}

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
