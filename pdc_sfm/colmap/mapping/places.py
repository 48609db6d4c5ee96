"""Cameras that a map lets come back to exactly the same place: what things that look the same from several sides pretend.

Photographs taken one after the other from a tripod stand at one place, and so do copies. A camera that was elsewhere meanwhile
does not come back to within a pixel; where a map says so, it has laid one side of a thing over another.
"""

from __future__ import annotations

from collections.abc import Sequence

import pycolmap

from pdc_sfm.colmap.mapping.evidence import PairEvidence, frame_images
from pdc_sfm.colmap.mapping.links import connected_parts, needed_cells, supports
from pdc_sfm.store.pair_lists import natural_order

# Of the matches of a pair that a map explains, from which both cameras stand at one place: most. Where sides of the rings of
# benchmarks/honesty.py look alike it is .75 and more, in right maps there .04 at most.
SAME_PLACE = 0.5


def returning_pairs(model: pycolmap.Reconstruction, pairs: Sequence[PairEvidence]) -> list[PairEvidence]:
    """Pairs that stand at one place though images between them, in the order of names, stand elsewhere; the strongest first."""
    needed = needed_cells(pairs)
    same = [pair for pair in pairs if supports(pair) and pair.still > SAME_PLACE and pair.explained_cells >= needed]
    images = sorted(set(frame_images(model).values()), key=lambda image: natural_order(model.image(image).name))
    number = {image: place for place, image in enumerate(images)}
    stay: dict[int, int] = {}  # of each image, the first of those before it at the same place without a break
    for place in connected_parts(images, same):
        ordered = sorted(place, key=number.__getitem__)
        for before, image in zip([ordered[0], *ordered], ordered):
            stay[image] = stay[before] if number[image] == number[before] + 1 else image
    found = (pair for pair in same if stay[pair.first] != stay[pair.second])
    return sorted(found, key=lambda pair: -pair.explained_cells)
