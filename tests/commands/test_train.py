"""`pdc-sfm train run` and `train finetune`, from folders to weights."""

import numpy as np
import pycolmap
import pytest
import torch
from tiny_training import TINY

from pdc_sfm.cli import main
from pdc_sfm.images import write_image
from pdc_sfm.network import PDCNet
from pdc_sfm.training.curve import read_table
from pdc_sfm.weights import load_network, save_network

QUICK = (
    "schedule.iterations=2 sizes.phases=[[0,96,1]] sizes.aspects=1 validation.pairs=1 validation.hard=0 "
    "validation.unrelated=0 validation.real=1 validation.size=96 workers=0 threads=1 device=cpu log_every=1"
).split()


@pytest.fixture(autouse=True)
def _without_spinning(monkeypatch):
    """Training sets this variable for its process; the tests after it shall not notice."""
    monkeypatch.setenv("GOMP_SPINCOUNT", "0")


@pytest.fixture(scope="module")
def scene(tmp_path_factory):
    """8 photographs of a textured plane by a camera moving along it, their model, and weights of a tiny network."""
    folder = tmp_path_factory.mktemp("scene")
    rng = np.random.default_rng(0)
    texture = rng.integers(0, 255, (200, 500, 3), np.uint8)
    model = pycolmap.Reconstruction()
    model.add_camera_with_trivial_rig(pycolmap.Camera.create_from_model_name(1, "PINHOLE", 100.0, 160, 120))
    xyz = np.column_stack([rng.uniform(0, 4, 300), rng.uniform(0, 1.4, 300), np.ones(300)])  # a pixel is 0.01
    tracks = [pycolmap.Track() for _ in xyz]
    for number in range(1, 9):
        left = 20 * number
        write_image(folder / "images" / f"{number}.png", texture[20:140, left : left + 160])
        translation = np.array([-(left + 80) / 100, -0.8, 0.0])
        xy = 100 * (xyz + translation)[:, :2] + (80, 60)
        seen = np.flatnonzero(((xy >= 0) & (xy < (160, 120))).all(1))
        for place, index in enumerate(seen):
            tracks[index].add_element(number, place)
        image = pycolmap.Image(name=f"{number}.png", keypoints=xy[seen], camera_id=1, image_id=number)
        model.add_image_with_trivial_frame(image, pycolmap.Rigid3d(pycolmap.Rotation3d(), translation))
    for point, track in zip(xyz, tracks):
        if track.length() > 1:
            model.add_point3D(point, track)
        else:
            for element in track.elements:
                model.image(element.image_id).points2D[element.point2D_idx].point3D_id = 2**64 - 1
    (folder / "sfm").mkdir()
    model.write(folder / "sfm")
    torch.manual_seed(0)
    save_network(folder / "tiny.safetensors", PDCNet(TINY))
    return folder


def test_finetune_adapts_weights_to_a_model(scene, tmp_path, capsys):
    command = ["train", "finetune", "--model", str(scene / "sfm"), "--images", str(scene / "images")]
    command += ["--weights", str(scene / "tiny.safetensors"), "--output", str(tmp_path), *QUICK]
    assert main(command) == 0
    printed = capsys.readouterr()
    assert "trained 2 iterations" in printed.err
    assert "real pairs in 1 scenes" in printed.err
    figures = read_table(tmp_path / "validation.csv")
    assert [row["iteration"] for row in figures] == [0, 2]  # before and after
    assert "real_pck_5" in figures[0]
    assert load_network(tmp_path / "best.safetensors").settings == TINY


def test_run_mixes_real_pairs_in(scene, tmp_path, capsys):
    command = ["train", "run", "--photos", str(scene / "images"), "--output", str(tmp_path), *QUICK]
    command += ["--model", str(scene / "sfm"), "--images", str(scene / "images"), "real_share=1"]
    command += ["backbone_weights=none", "loss.level_weights=[]", "network.pyramid_channels=8,8,8", "pairs.unrelated=0"]
    assert main([*command, "descriptors.iterations=0"]) == 0
    assert "trained 2 iterations" in capsys.readouterr().err
    rows = read_table(tmp_path / "train.csv")
    assert all(np.isfinite(row["level1_nll"]) for row in rows)
    assert "level1_outlier" not in rows[0]  # of real pairs no pixel is known to be hidden


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--config", "nothing"], "no preset nothing: give a YAML file or one of compact"),
        (["optimizer.rat=1"], "unknown setting optimizer.rat: did you mean rate?"),
        (["optimizer.rate=-1"], "optimizer.rate must be positive"),
        (["--model", "sfm"], "1 --model but 0 --images"),
        (["start_from=missing.safetensors"], "missing.safetensors: does not exist"),
    ],
)
def test_mistakes_are_answered_in_one_line(scene, tmp_path, capsys, words, message):
    command = ["train", "run", "--photos", str(scene / "images"), "--output", str(tmp_path / "out"), *words]
    assert main(command) == 2
    error = capsys.readouterr().err
    assert message in error
    assert "Traceback" not in error


def test_an_empty_folder_is_answered_in_one_line(tmp_path, capsys):
    (tmp_path / "photos").mkdir()
    assert main(["train", "run", "--photos", str(tmp_path / "photos"), "--output", str(tmp_path / "out")]) == 2
    assert "no usable photograph" in capsys.readouterr().err
