"""Textures: what a pixel cannot resolve is averaged, what it can is sharp."""

import numpy as np

from pdc_sfm.scenes.materials.lettering import WORDS, lettered
from pdc_sfm.scenes.materials.noise import fractal, hashed, stripes, value_noise
from pdc_sfm.scenes.render.light import shadow_map
from pdc_sfm.scenes.render.mesh import Frame, MeshBuilder


def test_stripes_cover_their_share_at_any_pixel_size():
    x = np.linspace(0, 3, 3001)
    for pixel in (0.001, 0.03, 0.5):
        cover = stripes(x, 0.25, 0.05, np.full_like(x, pixel))
        assert abs(cover[250:-250].mean() - 0.05 / 0.25) < 0.01
    sharp = stripes(np.array([0.0, 0.02, 0.03, 0.25, 0.125]), 0.25, 0.05, np.full(5, 1e-4))
    np.testing.assert_allclose(sharp, [1, 1, 0, 1, 0])
    np.testing.assert_allclose(stripes(np.array([0.0]), 0.25, 0.05, np.array([0.1])), [0.5], rtol=1e-6)


def test_noise_is_continuous_and_hashed_values_are_spread_evenly():
    u = np.linspace(-5, 5, 20001, dtype=np.float32)
    assert np.abs(np.diff(value_noise(u, 0.3 * u, 4))).max() < 0.004  # step 5e-4, slope at most 1.5 * 2 * 1.3
    values = hashed(*np.meshgrid(np.arange(-100, 100), np.arange(-100, 100)), 9)
    counts, _ = np.histogram(values, 10, (0, 1))
    assert np.abs(counts / 4000 - 1).max() < 0.08  # 5 standard deviations of a fair draw


def test_detail_below_the_pixel_is_left_out():
    u, v = np.random.default_rng(0).uniform(0, 50, (2, 4000)).astype(np.float32)
    strength = [fractal(u, v, np.full(4000, pixel, np.float32), 1.0, 8).std() for pixel in (0.001, 0.1, 0.3, 2.0)]
    assert strength[0] > strength[1] > strength[2] > strength[3] == 0


def test_letters_are_strokes():
    """The I of KINO: ink on its upright, none beside it; at a distance a gray."""
    word = np.full(3, WORDS.index("KINO"))
    step = 1 / 6  # one grid unit of letters 1 m high; a letter takes 5.6 of them
    middle = (1 - 2) * 5.6 * step + (0.8 + 2) * step  # second of four letters, its upright at grid x = 2
    x = np.array([middle, middle, middle + 1.5 * step])
    y = np.array([0.0, 0.4, 0.0])
    size = np.ones(3)
    np.testing.assert_allclose(lettered(x, y, word, size, 0.1, np.full(3, 1e-3)), [1, 1, 0])
    assert 0 < lettered(x, y, word, size, 0.1, np.full(3, 0.5))[0] < 0.6


def test_a_board_shades_the_ground_below_it():
    b = MeshBuilder()
    world = Frame.standing(0, 0)
    b.quads(world, [[(-30, -30, 0), (30, -30, 0), (30, 30, 0), (-30, 30, 0)]], 0)
    b.quads(world, [[(-1, -1, 3), (1, -1, 3), (1, 1, 3), (-1, 1, 3)]], 0)
    slanted = np.array([1.0, 0, 1]) / np.sqrt(2)  # 45 degrees: the shadow lies 3 m further west
    sun = shadow_map(b.build(), slanted, 0.05, fine=True)
    points = np.array([[-3, 0, 0], [-3.8, 0.8, 0], [0, 0, 0], [-1.8, 0, 0], [-4.2, 0, 0], [0, 0, 3]], np.float32)
    up = np.tile(np.array([[0, 0, 1]], np.float32), (6, 1))
    np.testing.assert_allclose(sun.lit(points, up), [0, 0, 1, 1, 1, 1], atol=1e-6)
