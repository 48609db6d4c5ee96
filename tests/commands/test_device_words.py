"""A device that is not there ends every verb that computes in one line, before an image or weights are read."""

import pytest

from pdc_sfm.cli import main

NETWORK = ["--weights", "none.safetensors"]
EVALUATE = ["--output", "out", *NETWORK]
COMMANDS = {
    "match": ["match", "--pairs", "pairs.txt", "--images", "photos", "--output", "out", "weights=none.safetensors"],
    "retrieve": ["retrieve", "--images", "photos", "--queries", ".", "--database", ".", "--output", "out/p.txt"],
    "keypoints": ["keypoints", "--images", "photos", "--output", "out.h5"],
    "superpoint": ["keypoints", "--images", "photos", "--output", "out.h5", "detector=superpoint", "weights=none.pth"],
    "pair": ["pair", "photos/a.png", "photos/b.png", "--output", "out.png", *NETWORK],
    "report": ["report", "out"],
    "demo": ["demo", "--output", "out"],
    "map": ["map", "photos", "--output", "out"],
    "extend": ["extend", "--map", "map", "--images", "photos", "--output", "out"],
    "demo --images": ["demo", "--images", "photos", "--output", "out"],
    "train run": ["train", "run", "--photos", "photos", "--output", "out"],
    "train finetune": [
        "train", "finetune", "--model", "photos", "--images", "photos", "--output", "out", "--weights", "none.safetensors"
    ],
    "localize --map": ["localize", "--map", "map", "--images", "photos", "--output", "out"],
    "evaluate homographies": ["evaluate", "homographies", "--images", "photos", *EVALUATE],
    "evaluate homography-pair": ["evaluate", "homography-pair", "photos/a.png", "photos/b.png", "pairs.txt", *EVALUATE],
    "evaluate homography-sets": ["evaluate", "homography-sets", "--images", "photos", *EVALUATE],
    "evaluate pairs": ["evaluate", "pairs", "--list", "pairs.txt", "--images", "photos", *EVALUATE],
    "evaluate epipolar": ["evaluate", "epipolar", "--images", "photos", "--cameras", "pairs.txt", *EVALUATE],
    "evaluate scene": ["evaluate", "scene", *EVALUATE],
    "evaluate megadepth": ["evaluate", "megadepth", "--data", "photos", *EVALUATE],
}  # fmt: skip
PREFIX = {"demo": "match.", "map": "match.", "extend": "match.", "demo --images": "match.", "localize --map": "match."}
SAID = {
    "cuda": "device=cuda: this torch",
    "cuda:7": "device=cuda:7: this torch",
    "banana": "device=banana is not possible: use auto, cpu, cuda or cuda:NUMBER",
}


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    """What is read would be an error of its own: images are none, weights are not there."""
    for name in ("photos/a.png", "photos/b.png", "map/images/a.png", "map/features.h5", "map/sfm/summary.json"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("{}")
    (tmp_path / "pairs.txt").write_text("a.png b.png\n")
    (tmp_path / "out").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    monkeypatch.setattr("torch.version.cuda", None)


@pytest.mark.parametrize("device", SAID)
@pytest.mark.parametrize("verb", COMMANDS)
def test_a_device_that_is_not_there_is_one_line(verb, device, capsys):
    option = verb.startswith(("pair", "report", "evaluate"))
    words = ["--device", device] if option else [f"{PREFIX.get(verb, '')}device={device}"]
    assert main([*COMMANDS[verb], *words]) == 2
    line = capsys.readouterr().err
    assert line.startswith(f"pdc-sfm: {SAID[device]}")
    assert line.count("\n") == 1
