"""Links to the photographs of a run, under names that every list can hold; a JPEG of those that COLMAP cannot read."""

from __future__ import annotations

import logging
import os
import re
import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from pdc_sfm.errors import ImageError
from pdc_sfm.images import list_images, needs_jpeg, read_photograph
from pdc_sfm.matches.masks import Masks
from pdc_sfm.media.heif import convert_to_jpeg
from pdc_sfm.pixels import MIN_SIDE
from pdc_sfm.processes import core_count
from pdc_sfm.progress import progress
from pdc_sfm.run_folder import RunFolder

log = logging.getLogger(__name__)

FEWEST = 3  # photographs of a map


def link_images(images: Path, names: list[str], folder: RunFolder, masks: Masks | None = None) -> str:
    """Links to the readable images, under names that COLMAP's and hloc's lists can hold: they separate names by blanks.

    What COLMAP cannot read, HEIC and WebP, becomes JPEG.
    """
    target = folder / "images"
    shutil.rmtree(target, ignore_errors=True)
    shutil.rmtree(folder / "masks", ignore_errors=True)
    with ThreadPoolExecutor(core_count()) as pool, progress(None, "images", "image", len(names)) as bar:
        problems = dict(zip(names, pool.map(lambda name: image_problem(images, name, bar, masks), names)))
    good = [name for name in names if problems[name] is None]
    for name in names:
        if problems[name] is not None:
            log.warning("left out: %s", problems[name])
    if len(good) < FEWEST:
        raise ImageError(f"{len(good)} of {len(names)} images of {images} can be used: at least three are needed")
    taken: set[str] = set()
    for name in good:
        link = free_link(images, name, taken)
        link_image(images / name, target / link)
        if masks is not None:
            link_mask(masks, name, folder / "masks", link)
    return f"{len(good)} of {len(names)} images of {images} can be read"


def link_image(path: Path, link: Path) -> None:
    """A link to an image, or a JPEG of one that COLMAP cannot read."""
    link.parent.mkdir(parents=True, exist_ok=True)
    if needs_jpeg(path):
        convert_to_jpeg(path, link)
    else:
        link.symlink_to(path.resolve())


def link_mask(masks: Masks, name: str, folder: Path, link: str) -> None:
    """The mask of an image, if it has one, for the name under which the image is linked."""
    mask, own = masks.path(name), folder / f"{link}.png"
    own.parent.mkdir(parents=True, exist_ok=True)
    if mask is not None:
        own.symlink_to(mask.resolve())


def leads_to(images: Path, folder: RunFolder) -> bool:
    """Whether the links of a run lead to this folder."""
    links = (folder / "images" / name for name in list_images(folder / "images"))
    return all(Path(os.readlink(link)).is_relative_to(images.resolve()) for link in links if link.is_symlink())


def link_name(name: str, jpeg: bool = False) -> str:
    """A name that every list can hold: blanks, a leading #, bytes that are no text, each become `_`. `jpeg`: of its JPEG."""
    text = re.sub(r"[\s\0]|^[#\ufeff]", "_", name.encode("utf-8", "replace").decode("utf-8"))
    text = f"{text.rpartition('.')[0]}.jpg" if jpeg else text
    return "/".join(part if part.strip(".") else "_" * len(part) for part in text.split("/"))


def free_link(images: Path, name: str, taken: set[str]) -> str:
    """The name of an image's link, which is then taken; `/` and `-` are one in hloc's files."""
    link = link_name(name, jpeg=needs_jpeg(images / name))
    while link.replace("/", "-") in taken:
        link = f"{link.rpartition('.')[0]}_.{link.rpartition('.')[2]}"
    taken.add(link.replace("/", "-"))
    return link


def image_problem(images: Path, name: str, bar: Any, masks: Masks | None = None) -> str | None:
    """What is wrong with an image or its mask, if anything."""
    try:
        pixels, orientation = read_photograph(images / name)
        height, width = pixels.shape[:2]
        if masks is not None:
            masks.check(name, (width, height))
    except ImageError as error:
        return str(error)
    finally:
        bar.update()
    if min(width, height) < MIN_SIDE:
        return f"{images / name} is {width}x{height} pixels: at least {MIN_SIDE}x{MIN_SIDE} are needed"
    if orientation.is_mirror:
        return f"{images / name} is mirrored by EXIF, and COLMAP reads pixels as stored: write it upright (mogrify -auto-orient)"
    return None
