"""Real pairs: correspondences from COLMAP models and from depth maps, cut to training samples."""

import numpy as np
import pycolmap
import pytest

from pdc_sfm.colmap.io.shared_points import read_views
from pdc_sfm.errors import FormatError, UserError
from pdc_sfm.images import write_image
from pdc_sfm.synthetic.appearance import PhotometricSettings
from pdc_sfm.training.sources import MixedSource
from pdc_sfm.training.supervision import ModelScene, RealPair, RealSource, SupervisionSettings, cut_out

WIDTH, HEIGHT, FOCAL = 200, 160, 180.0
PLAIN = PhotometricSettings(strength=0, gray=0, shading=0, shadow=0, night=0, motion=0)


def projection(xyz, translation):
    """Pixel indices of points in a camera at -translation without rotation."""
    p = xyz + translation
    return FOCAL * p[:, :2] / p[:, 2:] + (WIDTH / 2, HEIGHT / 2) - 0.5


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """Three images of 60 points: the third sees only 12 of them. One keypoint of the first is 6 px off."""
    folder = tmp_path_factory.mktemp("model")
    rng = np.random.default_rng(0)
    xyz = np.column_stack([rng.uniform(-1, 1, 60), rng.uniform(-0.8, 0.8, 60), rng.uniform(4, 6, 60)])
    reconstruction = pycolmap.Reconstruction()
    camera = pycolmap.Camera.create_from_model_name(1, "PINHOLE", FOCAL, WIDTH, HEIGHT)
    reconstruction.add_camera_with_trivial_rig(camera)
    translations = np.array([[0.0, 0, 0], [0.3, 0.1, 0], [-0.2, 0, 0.1]])
    seen = [np.arange(60), np.arange(60), np.arange(12)]
    for number, (translation, points) in enumerate(zip(translations, seen), start=1):
        xy = projection(xyz[points], translation) + 0.5
        if number == 1:
            xy[5] += (6, 0)
        image = pycolmap.Image(name=f"{number}.png", keypoints=xy, camera_id=1, image_id=number)
        pose = pycolmap.Rigid3d(pycolmap.Rotation3d(), translation)
        reconstruction.add_image_with_trivial_frame(image, pose)
        write_image(folder / "images" / f"{number}.png", rng.integers(0, 255, (HEIGHT, WIDTH, 3), np.uint8))
    for index in range(60):
        track = pycolmap.Track()
        for number, points in enumerate(seen, start=1):
            if index in points:
                track.add_element(number, int(index))
        reconstruction.add_point3D(xyz[index], track)
    (folder / "sfm").mkdir()
    reconstruction.write(folder / "sfm")
    return folder, xyz, translations


def test_shared_points_lie_where_geometry_puts_them(model):
    folder, xyz, translations = model
    views = read_views(folder / "sfm")
    assert views.names == ("1.png", "2.png", "3.png")
    assert views.sizes[0] == (WIDTH, HEIGHT)
    points = views.shared(0, 1)
    expected = np.hstack([projection(xyz, t) for t in translations[:2]])
    np.testing.assert_allclose(points, np.delete(expected, 5, axis=0), atol=1e-4)  # the displaced keypoint is left out


def test_the_overlap_rule_asks_for_a_share_of_the_references_points(model):
    views = read_views(model[0] / "sfm", max_error=100.0)
    # image 3 sees 12 points, all of them in 1 and 2; these see 60, of which it sees a fifth
    assert views.overlapping(0.3).tolist() == [[0, 1], [1, 0], [2, 0], [2, 1]]
    assert views.overlapping(0.3, min_points=13).tolist() == [[0, 1], [1, 0]]
    assert len(views.overlapping(0.15)) == 6


