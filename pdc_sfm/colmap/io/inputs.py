"""The inputs of a mapping run: pairs, features and matches, checked against each other before hours of work."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Collection, Iterator
from pathlib import Path

from pdc_sfm.colmap.io.database import DatabaseKeypoints
from pdc_sfm.errors import FormatError
from pdc_sfm.store.pair_lists import Pair, read_pairs, unique_pairs
from pdc_sfm.store.readers import FeatureFile, MatchFile, open_features, open_matches


@dataclasses.dataclass(frozen=True)
class MappingInputs:
    """Open files of a run, and what of the pair list can be used."""

    names: tuple[str, ...]  # images of the usable pairs, sorted
    pairs: tuple[Pair, ...]  # usable, each once
    keypoints: DatabaseKeypoints
    matches: MatchFile
    listed: int  # images in the list
    left_out: tuple[str, ...]  # one line for each reason why something of the list is not used


@contextlib.contextmanager
def open_inputs(
    pairs: Path | str,
    features: Path | str,
    matches: Path | str,
    allowed: Collection[str] | None = None,
    allowed_are: str = "",
) -> Iterator[MappingInputs]:
    """Open the files of a run. Pairs of images outside `allowed` (described by `allowed_are`) are left out."""
    listed = unique_pairs(read_pairs(pairs))
    with open_features(features) as feature_file, open_matches(matches) as match_file:
        yield _select(listed, Path(pairs), feature_file, match_file, allowed, allowed_are)


def _select(
    listed: list[Pair],
    path: Path,
    features: FeatureFile,
    matches: MatchFile,
    allowed: Collection[str] | None,
    allowed_are: str,
) -> MappingInputs:
    names = sorted({name for pair in listed for name in pair})
    unknown = [name for name in names if allowed is not None and name not in allowed]
    unseen = [name for name in names if name not in features and name not in unknown]
    excluded = {*unknown, *unseen}
    possible = [pair for pair in listed if excluded.isdisjoint(pair)]
    usable = [pair for pair in possible if pair in matches]
    left_out = [
        _say(unknown, f"in {path} and not in {allowed_are}"),
        _say(unseen, f"in {path} and without keypoints"),
        _say([" ".join(p) for p in possible if p not in matches], f"of {path} without matches", "pair"),
    ]
    left_out = [line for line in left_out if line]
    if not usable:
        reason = "; ".join(left_out) or "every pair is an image with itself"
        raise FormatError(f"no pair of {path} can be used: {reason}. Do list, features and matches belong together?")
    used = tuple(sorted({name for pair in usable for name in pair}))
    return MappingInputs(used, tuple(usable), DatabaseKeypoints(features), matches, len(names), tuple(left_out))


def _say(names: list[str], what: str, noun: str = "image") -> str:
    if not names:
        return ""
    return f"{len(names)} {noun}{'s' * (len(names) > 1)} {what} (first: {names[0]})"
