"""A map of a folder of photographs, without ground truth: pairs, matches, a model, a report."""

from __future__ import annotations

import dataclasses
import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pdc_sfm.colmap.io.models import SUMMARY, MappingResult, ReconstructionError
from pdc_sfm.colmap.io.rigs import Rigs, check_images, read_rig_file, rename_cameras, rig_entries
from pdc_sfm.colmap.mapping.reconstruction import reconstruct
from pdc_sfm.colmap.mapping.sift_files import match_sift
from pdc_sfm.demo.chain import Chain
from pdc_sfm.demo.linked_images import FEWEST, leads_to, link_images, link_name
from pdc_sfm.demo.method import describe_matches
from pdc_sfm.demo.panoramas import POSES, views_of_panoramas, write_panorama_poses
from pdc_sfm.demo.photograph_pairs import choose_pairs, retrieved_pairs
from pdc_sfm.demo.plan import MapPlan, make_plan, measure_pace
from pdc_sfm.demo.settings import PhotographSettings, retrieval_settings
from pdc_sfm.demo.table import empty_row, model_row
from pdc_sfm.demo.videos import frames_of_videos
from pdc_sfm.errors import ImageError
from pdc_sfm.files import exclusive
from pdc_sfm.images import list_images, needs_jpeg
from pdc_sfm.matches.masks import Masks
from pdc_sfm.media.heif import refuse_unreadable_heif
from pdc_sfm.media.panoramas import RIG
from pdc_sfm.paths import keep_apart
from pdc_sfm.pipeline.matching import ListMatcher, describe, describe_matching, engine_matcher
from pdc_sfm.run_folder import RECORD, RunFolder, write_json
from pdc_sfm.settings import result_settings, to_dict
from pdc_sfm.store.control import Control, read_control
from pdc_sfm.store.image_marks import image_mark
from pdc_sfm.store.pair_lists import Pair, write_pairs
from pdc_sfm.store.positions import Positions, read_positions

log = logging.getLogger(__name__)


def run_photographs(
    images: Path | str | None,
    output: Path | str,
    settings: PhotographSettings | None = None,
    *,
    videos: Sequence[Path | str] = (),
    fps: float = 2.0,
    masks: Path | str | None = None,
    rig: Path | str | None = None,
    positions: Path | str | None = None,
    control: Path | str | None = None,
    panoramas: bool = False,
    match: ListMatcher | None = None,
    network: Any = None,
) -> RunFolder:
    """Make a map of a folder of photographs, with a report, and one with SIFT for comparison on request. Continues after a stop.

    Without a folder, the photographs are frames of `videos`, about `fps` per second. Nothing is matched where a mask of
    the folder `masks` is black (SIFT matches everything). `rig` is a file of cameras that are fixed to each other
    (`colmap.io.rigs`). With files of `positions` or `control` points the map is in metres. With `panoramas`, the folder
    holds equirectangular images: views of them are mapped, and each gets one pose in panoramas.txt.
    """
    settings, output, made_of = settings or PhotographSettings(), Path(output), None
    if images is None:
        made_of, images = frames_of_videos(videos, output / "frames", fps), output / "frames"
    ahead: dict[str, str] = {}
    if panoramas:
        keep_apart(images=[images], folders=[output])
        views, made_of = views_of_panoramas(Path(images), output / "views", settings)
        ahead = {link_name(name): link_name(view) for name, view in views.items()}
        images, rig = output / "views", output / "views" / RIG
    images = Path(images)
    keep_apart(images=[images], folders=[output], replaced=[output / "images"])
    own = match is None
    match = match or engine_matcher(settings.match, masks=output / "masks" if masks is not None else None)
    names = _usable_names(images)
    rigs = () if rig is None else rename_cameras(read_rig_file(rig), link_name)
    masking = Masks(masks) if masks is not None else None
    if masking is not None:
        keep_apart(images=[masking.folder], folders=[output], replaced=[output / "masks"])
        if unmasked := masking.missing(names):
            log.warning(unmasked)
    read = read_positions(positions).some_of(names) if positions is not None else None
    measured = read_control(control) if control is not None else None
    output.mkdir(parents=True, exist_ok=True)
    with exclusive(output / RECORD):
        folder = RunFolder(output)
        folder.begin("images", {"images": str(images.resolve()), **to_dict(settings)})
        chain = Chain(folder)
        more = [*([made_of] if made_of else []), *([masking.digest()] if masking else [])]
        marks = {name: image_mark(images / name) for name in names}
        what = [marks, *more] if more else marks
        chain.run("images", what, [folder / "images"], lambda: link_images(images, names, folder, masking))
        if not leads_to(images, folder):  # the photographs were moved: what was found in them holds
            link_images(images, names, folder, masking)
        chosen = list_images(folder / "images")
        check_images(rigs, chosen, f"the images of {images}")
        if own and len(chosen) > settings.exhaustive and not (folder / "matches.h5").is_file():
            pace = measure_pace(folder / "images", chosen, settings)
            log.info("%s", make_plan(chosen, output, settings, pace))
        known = _Known(folder, images, read, measured, rigs)
        _pair_step(chain, chosen, settings, network, known)
        ours = describe_matching(settings.match, None, masking)
        _map_steps(chain, folder.path, "", match, ours, settings, known)
        if panoramas:
            found = (folder / POSES, folder / "sfm", ahead)
            chain.run("panoramas", None, [folder / POSES], lambda: write_panorama_poses(*found))
        rows = [model_row("pdc_sfm", folder / "sfm", len(chosen))]
        if settings.sift:
            rows.append(_sift(chain, len(chosen), settings, known))
        chain.finish(rows, settings.report)
    return folder


