"""The sheet of samples, from the command line."""

import numpy as np
import pytest
from photo_fakes import waves

from pdc_sfm.cli import main
from pdc_sfm.images import read_image, write_image


@pytest.fixture
def photos(tmp_path):
    for n in range(3):
        write_image(tmp_path / "photos" / f"{'abc'[n]}.png", waves(n, (240, 320)))
    return tmp_path / "photos"


def preview(photos, output, *words) -> int:
    return main(["train", "preview", "--photos", str(photos), "--output", str(output), *words])


def test_the_sheet_has_a_row_for_each_pair_and_a_column_for_each_picture(photos, tmp_path, capsys):
    words = ("--pairs", "2", "size=96,128", "unrelated=0", "objects=0", "photometric.strength=0")
    assert preview(photos, tmp_path / "sheet.png", *words) == 0
    assert "3 photographs" in capsys.readouterr().out
    sheet = read_image(tmp_path / "sheet.png")
    assert sheet.shape == (24 + 4 + 2 * (96 + 4), 4 + 7 * (128 + 4), 3)
    rows = [sheet[28 + 100 * row :][:96] for row in range(2)]
    columns = [[row[:, 4 + 132 * column :][:, :128].astype(int) for column in range(7)] for row in rows]
    for reference, _, _, _, visible, warped, apart in columns:
        seen = visible[..., 0] > 0
        assert seen.any()
        assert np.abs(reference - warped)[seen].mean() < 1.5  # the reconstruction is the reference
        assert not apart[~seen].any()


def test_a_wrong_setting_or_an_empty_folder_ends_with_one_line_and_code_2(photos, tmp_path, capsys):
    assert preview(photos, tmp_path / "sheet.png", "masks=none") == 2
    assert "did you mean mask?" in capsys.readouterr().err
    assert preview(photos, tmp_path / "sheet.txt") == 2
    assert "end its name with one of .jpg" in capsys.readouterr().err
    (tmp_path / "empty").mkdir()
    assert preview(tmp_path / "empty", tmp_path / "sheet.png") == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert not (tmp_path / "sheet.png").exists()


def test_pairs_of_rendered_scenes_are_shown_alike(tmp_path, capsys):
    words = [
        "--kind",
        "object",
        "--output",
        str(tmp_path / "object"),
        "--workers",
        "1",
        "width=128",
        "height=96",
        "images=4",
    ]
    assert main(["scene", *words, "textures=4", "seed=3", "twin=0"]) == 0
    sheet = tmp_path / "sheet.png"
    shown = [
        "train",
        "preview",
        "--scene",
        str(tmp_path / "object"),
        "--output",
        str(sheet),
        "--pairs",
        "2",
        "size=64,96",
    ]
    assert main(shown) == 0
    assert read_image(sheet).shape == (24 + 4 + 2 * (64 + 4), 4 + 7 * (96 + 4), 3)


def test_photographs_or_scenes_but_not_both_and_not_neither(photos, tmp_path, capsys):
    output = ["--output", str(tmp_path / "sheet.png")]
    for words in ([], ["--photos", str(photos), "--scene", str(photos)]):
        assert main(["train", "preview", *words, *output]) == 2
        assert "either --photos" in capsys.readouterr().err
