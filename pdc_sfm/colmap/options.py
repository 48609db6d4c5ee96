"""Options of COLMAP's mappers from our settings."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import pycolmap

from pdc_sfm.errors import SettingsError
from pdc_sfm.processes import core_count


def thread_count(threads: int) -> int:
    """0 means all cores this process may use."""
    return threads if threads > 0 else core_count()


def pipeline_options(
    seed: int,
    threads: int,
    two_view_tracks: bool,
    refine_cameras: bool,
    extra: Mapping[str, Any] | None = None,
    limits: tuple[float, float, float] | None = None,
    refine_rig: bool = False,
) -> pycolmap.IncrementalPipelineOptions:
    """Options of incremental mapping and triangulation; `extra` are pycolmap's own names, nested as there.

    `limits` of intrinsics are those of `io.cameras.intrinsic_limits`; None: COLMAP's. `refine_rig`: adjust how cameras of a
    rig stand to each other.
    """
    options = pycolmap.IncrementalPipelineOptions()
    options.random_seed = seed
    options.num_threads = thread_count(threads)
    options.triangulation.ignore_two_view_tracks = not two_view_tracks
    options.ba_refine_focal_length = refine_cameras
    options.ba_refine_extra_params = refine_cameras
    options.ba_refine_sensor_from_rig = refine_rig
    if limits is not None:
        options.min_focal_length_ratio, options.max_focal_length_ratio, options.max_extra_param = limits
    merge_options(options, extra)
    return options


def keep_distortion(options: pycolmap.IncrementalPipelineOptions) -> pycolmap.IncrementalPipelineOptions:
    """The same options, by which focal lengths alone are adjusted."""
    kept = copy.deepcopy(options)
    kept.ba_refine_extra_params = kept.ba_refine_principal_point = False
    return kept


def keep_intrinsics(options: pycolmap.IncrementalPipelineOptions) -> pycolmap.IncrementalPipelineOptions:
    """The same options, by which no intrinsics are adjusted."""
    kept = keep_distortion(options)
    kept.ba_refine_focal_length = False
    return kept


def merge_options(options: Any, extra: Mapping[str, Any] | None) -> None:
    """Set fields of a pycolmap options object by their names there."""
    try:
        options.mergedict(dict(extra or {}))
    except (AttributeError, TypeError, ValueError, RuntimeError) as error:
        raise SettingsError(f"mapper_options {dict(extra or {})} do not fit pycolmap: {error}") from None
