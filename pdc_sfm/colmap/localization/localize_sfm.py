"""Poses of queries in a model: `localize`, and hloc's `localize_sfm.main`."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import pycolmap

from pdc_sfm.colmap.io.cameras import read_camera_list
from pdc_sfm.colmap.io.database import in_threads
from pdc_sfm.colmap.io.models import has_metres, load_model
from pdc_sfm.colmap.io.point_lookup import PointLookup
from pdc_sfm.colmap.io.results import log_files, result_names, write_logs, write_poses
from pdc_sfm.colmap.localization.evidence import pose_evidence
from pdc_sfm.colmap.localization.log import hloc_log, json_record
from pdc_sfm.colmap.localization.probability import DEGREES, METRES, PoseProbability, pose_probability
from pdc_sfm.colmap.localization.query import LocalizedQuery, PoseSettings, Query, localize_query
from pdc_sfm.colmap.localization.query_reader import QueryReader
from pdc_sfm.colmap.localization.rig_queries import Done, FramePose, RigFrame, pose_frame
from pdc_sfm.colmap.options import thread_count
from pdc_sfm.errors import FormatError
from pdc_sfm.files import exclusive
from pdc_sfm.paths import keep_apart
from pdc_sfm.progress import progress
from pdc_sfm.settings import require, to_dict
from pdc_sfm.store.pair_lists import read_retrieval
from pdc_sfm.store.readers import open_features, open_matches

log = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class LocalizationSettings:
    """How queries are localized and written."""

    pose: PoseSettings = dataclasses.field(default_factory=PoseSettings)
    fallback: Literal["none", "nearest"] = "none"  # nearest: a failed query gets the pose of its first retrieved image
    doubtful: float = 0.5  # a pose with a lower probability of being right is called doubtful; it is still written
    # localize --map, serve: images of the map are matched with a query, best first, until its pose is at the right place
    # with this probability (docs/localization.md); 1: all of --top
    sure: float = 0.9
    # of the distance within which a pose is right: metres: 0.25; depth: a sixtieth of the median depth of what the
    # query shows; null: depth in a map of unknown scale, as of `reconstruct`, otherwise metres
    unit: Literal["metres", "depth"] | None = None
    prepend_camera_name: bool = False  # `camera/name` in the results instead of `name` (RobotCar)
    seed: int = 0  # of RANSAC
    threads: int = 0  # 0: all cores

    def __post_init__(self) -> None:
        require(0 <= self.doubtful <= 1, f"doubtful={self.doubtful} must be a probability, 0 to 1")
        require(0 < self.sure <= 1, f"sure={self.sure} must be a probability, above 0 and up to 1")
        require(self.threads >= 0, f"threads={self.threads} must not be negative (0: all cores)")


@dataclasses.dataclass(frozen=True)
class LocalizationResult:
    """Poses by query name, camera from world. `fallback` names queries that have the pose of their nearest image."""

    poses: dict[str, pycolmap.Rigid3d]
    failed: dict[str, str]  # query -> reason; those of `fallback` too
    fallback: tuple[str, ...]
    inliers: dict[str, int]
    left_out: tuple[str, ...]  # parts of the input that could not be used
    judged: dict[str, PoseProbability] = dataclasses.field(default_factory=dict)  # how likely each pose is right
    doubts: dict[str, str] = dataclasses.field(default_factory=dict)  # query -> why its pose may be wrong, what to do

    @property
    def probabilities(self) -> dict[str, float]:
        """Of a right pose, for every query that was localized."""
        return {name: judged.probability for name, judged in self.judged.items()}

    def remarks(self) -> Iterator[str]:
        """A line for each query without a pose, and for each whose pose is doubtful."""
        for name, reason in self.failed.items():
            yield f"not localized: {name}: {reason}"
        for name, doubt in self.doubts.items():
            yield f"doubtful: {name}: right with probability {self.probabilities[name]:.2f}: {doubt}"

    def __str__(self) -> str:
        queries = len(self.poses) + len(self.failed) - len(self.fallback)
        text = f"{len(self.poses) - len(self.fallback)} of {queries} queries localized"
        text += f" ({len(self.doubts)} doubtful)" if self.doubts else ""
        return text + (f", {len(self.fallback)} given their nearest image's pose" if self.fallback else "")


def localize(
    reference: Path | str | pycolmap.Reconstruction,
    queries: Path | str | Mapping[str, pycolmap.Camera],
    retrieval: Path | str,
    features: Path | str,
    matches: Path | str,
    results: Path | str,
    settings: LocalizationSettings | None = None,
    config: Mapping[str, Any] | None = None,
    focal_sigmas: Mapping[str, float] | None = None,
    frames: Sequence[RigFrame] = (),
) -> LocalizationResult:
    """Localize queries (a list with intrinsics) by their matches with retrieved images; write poses and logs.

    `focal_sigmas` are relative standard deviations of uncertain focal lengths, by query. `frames` are queries that a rig took at
    the same moment, with cam_from_rig of each: they get one pose.
    """
    settings = settings or LocalizationSettings()
    keep_apart(
        inputs=[features, matches, retrieval, *([] if isinstance(queries, Mapping) else [queries])],
        models=[] if isinstance(reference, pycolmap.Reconstruction) else [reference],
        files=[results, *log_files(results)],
    )
    cameras = queries if isinstance(queries, Mapping) else read_camera_list(queries)
    result_names(cameras, settings.prepend_camera_name)
    retrieved = read_retrieval(retrieval)
    model = reference if isinstance(reference, pycolmap.Reconstruction) else load_model(reference)
    lookup = PointLookup(model)
    tolerance = _tolerance(reference, settings)
    with exclusive(results), open_features(features) as feature_file, open_matches(matches) as match_file:
        reader = QueryReader(cameras, retrieved, lookup, feature_file, match_file)

        done = _locate_all(reader, lookup, settings, tolerance, focal_sigmas or {}, config)
        together = [
            pose_frame(frame, _by_name(done), lookup, settings.pose, tolerance, focal_sigmas or {}, settings.seed)
            for frame in progress(frames, "localization", "frame", show=bool(frames))
        ]
        found = {name: item for frame in together if frame for name, item in frame.queries.items()}
        done = [found.get(name, item) for name, item in _by_name(done).items()]
        result = _collect(done, reader, settings, [frame for frame in together if frame])
        logs: dict[str, Any] = {"features": Path(features), "matches": Path(matches), "retrieval": Path(retrieval)}
        tried = [item for item in done if isinstance(item, LocalizedQuery)]
        logs["loc"] = {item.query.name: hloc_log(item, settings.pose.covisibility_clustering) for item in tried}
        write_logs(results, logs, {"settings": to_dict(settings), **json_record(done, result, lookup)})
        write_poses(results, result.poses, settings.prepend_camera_name)
    for name, probability in result.probabilities.items():
        log.debug("%s: %d inliers, right with probability %.2f", name, result.inliers[name], probability)
    return result


def query_probabilities(
    model: pycolmap.Reconstruction,
    cameras: Mapping[str, pycolmap.Camera],
    retrieval: Path | str,
    features: Path | str,
    matches: Path | str,
    settings: LocalizationSettings,
    focal_sigmas: Mapping[str, float],
) -> dict[str, PoseProbability | None]:
    """The probability that the pose of each query by these matches is right, None without a pose. Nothing is written."""
    lookup = PointLookup(model)
    with open_features(features) as feature_file, open_matches(matches) as match_file:
        reader = QueryReader(cameras, read_retrieval(retrieval), lookup, feature_file, match_file)
        done = _locate_all(reader, lookup, settings, _tolerance(model, settings), focal_sigmas)
    return {name: None if isinstance(item, tuple) else item.judged for name, item in _by_name(done).items()}


def _tolerance(reference: Path | str | pycolmap.Reconstruction, settings: LocalizationSettings) -> float | None:
    unit = settings.unit or ("metres" if has_metres(reference) else "depth")
    return METRES if unit == "metres" else None


def _locate_all(
    reader: QueryReader,
    lookup: PointLookup,
    settings: LocalizationSettings,
    tolerance: float | None,
    focal_sigmas: Mapping[str, float],
    config: Mapping[str, Any] | None = None,
) -> list[Done]:
    def attempt(item: Query | tuple[str, str]) -> LocalizedQuery | tuple[str, str]:
        if isinstance(item, tuple):
            return item
        return locate(item, lookup, settings, tolerance, focal_sigmas.get(item.name, 0.0), config)

    threads = thread_count(settings.threads)
    return list(in_threads(attempt, progress(reader, "localization", "query", len(reader)), threads))


def _by_name(done: list[Done]) -> dict[str, Done]:
    return {item[0] if isinstance(item, tuple) else item.query.name: item for item in done}


def locate(
    query: Query,
    lookup: PointLookup,
    settings: LocalizationSettings,
    tolerance: float | None,
    focal_sigma: float = 0.0,
    config: Mapping[str, Any] | None = None,
) -> LocalizedQuery:
    """The pose of one query, with the probability that it is within `tolerance` (None: a share of the depth)."""
    found = localize_query(query, lookup, settings.pose, settings.seed, config)
    if found.attempt is None:
        return found
    judged = pose_probability(pose_evidence(found, lookup, tolerance, DEGREES, focal_sigma))
    return dataclasses.replace(found, judged=judged)


def _collect(
    done: list[Done], reader: QueryReader, settings: LocalizationSettings, frames: Sequence[FramePose]
) -> LocalizationResult:
    poses, failed, inliers, judged = {}, {}, {}, {}
    doubts: dict[str, str] = {}
    for item in done:
        if isinstance(item, tuple):
            failed[item[0]] = item[1]
        elif item.attempt is None or item.attempt.estimate is None:
            failed[item.query.name] = max(item.attempts, key=lambda a: a.num_inliers).reason
        else:
            name = item.query.name
            poses[name] = item.attempt.estimate["cam_from_world"]
            inliers[name] = item.attempt.num_inliers
            if item.judged is not None:
                judged[name] = item.judged
                doubt = item.judged.doubt(settings.doubtful)
                doubts |= {name: doubt} if doubt else {}
    for frame in frames:  # queries that see nothing of the map stand where their rig does
        for name in frame.poses.keys() & failed.keys():
            del failed[name]
            poses[name], inliers[name] = frame.poses[name], 0
            judged |= {name: frame.judged} if frame.judged else {}
            doubts |= {name: doubt} if frame.judged and (doubt := frame.judged.doubt(settings.doubtful)) else {}
    given = tuple(name for name in failed if settings.fallback == "nearest" and name in reader.nearest)
    poses.update({name: reader.nearest[name] for name in given})
    left_out = []
    if reader.missing_images:
        first = min(reader.missing_images)
        left_out.append(f"{len(reader.missing_images)} retrieved images are not in the model (first: {first})")
    if reader.missing_pairs:
        first = reader.missing_pairs[0]
        left_out.append(f"{len(reader.missing_pairs)} retrieved pairs without matches (first: {first})")
    if not any(isinstance(item, LocalizedQuery) for item in done):
        reasons = sorted(set(failed.values()))
        raise FormatError(f"no query has anything to be localized by: {reasons[0]}; do the inputs belong together?")
    return LocalizationResult(poses, failed, given, inliers, tuple(left_out), judged, doubts)


def main(
    reference_sfm: Path | pycolmap.Reconstruction,
    queries: Path,
    retrieval: Path,
    features: Path,
    matches: Path,
    results: Path,
    ransac_thresh: float = 12,
    covisibility_clustering: bool = False,
    prepend_camera_name: bool = False,
    config: Mapping[str, Any] | None = None,
) -> LocalizationResult:
    """`localize` with the signature of hloc's `localize_sfm.main`. Failed queries are left out of the results."""
    pose = PoseSettings(ransac_threshold=float(ransac_thresh), covisibility_clustering=covisibility_clustering)
    settings = LocalizationSettings(pose=pose, prepend_camera_name=prepend_camera_name)
    return localize(reference_sfm, queries, retrieval, features, matches, results, settings, config)
