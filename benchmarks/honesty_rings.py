"""Things on a turntable before a plain background, photographed all round: what looks alike from several sides."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Literal

import numpy as np

from pdc_sfm.scenes.objects.shapes import STANDING, Wardrobe
from pdc_sfm.scenes.render.camera import Camera
from pdc_sfm.scenes.render.conditions import Conditions
from pdc_sfm.scenes.render.mesh import Frame
from pdc_sfm.scenes.render.shot import Shot
from pdc_sfm.scenes.worlds.patterns import pattern
from pdc_sfm.scenes.worlds.skins import Textures
from pdc_sfm.scenes.worlds.solids import Solids
from pdc_sfm.scenes.worlds.world import World, picture_of

RingKind = Literal["thing", "temple", "boxes"]
TEXTURES = 24
FOCAL = 1.7  # of the longer side


def ring_cameras(views: int, size: tuple[int, int]) -> dict[str, Camera]:
    """The true camera of each view by its name, equal angles apart."""
    cameras = {}
    for number in range(views):
        angle = 2 * np.pi * number / views
        eye = np.array([1.5 * np.cos(angle), 1.5 * np.sin(angle), 0.6])
        cameras[f"{number:02d}.jpg"] = Camera.looking(eye, np.array([0, 0, 0.2]), size, FOCAL * max(size))
    return cameras


def ring_pictures(kind: RingKind, seed: int, cameras: Iterable[Camera]) -> Iterator[np.ndarray]:
    """(H, W, 3) of each view."""
    random = np.random.default_rng([seed, 77])
    textures = Textures([pattern(random) for _ in range(TEXTURES)])
    world = _world(kind, random, textures)
    light = Conditions("dull", 1, 40.0, 60.0, 0.0, zenith=(0.7, 0.72, 0.76), horizon=(0.5, 0.5, 0.52), exposure=1.6)
    for number, camera in enumerate(cameras):
        yield picture_of(world, Shot("db", number + 1, camera, light, seed * 1000 + number)).image


def _world(kind: RingKind, random: np.random.Generator, textures: Textures) -> World:
    b, wear, frame = Solids(), Wardrobe(TEXTURES, random), Frame.standing(0, 0)
    b.post(frame.shifted(z=-0.03), (0.36, 0.36), (0, 0.03), replace(wear.skin(0.9), contrast=0.1), 40)
    {"thing": _thing, "temple": _temple, "boxes": _boxes}[kind](b, frame, wear)
    mesh = b.build()
    lamps = np.array([[0.9, 0.6, 1.6]])
    return World(mesh, mesh, textures, lamps, np.zeros((1, 3)), np.array([0, 0, 0.2]), 1.0, (0.12, 0.13, 0.16))


def _thing(b: Solids, frame: Frame, wear: Wardrobe) -> None:
    """One thing and a smaller one grown out of it."""
    for height, size in ((0.0, 0.42), (0.16, 0.22)):
        STANDING[int(wear.random.integers(len(STANDING)))](
            b, frame.shifted(z=height).turned(wear.random.uniform(0, 6)), size, wear
        )


def _temple(b: Solids, frame: Frame, wear: Wardrobe) -> None:
    """Steps, columns of one stone and a roof: the same from four sides but for a print on each side of the roof."""
    stone, shaft = wear.skin(0.5, plain=0), replace(wear.skin(0.3, plain=0), extent=0.2)
    for step, side in enumerate((0.30, 0.27, 0.24)):
        b.block(frame, (-side, -side, 0.02 * step), (side, side, 0.02 * (step + 1)), stone)
    for angle in range(4):
        wall = frame.turned(angle * np.pi / 2)
        for x in np.linspace(-0.2, 0.2, 5)[:-1]:
            b.post(wall.shifted(float(x), -0.2), (0.022, 0.019), (0.06, 0.3), shaft, 12)
        b.picture(wall.turned(np.pi).shifted(y=0.24), (-0.08, 0.08), (0.305, 0.355), 0.002, wear.print(0.16))
    b.block(frame, (-0.12, -0.12, 0.06), (0.12, 0.12, 0.3), wear.skin(0.4, plain=0))
    b.block(frame, (-0.24, -0.24, 0.3), (0.24, 0.24, 0.36), stone)
    b.block(frame, (-0.16, -0.16, 0.36), (0.16, 0.16, 0.4), stone)


def _boxes(b: Solids, frame: Frame, wear: Wardrobe) -> None:
    """Boxes of one print around a round table, and one thing that is no box among them."""
    print_ = wear.print(0.2)
    for number, angle in enumerate(np.arange(6) * np.pi / 3):
        spot = frame.turned(float(angle)).shifted(0.22)
        if number == 0:
            STANDING[int(wear.random.integers(1, len(STANDING)))](b, spot, 0.2, wear)
        else:
            b.block(spot, (-0.07, -0.07, 0), (0.07, 0.07, 0.16), print_)
    b.post(frame, (0.08, 0.08), (0, 0.3), wear.skin(0.4, plain=0), 28)
