"""The real files of the challenge and the official sample, where they are at hand."""

import shutil
from collections import Counter

import numpy as np
import pycolmap
import pytest
from projections import make_scene, write_features, write_matches, write_pairs

from pdc_sfm.aachen.dataset import AachenDataset, check_files, check_images
from pdc_sfm.aachen.reference import build_reference, read_reference
from pdc_sfm.colmap.io.cameras import make_camera, read_camera_list
from pdc_sfm.colmap.io.database_images import read_database_images
from pdc_sfm.colmap.mapping.filled_database import fill_database, verify_database
from pdc_sfm.store.pair_lists import read_pairs, unique_pairs


@pytest.fixture
def challenge(shared):
    return shared / "data" / "aachen" / "local_feature_challenge"


@pytest.fixture
def sample(shared):
    return AachenDataset(shared / "data" / "aachen" / "official_sample", "1.0")


def test_database_of_version_1_0(challenge):
    images = read_database_images(challenge / "database.db")
    assert len(images) == 5401
    assert Counter(name.split("/")[0] for name in images) == {"db": 4479, "query": 922}
    assert sum(name.startswith("query/night") for name in images) == 98


def test_database_of_version_1_1(challenge):
    images = read_database_images(challenge / "database_v1_1.db")
    assert len(images) == 6888
    shared_cameras = {image.camera_id for name, image in images.items() if not name.startswith("db/")}
    assert len(shared_cameras) == 5  # three sequences and the upright and turned night queries
    assert sum(name.startswith("query/night") for name in images) == 191


@pytest.mark.parametrize(
    ("database", "pairs", "lines", "unique", "queries"),
    [
        ("database.db", "image_pairs_to_match.txt", 14941, 14941, 98),
        ("database_v1_1.db", "image_pairs_to_match_v1_1.txt", 60424, 60424 - 28302, 191),
    ],
)
def test_pair_lists_fit_their_databases(challenge, database, pairs, lines, unique, queries):
    images = read_database_images(challenge / database)
    listed = read_pairs(challenge / pairs)
    assert len(listed) == lines
    assert len(unique_pairs(listed)) == unique
    names = {name for pair in listed for name in pair}
    assert names <= set(images)
    assert sum(name.startswith("query/night") for name in names) == queries


def test_a_real_database_takes_our_keypoints_and_matches(challenge, tmp_path):
    """Three images of the real database, with matches made up for them."""
    names = ["db/1.jpg", "db/2.jpg", "query/night/nexus5x/IMG_20161227_172439.jpg"]
    source = challenge / "database.db"
    shutil.copyfile(source, tmp_path / "source.db")
    with pycolmap.Database.open(tmp_path / "source.db") as database:
        cameras = [database.read_camera(database.read_image_with_name(name).camera_id) for name in names]
    scene = make_scene(names)
    for name, camera in zip(names, cameras):
        scene.cameras[name] = camera
    pairs = write_pairs(tmp_path / "pairs.txt", scene.pairs())
    features = write_features(scene, tmp_path / "f.h5")
    matches = write_matches(scene, tmp_path / "m.h5", scene.pairs(), wrong=0.2)
    fill_database(source, tmp_path / "out.db", pairs, features, matches)
    verify_database(tmp_path / "out.db", pairs, seed=0)
    ids = read_database_images(source)
    with pycolmap.Database.open(tmp_path / "out.db") as database:
        assert database.num_images() == 5401
        assert database.num_keypoints() == sum(len(scene.keypoints[name]) for name in names)
        assert database.num_verified_image_pairs() == 3
        for first, second in scene.pairs():
            true = len(scene.matches(first, second))
            found = database.read_two_view_geometry(ids[first].image_id, ids[second].image_id)
            assert len(found.inlier_matches) > 0.7 * true
    assert not list(tmp_path.glob("*partial*"))


def test_official_sample_lacks_what_the_check_says(sample):
    missing = check_files(sample, challenge=False)
    assert len(missing) == 1
    assert missing[0].startswith("intrinsics of the database images: expected at")
    assert "3D-models/database_intrinsics.txt" in missing[0]
    cameras = read_camera_list(sample.queries)
    assert len(cameras) == 4
    assert check_images(sample, list(cameras)) == []
    camera = cameras["query/day/milestone/2011-12-17_14-50-43_241.jpg"]
    assert (camera.width, camera.height, camera.model.name) == (768, 1024, "SIMPLE_RADIAL")
    np.testing.assert_array_equal(camera.params, [971.838, 384, 512, -0.00177789])


def test_official_sample_becomes_a_model(sample, tmp_path):
    nvm = read_reference(sample, points=True)
    cameras = {name: make_camera("SIMPLE_RADIAL", 1600, 1200, (1100, 800, 600, 0)) for name in nvm.names}
    model = build_reference(nvm, cameras)
    assert model.num_reg_images() == 3
    for image in model.images.values():
        row = nvm.names.index(image.name)
        np.testing.assert_allclose(image.projection_center(), nvm.centers[row], atol=1e-9)
