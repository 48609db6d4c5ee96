"""Whether known poses agree with the matches: what each strong pair says of itself, against what the poses say of it."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pycolmap

from pdc_sfm.colmap.io.models import Verdict
from pdc_sfm.colmap.mapping.evidence import PairEvidence, PairScales
from pdc_sfm.colmap.mapping.links import needed_cells, supports
from pdc_sfm.colmap.mapping.verification import VerificationSettings, verify_by_estimation

PER_IMAGE = 3  # pairs of an image that are looked at, those with most matches
MOST_PAIRS = 300  # looked at in all: a minute of a map that takes hours
MAX_CONTRADICTED = 0.2  # of the pairs: some show things that look alike


def judge_poses(
    model: pycolmap.Reconstruction, database: Path, settings: VerificationSettings, seed: int = 0
) -> Verdict:
    """Doubtful where known poses contradict strong pairs: all of them, or those of some images."""
    with pycolmap.Database.open(database) as opened:
        weigh, points = PairScales(model, opened), lambda image_id: opened.read_keypoints(image_id)[:, :2]
        pairs = []
        for ids in _strongest(opened, set(model.reg_image_ids())):
            camera0, camera1 = (model.camera(model.image(image_id).camera_id) for image_id in ids)
            given = np.asarray(opened.read_matches(*ids), np.int64)
            geometry = verify_by_estimation((camera0, camera1), (points(ids[0]), points(ids[1])), given, settings, seed)
            found = np.asarray(geometry.inlier_matches, np.int64).reshape(-1, 2)
            if len(found):
                pairs.append(weigh(ids, found))
    needed = needed_cells(pairs)
    return _verdict(model, [pair for pair in pairs if pair.cells >= needed])


def _strongest(database: pycolmap.Database, posed: set[int]) -> list[tuple[int, int]]:
    """The pairs with most matches of each image, as many of all as are looked at."""
    by_image: dict[int, list[tuple[int, tuple[int, int]]]] = {}
    for pair_id, count in zip(*database.read_num_matches()):
        ids = pycolmap.pair_id_to_image_pair(pair_id)
        if posed.issuperset(ids):
            for image in ids:
                kept = by_image.setdefault(image, [])
                heapq.heappush(kept, (count, ids))
                if len(kept) > PER_IMAGE:
                    heapq.heappop(kept)
    chosen = sorted({ids for kept in by_image.values() for _, ids in kept})
    step = max(1, -(-len(chosen) // MOST_PAIRS))
    return chosen[::step]


def _verdict(model: pycolmap.Reconstruction, pairs: list[PairEvidence]) -> Verdict:
    bad = [pair for pair in pairs if not supports(pair)]
    seen, contradicted = (Counter(_images(some)) for some in (pairs, bad))
    doubted = sorted(model.image(i).name for i in seen if seen[i] > 1 and contradicted[i] == seen[i])
    if len(bad) <= MAX_CONTRADICTED * len(pairs) and not doubted:
        return Verdict()
    explained = np.median([pair.explained for pair in pairs])
    named = f"; nothing agrees with {', '.join(doubted[:8])}" + " ..." * (len(doubted) > 8) if doubted else ""
    line = (
        f"the known poses contradict {len(bad)} of the {len(pairs)} strong pairs looked at: they explain {explained:.0%} of "
        f"the matches of a middle one that agree with one geometry{named}; are poses, intrinsics and images of one "
        "another? `pdc-sfm reconstruct` finds poses anew"
    )
    return Verdict("doubtful", (line,), tuple(doubted))


def _images(pairs: Iterable[PairEvidence]) -> list[int]:
    return [image for pair in pairs for image in (pair.first, pair.second)]
