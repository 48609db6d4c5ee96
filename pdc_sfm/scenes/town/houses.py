"""Houses, built from their style: openings, relief, beams, walls, roof."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np

from pdc_sfm.scenes.materials.noise import rgb
from pdc_sfm.scenes.materials.surface import Material
from pdc_sfm.scenes.render.mesh import Frame, MeshBuilder
from pdc_sfm.scenes.town import roofs
from pdc_sfm.scenes.town.facade import Opening, WallSkin, flower_box, pierced_wall, quoins, shutters, surround
from pdc_sfm.scenes.town.shops import shop_front
from pdc_sfm.scenes.town.styles import House


def build_house(b: MeshBuilder, frame: Frame, house: House, random: np.random.Generator) -> None:
    """A house on x in [0, width], facade at y = 0, reaching back to y = -depth."""
    upper = _windows(house, random)
    house = replace(house, wall=_with_drips(house, upper[0]))
    lower = shop_front(b, frame, house, random) if house.shop else _ground_floor(house, random)
    reveal = house.stone if house.wall.material == Material.BRICK else house.wall
    pierced_wall(b, frame, (0, house.width), (0, house.eaves), house.wall, upper + lower, reveal)
    for opening in upper + [o for o in lower if o.kind == Material.WINDOW]:
        surround(b, frame, opening, house.stone, house.style)
        if house.shutter_tint is not None and opening in upper:
            shutters(b, frame, opening, house.shutter_tint, random)
        elif random.random() < 0.16:
            flower_box(b, frame.shifted(y=0.05), opening, random)
    _relief(b, frame, house, lower)
    if house.timber:
        _beams(b, frame, house, upper)
    _shell(b, frame, house)
    _roof(b, frame, house, random)


def _with_drips(house: House, first: Opening) -> WallSkin:
    """The wall's skin, told where rain runs off the sills."""
    params = (*house.wall.params, 0.0, 0.0)[:3]
    return replace(
        house.wall, params=(*params, house.width / house.bays, first.width / 2 + 0.12, first.z0 - 0.09, house.storey)
    )


def _windows(house: House, random: np.random.Generator) -> list[Opening]:
    wide, high = house.window
    pitch = house.width / house.bays
    rows = []
    for floor in range(house.storeys):
        z = house.ground + floor * house.storey + (house.storey - high) * 0.42
        tall = high * (0.86 if floor == house.storeys - 1 and house.storeys > 2 else 1.0)
        for bay in range(house.bays):
            x = (bay + 0.5) * pitch - wide / 2
            rows.append(
                Opening(
                    x,
                    x + wide,
                    z,
                    z + tall,
                    Material.WINDOW,
                    0.16 if not house.timber else 0.1,
                    house.arch,
                    house.frame_tint,
                    float(random.random()),
                    house.panes,
                )
            )
    return rows


def _ground_floor(house: House, random: np.random.Generator) -> list[Opening]:
    wide, high = house.window
    pitch = house.width / house.bays
    entrance = int(random.integers(house.bays))
    row = []
    for bay in range(house.bays):
        x = (bay + 0.5) * pitch
        if bay == entrance:
            row.append(
                Opening(
                    x - 0.6, x + 0.6, 0.0, 2.75, Material.DOOR, 0.3, house.arch, house.door_tint, float(random.random())
                )
            )
        else:
            row.append(
                Opening(
                    x - wide / 2,
                    x + wide / 2,
                    1.05,
                    1.05 + high * 0.95,
                    Material.WINDOW,
                    0.16,
                    house.arch,
                    house.frame_tint,
                    float(random.random()),
                    house.panes,
                )
            )
    return row


def _relief(b: MeshBuilder, frame: Frame, house: House, lower: list[Opening]) -> None:
    """Plinth, string courses, corner stones and the cornice under the roof."""
    stone = (house.stone.material, house.stone.tint, house.stone.params)
    left = 0.0
    for hole in [*sorted((o for o in lower if o.z0 < 0.5), key=lambda o: o.x0), None]:
        end = hole.x0 if hole else house.width
        if end > left:
            b.box(frame, (left, 0, 0), (end, 0.06, 0.5), *stone, faces="+x-x+y+z")
        left = hole.x1 if hole else left
    courses = [house.ground - 0.12] + (
        [] if house.timber else [house.ground + house.storey * k - 0.12 for k in range(1, house.storeys)]
    )
    for k, z in enumerate(courses):
        out = 0.12 if k == 0 else 0.07
        b.box(frame, (0, 0, z), (house.width, out, z + 0.16), *stone, faces="+x-x+y+z-z")
    if house.wall.material != Material.ASHLAR and not house.timber and house.seed > 0.35:
        quoins(b, frame, 0.0, 1, house.eaves - 0.45, house.stone)
        quoins(b, frame, house.width, -1, house.eaves - 0.45, house.stone)
    z = house.eaves
    for out, low, high in ((0.10, 0.42, 0.28), (0.2, 0.28, 0.14), (0.32, 0.14, 0.0)):
        b.box(frame, (0, 0, z - low), (house.width, out, z - high), *stone, faces="+x-x+y+z-z")
    if house.seed > 0.5 and not house.timber:
        for x in np.arange(0.12, house.width - 0.15, 0.3):
            b.box(frame, (x, 0.1, z - 0.40), (x + 0.14, 0.18, z - 0.28), *stone, faces="+x-x+y-z")
    pipe = frame.shifted(house.width - 0.09, 0.1)
    b.cylinder(pipe, (0.05, 0.05), (0, z - 0.4), Material.METAL, rgb("#6f7572"), (house.seed,), sides=8)


