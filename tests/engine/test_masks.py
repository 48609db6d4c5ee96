"""`match --masks`: what is covered is in no file, masks are part of what made a run, and wrong ones are said."""

import numpy as np
import pytest
from fake_matcher import FakeMatcher, write_images, write_list

from pdc_sfm.cli import main
from pdc_sfm.engine.run import MatchingSettings, match_pairs
from pdc_sfm.errors import ImageError, OtherSettingsError
from pdc_sfm.images import read_image, write_image
from pdc_sfm.matches.masks import Masks
from pdc_sfm.matches.types import RawMatches
from pdc_sfm.pixels import grid_points
from pdc_sfm.settings import load_settings
from pdc_sfm.store.journal import RawStore
from pdc_sfm.store.readers import open_features, open_matches
from pdc_sfm.tracks.hloc_tracks import Job

NAMES = ["db/000.png", "db/001.png", "db/002.png"]
PAIRS = [(NAMES[0], NAMES[1]), (NAMES[1], NAMES[2]), (NAMES[0], NAMES[2])]
SETTINGS = MatchingSettings(readers=0)


@pytest.fixture
def photos(tmp_path):
    """Images, and masks that are black on the left half, of all but the last."""
    assert write_images(tmp_path / "images", 3) == NAMES
    write_list(tmp_path / "pairs.txt", PAIRS)
    for name in NAMES[:2]:
        picture = np.full(read_image(tmp_path / "images" / name).shape[:2], 255, np.uint8)
        picture[:, : picture.shape[1] // 2] = 0
        write_image(tmp_path / "masks" / f"{name}.png", picture)
    return tmp_path


def run(photos, output="out", masks="masks", **options):
    masks = None if masks is None else photos / masks
    folders = (photos / "images", photos / "pairs.txt", photos / output)
    return match_pairs(*folders, SETTINGS, masks=masks, matcher=FakeMatcher(), **options)


def test_what_is_under_a_mask_is_in_no_pair(photos):
    plain, masked = run(photos, "plain", None), run(photos)
    before, after = RawStore(plain.raw), RawStore(masked.raw)
    half = read_image(photos / "images" / "db" / "001.png").shape[1] // 2
    lost = 0
    for pair in PAIRS:
        all_of, kept = before.read(pair), after.read(pair)
        covered = np.zeros(len(all_of), bool)
        for name, points in zip(pair, (all_of.keypoints0, all_of.keypoints1)):
            if name in NAMES[:2]:
                covered |= np.floor(points[:, 0] + 0.5) < half
        assert 0 < len(kept) < len(all_of)
        assert np.array_equal(kept.keypoints1, all_of.keypoints1[~covered])
        lost += int(covered.sum())
    assert masked.loop.masked == lost > 0
    assert [line for line in masked.loop.remarks if line.startswith("1 of 3 images have no mask")]
    assert plain.loop.masked == 0


def test_other_masks_are_other_settings_and_the_same_go_on(photos):
    run(photos)
    assert run(photos).loop.pairs == 0
    with pytest.raises(OtherSettingsError, match="masks"):
        run(photos, masks=None)
    write_image(photos / "masks" / "db" / "001.png.png", 255 - read_image(photos / "masks" / "db" / "001.png.png"))
    with pytest.raises(OtherSettingsError, match="masks"):
        run(photos)


def test_a_mask_of_another_size_costs_its_image(photos):
    write_image(photos / "masks" / "db" / "001.png.png", np.zeros((8, 8), np.uint8))
    result = run(photos)
    assert list(result.loop.bad) == [NAMES[1]]
    assert "001.png.png is 8 x 8, the image db/001.png 64 x 48" in result.loop.bad[NAMES[1]]
    assert len(result.loop.skipped) == 2
    with pytest.raises(ImageError, match="make the mask as large as the image"):
        run(photos, "strict", strict=True)


def test_the_command_says_in_one_line_what_is_missing(photos, capsys):
    words = ["match", "--pairs", photos / "pairs.txt", "--images", photos / "images", "--output", photos / "new"]
    (photos / "empty").mkdir()
    assert main([str(word) for word in (*words, "--masks", photos / "empty")]) == 2
    assert "has no mask of any of 3 images: expected" in capsys.readouterr().err
    assert main([str(word) for word in (*words, "--masks", photos / "none")]) == 2
    assert capsys.readouterr().err.strip().endswith("is not a folder of masks")
    words[-1] = photos / "masks"
    assert main([str(word) for word in (*words, "--masks", photos / "masks")]) == 2
    assert "choose another output" in capsys.readouterr().err


class NoisyMatcher:
    """Images that do not move, matched to within a pixel: tracks average over that, and cells round it."""

    identity = "noisy"

    def encode(self, image, name="image"):
        return np.array([sum(name.encode()), *image.shape[:2]])

    def match(self, code0, code1):
        height, width = code0[1:]
        points = grid_points((width, height), (width, height)).reshape(-1, 2)
        noise = np.random.default_rng(int(code0[0] * 100 + code1[0])).uniform(-1, 1, points.shape)
        there = np.clip(points + noise, 0, (width - 1, height - 1))
        return RawMatches(points, there, np.full(len(points), 0.9))


@pytest.mark.parametrize("rule", ["flow", "hloc"])
@pytest.mark.parametrize("fixed", [False, True])
def test_no_keypoint_ends_under_a_mask(photos, rule, fixed, monkeypatch):
    """Also of images that are matched to fixed keypoints only."""
    settings = load_settings(MatchingSettings, None, ["readers=0", f"tracks.rule={rule}"])
    for name in NAMES[:2]:  # a fence, between whose posts places are averaged
        height, width = read_image(photos / "images" / name).shape[:2]
        fence = np.where(np.arange(width) % 6 < 2, 0, 255).astype(np.uint8)
        write_image(photos / "masks" / f"{name}.png", np.tile(fence, (height, 1)))

    def count(output):
        more = {"masks": photos / "masks", "matcher": NoisyMatcher()}
        pairs = [pair for pair in PAIRS if NAMES[0] in pair]
        if fixed:
            first = match_pairs(photos / "images", [PAIRS[1]], photos / output / "map", settings, **more)
            more["features"] = first.features
            pairs = [(NAMES[0], NAMES[1]), (NAMES[0], NAMES[2])]
        result = match_pairs(photos / "images", pairs, photos / output, settings, **more)
        masks = Masks(photos / "masks")
        with open_features(result.features) as file, open_matches(result.matches) as found:
            points = {name: file.keypoints(name).points for name in NAMES}
            for pair in pairs:
                matches, _ = found.matches(*pair)
                assert len(matches) > 20
                assert all(matches[:, side].max() < len(points[name]) for side, name in enumerate(pair))
        return sum(int(masks.covered(name, points[name]).sum()) for name in NAMES)

    assert count("new") == 0
    monkeypatch.setattr(Job, "free_points", lambda job, name, points: np.ones(len(points), bool))
    assert count("old") > 0  # which they would without being asked
