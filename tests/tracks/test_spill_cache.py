"""Images that wait for their partners: few in memory, all the same."""

import numpy as np

from pdc_sfm.tracks.fusion import TrackPoints
from pdc_sfm.tracks.spill_cache import SpillCache


def points(seed: int, count: int) -> TrackPoints:
    rng = np.random.default_rng(seed)
    return TrackPoints(rng.random((count, 2), np.float32), rng.random(count, np.float32), rng.permutation(count))


def test_what_is_put_on_a_shelf_comes_back_the_same_however_few_stay_in_memory(tmp_path):
    shelf, put = SpillCache(tmp_path, most=2), {f"{n}.jpg": points(n, 10 * n) for n in range(8)}
    for name, value in put.items():
        shelf[name] = value
    for name in ("3.jpg", "7.jpg", "0.jpg", "3.jpg", *put):
        for field in ("points", "scores", "tracks"):
            np.testing.assert_array_equal(getattr(shelf[name], field), getattr(put[name], field))
    shelf.drop("5.jpg")
    assert "5.jpg" not in shelf
    assert "6.jpg" in shelf
    assert not list(tmp_path.iterdir())  # the file has no name: nothing stays behind, whatever happens
