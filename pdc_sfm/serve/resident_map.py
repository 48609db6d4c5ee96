"""A map in memory: a photograph becomes a pose without a file being written. Its numbers are those of `localize --map`."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from pdc_sfm.client.answers import Localization, PairMatches, Retrieval, UsedImage
from pdc_sfm.colmap.io.frame import read_frame
from pdc_sfm.colmap.io.models import has_metres, load_model
from pdc_sfm.colmap.io.point_lookup import PointLookup
from pdc_sfm.colmap.localization.localize_sfm import LocalizationSettings, locate
from pdc_sfm.colmap.localization.log import shown_inliers
from pdc_sfm.colmap.localization.probability import METRES
from pdc_sfm.colmap.localization.query import LocalizedQuery, Query
from pdc_sfm.colmap.localization.query_reader import check_keypoints
from pdc_sfm.colmap.localization.rounds import is_enough, rounds
from pdc_sfm.colmap.types import Camera
from pdc_sfm.demo.queries import Map
from pdc_sfm.demo.query_intrinsics import EXIF, EXIF_SIGMA, intrinsics_of
from pdc_sfm.engine.cache import parse_bytes
from pdc_sfm.engine.run import MatchingSettings
from pdc_sfm.errors import FormatError, ImageError, SettingsError
from pdc_sfm.images import Photograph, read_photograph
from pdc_sfm.matcher import Matcher, PairSettings
from pdc_sfm.pipeline.matching import one_way, query_settings
from pdc_sfm.pixels import Size, to_colmap
from pdc_sfm.retrieval import RetrievalSettings
from pdc_sfm.retrieval.resident import Report, ResidentRetrieval
from pdc_sfm.retrieval.run import RetrievedImage
from pdc_sfm.serve.cache import ByteCache
from pdc_sfm.serve.pose import camera_answer, exif_camera, pose_answer
from pdc_sfm.settings import require
from pdc_sfm.store.packing import rounded
from pdc_sfm.store.readers import open_features
from pdc_sfm.tracks.query_keypoints import DatabaseMatches, query_keypoints

if TYPE_CHECKING:
    from pdc_sfm.dense.estimator import EncodedView
    from pdc_sfm.network import PDCNet

NO_MATCH = "no image of the map has a confident match"
NOT_NEAR = "no image of the map was taken near there, looking the same way"
QUERY = "query"
MOST_TURNED = 60.0  # degrees from a viewing direction that is known: images that look farther away share little with it


@dataclasses.dataclass(frozen=True)
class QuerySettings:
    """Everything that decides an answer: as `localize --map` takes it."""

    matching: MatchingSettings = dataclasses.field(default_factory=one_way)
    finding: RetrievalSettings = dataclasses.field(default_factory=RetrievalSettings)
    localization: LocalizationSettings = dataclasses.field(default_factory=LocalizationSettings)
    top: int = 20  # images of the map matched with each query at most

    def __post_init__(self) -> None:
        require(self.top >= 1, f"--top {self.top} must be at least 1")
        rule = self.matching.tracks.rule
        require(rule == "flow", f"match.tracks.rule={rule} is not for one photograph at a time: leave it out")


@dataclasses.dataclass(frozen=True)
class Where:
    """What is known of a photograph beforehand."""

    camera: Camera | None = None  # intrinsics; None: of the map, or of EXIF
    position: np.ndarray | None = None  # (3,) in the map's frame
    level: bool = False  # its height is not known
    radius: float | None = None  # of images of the map around it that are looked at
    direction: np.ndarray | None = (
        None  # (3,) in which it looks, in the map's frame: of those, the ones that look alike
    )


class ResidentMap:
    """The network, the model and what was computed of the map's images, as much as `memory` holds."""

    def __init__(self, files: Map, codes: Path, settings: QuerySettings, network: PDCNet):
        matching = query_settings(settings.matching)
        self.files, self.settings = files, settings
        self.state = map_state(files)
        self.model = load_model(files.model)
        self.lookup = PointLookup(self.model)
        ids = {self.model.image(i).name: i for i in self.model.reg_image_ids()}
        if not ids:
            raise SettingsError(f"the map {files.model} has no image with a pose: nothing can be localized in it")
        self.ids = {name: ids[name] for name in sorted(ids)}
        self.metres, self.frame = has_metres(files.model), read_frame(files.model)
        unit = settings.localization.unit or ("metres" if self.metres else "depth")
        self._tolerance = METRES if unit == "metres" else None
        self._tracks = matching.tracks
        self._cache = ByteCache(parse_bytes(matching.memory))
        pair = PairSettings(matching.dense, matching.select, matching.snap)
        self._matcher = Matcher(network, pair, matching.device, matching.codes)
        self._retrieval = ResidentRetrieval(files.images, list(self.ids), settings.finding, network, codes)
        self._retrieval.prepare()

    @property
    def kept_bytes(self) -> int:
        """Of codes and keypoints that are kept."""
        return self._cache.bytes

    @functools.cached_property
    def centers(self) -> np.ndarray:
        """(N, 3) where the images of the map were taken, in the order of `ids`."""
        poses = (self.model.image(number).cam_from_world() for number in self.ids.values())
        return np.stack([np.asarray(pose.inverse().translation) for pose in poses])

    @functools.cached_property
    def directions(self) -> np.ndarray:
        """(N, 3) in which the images of the map look, of unit length, in the order of `ids`."""
        poses = (self.model.image(number).cam_from_world() for number in self.ids.values())
        return np.stack([pose.rotation.matrix()[2] for pose in poses])

    def localize(self, photograph: Photograph, content: bytes, where: Where, report: Report) -> Localization:
        """The pose of a photograph; `content` are the bytes of its file, whose EXIF may tell its focal length."""
        clock = Clock()
        with clock("read"):
            camera, source = self.camera_of(photograph, content, where)
        if self._among(where) == []:
            return self._without_pose(NOT_NEAR, camera, source, [], clock)
        with clock("retrieve"):
            found = self._retrieve(photograph, self.settings.top, report, where)
        if not found:
            return self._without_pose(NO_MATCH, camera, source, [], clock)
        with clock("match"):
            code = self._matcher.encode(photograph)
        settings, sigma = self.settings.localization, EXIF_SIGMA if source == EXIF else 0.0
        matched: list[tuple[RetrievedImage, DatabaseMatches]] = []
        item: LocalizedQuery | None = None
        for part in rounds(len(found), settings.sure):
            with clock("match"):
                matched += self._match_round(code, found, part, report)
            if not matched:
                continue
            with clock("keypoints"):
                query = self._query(matched, camera)
            with clock("pose"):
                report("pose", part.stop, len(found))
                before = None if item is None else item.judged
                item = locate(query, self.lookup, settings, self._tolerance, sigma)
            if is_enough(item.judged, before, settings.sure, settings.doubtful):
                break
        if item is None:
            return self._without_pose("no image of the map can be read", camera, source, [], clock)
        return self._answer(item, [image for image, _ in matched], source, sigma, clock)

    def retrieve(self, photograph: Photograph, top: int, report: Report) -> Retrieval:
        """Images of the map that show what a photograph shows, best first."""
        clock = Clock()
        with clock("retrieve"):
            found = self._retrieve(photograph, top, report, Where())
        return Retrieval([self._used(image, None) for image in found], clock.seconds, self.state)

    def match(self, first: Photograph, second: Photograph, most: int, report: Report) -> PairMatches:
        """Matches of any two photographs."""
        clock = Clock()
        with clock("match"):
            report("match", 0, 1)
            codes = [self._matcher.encode(photograph) for photograph in (first, second)]
            found = self._matcher.match(*codes)
        best = found.select(np.argsort(-found.scores, kind="stable")[:most])
        rows = np.round(np.c_[best.keypoints0, best.keypoints1].astype(np.float64), 2).tolist()
        sizes = [[one.pixels.shape[1], one.pixels.shape[0]] for one in (first, second)]
        return PairMatches(len(found), rows, np.round(best.scores.astype(float), 4).tolist(), sizes, clock.seconds)

    def camera_of(self, photograph: Photograph, content: bytes, where: Where) -> tuple[Camera, str]:
        """Intrinsics, and where they are from."""
        height, width = photograph.pixels.shape[:2]
        if where.camera is None:
            try:
                return intrinsics_of((width, height), exif_camera(content), self.model)
            except FormatError as error:
                said = str(error).partition(": list them")[0]
                raise FormatError(f"{said}: give camera=MODEL WIDTH HEIGHT PARAMS...") from None
        if (where.camera.width, where.camera.height) != (width, height):
            said = f"{where.camera.width} x {where.camera.height}"
            raise ImageError(f"the photograph is {width} x {height}, its intrinsics are of {said} pixels")
        return where.camera, "the request"

    def _retrieve(self, photograph: Photograph, top: int, report: Report, where: Where) -> list[RetrievedImage]:
        code = functools.partial(self._code, self._retrieval.matcher, "retrieve")
        return self._retrieval.retrieve(photograph, top, code, report, self._among(where))

    def _among(self, where: Where) -> list[str] | None:
        """Images of the map that may show what a photograph does, by what is known of it; None: all."""
        if where.position is None or where.radius is None:
            return None
        apart = (self.centers - where.position)[:, : 2 if where.level else 3]
        near = np.linalg.norm(apart, axis=1) <= where.radius
        if where.direction is not None:
            near &= self.directions @ where.direction >= np.cos(np.radians(MOST_TURNED))
        return [name for name, inside in zip(self.ids, near) if inside]

    def _match_round(
        self, code: EncodedView, found: Sequence[RetrievedImage], part: slice, report: Report
    ) -> list[tuple[RetrievedImage, DatabaseMatches]]:
        """Of one round of the images, but for those that can no longer be read."""
        images, codes = [], []
        for image in found[part]:
            with contextlib.suppress(ImageError):
                codes.append(self._code(self._matcher, "match", image.name))
                images.append(image)
        matched, batch = [], self.settings.matching.batch
        for start in range(0, len(images), batch):
            report("match", part.start + start, len(found))
            pairs = [(code, other) for other in codes[start : start + batch]]
            for image, raw in zip(images[start:], self._matcher.match_batch(pairs)):
                raw = rounded(raw).swapped()  # as the journal of `localize` keeps them
                matched.append((image, DatabaseMatches(self._size(image.name), self._keypoints(image.name), raw)))
        return matched

    def _query(self, matched: Sequence[tuple[RetrievedImage, DatabaseMatches]], camera: Camera) -> Query:
        """Keypoints in the order of the map's images, matches in that of retrieval, as the files of `localize` have them."""
        order = sorted(range(len(matched)), key=lambda number: matched[number][0].name)
        keypoints = query_keypoints([matched[number][1] for number in order], self._tracks)
        matches = dict(zip(order, keypoints.matches))
        found = [(self.ids[image.name], *matches[number]) for number, (image, _) in enumerate(matched)]
        return Query(QUERY, camera, to_colmap(keypoints.points), found)

    def _code(self, matcher: Matcher, use: str, name: str) -> EncodedView:
        return self._cache.get((use, name), lambda: matcher.encode(read_photograph(self.files.images / name), name))

    def _keypoints(self, name: str) -> np.ndarray:
        def read() -> np.ndarray:
            with open_features(self.files.features) as file:
                points = file.keypoints(name).points
            check_keypoints(self.lookup, self.ids[name], points)
            return points

        return self._cache.get(("keypoints", name), read)

    def _size(self, name: str) -> Size:
        camera = self.model.camera(self.model.image(self.ids[name]).camera_id)
        return camera.width, camera.height

    def _used(self, image: RetrievedImage, inliers: int | None) -> UsedImage:
        return UsedImage(image.name, self.ids[image.name], image.matches, inliers)

    def _without_pose(
        self, reason: str, camera: Camera, source: str, images: list[UsedImage], clock: Clock
    ) -> Localization:
        return Localization(
            False, reason, 0, camera=camera_answer(camera, source), images=images, seconds=clock.seconds, map=self.state
        )

    def _answer(
        self, item: LocalizedQuery, images: list[RetrievedImage], source: str, sigma: float, clock: Clock
    ) -> Localization:
        attempt = item.attempt
        if attempt is None or attempt.estimate is None or item.judged is None:
            best = max(item.attempts, key=lambda one: one.num_inliers)
            used = [self._used(image, None) for image in images]
            return self._without_pose(best.reason, item.query.camera, source, used, clock)
        found = attempt.correspondences
        votes = found.votes[attempt.estimate["inlier_mask"][found.votes[:, 0]], 1]
        counts = dict(zip(attempt.image_ids, np.bincount(votes, minlength=len(attempt.image_ids)).tolist()))
        shown = shown_inliers(item, attempt, self.lookup)
        return Localization(
            True,
            "",
            attempt.num_inliers,
            pose_answer(item, self.lookup, sigma, self.frame),
            item.judged.probability,
            item.judged.doubt(self.settings.localization.doubtful),
            camera_answer(item.query.camera, source),
            [self._used(image, counts.get(self.ids[image.name], 0)) for image in images],
            shown.get("shown", []),
            self.ids.get(shown.get("best_image", "")),
            clock.seconds,
            self.state,
        )


def map_state(files: Map) -> str:
    """What changes when a map is made anew: sizes and times of its files."""
    total = hashlib.sha256()
    for path in sorted(
        [*files.model.glob("*.bin"), *files.model.glob("*.txt"), *files.model.glob("*.json"), files.features]
    ):
        found = path.stat()
        total.update(f"{path.name} {found.st_size} {found.st_mtime_ns}\n".encode())
    return total.hexdigest()[:12]


class Clock:
    """Seconds by stage."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextlib.contextmanager
    def __call__(self, stage: str) -> Iterator[None]:
        begun = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[stage] = round(self.seconds.get(stage, 0.0) + time.perf_counter() - begun, 4)
