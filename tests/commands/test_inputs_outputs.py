"""Of every verb: no output replaces an input or is mixed with images, and outputs that cannot be are refused at once."""

import argparse
import os
import shutil
import time
from pathlib import Path

import numpy as np
import pytest

from pdc_sfm.cli import VERBS, main, make_parser
from pdc_sfm.errors import OutputError
from pdc_sfm.images import write_image

# Every verb with the paths it is given. The folder of a test holds what `place` makes. OUT is what is tried as output.
PAIR = ["pair", "photos/a.png", "photos/b.png", "--output", "OUT"]
FILES = ["--features", "features.h5", "--matches", "matches.h5"]
MAPPING = ["--images", "photos", "--pairs", "pairs.txt", *FILES, "--output", "OUT"]
TRAIN = ["--photos", "photos", "--objects", "cutouts", "--output", "OUT"]
AACHEN = ["--version", "1.1", "--dataset", "model", "--output", "OUT"]
COMMANDS = {
    "pair": PAIR,
    "pairs": ["pairs", "covisibility", "--images", "photos", "--model", "model", "--output", "OUT"],
    "match": ["match", "--pairs", "pairs.txt", "--images", "photos", "--features-ref", "features.h5", "--output", "OUT"],
    "match --features": [
        "match", "--pairs", "pairs.txt", "--images", "photos", "--features-ref", "features.h5", "--output", "there",
        "--features", "OUT", "--matches", "there/m.h5",
    ],
    "match --matches": [
        "match", "--pairs", "pairs.txt", "--images", "photos", "--features-ref", "features.h5", "--output", "there",
        "--features", "there/f.h5", "--matches", "OUT",
    ],
    "keypoints": ["keypoints", "--images", "photos", "--output", "OUT"],
    "weights convert": ["weights", "convert", "weights.safetensors", "OUT"],
    "retrieve": ["retrieve", "--images", "photos", "--queries", "names.txt", "--database", "*.list", "--output", "OUT"],
    "reconstruct": ["reconstruct", *MAPPING],
    "triangulate": ["triangulate", "--model", "model", *MAPPING],
    "localize": ["localize", "--model", "model", "--queries", "*.list", "--retrieval", "pairs.txt", *FILES, "--output", "OUT"],
    "view": ["view", "model", "--output", "OUT"],
    "densify": ["densify", "--map", "model", "--images", "photos", "--output", "OUT"],
    "export": ["export", "--map", "model", "--to", "splats", "--images", "photos", "--output", "OUT"],
    "aachen localize": ["aachen", "localize", *AACHEN, "--retrieval", "pairs.txt"],
    "aachen challenge": ["aachen", "challenge", *AACHEN],
    "scene": ["scene", "--output", "OUT"],
    "scene --kind": ["scene", "--kind", "room", "--photos", "photos", "--output", "OUT"],
    "frames": ["frames", "walk.mp4", "--output", "OUT"],
    "panoramas": ["panoramas", "photos", "--output", "OUT"],
    "map": ["map", "photos", "--output", "OUT"],
    "map --video": ["map", "--video", "walk.mp4", "--output", "OUT"],
    "extend": ["extend", "--map", "model", "--images", "photos", "--output", "OUT"],
    "demo": ["demo", "--images", "photos", "--output", "OUT"],
    "report": ["report", "OUT"],
    "train run": ["train", "run", *TRAIN, "--model", "model", "--images", "photos", "--scene", "scene"],
    "train finetune": ["train", "finetune", "--model", "model", "--images", "photos", "--output", "OUT"],
    "train calibrate": ["train", "calibrate", "--weights", "weights.safetensors", *TRAIN, "--scene", "scene"],
    "train preview": ["train", "preview", *TRAIN],
    "evaluate homographies": ["evaluate", "homographies", "--images", "photos", "--output", "OUT"],
    "evaluate homography-pair": ["evaluate", "homography-pair", "photos/a.png", "photos/b.png", "pairs.txt", "--output", "OUT"],
    "evaluate homography-sets": ["evaluate", "homography-sets", "--images", "photos", "--output", "OUT"],
    "evaluate pairs": ["evaluate", "pairs", "--list", "pairs.txt", "--images", "photos", "--output", "OUT"],
    "evaluate epipolar": ["evaluate", "epipolar", "--images", "photos", "--cameras", "names.txt", "--output", "OUT"],
    "evaluate scene": ["evaluate", "scene", "--scene", "scene", "--output", "OUT"],
    "evaluate megadepth": ["evaluate", "megadepth", "--data", "scene", "--images", "photos", "--output", "OUT"],
}  # fmt: skip
# What of a verb's inputs its output could be taken for: files for verbs that write a file, folders for the others.
SAME = [
    ("extend", "photos"), ("extend", "model"), ("densify", "photos"), ("densify", "model"),
    ("pair", "photos/a.png"), ("pair", "photos/b.png"), ("pairs", "model/cameras.bin"), ("match", "photos"),
    ("match --features", "pairs.txt"), ("match --matches", "pairs.txt"), ("match --matches", "features.h5"),
    ("keypoints", "photos/a.png"), ("weights convert", "weights.safetensors"),
    ("retrieve", "names.txt"), ("retrieve", "db.list"), ("reconstruct", "photos"), ("triangulate", "photos"),
    ("triangulate", "model"), ("localize", "features.h5"), ("localize", "matches.h5"), ("localize", "pairs.txt"),
    ("localize", "db.list"), ("localize", "model/points3D.bin"), ("aachen localize", "model"),
    ("aachen challenge", "model"), ("export", "photos"), ("export", "model"),
    ("demo", "photos"), ("map", "photos"), ("panoramas", "photos"), ("train run", "photos"), ("train run", "cutouts"),
    ("train run", "scene"), ("train run", "model"), ("train finetune", "photos"), ("train finetune", "model"),
    ("train calibrate", "weights.safetensors"), ("train preview", "photos/a.png"), ("evaluate homographies", "photos"),
    ("evaluate homography-sets", "photos"), ("evaluate epipolar", "photos"), ("evaluate pairs", "photos"),
    ("scene --kind", "photos"), ("evaluate scene", "scene"),
    ("evaluate megadepth", "photos"), ("evaluate megadepth", "scene"),
]  # fmt: skip
WITH_IMAGES = [name for name, words in COMMANDS.items() if {"--images", "--photos"} & set(words)]
WRITES_FOLDER = [
    name for name in COMMANDS
    if name in ("match", "reconstruct", "triangulate", "export", "scene", "scene --kind", "demo", "map", "extend", "report")
    or name in ("densify", "train run", "train finetune", "frames", "panoramas", "map --video")
    or name.startswith(("aachen", "evaluate"))
]  # fmt: skip
WRITES_FILE = [name for name in COMMANDS if name not in WRITES_FOLDER]
PICTURES = ("pair", "view", "train preview")


