"""Keypoints of a detector at which pairs are matched, instead of everywhere."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pdc_sfm.engine.work import MatchMany
from pdc_sfm.matches.types import RawMatches
from pdc_sfm.store.pair_lists import Pair
from pdc_sfm.store.readers import open_features
from pdc_sfm.store.writers import RUN, digest


class GivenKeypoints:
    """A detector's keypoints of the images of a list: where both images have some, they are matched by the flow."""

    def __init__(self, references: Sequence[Path], pairs: Sequence[Pair]):
        self._file_of: dict[str, Path] = {}
        names = {name for pair in pairs for name in pair}
        for path in references:
            with open_features(path) as file:
                for name in names:
                    if name not in self._file_of and name in file and file.attribute(name, RUN) is None:
                        self._file_of[name] = path.absolute()

    def read(self, name: str) -> np.ndarray:
        """The keypoints of an image, (N, 2)."""
        with open_features(self._file_of[name]) as file:
            return file.keypoints(name).points

    def digest(self) -> str:
        """A fingerprint of all keypoints."""
        return digest(*(part for name in sorted(self._file_of) for part in (name, self.read(name))))

    def match_many(self, matcher: Any) -> MatchMany:
        """Pairs of anchored images keypoint by keypoint, all others as usual."""
        read = functools.lru_cache(512)(self.read)

        def match(pair: Pair, code0: Any, code1: Any) -> RawMatches:
            if not (self._file_of.keys() >= set(pair) and hasattr(matcher, "match_keypoints")):
                return matcher.match(code0, code1)
            points0, points1 = read(pair[0]), read(pair[1])
            return matcher.match_keypoints(code0, code1, points0, points1).raw(points0, points1)

        return lambda pairs, codes: [match(pair, *code) for pair, code in zip(pairs, codes)]
