"""Workers on Ray. Each is a process with its own work object; this process hands out blocks and collects results.

A worker has one block in work and one waiting. When it is lost, both are given out again, and a new worker takes its
place, which has one block at a time: the result of a finished block is lost with its worker if the next one kills it before
the result is sent, so that only of a block that was alone it is known that a worker died of it. A block that several
workers died of is set aside, so that everything else is finished first.
"""

from __future__ import annotations

import importlib
import logging
import platform
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from pdc_sfm.errors import ClusterError, UserError
from pdc_sfm.processes import core_count
from pdc_sfm.workers.cluster import connected
from pdc_sfm.workers.pool import Load
from pdc_sfm.workers.settings import RaySettings
from pdc_sfm.workers.shares import Block, Shares

DEPTH = 2  # blocks a worker has: it goes on with the second while the result of the first is on its way
DEATHS = 3  # workers that may die of one block, or one after the other before they are ready
ROUNDS = 4  # blocks of each worker at least, so that all end at about the same time

log = logging.getLogger(__name__)


class _RayWorker:
    """What runs in a worker's process."""

    def __init__(self, make: bytes):
        self._make = make  # pickled: what is wrong with it is said by `ready`
        self._work: Any = None
        self._reference: Any = None
        self._shared: Any = None

    def ready(self) -> tuple[str, str]:
        """Load the work object. Returns the version, and where this is."""
        from ray import cloudpickle

        self._work = cloudpickle.loads(self._make)()
        return _version(), platform.node()

    def run(self, method: str, reference: tuple[Any], item: Any) -> Any:
        """Call a method with what all blocks of a run share, which is fetched once."""
        import ray

        if self._reference != reference[0]:
            self._reference, self._shared = reference[0], ray.get(reference[0])
        return getattr(self._work, method)(self._shared, item)


@dataclass
class _Slot:
    """A place for a worker."""

    number: int
    actor: Any
    starting: Any  # a reference while the worker loads its work object, then None
    depth: int = DEPTH  # blocks that may be given out to it
    failures: int = 0  # workers that died here before they were ready
    blocks: deque[tuple[Any, Block]] = field(default_factory=deque)  # given out: references of results, in order

    @property
    def next(self) -> Any:
        """What the slot waits for."""
        return self.starting if self.starting is not None else self.blocks[0][0] if self.blocks else None


class _Losses:
    """Which blocks workers died of."""

    def __init__(self) -> None:
        self._deaths: Counter[int] = Counter()
        self._given_up: list[str] = []  # for each block why

    def note(self, blocks: list[Block], reason: str) -> list[Block]:
        """A worker died with these blocks. Returns those that are to be done again."""
        log.warning("a worker was lost (%s) and is replaced; its block is done again", reason.rstrip("."))
        if len(blocks) > 1:
            return blocks
        self._deaths[blocks[0].start] += 1
        if self._deaths[blocks[0].start] < DEATHS:
            return blocks
        self._given_up.append(reason)
        return []

    def check(self, size: int) -> None:
        if self._given_up:
            raise ClusterError(
                f"{DEATHS} workers died of each of {len(self._given_up)} blocks of {size} ({self._given_up[-1]}) All "
                "else is finished and kept. Fewer ray.workers or a smaller memory= may help; engine=local shows what is wrong"
            )


