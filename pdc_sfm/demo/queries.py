"""Localizes photographs in a map with one call: retrieve, match, estimate poses. Continues after a stop.

A map is what `reconstruct` or `triangulate` writes (its summary.json names the images and features it was made of), or
the folder of a run of `demo`.
"""

from __future__ import annotations

import dataclasses
import logging
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from pdc_sfm.colmap.io.cameras import read_camera_list
from pdc_sfm.colmap.io.frame import MapFrame, read_frame
from pdc_sfm.colmap.io.maps import find_map, has_model
from pdc_sfm.colmap.io.models import has_metres, load_model
from pdc_sfm.colmap.io.results import pose_line
from pdc_sfm.colmap.localization.localize_sfm import (
    LocalizationResult,
    LocalizationSettings,
    localize,
    query_probabilities,
)
from pdc_sfm.colmap.localization.probability import PoseProbability
from pdc_sfm.colmap.types import Rigid3d
from pdc_sfm.demo.linked_images import link_image, link_mask, link_name
from pdc_sfm.demo.query_intrinsics import EXIF, EXIF_SIGMA, query_cameras
from pdc_sfm.demo.query_pairs import choose_pairs
from pdc_sfm.demo.query_rigs import query_frames, read_query_rigs
from pdc_sfm.engine.run import MatchingSettings
from pdc_sfm.errors import FormatError, ImageError
from pdc_sfm.files import exclusive, file_digest, write_text
from pdc_sfm.images import list_images, needs_jpeg
from pdc_sfm.matches.masks import Masks
from pdc_sfm.media.heif import refuse_unreadable_heif
from pdc_sfm.pipeline.matching import ListMatcher, describe, describe_matching, engine_matcher, one_way
from pdc_sfm.pipeline.steps import Steps
from pdc_sfm.retrieval import RetrievalSettings, retrieve
from pdc_sfm.run_folder import write_json
from pdc_sfm.settings import result_settings
from pdc_sfm.store.image_marks import image_mark
from pdc_sfm.store.pair_lists import read_retrieval

RESULTS = "results.txt"

log = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class Map:
    """A model, the folder of its images, and the feature file whose keypoints it holds."""

    model: Path
    images: Path
    features: Path


@dataclasses.dataclass(frozen=True)
class Row:
    """The result of a query."""

    localized: bool
    inliers: int
    camera: str  # where its intrinsics are from
    reason: str  # why it is not localized
    probability: float | None = None  # of being right
    doubt: str = ""  # why its pose may be wrong, and what to do
    place: tuple[float, float, float] | None = None  # latitude, longitude and altitude, in a map that knows its origin


def open_map(folder: Path | str, images: Path | None = None, features: Path | None = None) -> Map:
    """The files of a map; `images` and `features` where it does not know them, or they were moved."""
    found = find_map(folder)
    if not has_model(found.model):
        raise FormatError(f"{folder} holds no model: give the folder that map, reconstruct or triangulate wrote")
    images, features = images or found.images, features or found.features
    if images is None or not Path(images).is_dir():
        where = f"at {images}" if images else "known"
        raise ImageError(f"the images of the map {folder} are not {where}: give --database-images")
    if features is None or not Path(features).is_file():
        where = f"at {features}" if features else "known"
        raise FormatError(
            f"the features of the map {folder} are not {where}: give --features, the h5 file it was made of"
        )
    return Map(found.model, Path(images), Path(features))


