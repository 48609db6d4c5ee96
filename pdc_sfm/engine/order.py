"""Orders pairs so that the code of an image is used while it is in memory.

A window of images moves over the pair graph: the next image to enter is always the one with the largest share of its
remaining pairs inside the window. Against recursive spectral bisection this needs fewer encodings on all real lists
tried, and no eigenvectors (`benchmarks/matching.py` prints the table).
"""

from __future__ import annotations

import heapq
from collections import OrderedDict

import numpy as np


def order_pairs(pairs: np.ndarray, capacity: int) -> np.ndarray:
    """An order of pairs (P, 2), numbers of images, for a cache of `capacity` codes: indices (P,) of the pairs.

    The order is good for other capacities as well. Earlier images of the list win ties, so it is always the same.
    """
    count = int(pairs.max()) + 1 if len(pairs) else 0
    partners: list[dict[int, list[int]]] = [{} for _ in range(count)]  # of each image: partner -> pairs still to do
    for index, (first, second) in enumerate(pairs.tolist()):
        partners[second][first] = partners[first].setdefault(second, [])  # a pair may come in both orders
        partners[first][second].append(index)
    window: OrderedDict[int, None] = OrderedDict()  # images in memory, least recently used first
    inside = [0] * count  # pairs of each image with images of the window
    heap: list[tuple[float, int]] = []  # (minus the share, image), possibly outdated
    order: list[int] = []
    fresh = 0
    while len(order) < len(pairs):
        image = _next_image(heap, window, inside, partners)
        if image is None:  # a new part of the graph
            while not partners[fresh]:
                fresh += 1
            image = fresh
        while len(window) >= max(capacity, 2):
            _leave(window, inside, partners, image)
        ready = [other for other in partners[image] if other in window]
        for other in ready:
            order += partners[image].pop(other)
            del partners[other][image]
            window.move_to_end(other)
            if not partners[other]:
                del window[other]
        inside[image] = 0
        if partners[image]:
            window[image] = None
            for other, todo in ((other, partners[other]) for other in partners[image]):
                inside[other] += 1
                heapq.heappush(heap, (-inside[other] / len(todo), other))
    return np.array(order, np.int64)


def _next_image(
    heap: list[tuple[float, int]],
    window: OrderedDict[int, None],
    inside: list[int],
    partners: list[dict[int, list[int]]],
) -> int | None:
    """The image with the largest share of its pairs inside the window; None if none has any."""
    while heap:
        share, image = heapq.heappop(heap)
        if image in window or not inside[image]:
            continue
        now = -inside[image] / len(partners[image])
        if now == share:
            return image
        heapq.heappush(heap, (now, image))
    return None


def _leave(
    window: OrderedDict[int, None], inside: list[int], partners: list[dict[int, list[int]]], entering: int
) -> None:
    """The image unused for longest leaves the window, unless it is about to be used."""
    leaving = next((image for image in window if image not in partners[entering]), next(iter(window)))
    del window[leaving]
    for other in partners[leaving]:
        inside[other] -= 1