class RayPool:
    """The pool of `engine=ray`. Workers start when they are first needed."""

    def __init__(self, make: Callable[[], Any], settings: RaySettings, device: str = "cpu"):
        self._make, self._settings = make, settings
        self._gpus = settings.gpus_of_worker(device)
        self._stack = ExitStack()
        self._slots: list[_Slot] = []
        self._ray: Any = None  # the module, which has no types, once it is needed

    def __enter__(self) -> RayPool:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for slot in self._slots:
            self._ray.kill(slot.actor)
        self._stack.close()

    @property
    def workers(self) -> int:
        self._start()
        return len(self._slots)

    def call(self, method: str, shared: Any) -> Any:
        return next(self.run(method, shared, 1, block=1))[1]

    def run(
        self, method: str, shared: Any, count: int, *, block: int | None = None, load: Load | None = None
    ) -> Iterator[tuple[Block, Any]]:
        size = block or max(1, min(self._settings.block, count // (ROUNDS * self.workers)))
        shares, losses = Shares(count, self.workers, size), _Losses()
        reference = self._ray.put(shared)
        turn = 0
        try:
            while True:
                for slot in self._slots:
                    while (
                        slot.starting is None and len(slot.blocks) < slot.depth and (item := shares.take(slot.number))
                    ):
                        argument = load(item) if load else item
                        slot.blocks.append((slot.actor.run.remote(method, (reference,), argument), item))
                if not shares and not any(slot.blocks for slot in self._slots):
                    break
                slot = self._first_of(self._slots[turn:] + self._slots[:turn])
                turn = slot.number + 1  # all have their turn, should results come faster than they are taken
                result, lost = self._result(slot)
                if slot.starting is not None:
                    self._started(slot, result, lost)
                elif lost is None:
                    yield slot.blocks.popleft()[1], result
                else:
                    shares.give_back(slot.number, losses.note([item for _, item in slot.blocks], lost))
                    self._slots[slot.number] = self._new_slot(slot.number, depth=1)
        finally:
            for slot in self._slots:
                slot.blocks.clear()  # of a run that was left
        losses.check(size)

    def _first_of(self, slots: list[_Slot]) -> _Slot:
        """The first whose worker is ready, has finished a block or is lost."""
        waiting = {slot.next: slot for slot in slots if slot.next is not None}
        return waiting[self._ray.wait(list(waiting))[0][0]]

    def _result(self, slot: _Slot) -> tuple[Any, str | None]:
        """What the slot's first block gave, or why its worker was lost."""
        try:
            return self._ray.get(slot.next), None
        except self._ray.exceptions.RayTaskError as error:
            raise error.cause or error from None if isinstance(error.cause, UserError) else error
        except self._ray.exceptions.RayError as error:
            lines = str(error).strip().splitlines()
            return None, lines[-1 if "creation task" in lines[0] else 0]

    def _started(self, slot: _Slot, found: Any, lost: str | None) -> None:
        if lost is None:
            slot.starting, slot.failures = None, 0
            if found[0] != _version():
                raise ClusterError(f"{found[1]} has pdc_sfm {found[0]}, this is {_version()}: install the same")
        elif slot.failures + 1 == DEATHS:
            raise ClusterError(f"{DEATHS} workers, one after the other, died before they were ready: {lost}")
        else:
            self._slots[slot.number] = self._new_slot(slot.number, slot.depth, slot.failures + 1)

    def _start(self) -> None:
        if self._ray is not None:
            return
        cores, wanted = self._settings.cores, self._settings.workers
        self._ray = self._stack.enter_context(
            connected(self._settings.address, cores * (wanted or core_count() // cores))
        )
        machines = [node["Resources"] for node in self._ray.nodes() if node["Alive"]]
        if self._gpus is None:
            self._gpus = float(any(machine.get("GPU", 0) >= 1 for machine in machines))
        room = sum(_room(machine, cores, self._gpus) for machine in machines)
        if not room:
            what = f"{cores} cores and {self._gpus:g} GPUs" if self._gpus else f"{cores} cores"
            raise ClusterError(
                f"no machine of the Ray cluster has {what} for a worker: see ray.cores, ray.gpus, device"
            )
        self._slots = [self._new_slot(number) for number in range(wanted or room)]

    def _new_slot(self, number: int, depth: int = DEPTH, failures: int = 0) -> _Slot:
        options = {"num_cpus": self._settings.cores, "num_gpus": self._gpus, "scheduling_strategy": "SPREAD"}
        actor = self._ray.remote(**options)(_RayWorker).remote(self._ray.cloudpickle.dumps(self._make))
        return _Slot(number, actor, actor.ready.remote(), depth, failures)


def _version() -> str:
    return importlib.import_module("pdc_sfm").__version__


def _room(resources: dict[str, float], cores: int, gpus: float) -> int:
    """How many workers a machine has room for."""
    by_cores = int(resources.get("CPU", 0) // cores)
    return min(by_cores, int(resources.get("GPU", 0) // gpus)) if gpus else by_cores
