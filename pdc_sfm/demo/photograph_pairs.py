"""Which photographs of a folder are matched with which: all of a small one, of a large one those that may show the same."""

from __future__ import annotations

import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from pdc_sfm.colmap.io.models import ReconstructionError
from pdc_sfm.demo.settings import PhotographSettings
from pdc_sfm.engine.nearby import Taken, place_pairs, read_taken, time_pairs
from pdc_sfm.engine.pairing import exhaustive_pairs, sequential_pairs
from pdc_sfm.processes import core_count
from pdc_sfm.store.pair_lists import Pair, unique_pairs

Find = Callable[[], list[Pair]]  # pairs by retrieval


def choose_pairs(images: Path, names: list[str], settings: PhotographSettings, find: Find) -> tuple[list[Pair], str]:
    """The pairs, and what to say of them. `find` is called for folders that are too large for all pairs."""
    if len(names) <= settings.exhaustive:
        pairs = exhaustive_pairs(names)
        return pairs, f"all {len(pairs)} pairs of {len(names)} images"
    found = find()
    if not found:
        raise ReconstructionError("no two photographs have a confident match: do they show one place?")
    pairs, said = unique_pairs(found), []
    said.append(f"{len(pairs):,} by retrieval")
    for how, more in nearby_pairs(images, names, settings).items():
        joined = unique_pairs([*pairs, *more])
        if len(joined) > len(pairs):
            said.append(f"{len(joined) - len(pairs):,} more by {how}")
        pairs = joined
    return pairs, f"{len(pairs):,} pairs of {len(names):,} images: {', '.join(said)}"


def nearby_pairs(images: Path, names: list[str], settings: PhotographSettings) -> dict[str, list[Pair]]:
    """Neighbors in name, time and place, under the word for each."""
    with ThreadPoolExecutor(core_count()) as pool:
        taken = dict(zip(names, pool.map(functools.partial(_taken, images), names)))
    return {
        "name": sequential_pairs(names, settings.neighbors),
        "time": time_pairs(taken, settings.neighbors),
        "GPS": place_pairs(taken, settings.near),
    }


def _taken(images: Path, name: str) -> Taken:
    return read_taken(images / name)
