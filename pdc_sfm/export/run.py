"""Writes a map in the format of another program: `export_map`."""

from __future__ import annotations

import dataclasses
import json
import shutil
from pathlib import Path

from pdc_sfm.colmap.io.frame import read_frame, write_frame
from pdc_sfm.colmap.io.maps import find_map
from pdc_sfm.colmap.io.models import load_model
from pdc_sfm.colmap.io.undistortion import undistort
from pdc_sfm.errors import FormatError, ImageError, OutputError
from pdc_sfm.export.formats import Export, Format, find_format
from pdc_sfm.files import atomic_folder, check_room, exclusive
from pdc_sfm.paths import keep_apart
from pdc_sfm.progress import progress
from pdc_sfm.run_folder import versions, write_json

RECORD = "export.json"  # written last: its presence says that an export is complete


@dataclasses.dataclass(frozen=True)
class ExportedMap:
    """Where an export lies, what it holds, and whether its images had to be undistorted."""

    output: Path
    said: str
    undistorted: bool


def export_map(folder: Path | str, to: str, output: Path | str, images: Path | str | None = None) -> ExportedMap:
    """Write the map in `folder` to the folder `output` in another program's format; `images` if they were moved.

    Images are copied. If the format cannot represent a camera, it becomes a pinhole camera and its images are undistorted.
    """
    output, form, found = Path(output), find_format(to), find_map(folder)
    model = load_model(found.model)
    export = Export(model, output, found.model, Path(folder))
    if not model.num_reg_images():
        raise FormatError(f"the model in {found.model} has no image with a pose: there is nothing to export")
    lies = Path(images) if images is not None else found.images
    if form.images is not None:
        lies = _checked_images(export, lies)
    for name, _, _ in export.views():
        if any(mark in name for mark in form.separators):
            raise FormatError(f"{to} separates by {form.separators!r}, and the image {name} has one: rename it")
    keep_apart(images=[lies] if lies is not None else [], models=[found.model], inputs=[folder], folders=[output])
    _refuse_other(output, to)
    cameras = [model.camera(model.image(image_id).camera_id) for image_id in model.reg_image_ids()]
    undistorted = form.images is not None and not all(map(form.holds, cameras))
    with exclusive(output), atomic_folder(output, RECORD) as partial:
        export = dataclasses.replace(export, folder=partial)
        if lies is not None and form.images is not None:
            export = _with_images(export, form, lies, undistorted)
        said = form.write(export)
        write_frame(partial, read_frame(found.model))  # all formats keep the map's coordinates
        record = {"format": to, "map": str(Path(folder).absolute()), "undistorted": undistorted, "holds": said}
        write_json(partial / RECORD, record | {"versions": versions()})
    return ExportedMap(output, said, undistorted)


def _with_images(export: Export, form: Format, images: Path, undistorted: bool) -> Export:
    """The same with its images in the folder, as the format wants them."""
    target = export.folder / (form.images or "")
    if undistorted:
        model = undistort(export.model, images, export.folder)
        if target != export.folder / "images":
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.move(export.folder / "images", target)
        return dataclasses.replace(export, model=model)
    names = [name for name, _, _ in export.views()]
    check_room(export.folder, sum((images / name).stat().st_size for name in names))
    for name in progress(names, "images", "image"):
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(images / name, target / name)
    return export


def _checked_images(export: Export, images: Path | None) -> Path:
    if images is None or not images.is_dir():
        where = f"at {images}" if images else "known"
        raise ImageError(f"the images of the map {export.source} are not {where}: give --images")
    absent = [name for name, _, _ in export.views() if not (images / name).is_file()]
    if absent:
        raise ImageError(f"{len(absent)} images of the map are not in {images} (first: {absent[0]}): give --images")
    return images


def _refuse_other(output: Path, to: str) -> None:
    """An export takes the place of an earlier one of its format, and of nothing else."""
    if not output.is_dir() or not any(output.iterdir()):
        return
    try:
        earlier = json.loads((output / RECORD).read_text(encoding="utf-8"))["format"]
    except (OSError, ValueError, KeyError, TypeError):
        raise OutputError(f"{output} holds other files: choose an empty folder, or a new one") from None
    if earlier != to:
        raise OutputError(f"{output} holds an export for {earlier}: choose another output")
