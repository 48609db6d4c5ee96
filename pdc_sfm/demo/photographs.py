"""The user's own photographs, with no ground truth: pairs, matches, a model, a report."""

from __future__ import annotations

import logging
import os
import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from pdc_sfm.colmap.io.models import SUMMARY, ReconstructionError
from pdc_sfm.colmap.mapping.reconstruction import reconstruct
from pdc_sfm.colmap.mapping.sift_files import match_sift
from pdc_sfm.demo.chain import Chain
from pdc_sfm.demo.method import describe_matches
from pdc_sfm.demo.photograph_pairs import choose_pairs
from pdc_sfm.demo.plan import MapPlan, make_plan, measure_pace
from pdc_sfm.demo.settings import PhotographSettings, retrieval_settings
from pdc_sfm.demo.table import empty_row, model_row
from pdc_sfm.errors import ImageError
from pdc_sfm.files import exclusive
from pdc_sfm.images import list_images, read_image
from pdc_sfm.matches.masks import Masks
from pdc_sfm.paths import keep_apart
from pdc_sfm.pipeline.matching import ListMatcher, describe, describe_matching, engine_matcher
from pdc_sfm.pixels import MIN_SIDE
from pdc_sfm.processes import core_count
from pdc_sfm.progress import progress
from pdc_sfm.retrieval import retrieve
from pdc_sfm.run_folder import RECORD, RunFolder, write_json
from pdc_sfm.settings import result_settings, to_dict
from pdc_sfm.store.pair_lists import Pair, write_pairs

log = logging.getLogger(__name__)

FEWEST = 3  # photographs of a map


def run_photographs(
    images: Path | str,
    output: Path | str,
    settings: PhotographSettings | None = None,
    *,
    masks: Path | str | None = None,
    match: ListMatcher | None = None,
    network: Any = None,
) -> RunFolder:
    """The map of a folder of photographs, with a report, beside SIFT's if that is asked for. Stopped, it goes on.

    What lies under a mask of the folder `masks` is not matched (SIFT matches all).
    """
    settings, images, output = settings or PhotographSettings(), Path(images), Path(output)
    keep_apart(images=[images], folders=[output], replaced=[output / "images"])
    own = match is None
    match = match or engine_matcher(settings.match, masks=output / "masks" if masks is not None else None)
    names = _usable_names(images)
    masking = Masks(masks) if masks is not None else None
    if masking is not None:
        keep_apart(images=[masking.folder], folders=[output], replaced=[output / "masks"])
        if unmasked := masking.missing(names):
            log.warning(unmasked)
    output.mkdir(parents=True, exist_ok=True)
    with exclusive(output / RECORD):
        folder = RunFolder(output)
        folder.begin("images", {"images": str(images.resolve()), **to_dict(settings)})
        chain = Chain(folder)
        what = names if masking is None else [names, masking.digest()]
        chain.run("images", what, [folder / "images"], lambda: _link(images, names, folder, masking))
        if not _linked_to(images, folder):  # the photographs were moved: what was found in them holds
            _link(images, names, folder, masking)
        chosen = list_images(folder / "images")
        if own and len(chosen) > settings.exhaustive and not (folder / "matches.h5").is_file():
            pace = measure_pace(folder / "images", chosen, settings)
            log.info("%s", make_plan(chosen, output, settings, pace))
        _pair_step(chain, chosen, settings, network)
        ours = describe_matching(settings.match, None, masking)
        _map_steps(chain, folder.path, "", match, ours, settings)
        rows = [model_row("pdc_sfm", folder / "sfm", len(chosen))]
        if settings.sift:
            rows.append(_sift(chain, len(chosen), settings))
        chain.finish(rows, settings.report)
    return folder


def plan_map(images: Path | str, output: Path | str, settings: PhotographSettings | None = None) -> MapPlan:
    """What a folder would take. Nothing is written."""
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
    return names


