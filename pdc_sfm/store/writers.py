"""Writing hloc feature and match files, and the record of what made them."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from pdc_sfm.errors import StorageError, UserError
from pdc_sfm.files import atomic_path
from pdc_sfm.pixels import Size
from pdc_sfm.store.h5_target import Target
from pdc_sfm.store.pair_lists import pair_key

RECORD = "pdc_sfm"  # attribute of a match file: the run that made it; of a feature file: all runs that wrote to it
RUN = "pdc_sfm_run"  # attribute of an image's group in a feature file: the run that made its keypoints


@contextlib.contextmanager
def new_h5(path: Path | str) -> Iterator[h5py.File]:
    """An h5 file that gets its name when it is complete; after an error or with a full disk the old file stays."""
    try:
        with atomic_path(path) as partial, contextlib.closing(Target(partial)) as target:
            with h5py.File(target, "w") as file:
                try:
                    yield file
                    file.flush()
                except BaseException:
                    target.give_up()
                    raise
    except UserError:
        raise
    except (OSError, RuntimeError) as error:  # h5py reports a full disk as either
        reason = " ".join(str(error).split())
        raise StorageError(
            f"cannot write {path}: {reason}. All matched pairs are kept: make room and run the same command again"
        ) from None


def write_keypoints(
    file: h5py.File, name: str, points: np.ndarray, scores: np.ndarray | None, image_size: Size | None = None
) -> h5py.Group:
    """Write an image's keypoints (N, 2), pixel indices, and scores (N,)."""
    group = file.create_group(name)
    _add(group, "keypoints", np.asarray(points, np.float32).reshape(-1, 2))
    if scores is not None:
        for key in ("scores", "score"):  # hloc's dense matcher writes `score`, its readers look for `scores`
            _add(group, key, np.asarray(scores, np.float32))
    if image_size is not None:
        _add(group, "image_size", np.asarray(image_size, np.int32))
    return group


def write_matches(file: h5py.File, name0: str, name1: str, matches: np.ndarray, scores: np.ndarray) -> None:
    """Write matches (M, 2) and scores (M,) of a pair as hloc's `matches0` and `matching_scores0`."""
    matches0 = np.full(int(matches[:, 0].max()) + 1 if len(matches) else 0, -1, np.int32)
    scores0 = np.zeros(len(matches0), np.float16)
    matches0[matches[:, 0]] = matches[:, 1]
    scores0[matches[:, 0]] = scores
    group = file.create_group(pair_key(name0, name1))
    _add(group, "matches0", matches0)
    _add(group, "matching_scores0", scores0)


def _add(group: h5py.Group, key: str, values: np.ndarray) -> None:
    """The same as `create_dataset`, in half its time: a million pairs have two million of them."""
    kind, space = h5py.h5t.py_create(values.dtype, logical=True), h5py.h5s.create_simple(values.shape)
    dataset = h5py.h5d.create(group.id, key.encode(), kind, space, _without_times())
    if values.size:
        dataset.write(h5py.h5s.ALL, h5py.h5s.ALL, np.ascontiguousarray(values))


@functools.cache
def _without_times() -> h5py.h5p.PropDCID:
    """As h5py makes datasets: without the time of their making, so that equal content is equal bytes."""
    options = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
    options.set_obj_track_times(False)
    return options


def read_record(path: Path | str) -> dict[str, Any]:
    """The record of how a file was made; empty for missing files and files of other programs."""
    if not Path(path).is_file():
        return {}
    try:
        with h5py.File(path, "r") as file:
            return json.loads(file.attrs.get(RECORD, "{}"))
    except (OSError, ValueError):
        return {}


def write_record(file: h5py.File, record: Mapping[str, Any]) -> None:
    """Write the record of how a file was made, as an attribute."""
    file.attrs[RECORD] = json.dumps(record, sort_keys=True)


def digest(*parts: Any) -> str:
    """A short fingerprint of JSON values and arrays."""
    total = hashlib.sha256()
    for part in parts:
        total.update(part.tobytes() if isinstance(part, np.ndarray) else json.dumps(part, sort_keys=True).encode())
    return total.hexdigest()[:16]
