"""Which retrieved images a query is matched with: as many as its pose needs."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Mapping
from pathlib import Path

from pdc_sfm.colmap.localization.localize_sfm import LocalizationSettings
from pdc_sfm.colmap.localization.probability import PoseProbability
from pdc_sfm.colmap.localization.rounds import is_enough, rounds
from pdc_sfm.store.pair_lists import write_pairs

log = logging.getLogger(__name__)

TryPairs = Callable[[Path], Mapping[str, PoseProbability | None]]


def choose_pairs(
    retrieved: Mapping[str, list[str]], pairs: Path, try_pairs: TryPairs, settings: LocalizationSettings
) -> None:
    """Write the pairs of queries and images to the file `pairs`.

    `try_pairs` matches the pairs of a file and returns the probability that each resulting pose is right.
    """
    parts = rounds(max(map(len, retrieved.values())), settings.sure)
    count, asked = dict.fromkeys(retrieved, parts[0].stop), list(retrieved)
    before: Mapping[str, PoseProbability | None] = {}
    trial = pairs.with_name("pairs-trial.txt")
    for part, following in itertools.pairwise(parts):
        asked = [query for query in asked if len(retrieved[query]) > part.stop]
        if not asked:
            break
        write_pairs(trial, [(query, image) for query in asked for image in retrieved[query][: part.stop]])
        now = try_pairs(trial)
        trial.unlink()
        limits = settings.sure, settings.doubtful
        asked = [query for query in asked if not is_enough(now.get(query), before.get(query), *limits)]
        log.info("after %d images: %d of %d queries need more", part.stop, len(asked), len(retrieved))
        count |= dict.fromkeys(asked, following.stop)
        before = now
    write_pairs(pairs, [(query, image) for query, images in retrieved.items() for image in images[: count[query]]])