@pytest.fixture
def place(tmp_path, monkeypatch):
    for name in ("photos/a.png", "photos/b.png", "cutouts/c.png"):
        write_image(tmp_path / name, np.zeros((32, 32, 3), np.uint8))
    for name in ("cameras.bin", "images.bin", "points3D.bin"):
        (tmp_path / "model").mkdir(exist_ok=True)
        (tmp_path / "model" / name).write_bytes(bytes(8))
    for name in (
        "pairs.txt",
        "names.txt",
        "db.list",
        "features.h5",
        "matches.h5",
        "weights.safetensors",
        "scene/x.json",
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(f"a.png b.png\n# {name}")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def content(folder):
    return {path: path.read_bytes() if path.is_file() else None for path in sorted(folder.rglob("*"))}


def refused(capsys, verb, output, *words):
    """Run a verb; it must say one line, at once, and leave everything as it was. Returns the line."""
    before, begun = content(Path.cwd()), time.process_time()
    command = [str(output) if word == "OUT" else word for word in COMMANDS[verb]]
    assert main([*command, *words]) == 2
    assert time.process_time() - begun < 2  # nothing was loaded
    assert content(Path.cwd()) == before
    line = capsys.readouterr().err
    assert line.startswith("pdc-sfm: ")
    assert line.count("\n") == 1
    assert "same command" not in line
    return line


@pytest.mark.parametrize(("verb", "same"), SAME)
@pytest.mark.parametrize("how", ["as it is", "absolute", "spelled otherwise", "by a link", "by a second name"])
def test_an_input_is_no_output(place, capsys, verb, same, how):
    output = Path(same)
    if how == "absolute":
        output = place / same
    if how == "spelled otherwise":
        output = Path("model", "..", same)
    if how == "by a link":
        output = Path(f"link{output.suffix}")
        output.symlink_to(place / same)
    if how == "by a second name":
        if output.is_dir():
            pytest.skip("folders have one name")
        output = Path(f"second{output.suffix}")
        os.link(same, output)
    line = refused(capsys, verb, output)
    assert any(said in line for said in ("is an input", "is the image", "which holds images"))


@pytest.mark.parametrize("verb", WITH_IMAGES)
@pytest.mark.parametrize("output", ["photos/out.png", "photos/deep/er/out.png"])
def test_no_folder_and_no_picture_is_written_among_the_images(place, capsys, verb, output):
    assert "photos, which holds images" in refused(capsys, verb, output)


def test_a_plain_file_among_the_images_does_no_harm(place, capsys):
    os.chdir("photos")
    for _ in range(2):  # the second replaces the first's
        assert main(["pairs", "exhaustive", "--images", ".", "--output", "pairs.txt"]) == 0
    assert Path("pairs.txt").read_text() == "a.png b.png\n"
    photograph = Path("a.png").read_bytes()
    for name in ("copy.dat", "second.txt", "link.txt"):  # images that lists may name, and other names of one
        Path(name).write_bytes(photograph) if name == "copy.dat" else None
        os.link("a.png", name) if name == "second.txt" else None
        Path(name).symlink_to("a.png") if name == "link.txt" else None
        assert main(["pairs", "exhaustive", "--images", ".", "--output", name]) == 2
        assert "is the image" in capsys.readouterr().err
        assert Path(name).read_bytes() == photograph


def test_functions_refuse_what_their_verbs_refuse(place):
    from pdc_sfm.colmap.localization.localize_sfm import localize
    from pdc_sfm.colmap.mapping.reconstruction import reconstruct
    from pdc_sfm.colmap.mapping.triangulation import triangulate
    from pdc_sfm.keypoints.extraction import export_keypoints
    from pdc_sfm.retrieval import retrieve

    before, files = content(place), ("pairs.txt", "features.h5", "matches.h5")
    for call in (
        lambda: reconstruct("photos", *files, "photos/sfm"),
        lambda: reconstruct("photos", *files, "photos"),
        lambda: triangulate("model", "photos", *files, "model"),
        lambda: localize("model", "*.list", *files, "db.list"),
        lambda: localize("model", "*.list", *files, "model/points3D.bin"),
        lambda: retrieve("photos", "names.txt", "*.list", "db.list"),
        lambda: retrieve("photos", "names.txt", "*.list", "photos/pairs.out"),  # with a folder of counts beside it
        lambda: export_keypoints("photos", "photos/a.png"),
    ):
        with pytest.raises(OutputError):
            call()
        assert content(place) == before


def test_photographs_where_the_demo_makes_links_are_not_deleted(place, capsys):
    shutil.move("photos", "images")
    before = content(Path("images"))
    assert main(["demo", "--images", "images", "--output", "."]) == 2
    assert main(["demo", "--images", "images/", "--output", str(place)]) == 2
    assert content(Path("images")) == before


def test_a_file_beside_the_output_is_guarded_too(place, capsys):
    Path("names.json").write_text("a.png\n")
    for words in (
        [
            "retrieve",
            "--images",
            "photos",
            "--queries",
            "names.json",
            "--database",
            "names.txt",
            "--output",
            "names.out",
        ],
        [
            "localize",
            "--model",
            "model",
            "--queries",
            "r_logs.json",
            "--retrieval",
            "pairs.txt",
            *FILES,
            "--output",
            "r",
        ],
    ):
        Path("r_logs.json").write_text("precious")
        assert main(words) == 2
        assert "is an input" in capsys.readouterr().err


@pytest.mark.parametrize("verb", WRITES_FOLDER)
def test_a_file_is_no_folder_to_write_to(place, capsys, verb):
    Path("notes").write_text("mine")
    assert "notes is a file" in refused(capsys, verb, "notes")
    assert "notes is a file" in refused(capsys, verb, "notes/deeper")


@pytest.mark.parametrize("verb", WRITES_FILE)
def test_a_folder_or_a_device_is_no_file_to_write(place, capsys, verb):
    Path("there.png").mkdir()
    assert "is a folder" in refused(capsys, verb, "there.png")
    assert "pairs.txt is a file" in refused(capsys, verb, "pairs.txt/x.png")
    os.mkfifo("pipe.png")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "read_bytes", lambda path: b"")  # or this test would wait for the pipe
        assert "pipe or a device" in refused(capsys, verb, "pipe.png")
    if verb not in PICTURES:
        assert "pipe or a device" in refused(capsys, verb, "/dev/null")
        assert Path("/dev/null").is_char_device()


