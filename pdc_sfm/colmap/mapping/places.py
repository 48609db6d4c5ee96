"""Cameras that a map lets come back to exactly the same place: what things that look the same from several sides pretend.

Photographs taken one after the other from a tripod stand at one place, and so do copies. A camera that was elsewhere meanwhile
does not come back to within a pixel, and again to where it stood next; where a map says so, it has laid one side of a thing
over another. To one place alone a ring of photographs returns when it closes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pycolmap

from pdc_sfm.colmap.mapping.evidence import PairEvidence, frame_images
from pdc_sfm.colmap.mapping.links import connected_sets, needed_cells, supports
from pdc_sfm.store.pair_lists import natural_order

# Of the matches of a pair that a map explains, from which both cameras stand at one place: most. Where sides of the rings of
# benchmarks/honesty.py look alike it is .75 and more, in right maps there .04 at most.
SAME_PLACE = 0.5
SAME_DIRECTION = np.cos(np.radians(5))  # of view: a ring of 72 pictures
FEWEST_PLACES = 2  # to which cameras come back: a side of a thing that was laid over another was seen from several


def returning_pairs(model: pycolmap.Reconstruction, pairs: Sequence[PairEvidence]) -> list[PairEvidence]:
    """Pairs that stand at one place though images between them, in the order of names, stand elsewhere; the strongest first.

    None, if they are all of one place.
    """
    needed = needed_cells(pairs)
    same = [pair for pair in pairs if supports(pair) and pair.still > SAME_PLACE and pair.explained_cells >= needed]
    found = [same[n] for n in returns([(pair.first, pair.second) for pair in same], _in_order(model))]
    return sorted(found, key=lambda pair: -pair.explained_cells)


def returns(same: Sequence[tuple[int, int]], images: Sequence[int]) -> list[int]:
    """Which pairs at one place are of images, given in order, that come back to it; none, if all are of one place."""
    number = {image: position for position, image in enumerate(images)}
    stay: dict[int, int] = {}  # of each image, the first of those before it at the same place without a break
    place: dict[int, int] = {}  # of each image, named by its first
    for together in connected_sets(images, same):
        ordered = sorted(together, key=number.__getitem__)
        for before, image in zip([ordered[0], *ordered], ordered):
            stay[image] = stay[before] if number[image] == number[before] + 1 else image
            place[image] = ordered[0]
    found = [n for n, (first, second) in enumerate(same) if stay[first] != stay[second]]
    return found if len({place[same[n][0]] for n in found}) >= FEWEST_PLACES else []


def returning_views(model: pycolmap.Reconstruction, same_views: Sequence[tuple[str, str]]) -> list[tuple[int, int]]:
    """Images that look alike to the pixel before a background that stands still, and that the model lets stand at one place."""
    images = _in_order(model)
    ids = {model.image(image).name: image for image in images}
    looks = {image: model.image(image).cam_from_world().rotation.matrix()[2] for image in images}
    named = [(ids[a], ids[b]) for a, b in same_views if a in ids and b in ids]
    same = [(a, b) for a, b in named if looks[a] @ looks[b] > SAME_DIRECTION]
    return [same[n] for n in returns(same, images)]


def _in_order(model: pycolmap.Reconstruction) -> list[int]:
    """Its images, one of each frame of a rig, in the order of names."""
    return sorted(set(frame_images(model).values()), key=lambda image: natural_order(model.image(image).name))
