"""Settings for localizing photographs in a map, as `localize --map` and `serve` take them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pdc_sfm.colmap.localization.localize_sfm import LocalizationSettings
    from pdc_sfm.engine.run import MatchingSettings
    from pdc_sfm.retrieval import RetrievalSettings

TARGETS = {
    "": "pdc_sfm.colmap.localization.localize_sfm:LocalizationSettings",
    "match": "pdc_sfm.engine.run:MatchingSettings",
    "retrieve": "pdc_sfm.retrieval.settings:RetrievalSettings",
}


def by_prefix(words: Iterable[str], prefixes: Iterable[str]) -> dict[str, list[str]]:
    """`key=value` words by the prefix of their keys, without it; those of no prefix under the empty one."""
    own: dict[str, list[str]] = {"": [], **{prefix: [] for prefix in prefixes}}
    for word in words:
        prefix = word.partition(".")[0]
        own[prefix if prefix in own else ""].append(word.removeprefix(f"{prefix}.") if prefix in own else word)
    return own


def load_query_settings(
    config: Path | str | None, own: Mapping[str, list[str]]
) -> tuple[MatchingSettings, RetrievalSettings, LocalizationSettings]:
    """Matching, retrieval with the same network and memory, and the pose, whose settings a file may give."""
    from pdc_sfm.colmap.localization.localize_sfm import LocalizationSettings
    from pdc_sfm.engine.run import MatchingSettings
    from pdc_sfm.pipeline.matching import one_way
    from pdc_sfm.retrieval import RetrievalSettings
    from pdc_sfm.settings import load_settings

    matching = load_settings(MatchingSettings, None, own["match"], default=one_way())
    same = [
        f"{key}={value}" for key in ("weights", "device", "memory") if (value := getattr(matching, key)) is not None
    ]
    found_cheaply = RetrievalSettings(best=0)  # the full network matches what is retrieved anyway
    finding = load_settings(RetrievalSettings, None, [*same, *own["retrieve"]], default=found_cheaply)
    return matching, finding, load_settings(LocalizationSettings, config, own[""])
