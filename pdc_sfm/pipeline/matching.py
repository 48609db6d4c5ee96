"""How a run matches a pair list: with the engine, or with anything else that writes hloc files."""

from __future__ import annotations

import dataclasses
import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from pdc_sfm.device import check_device
from pdc_sfm.files import file_digest
from pdc_sfm.settings import result_settings

if TYPE_CHECKING:
    from pdc_sfm.engine.run import MatchingSettings
    from pdc_sfm.matches.masks import Masks

log = logging.getLogger(__name__)


class ListMatcher(Protocol):
    """Matches a pair list and writes hloc's feature and match file, going on where an earlier call was stopped.

    Keypoints of the feature file `fixed` stay as they are: queries are matched to the keypoints of a finished model.
    """

    def __call__(self, images: Path, pairs: Path, features: Path, matches: Path, fixed: Path | None = None) -> None: ...


def one_way() -> MatchingSettings:
    """Defaults for queries: matches are estimated from the query to the map only, which takes half the time.

    A check in the other direction adds little, because wrong matches do not agree with the pose (docs/localization.md).
    """
    from pdc_sfm.engine.run import MatchingSettings
    from pdc_sfm.matches.select import SelectSettings

    return MatchingSettings(select=SelectSettings(directions="forward"))


def query_settings(settings: MatchingSettings) -> MatchingSettings:
    """As they are for a map, for its queries: their points need not be shared by several images, so that all stay, and exact.

    Each has many images to be found by: what only windows of one show is not searched for, unless that is asked for.
    """
    tracks = dataclasses.replace(settings.tracks, max_keypoints=None)
    dense = dataclasses.replace(settings.dense, windows=bool(settings.dense.windows))
    return dataclasses.replace(settings, dense=dense, tracks=tracks)


def engine_matcher(settings: MatchingSettings, keypoints: Path | None = None, masks: Path | None = None) -> ListMatcher:
    """The network as a matcher. With `keypoints`, a feature file of a detector, matches are snapped to these.

    `masks` is a folder of masks of images; those without one are matched everywhere.
    """

    from pdc_sfm.engine.run import match_pairs

    check_device(settings.device, settings.precision, settings.engine)  # now, not after the steps before

    def match(images: Path, pairs: Path, features: Path, matches: Path, fixed: Path | None = None) -> None:
        chosen = settings if fixed is None or keypoints is not None else query_settings(settings)
        references = [path for path in (fixed, keypoints) if path is not None]
        result = match_pairs(
            images,
            pairs,
            features.parent,
            chosen,
            features=features,
            matches=matches,
            features_ref=references,
            masks=masks,
        )
        if result.loop.masked:
            log.info("%s matches under masks were dropped", f"{result.loop.masked:,}")
        for name, reason in result.loop.bad.items():
            log.warning("left out: %s: %s", name, reason)

    return match


def describe_matching(settings: MatchingSettings, keypoints: Path | None, masks: Masks | None = None) -> dict[str, Any]:
    """What decides the matches, for the record of steps: of files their content, wherever they lie."""
    chosen = describe(settings)
    del chosen["output"]  # names files only
    chosen |= {"masks": masks.digest()} if masks else {}
    return {**chosen, "keypoints": file_digest(keypoints) if keypoints else None}


def describe(settings: Any) -> dict[str, Any]:
    """What decides the result of settings of matching or retrieval, which name a network."""
    from pdc_sfm.engine.weights_file import WeightsFile

    return {**result_settings(settings), "weights": WeightsFile.of(settings.weights).fingerprint}
