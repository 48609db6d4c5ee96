"""Adds photographs to a map: pairs, matches, poses, points, a report. Images of the map are not matched again."""

from __future__ import annotations

import dataclasses
import logging
import shutil
from pathlib import Path
from typing import Any

from pdc_sfm.colmap.io.cameras import camera_of_exif, copy_camera, guess_camera
from pdc_sfm.colmap.io.models import SUMMARY, ReconstructionError, load_model, model_poses
from pdc_sfm.colmap.mapping.extension import ExtensionSettings, extend_model
from pdc_sfm.colmap.types import Camera, Reconstruction
from pdc_sfm.demo.chain import Chain
from pdc_sfm.demo.linked_images import free_link, image_problem, link_image, link_mask
from pdc_sfm.demo.method import describe_matches
from pdc_sfm.demo.photograph_pairs import retrieved_pairs
from pdc_sfm.demo.photographs import tell_mapping
from pdc_sfm.demo.queries import Map
from pdc_sfm.demo.query_intrinsics import intrinsics_of
from pdc_sfm.demo.settings import retrieval_settings
from pdc_sfm.demo.table import model_row
from pdc_sfm.engine.run import MatchingSettings
from pdc_sfm.errors import FormatError, ImageError, OutputError
from pdc_sfm.files import atomic_path, exclusive, file_digest
from pdc_sfm.images import list_images, read_image
from pdc_sfm.matches.masks import Masks
from pdc_sfm.paths import keep_apart
from pdc_sfm.pipeline.matching import ListMatcher, describe, describe_matching, engine_matcher
from pdc_sfm.progress import progress
from pdc_sfm.retrieval import RetrievalSettings
from pdc_sfm.run_folder import RECORD, RunFolder
from pdc_sfm.settings import require, result_settings, to_dict
from pdc_sfm.store.pair_lists import Pair, unique_pairs, write_pairs

log = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True)
class ExtendSettings:
    """How photographs are added to a map."""

    exhaustive: int = 60  # up to so many images in all, each added image is matched with all; beyond that, with
    retrieved: int = 20  # those that share most confident matches with it
    match: MatchingSettings = dataclasses.field(default_factory=MatchingSettings)
    retrieve: RetrievalSettings = dataclasses.field(default_factory=RetrievalSettings)
    extension: ExtensionSettings = dataclasses.field(default_factory=ExtensionSettings)
    report: bool = True  # write report.html at the end

    def __post_init__(self) -> None:
        require(self.exhaustive >= 2, f"exhaustive={self.exhaustive} must be at least 2")
        require(self.retrieved >= 1, f"retrieved={self.retrieved} must be at least 1")


def extend_map(
    mapped: Map,
    images: Path | str,
    output: Path | str,
    settings: ExtendSettings | None = None,
    *,
    masks: Path | str | None = None,
    match: ListMatcher | None = None,
    network: Any = None,
) -> RunFolder:
    """Add the photographs of a folder to a map. The result in the folder `output` is a map, too. Continues after a stop.

    The original map is not changed. Nothing is matched where a mask of the folder `masks` is black.
    """
    settings, images, output = settings or ExtendSettings(), Path(images), Path(output)
    keep_apart(
        images=[images, mapped.images],
        inputs=[mapped.features],
        models=[mapped.model],
        folders=[output],
        replaced=[output / name for name in ("images", "masks", "sfm")],
    )
    if output.resolve() in mapped.model.resolve().parents:
        raise OutputError(f"{output} holds the map that is extended, which stays as it is: choose another output")
    masking = Masks(masks) if masks is not None else None
    match = match or engine_matcher(settings.match, masks=output / "masks" if masking else None)
    model = load_model(mapped.model)
    old = sorted(model_poses(model))
    files = {name: mapped.images / name for name in old}
    absent = [path for path in files.values() if not path.is_file()]
    if absent:
        raise ImageError(f"{len(absent)} images of the map are missing (first: {absent[0]}): give --database-images")
    new = _new_images(images, files, masking)
    if masking and (unmasked := masking.missing(new)):
        log.warning(unmasked)
    output.mkdir(parents=True, exist_ok=True)
    with exclusive(output / RECORD):
        folder = RunFolder(output)
        folder.begin("images", {"images": str(images.resolve()), "map": str(mapped.model), **to_dict(settings)})
        chain = Chain(folder)
        what = [{link: file_digest(images / name) for name, link in new.items()}, old, _model_digest(mapped.model)]
        what += [masking.digest()] if masking else []
        chain.run("images", what, [folder / "images"], lambda: _link_all(folder, files, images, new, masking))
        _pair_step(chain, old, list(new.values()), settings, network)
        _extend_steps(
            chain, mapped, model, {link: folder / "images" / link for link in new.values()}, settings, match, masking
        )
        chain.finish([model_row("pdc_sfm", folder / "sfm", len(old) + len(new))], settings.report)
    return folder