def localize_in_map(
    mapped: Map,
    images: Path | str,
    output: Path | str,
    *,
    queries: Path | str | None = None,
    top: int = 20,
    matching: MatchingSettings | None = None,
    finding: RetrievalSettings | None = None,
    settings: LocalizationSettings | None = None,
    masks: Path | str | None = None,
    rig: Path | str | None = None,
    match: ListMatcher | None = None,
    network: Any = None,
) -> tuple[LocalizationResult, dict[str, Row]]:
    """Localize the photographs in `images`; write poses to `output`/results.txt, and return them with a row for each query.

    Images of the map are matched with a query, best first, until its place is sure (`settings.sure`), at most `top`:
    `output`/pairs.txt. `queries` is a list of intrinsics; without it they come from the map's camera of the same size, or
    from EXIF. Nothing is matched where a mask of the photographs is black (`masks`). `rig` is a file of cameras that are fixed to
    each other: their photographs of one moment get one pose, in `output`/frames.txt.
    """
    images, output = Path(images), Path(output)
    matching, finding = matching or one_way(), finding or RetrievalSettings(best=0)
    settings, masking = settings or LocalizationSettings(), Masks(masks) if masks is not None else None
    match = match or engine_matcher(matching, masks=Path(output) / "masks" if masking else None)
    model = load_model(mapped.model)
    database = sorted(model.image(i).name for i in model.reg_image_ids())
    listed = None if queries is None else read_camera_list(queries)
    links = _links(list(listed) if listed else list_images(images), images, database)
    rigs = () if rig is None else read_query_rigs(rig, mapped.model, links, images)
    output.mkdir(parents=True, exist_ok=True)
    folder, retrieved, pairs, features, matches = (
        output / name for name in ("images", "retrieval.txt", "pairs.txt", "features.h5", "matches.h5")
    )
    with exclusive(output / RESULTS):
        _link(
            folder, {**{name: mapped.images / name for name in database}, **{v: images / k for k, v in links.items()}}
        )
        _link_masks(masking, links, output / "masks")
        read = {name: folder / link if needs_jpeg(images / name) else images / name for name, link in links.items()}
        cameras, sources = query_cameras(links, read, listed, model, rigs)
        usable = [link for name, link in links.items() if link in cameras]
        steps = Steps(output)
        marks = {link: image_mark(read[name]) for name, link in links.items() if link in cameras}
        what = {"database": database, "queries": marks, "top": top, "settings": describe(finding)}
        what |= {"masks": masking.digest()} if masking else {}
        counts, raw = [output / "retrieval.counts"], [output / "matches.raw"]

        def find() -> None:
            more = {"masks": output / "masks"} if masking else {}
            retrieve(folder, usable, database, retrieved, top, finding, network=network, **more)

        guessed = {link: EXIF_SIGMA for name, link in links.items() if sources[name] == EXIF}
        chosen = settings if has_metres(mapped.model) else dataclasses.replace(settings, unit=settings.unit or "depth")

        def match_some(some: Path) -> None:
            for path in (features, matches):  # of another round: made anew, of all that is matched so far
                path.unlink(missing_ok=True)
            match(folder, some, features, matches, mapped.features)

        def try_pairs(some: Path) -> Mapping[str, PoseProbability | None]:
            match_some(some)
            asked = {link: cameras[link] for link in read_retrieval(some)}
            return query_probabilities(model, asked, some, features, matches, chosen, guessed)

        def match_queries() -> None:
            choose_pairs(read_retrieval(retrieved), pairs, try_pairs, chosen)
            match_some(pairs)

        if usable:
            steps.run("retrieve", what, [retrieved], find, counts)
        if usable and retrieved.read_text(encoding="utf-8").strip():
            how = {**describe_matching(matching, None, masking), "until": result_settings(chosen)}
            how["keypoints"] = file_digest(mapped.features)
            steps.run("match", how, [pairs, features, matches], match_queries, raw)
            log.info("localize ...")
            target = output / "localization.txt"
            frames = query_frames(rigs, {name: link for name, link in links.items() if link in cameras})
            more: dict[str, Any] = {"focal_sigmas": guessed, "frames": list(frames.values())}
            result = localize(model, cameras, pairs, features, matches, target, chosen, **more)
        else:
            result = LocalizationResult(
                {}, dict.fromkeys(usable, "no image of the map has a confident match"), (), {}, ()
            )
        frame = read_frame(mapped.model)
        rows = {name: _row(link, result, sources[name], frame) for name, link in links.items()}
        poses = {name: result.poses[link] for name, link in links.items() if link in result.poses}
        if rigs:
            _write_frames(output / "frames.txt", query_frames(rigs, links), result)
        _write(output, poses, rows, result_settings(settings))
    return result, rows


