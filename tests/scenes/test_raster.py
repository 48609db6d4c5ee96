"""The nearest quad at each sample is the one that direct intersection finds."""

import itertools

import numpy as np
import pytest

from pdc_sfm.scenes.render.mesh import Frame, Mesh, MeshBuilder
from pdc_sfm.scenes.render.raster import NOTHING, draw, parallel_drawing, pinhole_drawing

SIZE = (60, 40)
CALIBRATION = np.array([[45.0, 0, 29.3], [0, 45.0, 19.6], [0, 0, 1]])


def soup(seed: int, count: int, triangles: bool) -> Mesh:
    """Random flat quads around the point (0, 0, 5), some of them reaching behind the camera at the origin."""
    random = np.random.default_rng(seed)
    b = MeshBuilder()
    for _ in range(count):
        center = random.normal(size=3) * [2.5, 2.0, 3.0] + [0, 0, 5]
        u, v = random.normal(size=(2, 3)) * random.choice([0.15, 0.6, 2.0])
        corners = np.array([center + u, center + v, center - u * random.uniform(0.3, 1), center - v])
        corners[3] = corners[2] if triangles else corners[3]
        b.quads(Frame.standing(0, 0), [corners], 0, two_sided=True)
    return b.build()


def intersect(mesh: Mesh, origins: np.ndarray, rays: np.ndarray) -> np.ndarray:
    """Distance along each ray (r, 3) to each quad (n), inf where it misses: (r, n)."""
    offset = np.einsum("ni,rni->rn", mesh.normal, mesh.corners[None, :, 0] - origins[:, None])
    distance = offset / (rays @ mesh.normal.T)
    hit = origins[:, None] + rays[:, None] * distance[..., None]  # (r, n, 3)
    side = np.roll(mesh.corners, -1, 1) - mesh.corners
    turn = np.einsum("nej,rnej->rne", np.cross(mesh.normal[:, None], side), hit[:, :, None] - mesh.corners)
    inside = (turn > -1e-9).all(-1) | (turn < 1e-9).all(-1)
    return np.where(inside & (distance > 0.05), distance, np.inf)


@pytest.mark.parametrize("triangles", [False, True])
def test_a_pinhole_view_shows_what_rays_hit_first(triangles):
    mesh = soup(1, 150, triangles)
    x, y = np.meshgrid(np.arange(SIZE[0], dtype=float), np.arange(SIZE[1], dtype=float))
    rays = np.stack([x, y, np.ones_like(x)], -1).reshape(-1, 3) @ np.linalg.inv(CALIBRATION).T
    distance = intersect(mesh, np.zeros_like(rays), rays)
    expected = np.where(np.isfinite(distance.min(1)), distance.argmin(1), NOTHING).reshape(SIZE[::-1])

    drawing = pinhole_drawing(mesh, np.eye(4)[:3], CALIBRATION, SIZE)
    owner, nearness = draw(drawing, SIZE)

    agree = owner == expected
    assert agree.mean() > 0.998  # the rest lies on edges, where float32 may decide either way
    assert (expected != NOTHING).mean() > 0.5
    depth = distance.min(1).reshape(SIZE[::-1])
    hit = agree & (expected != NOTHING)
    np.testing.assert_allclose(1 / nearness[hit], depth[hit], rtol=1e-4)


def test_a_parallel_view_shows_what_is_nearest_to_the_light():
    mesh = soup(2, 120, False)
    scale = 6.0  # samples per metre, looking along +z from far away
    rows = np.array([[scale, 0, 0, 30], [0, scale, 0, 20], [0, 0, 1, 0]], float)
    x, y = np.meshgrid(np.arange(SIZE[0], dtype=float), np.arange(SIZE[1], dtype=float))
    origins = np.stack([(x - 30) / scale, (y - 20) / scale, np.full_like(x, -100)], -1).reshape(-1, 3)
    distance = intersect(mesh, origins, np.broadcast_to([0.0, 0, 1], origins.shape))
    expected = np.where(np.isfinite(distance.min(1)), distance.argmin(1), NOTHING).reshape(SIZE[::-1])

    owner, nearness = draw(parallel_drawing(mesh, rows, SIZE), SIZE)

    agree = owner == expected
    assert agree.mean() > 0.998
    hit = agree & (expected != NOTHING)
    np.testing.assert_allclose(-nearness[hit], distance.min(1).reshape(SIZE[::-1])[hit] - 100, atol=1e-4)


def test_faces_turned_away_are_not_drawn_unless_they_have_two_sides():
    frame = Frame.standing(0, 0)
    square = np.array([(-1, -1, 4), (1, -1, 4), (1, 1, 4), (-1, 1, 4)], float)  # its normal is +z, away from the camera
    for two_sided, drawn in ((False, 0), (True, 1)):
        b = MeshBuilder()
        b.quads(frame, [square], 0, two_sided=two_sided)
        assert len(pinhole_drawing(b.build(), np.eye(4)[:3], CALIBRATION, SIZE).quads) == drawn


def test_neighbors_leave_no_pinholes():
    """Strips of a slanted wall, cut where samples rarely fall exactly, cover it completely."""
    random = np.random.default_rng(3)
    cuts = np.sort(np.concatenate([[-50, 50], random.uniform(-6, 6, 300)]))
    b = MeshBuilder()
    for low, high in itertools.pairwise(cuts):
        b.quads(
            Frame.standing(0, 0),
            [[(low, -30, 8 + low / 9), (high, -30, 8 + high / 9), (high, 30, 8 + high / 9), (low, 30, 8 + low / 9)]],
            0,
            two_sided=True,
        )
    owner, _ = draw(pinhole_drawing(b.build(), np.eye(4)[:3], CALIBRATION, SIZE), SIZE)
    assert (owner != NOTHING).all()
