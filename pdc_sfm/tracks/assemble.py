"""The second stage: turns the raw matches of all pairs into one feature file and one match file, written atomically.

Keypoints that a feature file holds already stay as they are, since other match files may point at them; only what this
same run made is made again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from pdc_sfm.errors import OtherSettingsError
from pdc_sfm.files import remove_leftovers
from pdc_sfm.pixels import Size
from pdc_sfm.settings import differences
from pdc_sfm.store.journal import RawStore
from pdc_sfm.store.pair_lists import Pair, check_keys
from pdc_sfm.store.readers import open_features
from pdc_sfm.store.writers import RUN, digest, new_h5, read_record, write_record
from pdc_sfm.tracks.flow_tracks import write_flow_tracks
from pdc_sfm.tracks.hloc_tracks import Job, write_hloc_tracks
from pdc_sfm.tracks.settings import TrackSettings
from pdc_sfm.tracks.threads import Threads

MANY_MATCHES = 2_000_000  # of all pairs: they take a core more than a second, in which a process has started


@dataclass(frozen=True)
class Outputs:
    """The two files of a run, and what decides their content."""

    features: Path
    matches: Path
    settings: Mapping[str, Any]  # as plain nested values, recorded in the match file
    tracks: TrackSettings
    references: tuple[Path, ...] = ()  # feature files whose keypoints are only assigned to
    uncertainty: Callable[[Size], float] | None = None  # pixels to which keypoints of an image of this size are known
    covered: Callable[[str, np.ndarray], np.ndarray] | None = None  # which points (N, 2) of an image lie under its mask


@dataclass(frozen=True)
class Summary:
    """What stands in the two files of a run."""

    images: int
    fixed: int  # images whose keypoints were there before
    keypoints: int
    pairs: int
    missing: int  # pairs without raw matches, written as empty
    matches: int


def aggregate(
    raw: RawStore,
    pairs: Sequence[Pair],
    outputs: Outputs,
    *,
    overwrite: bool = False,
    threads: int | None = None,
) -> Summary | None:
    """Write both files from the raw matches of `pairs`; None if that was done before.

    Without `threads` there are as many as cores, each with a process if that is worth its start; they change nothing but
    the time.
    """
    check_keys(pairs)
    previous = read_record(outputs.matches)
    if previous and not overwrite:
        _refuse_other_settings(outputs, previous["settings"])
    done = [pair for pair in pairs if pair in raw]
    run = digest(outputs.settings, sorted(pairs), sorted(done))
    replaceable = {run, previous["run"]} if previous and (overwrite or previous["missing"]) else {run}
    names = list(dict.fromkeys(name for pair in pairs for name in pair))
    fixed = _fixed_images(outputs, names, replaceable, overwrite)
    missing = len(pairs) - len(done)
    record = {"run": run, "fixed": _fixed_digest(fixed), "missing": missing}
    runs = read_record(outputs.features).get("runs", [])
    if not overwrite and run in runs and record == {key: previous.get(key) for key in record}:
        return None
    remove_leftovers(outputs.matches, outputs.features)
    with (
        new_h5(outputs.matches) as match_file,
        new_h5(outputs.features) as feature_file,
        Threads(threads, sum(map(raw.count, done)) >= MANY_MATCHES) as pool,
    ):
        _keep_others(outputs.features, names, feature_file)
        _copy_fixed(fixed, outputs.features, feature_file)
        job = Job(
            raw,
            pairs,
            done,
            names,
            frozenset(fixed),
            outputs.tracks,
            feature_file,
            match_file,
            run,
            pool,
            outputs.uncertainty,
            outputs.covered,
        )
        count = (write_flow_tracks if outputs.tracks.rule == "flow" else write_hloc_tracks)(job)
        write_record(feature_file, {"runs": [*(r for r in runs if r != run), run]})
        write_record(match_file, {**record, "settings": outputs.settings})
        keypoints = sum(len(feature_file[name]["keypoints"]) for name in names)
    return Summary(len(names), len(fixed), keypoints, len(pairs), missing, count)


def _refuse_other_settings(outputs: Outputs, stored: Mapping[str, Any]) -> None:
    changes = differences(stored, outputs.settings)
    if changes:
        raise OtherSettingsError(
            f"{outputs.matches} was made with other settings ({'; '.join(changes)}): "
            "choose another output, or overwrite",
            outputs.matches,
        )


def _fixed_images(
    outputs: Outputs, names: Sequence[str], replaceable: Collection[str], overwrite: bool
) -> dict[str, Path]:
    """The images of the list that have keypoints already, and the file that holds them."""
    fixed: dict[str, Path] = {}
    sources = list(outputs.references)
    if outputs.features.is_file() and not overwrite:
        sources.append(outputs.features)
    for path in sources:
        with open_features(path) as file:
            for name in names:
                if name not in fixed and name in file and file.attribute(name, RUN) not in replaceable:
                    fixed[name] = path
    return fixed


def _fixed_digest(fixed: Mapping[str, Path]) -> str:
    """A fingerprint of the keypoints that are only assigned to."""
    parts: list[Any] = [sorted(fixed)]
    for path in sorted(set(fixed.values())):
        with open_features(path) as file:
            parts += [digest(file.keypoints(name).points) for name in sorted(fixed) if fixed[name] == path]
    return digest(*parts)


def _keep_others(features: Path, names: Sequence[str], feature_file: h5py.File) -> None:
    """Copy the images of an existing feature file that are not of this list."""
    if features.is_file():
        with open_features(features) as file:
            for name in sorted(set(file.names()) - set(names)):
                file.copy_image(name, feature_file)


def _copy_fixed(fixed: Mapping[str, Path], features: Path, feature_file: h5py.File) -> None:
    """The feature file alone shall serve every later step, so that fixed keypoints stand in it as well."""
    for path in sorted(set(fixed.values())):
        with open_features(path) as file:
            for name in fixed:
                if fixed[name] == path:
                    file.copy_image(name, feature_file, descriptors=path == features)
