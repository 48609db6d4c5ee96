"""Renamed settings: the old names work for one version."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

RENAMED = {  # wherever they stand
    "anchors=snap": "keypoints=flow",
    "anchors": "keypoints",
    "confidence=p_r": "confidence=probability",
    "judge_channels": "confidence_channels",
    "low_batch": "coarse_batch",
    "normalise_local": "normalize_local",
    "sharpen": "refine_keypoints",
    "weak_pairs": "min_support_ratio",
}


def old_words(values: Mapping[str, Any]) -> list[str]:
    """The renamed settings among these, nested ones too."""
    found = []
    for key, value in values.items():
        found += [word for word in (f"{key}={value}", key) if word in RENAMED][:1]
        found += old_words(value) if isinstance(value, Mapping) else []
    return found


def new_words(values: Mapping[str, Any]) -> dict[str, Any]:
    """One group of settings with the words of today."""
    today = {}
    for key, value in values.items():
        word, equals, text = RENAMED.get(f"{key}={value}", RENAMED.get(key, str(key))).partition("=")
        today[word] = text if equals else value
    return today
