"""A scene in the layout of the Aachen Day-Night dataset, versions 1.0 and 1.1.

Besides the dataset's own files: `ground_truth/{database,query}_poses.txt`, `name qw qx qy qz tx ty tz`, camera-from-world.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from pdc_sfm.aachen.dataset import AachenDataset, Version
from pdc_sfm.files import exclusive, write_text
from pdc_sfm.images import write_image
from pdc_sfm.pixels import to_colmap
from pdc_sfm.scenes.layouts.plain import Progress, write_depth
from pdc_sfm.scenes.layouts.produce import take_pictures
from pdc_sfm.scenes.layouts.scene_json import is_written, write_record
from pdc_sfm.scenes.render.camera import Camera
from pdc_sfm.scenes.render.flow import sight
from pdc_sfm.scenes.render.renderer import Rendering
from pdc_sfm.scenes.render.shot import Shot
from pdc_sfm.scenes.settings import SceneSettings

_POINTS = 60  # per database image, in the NVM
Picture = tuple[str, Shot, Rendering]


def write_aachen(
    folder: Path | str,
    settings: SceneSettings,
    version: Version = "1.0",
    workers: int = 1,
    progress: Progress | None = None,
) -> Path:
    """Render the scene into `folder` as Aachen Day-Night, unless it is there already; returns the folder."""
    dataset, layout = AachenDataset(Path(folder), version), f"aachen {version}"
    images = dataset.root / ("images/images_upright" if version == "1.0" else "images_upright")
    pictures: list[Picture] = []
    with exclusive(dataset.root / "scene"):
        if is_written(dataset.root, settings, layout):
            return dataset.root
        for shot, rendering in take_pictures(settings, workers):
            name = aachen_name(shot, settings, version)
            write_image(images / name, rendering.image)
            if settings.depth:
                write_depth(dataset.root / "depth" / name, rendering)
            pictures.append((name, shot, rendering))
            if progress:
                progress(len(pictures), settings.total, name)
        _write_lists(dataset, pictures, settings.seed)
        write_record(dataset.root, settings, layout, {name: shot for name, shot, _ in pictures})
    return dataset.root


def _write_lists(dataset: AachenDataset, pictures: list[Picture], seed: int) -> None:
    """The model, intrinsics and query lists, and the true poses."""
    database = [picture for picture in pictures if picture[1].role == "db"]
    queries = [picture for picture in pictures if picture[1].role != "db"]
    write_text(dataset.nvm, nvm(database, seed))
    write_text(dataset.intrinsics, _lines(_intrinsics(name, shot.camera) for name, shot, _ in database))
    for role in ("day", "night"):
        chosen = [_intrinsics(name, shot.camera) for name, shot, _ in queries if shot.role == role]
        write_text(dataset.queries.with_name(dataset.queries.name.replace("*", role)), _lines(chosen))
    for kind, shown in (("database", database), ("query", queries)):
        poses = _lines(_pose(name, shot.camera) for name, shot, _ in shown)
        write_text(dataset.root / "ground_truth" / f"{kind}_poses.txt", poses)


def aachen_name(shot: Shot, settings: SceneSettings, version: Version) -> str:
    """Names as in the dataset. Version 1.1 has the last quarter of the database as a video sequence, and new night queries."""
    k = shot.number
    if shot.role == "db":
        sequence = version == "1.1" and k > 0.75 * settings.database
        return f"sequences/nexus4_sequences/sequence_1/aachen_{k:04d}.jpg" if sequence else f"db/{k}.jpg"
    if shot.role == "day":
        phone, day = ("nexus4", "20140520") if k % 2 else ("nexus5x", "20161227")
        return f"query/day/{phone}/IMG_{day}_{150000 + k}.jpg"
    phone = "nexus5x_additional_night" if version == "1.1" and k % 2 == 0 else "nexus5x"
    return f"query/night/{phone}/IMG_20161227_{180000 + k}.jpg"


def quaternion(rotation: np.ndarray) -> np.ndarray:
    """(3, 3) -> qw qx qy qz."""
    from scipy.spatial.transform import Rotation

    return np.roll(Rotation.from_matrix(rotation).as_quat(), 1)


def nvm(database: list[Picture], seed: int) -> str:
    """NVM_V3: cameras with quaternion and center, then points with their true observations."""
    lines = ["NVM_V3", "", str(len(database))]
    for name, shot, _ in database:
        pose = " ".join(f"{x:.12f}" for x in (*quaternion(shot.camera.cam_from_world[:, :3]), *shot.camera.center, 0.0))
        lines.append(f"{name} {shot.camera.focal:.8f} {pose} 0")
    points = list(_points([rendering for _, _, rendering in database], np.random.default_rng([seed, 4])))
    return _lines([*lines, "", str(len(points)), *points])


def _points(views: list[Rendering], random: np.random.Generator) -> Iterator[str]:
    """Random surface points of each view with the pixels of all views that see them, one NVM line each."""
    features = [0] * len(views)
    for view in views:
        usable = np.argwhere((view.depth > 0) & ~view.moving)
        if len(usable) == 0:
            continue
        rows, columns = usable[random.choice(len(usable), min(_POINTS, len(usable)), replace=False)].T
        places = view.camera.lift(np.stack([columns, rows], 1), view.depth[rows, columns])
        seen = [sight(other.camera, other.depth, places) for other in views]
        for k, place in enumerate(places):
            track = [(j, to_colmap(pixels[k])) for j, (pixels, _, visible) in enumerate(seen) if visible[k]]
            if len(track) < 2:
                continue
            words = [*(f"{c:.12f}" for c in place), *map(str, view.image[rows[k], columns[k]]), str(len(track))]
            for j, pixel in track:
                words += [str(j), str(features[j]), *(f"{c:.12f}" for c in pixel)]
                features[j] += 1
            yield " ".join(words)


def _intrinsics(name: str, camera: Camera) -> str:
    return f"{name} SIMPLE_RADIAL {camera.width} {camera.height} {camera.focal:.10g} {camera.width / 2:g} {camera.height / 2:g} 0"


def _pose(name: str, camera: Camera) -> str:
    numbers = (*quaternion(camera.cam_from_world[:, :3]), *camera.cam_from_world[:, 3])
    return " ".join([name, *(f"{x:.12f}" for x in numbers)])


def _lines(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)
