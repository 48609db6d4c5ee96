"""A folder of images becomes an hloc feature file, whatever happens on the way."""

import numpy as np
import pytest

from pdc_sfm.cli import main
from pdc_sfm.errors import ImageError, SettingsError
from pdc_sfm.images import write_image
from pdc_sfm.keypoints import extraction
from pdc_sfm.keypoints.extraction import export_keypoints
from pdc_sfm.keypoints.types import Keypoints, KeypointSettings
from pdc_sfm.store.readers import open_features

NAMES = ["db/1.jpg", "db/2.png", "query/night/3 b.png", "4.png"]


@pytest.fixture
def folder(tmp_path):
    for seed, name in enumerate(NAMES):
        coarse = np.random.default_rng(seed).integers(0, 255, (20, 30, 3), np.uint8)
        write_image(tmp_path / "images" / name, np.repeat(np.repeat(coarse, 6, 0), 6, 1))
    return tmp_path


class Counting:
    """A detector that notes its work and can be killed after a few images."""

    def __init__(self, dies_after: int | None = None):
        self.calls, self.dies_after = 0, dies_after

    def detect(self, image):
        if self.calls == self.dies_after:
            raise KeyboardInterrupt
        self.calls += 1
        points, scores = np.array([[1.5, 2.0], [3.0, 4.0]], np.float32), np.array([0.9, 0.1], np.float32)
        return Keypoints(points, scores, image.shape[1::-1], np.eye(4, 2, dtype=np.float32), uncertainty=2.0)


def test_the_file_has_hlocs_layout(folder, monkeypatch):
    monkeypatch.setattr(extraction, "make_detector", lambda settings: Counting())
    result = export_keypoints(folder / "images", folder / "f.h5")
    assert (result.images, result.new, result.keypoints, result.left_out) == (4, 4, 8, ())
    with open_features(folder / "f.h5") as file:
        assert file.names() == sorted(NAMES)
        found = file.keypoints("query/night/3 b.png")
        np.testing.assert_array_equal(found.points, [[1.5, 2.0], [3.0, 4.0]])
        assert found.points.dtype == np.float32
        assert found.image_size == (180, 120)
        assert found.uncertainty == 2.0
        np.testing.assert_array_equal(file.scores("4.png"), np.array([0.9, 0.1], np.float32))


def test_a_second_run_does_only_what_is_new(folder, monkeypatch):
    detector = Counting()
    monkeypatch.setattr(extraction, "make_detector", lambda settings: detector)
    export_keypoints(folder / "images", folder / "f.h5", names=NAMES[:2])
    assert detector.calls == 2
    export_keypoints(folder / "images", folder / "f.h5")
    assert detector.calls == 4
    before = (folder / "f.h5").read_bytes()
    assert export_keypoints(folder / "images", folder / "f.h5").new == 0
    assert (folder / "f.h5").read_bytes() == before


def test_an_interrupted_run_goes_on_and_ends_with_the_same_content(folder, monkeypatch):
    monkeypatch.setattr(extraction, "PART_SECONDS", -1.0)
    monkeypatch.setattr(extraction, "make_detector", lambda settings: Counting(dies_after=3))
    with pytest.raises(KeyboardInterrupt):
        export_keypoints(folder / "images", folder / "f.h5")
    assert not (folder / "f.h5").exists()  # no half file under the final name
    rest = Counting()
    monkeypatch.setattr(extraction, "make_detector", lambda settings: rest)
    export_keypoints(folder / "images", folder / "f.h5")
    assert rest.calls == 1
    with open_features(folder / "f.h5") as file:
        assert file.names() == sorted(NAMES)
    assert not list(folder.glob(".f.h5.parts"))


def test_other_settings_are_not_mixed_in(folder):
    export_keypoints(folder / "images", folder / "f.h5", names=NAMES[:1])
    other = KeypointSettings(max_keypoints=7)
    with pytest.raises(SettingsError, match="max_keypoints: 4096 -> 7"):
        export_keypoints(folder / "images", folder / "f.h5", other)
    result = export_keypoints(folder / "images", folder / "f.h5", other, overwrite=True)
    assert result.images == 4
    with open_features(folder / "f.h5") as file:
        assert all(len(file.keypoints(name).points) <= 7 for name in NAMES)
    export_keypoints(folder / "images", folder / "f.h5", KeypointSettings(max_keypoints=7, device="cuda"))  # all done


def test_a_bad_image_is_left_out_and_named_or_stops_a_strict_run(folder, capsys):
    (folder / "images" / "broken.jpg").write_bytes(b"no image")
    words = ["keypoints", "--images", str(folder / "images"), "--output", str(folder / "f.h5")]
    assert main([*words, "--strict"]) == 2
    assert main([*words, "max_keypoints=50"]) == 1
    said = capsys.readouterr()
    assert "4 images" in said.out
    assert "broken.jpg is not a readable image" in said.err
    with open_features(folder / "f.h5") as file:
        assert file.names() == sorted(NAMES)


def test_folders_without_images_are_errors(tmp_path):
    with pytest.raises(ImageError, match="is not a folder"):
        export_keypoints(tmp_path / "none", tmp_path / "f.h5")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ImageError, match="holds no images"):
        export_keypoints(tmp_path / "empty", tmp_path / "f.h5")
    (tmp_path / "empty" / "a.jpg").write_bytes(b"no image")
    with pytest.raises(ImageError, match="none of the 1 images"):
        export_keypoints(tmp_path / "empty", tmp_path / "f.h5")


def test_a_feature_file_of_another_origin_is_not_touched(folder):
    import h5py

    with h5py.File(folder / "f.h5", "w") as file:
        file.create_dataset("a.jpg/keypoints", data=np.zeros((1, 2), np.float32))
    with pytest.raises(SettingsError, match="another origin"):
        export_keypoints(folder / "images", folder / "f.h5")


def test_another_image_of_the_same_name_does_not_get_the_features_of_the_first(folder, monkeypatch):
    detector = Counting()
    monkeypatch.setattr(extraction, "make_detector", lambda settings: detector)
    export_keypoints(folder / "images", folder / "f.h5")
    (folder / "images").rename(folder / "moved")
    export_keypoints(folder / "moved", folder / "f.h5")
    assert detector.calls == 4
    write_image(folder / "moved" / "4.png", np.zeros((90, 90, 3), np.uint8))
    with pytest.raises(SettingsError, match=r"another image of the name 4\.png: choose another output, or overwrite"):
        export_keypoints(folder / "moved", folder / "f.h5")
    export_keypoints(folder / "moved", folder / "f.h5", overwrite=True)
    assert detector.calls == 8
