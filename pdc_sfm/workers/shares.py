"""Cuts a list into blocks for workers, so that each continues with neighboring items and none is idle.

Every worker begins with a share, a contiguous part of the list, and takes its blocks from the front: neighbors in the
list share images, whose codes the worker still has. Who has finished takes the later half of the largest share left.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple


class Block(NamedTuple):
    """Items `start` to `stop` of a list. Those up to `end` are likely to follow on the same worker."""

    start: int
    stop: int
    end: int


class Shares:
    """What of a list of `count` items is still to be given out, in blocks of at most `size`."""

    def __init__(self, count: int, workers: int, size: int):
        blocks = -(-count // size)
        bounds = [min(count, size * (blocks * k // workers)) for k in range(workers + 1)]
        self._size = size
        self._shares = [range(a, b) for a, b in itertools.pairwise(bounds)]
        self._loose: list[range] = []  # came back from workers that were lost

    def __bool__(self) -> bool:
        """Whether anything is left to be given out."""
        return any(self._shares) or bool(self._loose)

    def take(self, worker: int) -> Block | None:
        """The next block for a worker; None if nothing is left."""
        share = self._shares[worker] or self._more()
        stop = min(share.start + self._size, share.stop)
        self._shares[worker] = range(stop, share.stop)
        return Block(share.start, stop, share.stop) if share else None

    def give_back(self, worker: int, blocks: Sequence[Block]) -> None:
        """Blocks that were not finished will be given out again, to the same worker if they precede its share."""
        for block in reversed(blocks):
            share = self._shares[worker]
            if share and block.stop == share.start:
                self._shares[worker] = range(block.start, share.stop)
            else:
                self._loose.append(range(block.start, block.stop))

    def _more(self) -> range:
        """A share for a worker that has none: something loose, or the later half of the largest share."""
        if self._loose:
            return self._loose.pop()
        owner = max(range(len(self._shares)), key=lambda k: len(self._shares[k]))
        share = self._shares[owner]
        middle = share.start + len(share) // 2 // self._size * self._size
        self._shares[owner] = range(share.start, middle)
        return range(middle, share.stop)