def _link(images: Path, names: list[str], folder: RunFolder, masks: Masks | None = None) -> str:
    """Links to the readable images, under names that COLMAP's and hloc's lists can hold: they separate names by blanks."""
    target = folder / "images"
    shutil.rmtree(target, ignore_errors=True)
    shutil.rmtree(folder / "masks", ignore_errors=True)
    with ThreadPoolExecutor(core_count()) as pool, progress(None, "images", "image", len(names)) as bar:
        problems = dict(zip(names, pool.map(lambda name: _problem(images / name, bar), names)))
    good = [name for name in names if problems[name] is None]
    for name in names:
        if problems[name] is not None:
            log.warning("left out: %s", problems[name])
    if len(good) < FEWEST:
        raise ImageError(f"{images} holds {len(good)} readable of {len(names)} images: at least three are needed")
    taken: set[str] = set()
    for name in good:
        link = link_name(name)
        while link.replace("/", "-") in taken:  # `/` and `-` are one in hloc's files
            link = f"{link.rpartition('.')[0]}_.{link.rpartition('.')[2]}"
        taken.add(link.replace("/", "-"))
        (target / link).parent.mkdir(parents=True, exist_ok=True)
        (target / link).symlink_to(images.resolve() / name)
        if masks is not None:
            link_mask(masks, name, folder / "masks", link)
    return f"{len(good)} of {len(names)} images of {images} can be read"


def link_mask(masks: Masks, name: str, folder: Path, link: str) -> None:
    """The mask of an image, if it has one, for the name under which the image is linked."""
    mask, own = masks.path(name), folder / f"{link}.png"
    own.parent.mkdir(parents=True, exist_ok=True)
    if mask is not None:
        own.symlink_to(mask.resolve())


def _linked_to(images: Path, folder: RunFolder) -> bool:
    """Whether the links of a run lead to this folder."""
    links = (folder / "images" / name for name in list_images(folder / "images"))
    return all(Path(os.readlink(link)).is_relative_to(images.resolve()) for link in links)


def link_name(name: str) -> str:
    """A name that every list can hold: blanks, a leading #, bytes that are no text, each become `_`."""
    text = re.sub(r"[\s\0]|^[#\ufeff]", "_", name.encode("utf-8", "replace").decode("utf-8"))
    return "/".join(part if part.strip(".") else "_" * len(part) for part in text.split("/"))


def _problem(path: Path, bar: Any) -> str | None:
    """What is wrong with an image, if anything."""
    try:
        shape = read_image(path).shape
    except ImageError as error:
        return str(error)
    finally:
        bar.update()
    if min(shape[:2]) < MIN_SIDE:
        return f"{path} is {shape[1]}x{shape[0]} pixels: at least {MIN_SIDE}x{MIN_SIDE} are needed"
    return None


def _pair_step(chain: Chain, names: list[str], settings: PhotographSettings, network: Any) -> None:
    images, output = chain.folder / "images", chain.folder / "pairs.txt"
    finding = retrieval_settings(settings)

    def find() -> list[Pair]:
        masks = chain.folder / "masks"
        more = {"masks": masks} if masks.is_dir() else {}
        place = chain.folder / "retrieval.txt"
        result = retrieve(images, names, names, place, settings.retrieved, finding, network=network, **more)
        return [(query, image.name) for query, found in result.found.items() for image in found]

    def choose() -> str:
        pairs, said = choose_pairs(images, names, settings, find)
        write_pairs(output, pairs)
        return said

    how = [settings.exhaustive, settings.retrieved, settings.neighbors, settings.near, describe(finding)]
    chain.run("pairs", how, [output], choose, [chain.folder / "retrieval.counts"])


def _map_steps(
    chain: Chain, folder: Path, prefix: str, match: ListMatcher, matching: Any, settings: PhotographSettings
) -> None:
    """Match and reconstruct with one method."""
    images, pairs = chain.folder / "images", chain.folder / "pairs.txt"
    features, matches, sfm = folder / "features.h5", folder / "matches.h5", folder / "sfm"

    def match_pairs() -> str:
        match(images, pairs, features, matches)
        return describe_matches(pairs, features, matches)

    def mapped() -> str:
        result = reconstruct(images, pairs, features, matches, sfm, settings.reconstruction)
        result.warn()
        return str(result.summary)

    chain.run(f"{prefix}match", matching, [features, matches], match_pairs, [folder / "matches.raw"])
    chain.run(f"{prefix}reconstruct", result_settings(settings.reconstruction), [sfm / SUMMARY], mapped)


def _sift(chain: Chain, count: int, settings: PhotographSettings) -> dict[str, Any]:
    """The same pairs by SIFT."""
    try:
        _map_steps(chain, chain.folder / "sift", "SIFT ", match_sift, "sift", settings)
        row = model_row("SIFT", chain.folder / "sift" / "sfm", count)
    except ReconstructionError as error:  # the comparison fails, not the run
        log.warning("SIFT has no model: %s", error)
        row = empty_row("SIFT", count)
    write_json(chain.folder / "sift.json", {"row": row})
    return row