def table(rows: Mapping[str, Row]) -> str:
    """One line per query: inliers, the probability of being right, the source of its intrinsics, or why it failed."""
    width = max([5, *(len(name) for name in rows)])
    lines = [f"{'query':<{width}} {'inliers':>8} {'right':>6}  intrinsics"]
    for name, row in rows.items():
        right = "-" if row.probability is None else f"{row.probability:.2f}"
        said = f"{row.camera}; doubtful: {row.doubt}" if row.doubt else row.camera
        if row.place is not None:
            said = f"{row.place[0]:.7f} {row.place[1]:.7f} {row.place[2]:.1f} m; {said}"
        lines.append(
            f"{name:<{width}} {row.inliers if row.localized else '-':>8} {right if row.localized else '-':>6}  "
            f"{said if row.localized else row.reason}"
        )
    return "\n".join(lines)


def _links(names: list[str], images: Path, database: list[str]) -> dict[str, str]:
    """Query -> its name beside the images of the map: in a folder of its own, and one that every list can hold."""
    if not names:
        raise ImageError(f"{images} holds no images to localize")
    absent = [name for name in names if not (images / name).is_file()]
    if absent:
        raise ImageError(f"{len(absent)} listed queries are not in {images} (first: {absent[0]})")
    refuse_unreadable_heif(images, names)
    prefix, taken, links = "query", set(), {}
    while any(
        name.startswith((f"{prefix}/", f"{prefix}-")) for name in database
    ):  # `/` and `-` are one in hloc's files
        prefix += "_"
    for name in names:
        link = link_name(name, jpeg=needs_jpeg(images / name)).replace("/", "_")
        while link in taken:
            link = f"{link.rpartition('.')[0]}_.{link.rpartition('.')[2]}"
        taken.add(link)
        links[name] = f"{prefix}/{link}"
    return links


def _link(folder: Path, files: Mapping[str, Path]) -> None:
    """A folder of links, made anew: nothing of an earlier run is in it."""
    absent = [path for path in files.values() if not path.is_file()]
    if absent:
        raise ImageError(f"{len(absent)} images of the map are missing (first: {absent[0]}): give --database-images")
    shutil.rmtree(folder, ignore_errors=True)
    for name, path in files.items():
        try:
            link_image(path, folder / name)
        except ImageError:  # said of this query alone, by who reads it
            (folder / name).symlink_to(path.resolve())


def _link_masks(masks: Masks | None, links: Mapping[str, str], folder: Path) -> None:
    """Masks under the names of the linked queries, made anew."""
    shutil.rmtree(folder, ignore_errors=True)
    if masks is None:
        return
    if unmasked := masks.missing(links):
        log.warning(unmasked)
    for name, link in links.items():
        link_mask(masks, name, folder, link)


def _row(link: str, result: LocalizationResult, source: str, frame: MapFrame | None) -> Row:
    if link in result.poses and link not in result.fallback:
        said, place = (result.probabilities.get(link), result.doubts.get(link, "")), None
        if frame is not None and frame.origin is not None:
            center = result.poses[link].inverse().translation
            latitude, longitude, altitude = frame.geographic(np.asarray(center)[None])[0].tolist()
            place = latitude, longitude, altitude
        return Row(True, result.inliers.get(link, 0), source, "", *said, place)
    known = link in result.failed
    return Row(False, result.inliers.get(link, 0), source if known else "", result.failed.get(link, source))


def _write_frames(path: Path, frames: Mapping[str, Mapping[str, Rigid3d]], result: LocalizationResult) -> None:
    """`moment qw qx qy qz tx ty tz` a line: rig from world, of the moments whose images got one pose."""
    lines = []
    for moment, images in sorted(frames.items()):
        found = [pose.inverse() * result.poses[link] for link, pose in images.items() if link in result.poses]
        if len(found) == len(images) and all(np.allclose(one.matrix(), found[0].matrix()) for one in found):
            lines.append(pose_line(link_name(moment), found[0]))
    write_text(path, "".join(lines))


def _write(output: Path, poses: Mapping[str, Rigid3d], rows: Mapping[str, Row], settings: Any) -> None:
    """results.txt as hloc writes it, with names relative to the folder of queries; results.json: what became of each."""
    lines = [pose_line(link_name(name), pose) for name, pose in poses.items()]
    write_json(
        output / "results.json", {"settings": settings, "queries": {k: dataclasses.asdict(v) for k, v in rows.items()}}
    )
    write_text(output / RESULTS, "".join(lines))
