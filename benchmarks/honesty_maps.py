"""The maps of the honesty suite: which images, with what true cameras, and which half they belong to.

All images go into one pool, `SOURCE/NAME`, with their longer side at most `SIDE`; turned, doubled and foreign ones stand there
too, under names of their own. A pair of the pool is matched once, whatever number of maps it is part of.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from data import DATA
from honesty_rings import FOCAL, RingKind, ring_cameras, ring_pictures
from PIL import Image

from pdc_sfm.colmap.io.cameras import CameraSettings
from pdc_sfm.images import list_images
from pdc_sfm.scenes import SceneSettings, WorldSettings, write_scene, write_world

SIDE = 384  # pixels of the longer side: what a laptop matches in a third of a second a pair
FILM = 35.0  # millimetres that COLMAP reckons the larger side with, for EXIF's focal length of 35 mm film


@dataclass(frozen=True)
class Source:
    """Images of one world in the pool. `params` (PINHOLE) if one known camera took them all."""

    names: list[str]  # in the pool
    poses: dict[str, np.ndarray] = field(default_factory=dict)  # (3, 4) cam_from_world, where it is known
    params: tuple[float, ...] = ()
    rotations_only: bool = False  # nothing is known of where cameras stand


@dataclass(frozen=True)
class Map:
    """What is mapped. Images of another world than most of the others have no place in it."""

    title: str
    held_out: bool
    names: list[str]
    sources: tuple[Source, ...]
    window: int | None = None  # pairs of images at most so far apart in the list, round a ring; None: all

    @property
    def camera(self) -> CameraSettings:
        """As given to the mapper: known where one camera took all, else of EXIF."""
        if len(self.sources) == 1 and self.sources[0].params:
            return CameraSettings(model="PINHOLE", params=self.sources[0].params, mode="single", refine=False)
        return CameraSettings(mode="single") if self.sources[0].rotations_only else CameraSettings()

    @property
    def pairs(self) -> list[tuple[str, str]]:
        count = len(self.names)
        numbers = itertools.combinations(range(count), 2)
        near = (p for p in numbers if self.window is None or min(p[1] - p[0], count - p[1] + p[0]) <= self.window)
        return [(self.names[a], self.names[b]) for a, b in near]

    @property
    def has_truth(self) -> bool:
        return any(source.poses for source in self.sources)


class Pool:
    """The folder of all images."""

    def __init__(self, folder: Path):
        self.folder = folder

    def add(self, name: str, image: Callable[[], Image.Image], focal: float | None = None, turn: int = 0) -> str:
        """Write an image, unless it is there. `focal` as a share of the longer side goes into its EXIF."""
        path = self.folder / name
        if not path.is_file():
            path.parent.mkdir(parents=True, exist_ok=True)
            picture = image().convert("RGB")
            shrink = min(1.0, SIDE / max(picture.size))
            size = tuple(round(side * shrink) for side in picture.size)
            picture = picture.resize(size, Image.Resampling.LANCZOS).rotate(turn, expand=True)
            exif = Image.Exif()
            if focal:
                exif.get_ifd(0x8769)[0xA405] = round(focal * FILM)  # FocalLengthIn35mmFilm
            picture.save(path, quality=95, exif=exif)
        return name

    def turned(self, name: str) -> str:
        """The same image upside down, under a name of its own."""
        path = Path(name)
        exif = Image.open(self.folder / name).getexif().get_ifd(0x8769).get(0xA405)
        target = str(path.with_stem(path.stem + "_turned"))
        return self.add(target, lambda: Image.open(self.folder / name), exif and exif / FILM, 180)

    def doubled(self, name: str) -> str:
        """The same image again, a little smaller file."""
        path = self.folder / name
        target = path.with_stem(path.stem + "_again")
        if not target.is_file():
            picture = Image.open(path)
            picture.save(target, quality=85, exif=picture.getexif())
        return str(target.relative_to(self.folder))


def turn_pose(pose: np.ndarray) -> np.ndarray:
    """cam_from_world of an image turned by half a turn."""
    return np.diag([-1.0, -1.0, 1.0]) @ pose


def folder_source(pool: Pool, folder: Path, step: int = 1) -> Source:
    """A folder of photographs: with cameras.json its poses are known, and its camera if it is the only one."""
    short = {name: folder / "images" / name for name in list_images(folder / "images")[::step]}
    cameras = _read_cameras(folder / "cameras.json", short)
    names, poses, params = [], {}, set()
    for name, path in short.items():
        camera = cameras.get(name)
        focal = camera and camera["fx"] / max(camera["width"], camera["height"])
        pooled = pool.add(f"{folder.name}/{name.replace('/', '_')}", lambda path=path: Image.open(path), focal)
        names.append(pooled)
        if camera:
            poses[pooled] = np.c_[np.array(camera["R_cam_from_world"]), np.array(camera["t_cam_from_world"])]
            shrink = min(1.0, SIDE / max(camera["width"], camera["height"]))
            params.add(tuple(camera[key] * shrink for key in ("fx", "fy", "cx", "cy")))
    return Source(names, poses, params.pop() if len(params) == 1 else ())


def _read_cameras(path: Path, names: Iterable[str]) -> dict[str, dict]:
    if not path.is_file():
        return {}
    content = json.loads(path.read_text())
    if "images" not in content:
        return {name: content[name] for name in names}
    shared = content["camera"]
    known = dict(zip(("fx", "fy", "cx", "cy"), shared["params"])) | {k: shared[k] for k in ("width", "height")}
    return {name: content["images"][name] | known for name in names if name in content["images"]}


def turntable_source(pool: Pool, folder: Path) -> Source:
    """Photographs of a thing that turned before a camera that stood: rotations about one axis that nobody knows."""
    degrees = json.loads((folder / "turntable_degrees.json").read_text())
    names = [pool.add(f"{folder.name}/{n}", lambda n=n: Image.open(folder / "images" / n)) for n in sorted(degrees)]
    turns = {name: np.radians(degrees[Path(name).name]) for name in names}
    poses = {name: np.c_[_about_z(angle), np.zeros(3)] for name, angle in turns.items()}
    return Source(names, poses, rotations_only=True)


def _about_z(angle: float) -> np.ndarray:
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, -s, 0], [s, c, 0], [0, 0, 1.0]])


def ring_source(pool: Pool, kind: RingKind, seed: int, views: int = 16) -> Source:
    """A thing on a turntable, rendered."""
    cameras = ring_cameras(views, (SIDE, SIDE * 3 // 4))
    pooled = {f"ring_{kind}{seed}/{name}": camera for name, camera in cameras.items()}
    if not all((pool.folder / name).is_file() for name in pooled):
        for name, picture in zip(pooled, ring_pictures(kind, seed, pooled.values())):
            pool.add(name, lambda picture=picture: Image.fromarray(picture), FOCAL)
    first = cameras["00.jpg"]
    params = (first.focal, first.focal, first.width / 2, first.height / 2)
    return Source(list(pooled), {name: camera.cam_from_world for name, camera in pooled.items()}, params)


def world_source(pool: Pool, work: Path, kind: str, seed: int, images: int = 12) -> Source:
    """A built-in world with patterns drawn."""
    folder = work / "worlds" / f"{kind}{seed}"
    size = {"width": SIDE, "height": SIDE * 3 // 4}
    if kind == "town":
        settings = SceneSettings(seed=seed, database=images, day_queries=0, night_queries=0, depth=False, **size)
        write_scene(folder, settings)
    else:
        views = {"views": 6} if kind == "object" else {}
        write_world(folder, kind, WorldSettings(seed=seed, images=images, depth=False, **views, **size))
    return folder_source(pool, folder)


def part(source: Source, names: list[str]) -> Source:
    return Source(names, {n: source.poses[n] for n in names if n in source.poses}, source.params, source.rotations_only)


def turned(pool: Pool, source: Source, which: Iterable[int]) -> Source:
    """The same, with some images upside down."""
    chosen, names, poses = set(which), [], {}
    for number, name in enumerate(source.names):
        new = pool.turned(name) if number in chosen else name
        names.append(new)
        poses[new] = turn_pose(source.poses[name]) if number in chosen else source.poses[name]
    params = source.params  # the principal point turns too; here it is near the middle
    return Source(names, poses, params)


def build_maps(work: Path) -> list[Map]:
    """All maps, the images of which are then in `work/pool`."""
    pool, maps = Pool(work / "pool"), []

    def add(title: str, held_out: bool, *sources: Source, step: int = 1, window: int | None = None) -> None:
        parts = tuple(part(source, source.names[::step]) for source in sources)
        names = [name for source in parts for name in source.names]
        maps.append(Map(title + (f" every {step}" if step > 1 else ""), held_out, names, parts, window))

    scenes = DATA / "scenes"
    fountain = folder_source(pool, scenes / "fountain-P11")
    castle = folder_source(pool, scenes / "castle-P19")
    herz, herz25 = folder_source(pool, scenes / "Herz-Jesus-P8"), folder_source(pool, scenes / "Herz-Jesus-P25", 2)
    entry, kitchen = folder_source(pool, scenes / "entry-P10"), folder_source(pool, DATA / "indoor/kitchen")
    kitchen = part(kitchen, [n for n in kitchen.names if "/db_" in n][::2])
    for step in (1, 3, 4):
        add("fountain", False, fountain, step=step)
    for step in (1, 2, 3, 4):
        add("castle", step % 2 == 0, castle, step=step)
    add("herz-jesus 8", True, herz)
    for step in (1, 2, 3):
        add("herz-jesus 25/2", step == 2, herz25, step=step)
    add("entry", True, entry)
    add("entry", True, entry, step=2)
    add("kitchen", True, kitchen)
    dinosaur = turntable_source(pool, scenes / "oxford-dinosaur")
    add("dinosaur", True, dinosaur, window=3)
    add("dinosaur", False, dinosaur, step=2)
    add("dinosaur", True, dinosaur, step=3)
    for name, held in (("sacre_coeur", True), ("sceaux_castle", False)):
        add(name, held, folder_source(pool, scenes / name))
    add("liberty", True, folder_source(pool, scenes / "liberty"), step=2)
    rings = {}
    for kind, seed, held in (
        ("thing", 3101, False),
        ("thing", 3102, True),
        ("temple", 3103, False),
        ("temple", 3105, True),
        ("boxes", 3104, True),
        ("boxes", 3106, False),
    ):
        rings[seed] = ring_source(pool, kind, seed)
        add(f"ring {kind} {seed}", held, rings[seed])
    add("ring thing 3101", False, rings[3101], step=2)
    add("ring thing 3102", True, rings[3102], step=2)
    for kind, seed, held in (
        ("room", 3201, False),
        ("room", 3202, True),
        ("object", 3203, False),
        ("object", 3204, True),
        ("object", 3207, False),
        ("court", 3205, True),
        ("court", 3206, False),
        ("town", 3208, False),
        ("town", 3209, True),
    ):
        rings[seed] = world_source(pool, work, kind, seed)
        add(f"{kind} {seed}", held, rings[seed])
    add("fountain, 3 turned", False, turned(pool, part(fountain, fountain.names), (2, 5, 8)))
    add("herz-jesus 8, 3 turned", True, turned(pool, herz, (1, 4, 6)))
    add("ring thing 3101, 5 turned", False, turned(pool, rings[3101], (1, 2, 6, 10, 13)))
    add("ring thing 3102, 5 turned", True, turned(pool, rings[3102], (3, 4, 8, 9, 14)))
    add("fountain + herz-jesus 8", False, part(fountain, fountain.names[::2]), herz)
    add("entry + town", True, part(entry, entry.names[::2]), part(rings[3209], rings[3209].names[::2]))
    twice = [pool.doubled(name) for name in fountain.names[1:4:2]]
    poses = fountain.poses | {t: fountain.poses[n] for t, n in zip(twice, fountain.names[1:4:2])}
    add("fountain, 2 doubled", True, Source([*fountain.names, *twice], poses, fountain.params))
    add("fountain + a foreign image", True, part(fountain, fountain.names[::2]), part(kitchen, kitchen.names[4:5]))
    add("castle + a foreign image", False, part(castle, castle.names[::2]), part(herz, herz.names[3:4]))
    return maps
