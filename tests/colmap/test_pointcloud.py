"""Point clouds: files that any viewer opens, stray points, and pictures."""

import numpy as np
import pytest
from projections import look_at

from pdc_sfm.colmap.io.pointcloud import read_ply, remove_outliers, write_ply
from pdc_sfm.colmap.render import CAMERA_COLOR, Viewpoint, draw, overview


def test_ply_survives_a_round_trip_and_has_a_standard_header(tmp_path):
    rng = np.random.default_rng(0)
    points, colors = rng.normal(size=(50, 3)), rng.integers(0, 256, (50, 3), dtype=np.uint8)
    write_ply(tmp_path / "p.ply", points, colors)
    header = (tmp_path / "p.ply").read_bytes().split(b"end_header\n")[0].decode().splitlines()
    assert header[:3] == ["ply", "format binary_little_endian 1.0", "element vertex 50"]
    assert header[3:] == [
        *(f"property float {a}" for a in "xyz"),
        *(f"property uchar {c}" for c in ("red", "green", "blue")),
    ]
    assert (tmp_path / "p.ply").stat().st_size == len("\n".join(header)) + 1 + len("end_header\n") + 50 * 15
    found_points, found_colors = read_ply(tmp_path / "p.ply")
    np.testing.assert_allclose(found_points, points, atol=1e-6)
    np.testing.assert_array_equal(found_colors, colors)


def test_an_empty_cloud_is_written_too(tmp_path):
    write_ply(tmp_path / "p.ply", np.zeros((0, 3)), np.zeros((0, 3), np.uint8))
    assert len(read_ply(tmp_path / "p.ply")[0]) == 0


def test_stray_points_are_removed_and_dense_ones_kept():
    rng = np.random.default_rng(0)
    points = np.concatenate([rng.uniform(-1, 1, (500, 3)), [[30.0, 0, 0], [0, -40, 0]]])
    keep = remove_outliers(points)
    assert not keep[500:].any()
    assert keep[:500].mean() > 0.95
    assert remove_outliers(points[:5]).all()


def test_near_points_hide_far_ones():
    view = Viewpoint(np.c_[np.eye(3), np.zeros(3)], 100.0, (40, 30))
    points = np.array([[0, 0, 5.0], [0, 0, 2.0], [0, 0, 9.0], [0, 0, -3.0]])
    colors = np.array([[255, 0, 0], [0, 255, 0], [0, 0, 255], [9, 9, 9]], np.uint8)
    image = draw(points, colors, np.zeros((0, 3, 4)), view)
    assert image.shape == (30, 40, 3)
    np.testing.assert_array_equal(image[15, 20], [0, 255, 0])
    np.testing.assert_array_equal(image[0, 0], [255, 255, 255])


@pytest.mark.parametrize("azimuth", [0, 20, -60])
def test_overview_shows_all_points_and_cameras(azimuth):
    rng = np.random.default_rng(0)
    points = rng.uniform(-2, 2, (300, 3)) + np.array([0, 0, 8])
    poses = np.stack([look_at(np.array([x, 0.0, 0.0]), np.array([0, 0, 8.0])) for x in (-4, -1, 2, 4)])
    view = overview(poses, points, (320, 200), azimuth)
    centers = np.array([[x, 0, 0] for x in (-4, -1, 2, 4)], float)
    for shown in (points, centers):
        pixels, depth = view.project(shown)
        inside = (depth > 0) & (pixels > 0).all(axis=1) & (pixels < (320, 200)).all(axis=1)
        assert inside.mean() > 0.97
    image = draw(points, np.zeros((300, 3), np.uint8), poses, view)
    assert (image == CAMERA_COLOR).all(axis=-1).any()
    assert view.project(np.array([[0, -3.0, 8]]))[0][0, 1] < view.project(np.array([[0, 3.0, 8]]))[0][0, 1]  # y down