class _Known:
    """What was measured beside the photographs, under the names of their links."""

    def __init__(
        self, folder: RunFolder, images: Path, positions: Positions | None, control: Control | None, rigs: Rigs
    ):
        self.rigs = rigs
        place, links = folder / "images", {}
        for link in list_images(place) if positions or control else ():
            if (place / link).is_symlink():
                links[Path(os.readlink(place / link)).relative_to(images.resolve()).as_posix()] = link
        # of others there is a JPEG
        links |= (
            {name: link_name(name, jpeg=True) for name in positions.places if needs_jpeg(images / name)}
            if positions
            else {}
        )
        self.positions = positions.renamed(links) if positions else None
        self.control = control.renamed(links) if control else None

    def digests(self) -> list[dict[str, Any]]:
        """What decides the result, for the record of steps."""
        return [{**dataclasses.asdict(given), "source": ""} for given in (self.positions, self.control) if given]


def plan_map(images: Path | str, output: Path | str, settings: PhotographSettings | None = None) -> MapPlan:
    """Estimate the time and memory for a folder. Nothing is written."""
    settings, images = settings or PhotographSettings(), Path(images)
    names = _usable_names(images)
    return make_plan(names, Path(output), settings, measure_pace(images, names, settings))


def _usable_names(images: Path) -> list[str]:
    names = list_images(images)
    if len(names) < FEWEST:
        found = ("no images", "one image", "two images")[len(names)]
        raise ImageError(
            f"{images} holds {found}: a map needs at least three overlapping photographs, as nothing checks the geometry of "
            "two (pdc-sfm pair A.jpg B.jpg matches two)"
        )
    refuse_unreadable_heif(images, names)
    return names


def tell_mapping(result: MappingResult) -> str:
    """Warn about doubts, log the remarks of a map, and return its summary as text."""
    result.warn()
    for line in result.remarks:
        log.info(line)
    return str(result.summary)


def _pair_step(chain: Chain, names: list[str], settings: PhotographSettings, network: Any, known: _Known) -> None:
    images, output = chain.folder / "images", chain.folder / "pairs.txt"
    finding = retrieval_settings(settings)

    def find() -> list[Pair]:
        return retrieved_pairs(chain.folder.path, names, names, settings.retrieved, finding, network)

    def choose() -> str:
        pairs, said = choose_pairs(images, names, settings, find, known.rigs, known.positions)
        write_pairs(output, pairs)
        return said

    how: list[Any] = [settings.exhaustive, settings.retrieved, settings.neighbors, settings.near, describe(finding)]
    how += [[camera.prefix for rig in known.rigs for camera in rig.cameras]] if known.rigs else []
    if known.positions is not None and len(names) > settings.exhaustive:
        how.append(dict(known.positions.places))
    chain.run("pairs", how, [output], choose, [chain.folder / "retrieval.counts"])


def _map_steps(
    chain: Chain,
    folder: Path,
    prefix: str,
    match: ListMatcher,
    matching: Any,
    settings: PhotographSettings,
    known: _Known,
) -> None:
    """Match and reconstruct with one method."""
    images, pairs = chain.folder / "images", chain.folder / "pairs.txt"
    features, matches, sfm = folder / "features.h5", folder / "matches.h5", folder / "sfm"

    def match_pairs() -> str:
        match(images, pairs, features, matches)
        return describe_matches(pairs, features, matches)

    def mapped() -> str:
        result = reconstruct(
            images,
            pairs,
            features,
            matches,
            sfm,
            settings.reconstruction,
            rig=known.rigs,
            positions=known.positions,
            control=known.control,
        )
        return tell_mapping(result)

    chain.run(f"{prefix}match", matching, [features, matches], match_pairs, [folder / "matches.raw"])
    what = [
        result_settings(settings.reconstruction),
        *([rig_entries(known.rigs)] if known.rigs else []),
        *known.digests(),
    ]
    chain.run(f"{prefix}reconstruct", what if len(what) > 1 else what[0], [sfm / SUMMARY], mapped)


def _sift(chain: Chain, count: int, settings: PhotographSettings, known: _Known) -> dict[str, Any]:
    """The same pairs by SIFT."""
    try:
        _map_steps(chain, chain.folder / "sift", "SIFT ", match_sift, "sift", settings, known)
        row = model_row("SIFT", chain.folder / "sift" / "sfm", count)
    except ReconstructionError as error:  # the comparison fails, not the run
        log.warning("SIFT has no model: %s", error)
        row = empty_row("SIFT", count)
    write_json(chain.folder / "sift.json", {"row": row})
    return row
