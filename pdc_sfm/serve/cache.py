"""What is made once and used again, as much as fits into so many bytes; what was not used for longest leaves."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import TypeVar, cast

from pdc_sfm.engine.cache import Sized

Item = TypeVar("Item", bound=Sized)


class ByteCache:
    """Codes and keypoints of the images of a map, by any keys. Threads may share it."""

    def __init__(self, budget: int):
        self.budget, self.bytes = budget, 0
        self._items: OrderedDict[Hashable, Sized] = OrderedDict()
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._items)

    def get(self, key: Hashable, make: Callable[[], Item]) -> Item:
        """What has this key, made now if it is not there. Two threads may make it at once: one of both is kept."""
        with self._lock:
            if key in self._items:
                self._items.move_to_end(key)
                return cast("Item", self._items[key])
        item = make()
        with self._lock:
            if key not in self._items:
                self._items[key] = item
                self.bytes += item.nbytes
                while self.bytes > self.budget and len(self._items) > 1:
                    self.bytes -= self._items.popitem(last=False)[1].nbytes
        return item
