"""Walls of equal windows match each other: a link is doubted if nothing that is to be found only once matches."""

import numpy as np
import pycolmap
import pytest
from pair_evidence import evidence
from projections import make_scene, write_model

from pdc_sfm.colmap.io import database as db
from pdc_sfm.colmap.io.models import load_model
from pdc_sfm.colmap.mapping.parts import check_parts
from pdc_sfm.colmap.mapping.repeats import FEWEST_DISTINCTIVE, RepeatedLinks, repeated_links
from pdc_sfm.images import write_image

NAMES = ["a.png", "b.png"]
HEIGHT, WIDTH, STEP = 480, 640, 80  # from window to window
SHIFT = 8  # pixels by which the second picture shows everything farther right


def pattern(seed: int, size: int) -> np.ndarray:
    """Something with corners, (size, size)."""
    rough = np.random.default_rng(seed).uniform(30, 225, (size // 6, size // 6))
    return np.kron(rough, np.ones((6, 6)))


def wall(posters: list[int], shift: int = 0) -> np.ndarray:
    """Rows of equal windows, and here and there a poster between them, each of its own pattern."""
    picture = np.full((HEIGHT, WIDTH + 2 * STEP), 120.0)
    window = pattern(1, 36)
    for top in range(20, HEIGHT - 40, STEP):
        for left in range(20, picture.shape[1] - 40, STEP):
            picture[top : top + 36, left : left + 36] = window
    for number, seed in enumerate(posters):
        top, left = 20 + STEP * (number % 5), 150 + 75 * number
        picture[top : top + 30, left - left % STEP + 60 : left - left % STEP + 78] = pattern(seed, 30)[:, :18]
    noise = np.random.default_rng(shift + 5).normal(0, 2, picture.shape)
    return np.clip(picture + noise, 0, 255)[:, STEP - shift : STEP - shift + WIDTH]


def everywhere_else(seed: int, shift: int = 0) -> np.ndarray:
    """A picture that repeats nowhere."""
    rough = np.random.default_rng(seed).uniform(30, 225, (HEIGHT // 8, (WIDTH + STEP) // 8))
    return np.kron(rough, np.ones((8, 8)))[:, STEP - shift : STEP - shift + WIDTH]


@pytest.fixture
def checked(tmp_path):
    """Two pictures as a map, and the pair that joins them, which matches all over."""

    def make(first: np.ndarray, second: np.ndarray):
        scene = make_scene(NAMES, points=300, vary=0, size=(WIDTH, HEIGHT))
        model = load_model(write_model(scene, tmp_path / "model"))
        for name, picture in zip(NAMES, (first, second)):
            write_image(tmp_path / "images" / name, np.repeat(picture.astype(np.uint8)[..., None], 3, axis=2))
        places = np.stack(np.meshgrid(np.arange(4, WIDTH - 12, 8), np.arange(4, HEIGHT, 8)), -1).reshape(-1, 2)
        ids = db.create_from_model(tmp_path / "database.db", model)
        with pycolmap.Database.open(tmp_path / "database.db") as opened:
            for name, right in zip(NAMES, (0, SHIFT)):
                opened.write_keypoints(ids[name], (places + (right, 0) + 0.5).astype(np.float32))
            geometry = pycolmap.TwoViewGeometry(config=2)
            geometry.inlier_matches = np.repeat(np.arange(len(places), dtype=np.uint32)[:, None], 2, axis=1)
            opened.write_two_view_geometry(ids["a.png"], ids["b.png"], geometry)
        return model, [evidence(ids["a.png"], ids["b.png"], 900)], tmp_path / "database.db", tmp_path / "images"

    return make


def test_a_wall_that_another_of_the_same_windows_was_laid_over_is_found(checked):
    ((_, found),) = repeated_links(*checked(wall([11, 12, 13, 14, 15, 16]), wall([21, 22, 23, 24, 25, 26], SHIFT)))
    assert found.share > 0.5
    assert found.distinctive < FEWEST_DISTINCTIVE


def test_posters_tell_that_it_is_the_same_wall(checked):
    model, pairs, database, images = checked(wall([11, 12, 13, 14, 15, 16]), wall([11, 12, 13, 14, 15, 16], SHIFT))
    assert repeated_links(model, pairs, database, images) == []


def test_what_repeats_nowhere_needs_no_posters(checked):
    model, pairs, database, images = checked(everywhere_else(3), everywhere_else(4, SHIFT))  # nothing matches
    assert repeated_links(model, pairs, database, images) == []


def test_pictures_of_nothing_say_nothing(checked):
    blank = np.full((HEIGHT, WIDTH), 120.0)
    assert repeated_links(*checked(blank, blank)) == []


def test_images_without_matches_of_their_own_say_nothing(checked):
    """As those that stand for the frames of a rig, whose other images match."""
    model, pairs, database, images = checked(wall([]), wall([], SHIFT))
    with pycolmap.Database.open(database) as opened:
        opened.clear_two_view_geometries()
    assert repeated_links(model, pairs, database, images) == []


def test_a_picture_that_cannot_be_read_any_more_says_nothing(checked, caplog):
    model, pairs, database, images = checked(wall([]), wall([], SHIFT))
    (images / "b.png").write_bytes(b"gone")
    assert repeated_links(model, pairs, database, images) == []
    assert "not looked at for what repeats" in caplog.text


def test_a_map_that_only_repeats_join_is_doubtful(checked, monkeypatch):
    model, pairs, database, images = checked(wall([]), wall([], SHIFT))
    monkeypatch.setattr("pdc_sfm.colmap.mapping.parts.weigh_pairs", lambda *_: pairs)
    verdict = check_parts(model, database, images).verdict
    assert verdict.kind == "doubtful"
    assert "repeats in the pictures, as equal windows do (a.png - b.png)" in verdict.reasons[0]
    assert verdict.images in {("a.png",), ("b.png",)}
    assert verdict.pairs == (("only what repeats?", "a.png", "b.png"),)


def test_pictures_are_looked_at_once(checked, monkeypatch):
    model, pairs, database, images = checked(wall([]), wall([], SHIFT))
    seen = []
    monkeypatch.setattr(RepeatedLinks, "_read_picture", _noting(RepeatedLinks._read_picture, seen))
    repeated_links(model, pairs, database, images)
    assert len(seen) == 2


def _noting(function, seen):
    def noted(self, image_id):
        seen.append(image_id)
        return function(self, image_id)

    return noted
