"""Settings as recorded with a result, and differences from the current ones."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from typing import Any

from pdc_sfm.settings.renamed import new_words

SPEED_ONLY = ("device", "memory", "readers", "batch", "coarse_batch", "engine", "ray", "threads")  # wherever they stand


def to_dict(settings: Any) -> dict[str, Any]:
    """The settings as plain nested dictionaries (tuples become lists), as written to YAML, JSON and h5 attributes."""
    return json.loads(json.dumps(dataclasses.asdict(settings), default=str))


def result_settings(settings: Any) -> dict[str, Any]:
    """Those of `to_dict` that change what comes out, and so say whether a result may be taken or must be made again."""

    def chosen(values: Any) -> Any:
        if not isinstance(values, dict):
            return values
        return {key: chosen(value) for key, value in values.items() if key not in SPEED_ONLY}

    return chosen(to_dict(settings))


def differences(stored: Mapping[str, Any], wanted: Mapping[str, Any], where: str = "") -> list[str]:
    """The settings that changed, as `key: stored -> wanted`, for a refusal to mix results."""
    changes, stored = [], new_words(stored)
    if stored.get("method") != "search":
        stored.pop("view_search", None)  # of version 0.1: it changed nothing else
    for key in sorted({*stored, *wanted}, key=str):
        name = f"{where}.{key}" if where else str(key)
        old, new = stored.get(key), wanted.get(key)
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            changes += differences(old, new, name)
        elif old != new:
            changes.append(f"{name}: {old} -> {new}")
    return changes