def _new_images(images: Path, old: dict[str, Path], masks: Masks | None) -> dict[str, str]:
    """Readable photographs that the map does not have, each with a name of its own beside the map's."""
    names = list_images(images)
    if not names:
        raise ImageError(f"{images} holds no images to add")
    there = {path.resolve() for path in old.values()}
    known = [name for name in names if (images / name).resolve() in there]
    if known:
        log.warning(f"{len(known)} of {len(names)} photographs are in the map already (first: {known[0]}): left out")
    taken, links = {name.replace("/", "-") for name in old}, {}
    with progress(None, "images", "image", len(names)) as bar:
        for name in names:
            problem = None if name in known else image_problem(images, name, bar, masks)
            if problem is not None:
                log.warning("left out: %s", problem)
            if name in known or problem is not None:
                continue
            links[name] = free_link(images, name, taken)
    if not links:
        raise ImageError(f"{images} holds no photograph to add: all are in the map already, or cannot be used")
    return links


def _model_digest(model: Path) -> list[str]:
    return [file_digest(path) for path in sorted(model.glob("*.bin")) or sorted(model.glob("*.txt"))]


def _link_all(folder: RunFolder, old: dict[str, Path], images: Path, new: dict[str, str], masks: Masks | None) -> str:
    """One folder of links to the map's images and the new ones."""
    shutil.rmtree(folder / "images", ignore_errors=True)
    shutil.rmtree(folder / "masks", ignore_errors=True)
    for name, path in old.items():
        link_image(path.resolve(), folder / "images" / name)
    for name, link in new.items():
        link_image(images / name, folder / "images" / link)
        if masks is not None:
            link_mask(masks, name, folder / "masks", link)
    return f"{len(new)} images of {images} to add to {len(old)}"


def _pair_step(chain: Chain, old: list[str], new: list[str], settings: ExtendSettings, network: Any) -> None:
    output, finding, everything = chain.folder / "pairs.txt", retrieval_settings(settings), [*old, *new]

    def find() -> list[Pair]:
        return retrieved_pairs(chain.folder.path, new, everything, settings.retrieved, finding, network)

    def choose() -> str:
        few = len(everything) <= settings.exhaustive
        listed = [(name, other) for name in new for other in everything] if few else find()
        pairs = unique_pairs([pair for pair in listed if pair[0] != pair[1]])
        if not pairs:
            raise ReconstructionError("no added photograph has a confident match with the map: do they show one place?")
        write_pairs(output, pairs)
        return f"{len(pairs):,} pairs of {len(new)} added images{'' if few else ', by retrieval'}"

    how = [settings.exhaustive, settings.retrieved, describe(finding)]
    chain.run("pairs", how, [output], choose, [chain.folder / "retrieval.counts"])


def _extend_steps(
    chain: Chain,
    mapped: Map,
    model: Reconstruction,
    new: dict[str, Path],
    settings: ExtendSettings,
    match: ListMatcher,
    masks: Masks | None,
) -> None:
    folder = chain.folder.path
    images, pairs, features, matches, sfm = (
        folder / name for name in ("images", "pairs.txt", "features.h5", "matches.h5", "sfm")
    )

    def match_pairs() -> str:
        if not features.is_file():  # the map's keypoints stay as they are: its points are seen at them
            with atomic_path(features) as partial:
                shutil.copyfile(mapped.features, partial)
        match(images, pairs, features, matches)
        return describe_matches(pairs, features, matches)

    def extend() -> str:
        cameras = {link: new_camera(path, model) for link, path in new.items()}
        result = extend_model(mapped.model, images, pairs, features, matches, cameras, sfm, settings.extension)
        return tell_mapping(result)

    matching = [describe_matching(settings.match, None, masks), file_digest(mapped.features)]
    chain.run("match", matching, [features, matches], match_pairs, [folder / "matches.raw"])
    chain.run("extend", result_settings(settings.extension), [sfm / SUMMARY], extend)


def new_camera(path: Path, model: Reconstruction) -> Camera:
    """The camera of an added photograph: the map's camera of this size, unless EXIF contradicts it; else from EXIF; else a guess.

    The map's camera keeps its id if all its images of that size share it; otherwise each image gets its own.
    """
    height, width = read_image(path).shape[:2]
    try:
        camera, _ = intrinsics_of((width, height), camera_of_exif(path), model)
    except FormatError:
        return guess_camera(width, height)
    same = [one.camera_id for one in model.cameras.values() if (one.width, one.height) == (width, height)]
    return camera if same == [camera.camera_id] and _is_shared(model, same[0]) else copy_camera(camera)


def _is_shared(model: Reconstruction, camera_id: int) -> bool:
    """Whether several images of a model have this camera."""
    return sum(model.image(image_id).camera_id == camera_id for image_id in model.reg_image_ids()) > 1
