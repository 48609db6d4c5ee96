"""Which photographs of a folder are matched: all pairs of a small folder, likely pairs of a large one."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from pdc_sfm.colmap.io.models import ReconstructionError
from pdc_sfm.colmap.io.rigs import CameraRig, Rigs
from pdc_sfm.demo.settings import PhotographSettings
from pdc_sfm.engine.nearby import place_pairs, time_pairs
from pdc_sfm.engine.pairing import exhaustive_pairs, sequential_pairs
from pdc_sfm.exif import Taken, read_taken
from pdc_sfm.processes import core_count
from pdc_sfm.retrieval import RetrievalSettings, retrieve
from pdc_sfm.store.pair_lists import Pair, unique_pairs
from pdc_sfm.store.positions import Positions, positions_of_taken

Find = Callable[[], list[Pair]]  # pairs by retrieval


def retrieved_pairs(
    folder: Path, queries: list[str], names: list[str], count: int, settings: RetrievalSettings, network: Any
) -> list[Pair]:
    """Of each query the images of a run's folder, of these names, that share most with it."""
    more = {"masks": folder / "masks"} if (folder / "masks").is_dir() else {}
    place = folder / "retrieval.txt"
    result = retrieve(folder / "images", queries, names, place, count, settings, network=network, **more)
    return [(query, image.name) for query, found in result.found.items() for image in found]


def choose_pairs(
    images: Path,
    names: list[str],
    settings: PhotographSettings,
    find: Find,
    rigs: Rigs = (),
    positions: Positions | None = None,
) -> tuple[list[Pair], str]:
    """The pairs, and what to say of them. `find` is called for folders that are too large for all pairs.

    Images that cameras at one place took at one moment, views of a panorama, are not paired: nothing moves between them.
    The nearest are those by `positions`, else by EXIF's GPS.
    """
    one_place = [rig for rig in rigs if rig.is_known and not rig.has_size]
    useless = {frozenset(pair) for rig in one_place for pair in same_moment_pairs(rig, names)}
    if len(names) <= settings.exhaustive:
        pairs = [pair for pair in exhaustive_pairs(names) if frozenset(pair) not in useless]
        without = f", without {len(useless)} of one place and moment" if useless else ""
        return pairs, f"all {len(pairs)} pairs of {len(names)} images{without}"
    found = find()
    if not found:
        raise ReconstructionError("no two photographs have a confident match: do they show one place?")
    pairs, said = unique_pairs([pair for pair in found if frozenset(pair) not in useless]), []
    said.append(f"{len(pairs):,} by retrieval")
    nearby = nearby_pairs(images, names, settings, positions)
    nearby |= {"rig": [pair for rig in rigs for pair in rig_pairs(rig, names)]} if rigs else {}
    for how, more in nearby.items():
        joined = unique_pairs([*pairs, *(pair for pair in more if frozenset(pair) not in useless)])
        if len(joined) > len(pairs):
            said.append(f"{len(joined) - len(pairs):,} more by {how}")
        pairs = joined
    return pairs, f"{len(pairs):,} pairs of {len(names):,} images: {', '.join(said)}"


def nearby_pairs(
    images: Path, names: list[str], settings: PhotographSettings, positions: Positions | None
) -> dict[str, list[Pair]]:
    """Neighbors in name, time and place, under the word for each."""
    with ThreadPoolExecutor(core_count()) as pool:
        taken = dict(zip(names, pool.map(functools.partial(_taken, images), names)))
    places = (positions or positions_of_taken(taken)).cartesian()
    return {
        "name": sequential_pairs(names, settings.neighbors),
        "time": time_pairs(taken, settings.neighbors),
        "position" if positions else "GPS": place_pairs(places, settings.near),
    }


def same_moment_pairs(rig: CameraRig, names: list[str]) -> list[Pair]:
    """Images of one frame, each with each."""
    return [pair for images in rig.frames(names).values() for pair in itertools.combinations(sorted(images), 2)]


def rig_pairs(rig: CameraRig, names: list[str]) -> list[Pair]:
    """Images of one frame with each other, and with all of the next: what one camera sees, another sees soon after."""
    frames = [sorted(images) for _, images in sorted(rig.frames(names).items())]
    soon = [pair for these, others in itertools.pairwise(frames) for pair in itertools.product(these, others)]
    return same_moment_pairs(rig, names) + soon


def _taken(images: Path, name: str) -> Taken:
    return read_taken(images / name)