def test_samples_of_a_model_keep_points_on_the_same_pixels(model):
    folder, xyz, translations = model
    settings = SupervisionSettings(min_points=8, validation_share=0)
    scene = ModelScene(folder / "sfm", folder / "images", settings)
    source = RealSource([scene], settings, PLAIN, seed=0)
    sample = source.sample(3, (96, 128))
    assert sample.reference.shape == sample.query.shape == (96, 128, 3)
    assert not sample.valid.any()
    assert not sample.hidden.any()
    assert len(sample.points) >= 8
    assert sample.points.dtype == np.float32
    again = source.sample(3, (96, 128))
    np.testing.assert_array_equal(sample.points, again.points)
    np.testing.assert_array_equal(sample.query, again.query)


def test_cut_outs_move_points_with_the_picture():
    height, width = 120, 180
    y, x = np.mgrid[:height, :width].astype(np.float64)
    picture = np.stack([x, 2 * y, 0 * x], -1).astype(np.uint8)  # red is x, green is 2 y
    rng = np.random.default_rng(1)
    xy = rng.uniform((30, 30), (150, 90), (200, 2)).astype(np.float32)
    pair = RealPair(picture, picture, np.hstack([xy, xy]))
    settings = SupervisionSettings(min_points=5, max_zoom=2.0)
    sample = cut_out(pair, (96, 96), settings, rng)
    import cv2

    for image, points in ((sample.reference, sample.points[:, :2]), (sample.query, sample.points[:, 2:])):
        colors = cv2.remap(image, points[None], None, cv2.INTER_LINEAR)[0].astype(np.float64)
        found = colors[:, :2] / (1, 2)
        distances = np.linalg.norm(found[:, None] - xy, axis=2).min(1)
        assert np.median(distances) < 0.7  # colors are whole numbers


def test_too_few_points_make_no_sample():
    picture = np.zeros((100, 100, 3), np.uint8)
    pair = RealPair(picture, picture, np.full((4, 4), 50, np.float32))
    assert cut_out(pair, (64, 64), SupervisionSettings(), np.random.default_rng(0)) is None


def test_pairs_for_validation_and_for_training_do_not_meet(model):
    settings = SupervisionSettings(validation_share=0.25)

    class Numbered:
        """A scene of 8 pairs whose images say which they are."""

        def __len__(self):
            return 8

        def pair(self, index, rng):
            image = np.full((80, 80, 3), index, np.uint8)
            xy = rng.uniform(10, 70, (100, 2)).astype(np.float32)
            return RealPair(image, image, np.hstack([xy, xy]))

    def numbers(apart):
        source = RealSource([Numbered()], settings, PLAIN, 0, kept_apart=apart)
        return {int(np.median(source.sample(i, (64, 64)).reference)) for i in range(40)}

    assert numbers(True) == {3, 7}
    assert numbers(False) == {0, 1, 2, 4, 5, 6}


def test_mixing_takes_the_share_asked_for():
    class One:
        def __init__(self, name):
            self.name = name

        def sample(self, index, size):
            return self.name, index

    kinds = [MixedSource(One("made"), ((One("real"), 0.3),), seed=5).sample(i, (8, 8)) for i in range(1000)]
    assert sum(kind == "real" for kind, _ in kinds) == pytest.approx(300, abs=45)  # three standard deviations
    assert [index for _, index in kinds] == list(range(1000))


def test_images_that_do_not_belong_to_the_model_are_refused(model, tmp_path):
    folder = model[0]
    with pytest.raises(FormatError, match=r"3 images of .* are not in"):
        ModelScene(folder / "sfm", tmp_path, SupervisionSettings())
    for name in ("1.png", "2.png", "3.png"):
        write_image(tmp_path / name, np.zeros((50, 60, 3), np.uint8))
    scene = ModelScene(folder / "sfm", tmp_path, SupervisionSettings())
    with pytest.raises(FormatError, match=r"is 60x50 px, in the model 200x160"):
        scene.pair(0, np.random.default_rng(0))
    with pytest.raises(UserError, match=r"lower supervision\.min_overlap"):
        ModelScene(folder / "sfm", tmp_path, SupervisionSettings(min_points=100))
