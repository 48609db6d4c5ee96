"""A pool of workers, each with its own work object: a network, a cache. One in this process, or several on Ray.

A work object has methods `method(shared, item)`: `shared` is the same for a whole run and reaches each worker once,
`item` is a Block of the list, or what `load` makes of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, Literal, Protocol

from pdc_sfm.workers.settings import RaySettings
from pdc_sfm.workers.shares import Block

Engine = Literal["local", "ray"]
Load = Callable[[Block], Any]


class Pool(Protocol):
    """Runs methods of the work objects of its workers."""

    @property
    def workers(self) -> int: ...

    def call(self, method: str, shared: Any) -> Any:
        """The result of one call, by any worker."""

    def run(
        self, method: str, shared: Any, count: int, *, block: int | None = None, load: Load | None = None
    ) -> Iterator[tuple[Block, Any]]:
        """Every item of a list of `count` once, in blocks; blocks and their results as they are finished."""


class LocalPool:
    """One worker: this process. Blocks are done in order."""

    workers = 1

    def __init__(self, make: Callable[[], Any], block: int = 1):
        self._make, self._block = make, block
        self._work: Any = None

    def __enter__(self) -> LocalPool:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        close = getattr(self._work, "close", None)
        if close is not None:
            close()

    def call(self, method: str, shared: Any) -> Any:
        return next(self.run(method, shared, 1))[1]

    def run(
        self, method: str, shared: Any, count: int, *, block: int | None = None, load: Load | None = None
    ) -> Iterator[tuple[Block, Any]]:
        size = block or self._block
        for start in range(0, count, size):
            if self._work is None:
                self._work = self._make()
            item = Block(start, min(start + size, count), count)
            yield item, getattr(self._work, method)(shared, load(item) if load else item)


def open_pool(
    engine: Engine, ray: RaySettings, make: Callable[[], Any], *, device: str = "cpu", block: int = 1
) -> AbstractContextManager[Pool]:
    """Workers whose work objects `make` makes, when they are first needed. `block` is that of the local engine."""
    if engine == "local":
        return LocalPool(make, block)
    from pdc_sfm.workers.ray_pool import RayPool

    return RayPool(make, ray, device)
