"""How many images of a map a query is matched with: a few of the best first, more only while its pose is not sure.

A map of many images has twenty that show something of a query; four of them nearly always give the pose that all would
(`python benchmarks/rounds.py`). More images decide whether the place is right: they confirm it, or contradict
it. How accurate the pose is there depends on what the query shows, and changes little (docs/localization.md).
"""

from __future__ import annotations

from pdc_sfm.colmap.localization.probability import PoseProbability

IMAGES = 4  # of a round: the third confirms the first two, the fourth costs less than another round


def rounds(count: int, sure: float) -> list[slice]:
    """So many images in rounds; in one, where nothing is sure enough."""
    size = IMAGES if sure < 1 else max(count, 1)
    return [slice(start, min(start + size, count)) for start in range(0, count, size)]


def is_enough(now: PoseProbability | None, before: PoseProbability | None, sure: float, doubtful: float) -> bool:
    """Whether more images need not be matched, by what is known of the pose after a round and after the one before it.

    Its place is sure; or it is not doubtful, and the images of a whole round, which retrieval ranks before those to come, did
    not vouch for it.
    """
    if now is None:
        return False
    if now.place >= sure:
        return True
    return before is not None and now.probability >= doubtful and now.evidence.images <= before.evidence.images
