"""The maps of the honesty suite: which images, with what true cameras, and which half they belong to.

All images go into one pool, `SOURCE/NAME`, with their longer side at most `SIDE`; turned, doubled and foreign ones stand there
too, under names of their own. A pair of the pool is matched once, whatever number of maps it is part of.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from data import DATA
from honesty_rings import FOCAL, RingKind, ring_cameras, ring_pictures
from PIL import Image

from pdc_sfm.colmap.io.cameras import CameraSettings
from pdc_sfm.errors import ImageError
from pdc_sfm.images import list_images
from pdc_sfm.scenes import SceneSettings, WorldSettings, write_scene, write_world

SIDE = 320  # pixels of the longer side: what a laptop matches in a third of a second a pair
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


class Sources:
    """The worlds of the suite, each made when a map first asks for it."""

    def __init__(self, work: Path):
        self.work, self.pool = work, Pool(work / "pool")
        self._made: dict[str, Source] = {}

    def __call__(self, name: str, seed: int = 0) -> Source:
        key = f"{name}{seed or ''}"
        if key not in self._made:
            self._made[key] = self._make(name, seed)
        return self._made[key]

    def _make(self, name: str, seed: int) -> Source:
        if name in RINGS:
            return ring_source(self.pool, name, seed)
        if seed:
            return world_source(self.pool, self.work, name, seed)
        if name == "kitchen":
            room = folder_source(self.pool, DATA / "indoor/kitchen")
            return part(room, [n for n in room.names if "/db_" in n][::2])
        if name == "oxford-dinosaur":
            return turntable_source(self.pool, DATA / "scenes" / name)
        return folder_source(self.pool, DATA / "scenes" / name, 2 if name == "Herz-Jesus-P25" else 1)


def build_maps(
    work: Path, held_out: bool | None = None, only: str = "", titles: Sequence[str] | None = None
) -> Iterator[Map]:
    """The maps of one half, or of both, with `only` in their titles, or those of `titles`; the images of each are in `work/pool`
    when it is given. What is not here is said, and left out."""
    of = Sources(work)
    halves = ((False, DEVELOPMENT), (True, HELD_OUT)) if titles is None else ((True, titles),)
    for held, some in halves:
        for title in some if held_out in (None, held) else ():
            if only in title:
                try:
                    yield build_map(of, title, held)
                except ImageError as error:
                    print(f"left out: {title}: {error}")


def build_map(of: Sources, title: str, held_out: bool) -> Map:
    """`WORLD [SEED] [every N] [at N | only N-N/N-N] [, N turned | , N doubled] [+ OTHER ...]`: "temple 3103 every 2, 3 turned".

    Of a ring, `only 0-8` is half, and `only 0-2/4-6` two sides of it with nothing between.
    """
    sources = []
    for words in title.split(" + "):
        found = re.fullmatch(
            r"([A-Za-z-]+\S*?)(?: (\d{4,5}))?(?: every (\d+))?(?: (?:at|only) ([\d/-]+))?(?:, (\d+) (turned|doubled))?",
            words,
        )
        assert found, words
        name, seed, step, some, count, change = found.groups()
        source = of(name, int(seed or 0))
        source = part(source, source.names[:: int(step or 1)])
        if some:
            ends = [[int(end) for end in run.split("-")] for run in some.split("/")]
            source = part(source, [name for run in ends for name in source.names[run[0] : run[-1] + 1]])
        if change:
            chosen = np.random.default_rng([int(seed or 0), int(count)]).permutation(len(source.names))[: int(count)]
            source = (turned if change == "turned" else doubled)(of.pool, source, chosen.tolist())
        sources.append(source)
    names = [name for source in sources for name in source.names]
    return Map(title, held_out, names, tuple(sources), 3 if title == "oxford-dinosaur" else None)


def doubled(pool: Pool, source: Source, which: Iterable[int]) -> Source:
    """The same, with some images twice."""
    twice = {pool.doubled(source.names[number]): source.names[number] for number in which}
    poses = source.poses | {copy: source.poses[name] for copy, name in twice.items()}
    return Source([*source.names, *twice], poses, source.params)


RINGS = ("thing", "temple", "boxes")
# Looked at while the rules were made.
DEVELOPMENT = (
    "thing 3102 every 2",
    "thing 3102",
    "temple 3103",
    "boxes 3106 every 2",
    "kitchen",
    "castle-P19 every 2",
    "castle-P19 every 3",
    "castle-P19 every 4",
    "castle-P19 every 2 + Herz-Jesus-P8 at 3",
    "fountain-P11 every 3",
    "fountain-P11, 3 turned",
    "fountain-P11 every 2 + Herz-Jesus-P8",
    "Herz-Jesus-P25 every 3",
    "entry-P10 every 2",
    "oxford-dinosaur every 2",
    "oxford-dinosaur every 3",
    "liberty every 2",
    "sacre_coeur",
    "sceaux_castle",
    "room 3201",
    "object 3203",
    "court 3206",
    "town 3208",
)
# Seeds and forms that no rule has seen.
HELD_OUT = (
    "thing 4101 every 2",
    "thing 4104 every 2",
    "thing 3102 every 2, 3 turned",
    "temple 4102 every 2",
    "boxes 4103 every 2",
    "boxes 4105 every 2",
    "temple 4102 every 2 + boxes 4103 every 2",
    "object 4201",
    "court 4202",
    "room 4203",
    "town 4204",
    "oxford-dinosaur",
    "castle-P19",
    "fountain-P11, 2 doubled",
    "fountain-P11 every 2 + kitchen at 4",
    "Herz-Jesus-P8, 2 turned",
    "Herz-Jesus-P25 every 2",
    "entry-P10",
    "entry-P10 every 2 + town 4204 every 2",
)