@pytest.mark.parametrize("verb", COMMANDS)
def test_a_place_that_may_not_be_written_is_said_before_all_else(place, capsys, monkeypatch, verb):
    Path("locked").mkdir()
    real = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: "locked" not in str(path) and real(path, mode))
    assert "may not be written" in refused(capsys, verb, "locked/deep/out.png")


@pytest.mark.parametrize("verb", PICTURES)
def test_a_picture_has_the_suffix_of_one(place, capsys, verb):
    assert "end its name with one of .jpg" in refused(capsys, verb, "out.gif")


KINDS = ("images", "inputs", "models", "guarded", "files", "pictures", "folders")
DATASETS = ("robotcar", "eth3d", "kitti", "hpatches", "hpatches240", "yfcc", "scannet")  # one module with megadepth


def leaves(parser, name=""):
    """All parsers that run something, with their names."""
    found = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    parts = [leaves(sub, f"{name} {key}".strip()) for action in found for key, sub in action.choices.items()]
    return {key: leaf for part in parts for key, leaf in part.items()} if found else {name: parser}


def test_every_path_that_a_verb_takes_is_known_as_an_input_or_an_output():
    for name, parser in leaves(make_parser(list(VERBS))).items():
        taken = {action.dest for action in parser._actions if action.type is Path} - {"config"}
        paths = parser.get_default("paths")
        forms = getattr(paths, "forms", (paths,))  # a verb may be called in two forms
        known = {argument for form in forms for kind in KINDS for argument in getattr(form, kind)}
        assert taken <= known, f"{name}: {taken - known}: say in `paths` what is read and what is written"
        assert "output" not in taken or name.split()[-1] in DATASETS or name in COMMANDS  # and so tried above
