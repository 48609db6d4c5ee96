"""Thinning leaves every verified pair its tie, and needs memory for keypoints alone."""

import numpy as np
import pycolmap

from pdc_sfm.colmap.mapping.two_stage import TIE, subsample_matches
from pdc_sfm.colmap.mapping.verification import unverified


def write_database(path, counts, pairs) -> None:
    """Images with so many keypoints, and verified matches (M, 2) of pairs of them."""
    with pycolmap.Database.open(path) as database:
        camera = pycolmap.Camera(model="SIMPLE_PINHOLE", width=640, height=480, params=(500, 320, 240))
        camera_id = database.write_camera(camera)
        ids = []
        for number, count in enumerate(counts):
            ids.append(database.write_image(pycolmap.Image(name=f"{number}.png", camera_id=camera_id)))
            points = np.random.default_rng(number).uniform((0, 0), (640, 480), (count, 2)).astype(np.float32)
            database.write_keypoints(ids[-1], points)
        for (first, second), matches in pairs.items():
            database.write_two_view_geometry(ids[first], ids[second], unverified(matches))


def left(path) -> dict[tuple[int, int], int]:
    with pycolmap.Database.open(path) as database:
        found = zip(*database.read_two_view_geometry_num_inliers())
        return {tuple(i - 1 for i in pycolmap.pair_id_to_image_pair(pair)): count for pair, count in found}


def same(start: int, count: int) -> np.ndarray:
    return np.stack((np.arange(start, start + count),) * 2, 1)


def test_the_one_pair_that_ties_an_image_keeps_its_matches(tmp_path):
    """Images 0 to 2 share 1000 long tracks; image 3 hangs on image 2 by 800 other points, in tracks of two."""
    long = same(0, 1000)
    pairs = {(0, 1): long, (1, 2): long, (0, 2): long, (2, 3): same(1000, 800)}
    write_database(tmp_path / "all.db", [2000] * 4, pairs)
    assert subsample_matches(tmp_path / "all.db", tmp_path / "thin.db", 1000, 0.0) == 0
    counts = left(tmp_path / "thin.db")
    assert counts[2, 3] == TIE  # none, if the longest tracks alone were kept
    assert counts[0, 1] >= 1000 - TIE
    assert left(tmp_path / "all.db")[2, 3] == 800


def test_a_pair_of_fewer_matches_keeps_them_all(tmp_path):
    pairs = {(0, 1): same(0, 1000), (1, 2): same(0, 1000), (0, 2): same(0, 1000), (2, 3): same(1000, 60)}
    write_database(tmp_path / "all.db", [2000] * 4, pairs)
    subsample_matches(tmp_path / "all.db", tmp_path / "thin.db", 500, 0.0)
    assert left(tmp_path / "thin.db")[2, 3] == 60


def test_what_is_kept_in_one_image_is_kept_in_the_others(tmp_path):
    pairs = {(0, 1): same(0, 2000), (1, 2): same(0, 2000), (0, 2): same(0, 2000)}
    write_database(tmp_path / "all.db", [2000] * 3, pairs)
    subsample_matches(tmp_path / "all.db", tmp_path / "thin.db", 600, 0.0)
    assert set(left(tmp_path / "thin.db").values()) == {600}
