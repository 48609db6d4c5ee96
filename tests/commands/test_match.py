"""`pdc-sfm match` and `pdc-sfm pairs`: what is said, which code is returned."""

import cv2
import numpy as np
import pytest
from fake_matcher import FakeMatcher, write_images, write_list

from pdc_sfm.cli import main
from pdc_sfm.engine import run as engine
from pdc_sfm.images import write_image
from pdc_sfm.store.pair_lists import read_pairs


@pytest.fixture
def photos(tmp_path, monkeypatch):
    """Four images, the list of their pairs, and a matcher without a network."""
    names = write_images(tmp_path / "photos", 4)
    write_list(tmp_path / "pairs.txt", [(a, b) for a in names for b in names if a < b])
    monkeypatch.setattr(engine, "_load", lambda settings: FakeMatcher())
    monkeypatch.setattr(engine, "_made_by", lambda settings, matcher, given: {})
    return tmp_path


def match(folder, *words):
    return main(["match", "--pairs", str(folder / "pairs.txt"), "--images", str(folder / "photos"),
                 "--output", str(folder / "out"), "--quiet", *words])  # fmt: skip


def test_a_list_is_matched_and_the_files_are_named(photos, capsys):
    assert match(photos, "memory=1GB", "tracks.cell_size=6") == 0
    said = capsys.readouterr().out
    assert "matched 6 pairs with 4 encodings of 4 images" in said
    assert (photos / "out/feats_matches-pdc.h5").is_file()
    assert (photos / "out/matches-pdc_pairs.h5").is_file()
    assert match(photos, "tracks.cell_size=6") == 0
    assert "nothing to do" in capsys.readouterr().out


def test_files_can_be_given_by_name(photos):
    assert match(photos, "--features", str(photos / "f.h5"), "--matches", str(photos / "m.h5")) == 0
    assert (photos / "f.h5").is_file()
    assert (photos / "m.h5").is_file()


def test_a_bad_image_is_listed_and_the_code_is_1(photos, capsys):
    (photos / "photos/db/002.png").write_text("not an image")
    assert match(photos) == 1
    said = capsys.readouterr().err
    assert "002.png is not a readable image" in said
    assert "3 of 6 pairs, for 1 bad images" in said
    assert match(photos, "--strict") == 2
    assert "002.png is not a readable image" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "lists no pair"),
        ("db/000.png db/001.png\ndb/000.png\n", "line 2: a pair is two names"),
        ("my photo.png other.png\n", "names with spaces cannot stand in hloc's lists"),
        ("../secret.png db/000.png\n", "not a path below the image folder"),
        ("db/000.png db/000.png\n", "holds no pair of two images"),
    ],
)
def test_a_wrong_list_is_one_line_and_code_2(photos, capsys, text, said):
    (photos / "pairs.txt").write_text(text)
    assert match(photos) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1


def test_a_folder_instead_of_a_list_and_an_unknown_setting_are_named(photos, capsys):
    assert match(photos, "tracks.maxerror=3") == 2
    assert "did you mean max_error?" in capsys.readouterr().err
    (photos / "pairs.txt").unlink()
    (photos / "pairs.txt").mkdir()
    assert match(photos) == 2
    assert "it is a folder" in capsys.readouterr().err


def test_no_match_at_all_is_said(photos, capsys, monkeypatch):
    monkeypatch.setattr(engine, "_load", lambda settings: FakeMatcher(matches=0))
    assert match(photos) == 1
    assert "no match was found at all" in capsys.readouterr().err


def test_pair_lists_are_made(photos, capsys):
    pairs = ["--images", str(photos / "photos"), "--output", str(photos / "list.txt")]
    assert main(["pairs", "exhaustive", *pairs]) == 0
    assert "6 pairs of 4 images" in capsys.readouterr().out
    assert main(["pairs", "sequential", "--count", "1", *pairs]) == 0
    assert (photos / "list.txt").read_text().split("\n")[0] == "db/000.png db/001.png"
    assert main(["pairs", "poses", *pairs]) == 2
    assert "needs --model" in capsys.readouterr().err
    assert main(["pairs", "sequential", "--count", "0", *pairs]) == 2


def test_similar_images_become_pairs(tmp_path, capsys):
    """Three views of each of two pictures: every view is paired with those of its own."""
    for name, seed in (("one", 1), ("two", 2)):
        picture = np.random.default_rng(seed).integers(0, 256, (20, 26, 3), np.uint8)
        picture = cv2.resize(picture, (260, 200), interpolation=cv2.INTER_CUBIC)
        for view in range(3):
            write_image(
                tmp_path / f"photos/{name}{view}.png", picture[10 * view : 160 + 10 * view, 20 * view :][:, :200]
            )
    words = ["--images", str(tmp_path / "photos"), "--count", "2", "--output", str(tmp_path / "pairs.txt")]
    assert main(["pairs", "retrieval", *words]) == 0
    assert "6 pairs of 6 images" in capsys.readouterr().out
    assert all(one[:3] == other[:3] for one, other in read_pairs(tmp_path / "pairs.txt"))


def test_a_name_with_a_space_cannot_become_a_pair(photos, capsys):
    (photos / "photos/db/000.png").rename(photos / "photos/db/my photo.png")
    assert main(["pairs", "exhaustive", "--images", str(photos / "photos"), "--output", str(photos / "l.txt")]) == 2
    assert "'db/my photo.png' cannot stand in a pair list" in capsys.readouterr().err
