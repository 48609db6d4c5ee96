"""Descriptors of as many images as one likes, made of the features of real photographs; and real queries with their places.

A simulated image takes each of its four quarters from a photograph or from one of the `NEAREST` photographs most like it, half of
the time each: their features, not their pixels, so that a million cost seconds. Such images gather as photographs do, no two
are the same, and what lies nearest to a query is no tie: the benchmark prints the cosines at several ranks. Queries and the
images of their places are real, and of no photograph that distractors are made of.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from data import needed

from pdc_sfm.images import list_images
from pdc_sfm.retrieval.vocabulary import Vocabulary

NEAREST = 64
HELD_OUT = 60  # photographs that are queries without a place of their own
LEARNED_FROM = 256  # as retrieval.index
SCENES = ("castle-P19", "fountain-P11", "Herz-Jesus-P25", "liberty", "oxford-dinosaur")


class Distractors:
    """Simulated descriptors of the features (N, C, H, W) of photographs."""

    def __init__(self, maps: np.ndarray, vocabulary: Vocabulary):
        half = maps.shape[-1] // 2
        quarters = [maps[..., y : y + half, x : x + half] for y in (0, half) for x in (0, half)]
        self._sums = np.stack([vocabulary.sums(quarter) for quarter in quarters], 1)  # (N, 4, K, A)
        whole = vocabulary.normalize(self._sums.sum(1))
        self._near = np.argsort(-(whole @ whole.T), 1)[:, 1 : NEAREST + 1]

    def chunk(self, number: int, size: int) -> np.ndarray:
        """(size, D) unit."""
        random = np.random.default_rng([7, number])
        first = random.integers(len(self._sums), size=(size, 1))
        others = self._near[first, random.integers(self._near.shape[1], size=(size, 4))]
        chosen = np.where(random.random((size, 4)) < 0.5, first, others)
        return Vocabulary.normalize(self._sums[chosen, np.arange(4)].sum(1)).astype(np.float32)


def features(folder: Path, work: Path) -> tuple[list[str], np.ndarray]:
    """Names and coarsest features of a folder's photographs by the built-in model; kept in the folder `work`."""
    kept = work / f"{folder.parent.name}_{folder.name}.npz"
    if not kept.is_file():
        from pdc_sfm.retrieval.codes import Encoder
        from pdc_sfm.weights import load_network

        codes = Encoder(load_network(None, "cpu"), folder).encode(list_images(folder))
        assert codes is not None
        work.mkdir(parents=True, exist_ok=True)
        np.savez(kept, names=np.array(codes.names), maps=codes.code.features[4].numpy())
    found = np.load(kept)
    return found["names"].tolist(), found["maps"]


def simulation(data: Path, work: Path) -> tuple[Distractors, np.ndarray, dict[str, np.ndarray]]:
    """Distractors, real images of the database (N, D), and queries (Q, D) by name: of the folders of datasets/README.md."""
    photos = features(needed(data / "photos"), work)[1]
    photos = photos[np.random.default_rng(0).permutation(len(photos))]
    own = photos[HELD_OUT:]
    vocabulary = Vocabulary.learn(own[:: max(1, len(own) // LEARNED_FROM)][:LEARNED_FROM])
    names, maps = features(needed(data / "places/gardenspoint"), work)
    walk = dict.fromkeys(name.split("/")[0] for name in names)
    day = {key: vocabulary.describe(maps[[name.startswith(key) for name in names]]) for key in walk}
    names, maps = features(needed(data / "indoor/kitchen/images"), work)
    known = np.array([name.startswith("db/") for name in names])
    kitchen = vocabulary.describe(maps)
    scenes = [vocabulary.describe(features(needed(data / "scenes" / name / "images"), work)[1]) for name in SCENES]
    real = np.concatenate([day["day_right"], kitchen[known], *(one[::2] for one in scenes)])
    queries = {
        "night": day["night_right"],
        "other side": day["day_left"],
        "kitchen": kitchen[~known],
        "scenes": np.concatenate([one[1::2] for one in scenes]),
        "no place": vocabulary.describe(photos[:HELD_OUT]),
    }
    return Distractors(own, vocabulary), real.astype(np.float32), queries
