"""`pdc-sfm train calibrate`: from folders to weights that hold a confidence head."""

import functools

import cv2
import numpy as np
import pytest
import torch

from pdc_sfm.cli import main
from pdc_sfm.network import PDCNet
from pdc_sfm.settings import load_settings, preset_path
from pdc_sfm.synthetic.photographs import held_out
from pdc_sfm.training import calibration
from pdc_sfm.training.calibration_pairs import calibration_kinds
from pdc_sfm.training.initial import initial_network
from pdc_sfm.training.settings import TrainSettings
from pdc_sfm.weights import built_in_path, load_network, read_checkpoint, save_network


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    """A few photographs of soft spots, some of which training would keep apart."""
    folder = tmp_path_factory.mktemp("photos")
    names = [f"{number}x.png" for number in range(400)]
    for number, name in enumerate([n for n in names if held_out(n)][:2] + [n for n in names if not held_out(n)][:3]):
        spots = np.random.default_rng(number).uniform(0, 255, (30, 40, 3)).astype(np.float32)
        image = cv2.resize(spots, (640, 480), interpolation=cv2.INTER_CUBIC).clip(0, 255).astype(np.uint8)
        cv2.imwrite(str(folder / name), image)
    return folder


def test_every_kind_has_pairs_to_fit_and_others_to_judge(photos):
    for kind in calibration_kinds(photos, None, (), 4):
        fitting, judging = list(kind.fitting), list(kind.judging)
        assert (len(fitting), len(judging)) == (len(kind.fitting), len(kind.judging)) == (4, 1)
        assert all(pair.visible.any() for pair in fitting + judging)
        assert np.array_equal(fitting[0].flow, next(iter(kind.fitting)).flow)  # the same again


def test_the_command_adds_a_confidence_head_and_leaves_the_network(photos, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(calibration, "fit", functools.partial(calibration.fit, steps=20))
    output = tmp_path / "judged.safetensors"
    command = ["train", "calibrate", "--weights", str(built_in_path()), "--photos", str(photos), "--pairs", "2"]
    assert main([*command, "--output", str(output), "--threads", "1"]) == 0
    said = capsys.readouterr().out
    assert "warped photographs: largest gap" in said
    assert "moving objects: largest gap" in said
    before, after = read_checkpoint(built_in_path()), read_checkpoint(output)
    assert after.complete
    for name, tensor in before.without_confidence_head().tensors.items():
        assert torch.equal(tensor.float(), after.tensors[name].float()), name
    assert load_network(output).confidence_head is not None


def test_training_goes_on_from_the_network_alone():
    settings = load_settings(TrainSettings, preset_path("compact", "train"), ["start_from=compact"])
    assert load_network().confidence_head is not None
    assert initial_network(settings).confidence_head is None


def test_an_empty_folder_is_answered_in_one_line(tmp_path, capsys):
    (tmp_path / "none").mkdir()
    command = ["train", "calibrate", "--weights", str(built_in_path()), "--photos", str(tmp_path / "none")]
    assert main([*command, "--output", str(tmp_path / "out.safetensors")]) == 2
    assert "no usable photograph" in capsys.readouterr().err


def test_a_network_used_as_published_is_refused_at_once(photos, tmp_path, capsys):
    weights = tmp_path / "published.safetensors"
    save_network(weights, PDCNet())
    command = ["train", "calibrate", "--weights", str(weights), "--photos", str(photos)]
    assert main([*command, "--output", str(tmp_path / "out.safetensors")]) == 2
    assert "used as published" in capsys.readouterr().err


def test_no_pairs_are_refused(photos, tmp_path, capsys):
    command = ["train", "calibrate", "--weights", str(built_in_path()), "--photos", str(photos), "--pairs", "0"]
    assert main([*command, "--output", str(tmp_path / "out.safetensors")]) == 2
    assert "0 pairs: at least one" in capsys.readouterr().err
