"""Rendered scenes as training pairs: a wall and a pillar before it, seen by cameras that step aside."""

import json
import pickle
import shutil

import numpy as np
import pytest

from pdc_sfm.errors import UserError
from pdc_sfm.images import write_image
from pdc_sfm.scenes import Camera
from pdc_sfm.scenes.layouts.plain import camera_to_dict
from pdc_sfm.synthetic.appearance import PhotometricSettings
from pdc_sfm.training.rendered import RenderedScene, RenderedSource, cut_views, kind_shares
from pdc_sfm.training.supervision import SupervisionSettings

WIDTH, HEIGHT, FOCAL, WALL, PILLAR = 200, 160, 100.0, 10.0, 5.0
STEPS = {"db/0.png": 0.0, "db/1.png": 1.0, "db/2.png": 90.0}  # the wall moves by 10 px a step, the pillar by 20
UNCHANGED = PhotometricSettings(strength=0)


def wall(x, y):
    """The brightness of a place of the wall, in pixels of the first camera: no two are alike."""
    return 90 + 40 * np.sin(x / 7 + 0.3 * np.sin(y / 9)) + 40 * np.cos(y / 6 + x / 23)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("scene")
    cameras = {}
    y, x = np.mgrid[:HEIGHT, :WIDTH].astype(float)
    for name, step in STEPS.items():
        at_pillar = x + 20 * step
        pillar = (at_pillar >= 90) & (at_pillar < 110)
        picture = np.where(pillar, 20 + 5 * (at_pillar - 90), wall(x + 10 * step, y))
        write_image(folder / "images" / name, np.repeat(picture[..., None], 3, axis=2).round().astype(np.uint8))
        path = (folder / "depth" / name).with_suffix(".npz")
        path.parent.mkdir(parents=True, exist_ok=True)
        moving = np.zeros((HEIGHT, WIDTH), bool)
        np.savez(path, depth=np.where(pillar, PILLAR, WALL).astype(np.float32), moving=moving)
        cameras[name] = camera_to_dict(Camera(WIDTH, HEIGHT, FOCAL, np.c_[np.eye(3), [-step, 0, 0]]))
    (folder / "cameras.json").write_text(json.dumps(cameras))
    return folder


@pytest.fixture(scope="module")
def scene(folder):
    return RenderedScene(folder, min_overlap=0.3)


def test_pairs_are_those_that_overlap_and_those_that_share_nothing(scene):
    assert scene.overlapping == [("db/0.png", "db/1.png"), ("db/1.png", "db/0.png")]
    assert set(scene.apart) == {(f"db/{a}.png", f"db/{b}.png") for a, b in ((0, 2), (2, 0), (1, 2), (2, 1))}


def test_the_flow_takes_every_valid_pixel_to_what_it_shows(scene):
    for seed in range(5):
        sample = cut_views(scene, ("db/0.png", "db/1.png"), (96, 112), 1.6, np.random.default_rng(seed))
        y, x = np.nonzero(sample.valid)
        assert len(x) > 1000
        at = np.rint(np.stack([x, y], -1) + sample.flow[y, x]).astype(int)
        apart = np.abs(sample.reference[y, x].astype(int) - sample.query[at[:, 1], at[:, 0]]).mean()
        assert apart < 8, seed  # half a pixel of this wall; a flow 5 px off gives 40
        assert not (sample.valid & sample.hidden).any()


@pytest.mark.parametrize("turn", [-60.0, 25.0, 90.0])
def test_a_turned_query_is_still_found_by_the_flow(scene, turn):
    sample = cut_views(scene, ("db/0.png", "db/1.png"), (64, 72), 1.0, np.random.default_rng(1), turn)
    assert sample.query.shape == (64, 72, 3)
    y, x = np.nonzero(sample.valid)
    assert len(x) > 500
    at = np.rint(np.stack([x, y], -1) + sample.flow[y, x]).astype(int)
    assert np.abs(sample.reference[y, x].astype(int) - sample.query[at[:, 1], at[:, 0]]).mean() < 10
    both = [(a, b) for a, b in zip(y, x) if b and sample.valid[a, b - 1]]  # where a step to the right leads
    right = np.median([sample.flow[a, b] - sample.flow[a, b - 1] for a, b in both], axis=0) + np.array([1, 0])
    assert np.degrees(np.arctan2(right[1], right[0])) == pytest.approx(turn, abs=4)


def test_kinds_are_drawn_alike_however_many_scenes_they_have(folder, tmp_path):
    """One room and three towns: every other sample is of the room."""
    room = tmp_path / "room"
    shutil.copytree(folder, room)
    (room / "scene.json").write_text(json.dumps({"layout": "room"}))
    scenes = [RenderedScene(folder, 0.3) for _ in range(3)] + [RenderedScene(room, 0.3)]
    drawn = []
    for scene in scenes:
        scene.image = lambda name, scene=scene: drawn.append(scene.kind) or RenderedScene.image(scene, name)
    source = RenderedSource(scenes, SupervisionSettings(max_turn=60), UNCHANGED, seed=3)
    for number in range(240):
        source.sample(number, (64, 64))
    assert {"plain", "room"} == set(drawn)
    assert 0.4 < drawn.count("room") / len(drawn) < 0.6  # 3 standard deviations; scene by scene it would be .25


def test_what_the_pillar_covers_is_hidden(scene):
    sample = cut_views(scene, ("db/0.png", "db/1.png"), (HEIGHT, WIDTH), 1.0, np.random.default_rng(0))
    middle = HEIGHT // 2
    assert np.allclose(sample.flow[middle, 95:105], (-20, 0), atol=1e-3)
    assert sample.hidden[middle, 82:88].all()  # lands at 72..78, where the pillar stands now (70..90)
    assert sample.valid[middle, 120:195].all()
    assert np.allclose(sample.flow[middle, 120:195], (-10, 0), atol=1e-3)
    assert sample.hidden[middle, :8].all()  # leaves the picture


def test_samples_depend_on_their_number_alone_and_some_show_nothing_in_common(scene):
    source = RenderedSource([scene], SupervisionSettings(), UNCHANGED, seed=3)
    copy = pickle.loads(pickle.dumps(source))  # as in a worker process
    samples = [source.sample(number, (64, 64)) for number in range(60)]
    assert all(np.array_equal(samples[n].flow, copy.sample(n, (64, 64)).flow) for n in (0, 7, 11))
    alien = [sample for sample in samples if sample.hidden.all()]
    assert 1 <= len(alien) <= 20
    assert not any(sample.valid.any() for sample in alien)
    never, always = (RenderedSource([scene], SupervisionSettings(look_alike=share), UNCHANGED, 3) for share in (0, 1))
    assert not any(never.sample(number, (64, 64)).hidden.all() for number in range(30))
    assert all(always.sample(number, (64, 64)).hidden.all() for number in range(10))


def test_a_scene_of_lonely_views_says_which_setting_to_lower(folder):
    with pytest.raises(UserError, match="min_overlap"):
        RenderedScene(folder, min_overlap=0.99)


def test_towns_are_drawn_as_often_as_the_settings_say():
    kinds = ["court", "object", "plain", "room"]
    np.testing.assert_allclose(kind_shares(kinds, 0.4), [0.2, 0.2, 0.4, 0.2])
    np.testing.assert_allclose(kind_shares(kinds, 0), np.full(4, 0.25))
    np.testing.assert_allclose(kind_shares(["plain"], 0.4), [1])
    np.testing.assert_allclose(kind_shares(["court", "room"], 0.4), [0.5, 0.5])