def _beams(b: MeshBuilder, frame: Frame, house: House, windows: list[Opening]) -> None:
    """Half-timbering: rails at floors, sills and lintels, posts beside windows, braces at the corners."""
    tint = rgb("#4a3526") * (0.8 + 0.5 * house.seed)

    def rail(z: float, high: float = 0.16) -> None:
        b.box(
            frame, (0, 0, z), (house.width, 0.035, z + high), Material.TIMBER, tint, (house.seed, 0), faces="+x-x+y+z-z"
        )

    def post(x: float, z0: float, z1: float) -> None:
        b.box(frame, (x, 0, z0), (x + 0.15, 0.035, z1), Material.TIMBER, tint, (house.seed + x, 1), faces="+x-x+y+z-z")

    for floor in range(house.storeys):
        z0, z1 = house.ground + floor * house.storey, house.ground + (floor + 1) * house.storey
        row = [o for o in windows if z0 < o.z0 < z1]
        rail(z0 + 0.04, 0.2)
        rail(z1 - 0.2)
        for o in row:
            post(o.x0 - 0.15, z0, z1)
            post(o.x1, z0, z1)
            for z in (o.z0 - 0.14, o.z1):
                b.box(
                    frame, (o.x0, 0, z), (o.x1, 0.035, z + 0.12), Material.TIMBER, tint, (house.seed, 0), faces="+y+z-z"
                )
        post(0, z0, z1)
        post(house.width - 0.15, z0, z1)
        gaps = [(a.x1 + 0.15, c.x0 - 0.15) for a, c in itertools.pairwise(row)]
        for k, (x0, x1) in enumerate([(0.15, row[0].x0 - 0.15), *gaps, (row[-1].x1 + 0.15, house.width - 0.15)]):
            if x1 - x0 > 0.35:
                up = (k + floor) % 2 == 0
                thick = 0.13 * np.hypot(1, (z1 - z0 - 0.6) / (x1 - x0))  # measured upwards, so that it is 0.13 across
                low, high = z0 + 0.24, z1 - 0.2 - thick
                za, zb = (low, high) if up else (high, low)
                outline = np.array([(x0, za), (x1, zb), (x1, zb + thick), (x0, za + thick)])
                b.prism(frame, outline, (0, 0.03), Material.TIMBER, tint, (house.seed, 1), caps=True)


def _shell(b: MeshBuilder, frame: Frame, house: House) -> None:
    """The plain walls at the sides and behind; no windows, so no marks of rain below them."""
    skin = (house.wall.material, house.wall.tint * 0.9, house.wall.params[:3])
    b.box(frame, (0, -house.depth, 0), (house.width, 0, house.eaves), *skin, faces="+x-x-y")


def _roof(b: MeshBuilder, frame: Frame, house: House, random: np.random.Generator) -> None:
    shape = (house.width, house.depth, house.eaves, house.rise, house.roof, house.wall)
    if house.roof_kind == "along":
        roofs.ridge_along(b, frame, *shape)
        gutter = Frame(frame.shifted(0, 0.38, house.eaves - 0.05).origin, frame.axes[[1, 2, 0]])
        b.cylinder(gutter, (0.07, 0.07), (0, house.width), Material.METAL, rgb("#6f7572"), (house.seed,), sides=8)
        for k in range(house.bays - 1 if house.seed > 0.3 else 0):
            x = (k + 1) * house.width / house.bays
            roofs.dormer(
                b, frame, x, house.depth, house.eaves, house.rise, house.roof, house.wall, float(random.random())
            )
    elif house.roof_kind == "across":
        roofs.ridge_across(b, frame, *shape)
    else:
        roofs.stepped_gable(b, frame, *shape, house.stone)
    if house.roof_kind != "along":
        _attic(b, frame, house, random)
    for _ in range(int(random.integers(1, 3))):
        x = random.uniform(0.2, 0.8) * house.width
        roofs.chimney(
            b,
            frame,
            x,
            -house.depth / 2 - random.uniform(0.3, 1.5),
            house.eaves + house.rise * 0.45,
            house.rise * 0.75,
            float(random.random()),
        )


def _attic(b: MeshBuilder, frame: Frame, house: House, random: np.random.Generator) -> None:
    """Windows set on the gable wall, in front of it by their frame."""
    half = house.width / 2
    spots = [(half, 0.55)] + ([(half - 0.9, 0.12), (half + 0.9, 0.12)] if house.width > 6.5 else [(half, 0.1)])
    for x, level in spots:
        z = house.eaves + house.rise * level
        hole = Opening(
            x - 0.38, x + 0.38, z, z + 0.95, Material.WINDOW, 0.0, 0, house.frame_tint, float(random.random()), (2, 2)
        )
        surround(b, frame, hole, house.stone, "plain")
        b.panel(
            frame,
            (hole.x0, hole.x1),
            (hole.z0, hole.z1),
            0.012,
            Material.WINDOW,
            hole.tint,
            (hole.width, hole.height, hole.seed, 2, 2),
            own_uv=True,
        )
