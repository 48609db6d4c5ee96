"""A pair's flow is exact: the query warped by it is the reference, wherever the reference is visible."""

from dataclasses import replace

import cv2
import numpy as np
import pytest
from photo_fakes import WavePhotos

from pdc_sfm.errors import SettingsError
from pdc_sfm.settings import load_settings
from pdc_sfm.synthetic.appearance import PhotometricSettings
from pdc_sfm.synthetic.pairs import SyntheticPair, SyntheticPairSettings, make_pair, sample, validation_pairs
from pdc_sfm.synthetic.photographs import open_cutouts, open_photographs
from pdc_sfm.synthetic.warps import KINDS, ImageFrame, WarpSettings
from pdc_sfm.training.preview import reconstruct

PLAIN = SyntheticPairSettings(
    size=(128, 160), objects=0, perturbations=False, unrelated=0, photometric=PhotometricSettings(strength=0)
)
PHOTOS = WavePhotos()


def kind_only(kind: str) -> WarpSettings:
    return WarpSettings(**{name: float(name == kind) for name in KINDS})


def pairs(settings: SyntheticPairSettings, n: int = 10, photos=PHOTOS) -> list[SyntheticPair]:
    return [make_pair(photos, None, settings, np.random.default_rng([1, i])) for i in range(n)]


def difference(pair: SyntheticPair, shift: float = 0.0) -> np.ndarray:
    """Gray levels between the reference and the query warped by the flow, at visible pixels."""
    warped = reconstruct(replace(pair, flow=pair.flow + np.float32(shift)))
    return np.abs(pair.reference.astype(float) - warped).mean(-1)[pair.visible]


def displacement(pair: SyntheticPair) -> np.ndarray:
    """The constant error of the flow, in pixels, that best explains what differs.

    Least squares on the gradient, beside the Laplacian, because the two images are not equally sharp.
    """
    reference = pair.reference.astype(np.float64)
    apart = reconstruct(pair) - reference
    inner = cv2.erode(pair.visible.astype(np.uint8), np.ones((5, 5))) > 0
    causes = [np.gradient(reference, axis=1), np.gradient(reference, axis=0), cv2.Laplacian(reference, cv2.CV_64F)]
    keep = inner[..., None] & (np.abs(apart) < 20)  # not the blended edges of objects
    return np.linalg.lstsq(np.stack([cause[keep] for cause in causes], -1), apart[keep], rcond=None)[0][:2]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("perturbations", [False, True])
def test_the_query_warped_by_the_flow_is_the_reference(kind, perturbations):
    made = pairs(replace(PLAIN, warp=kind_only(kind), perturbations=perturbations))
    exact, shifted = [difference(pair).mean() for pair in made], [difference(pair, 0.5).mean() for pair in made]
    assert max(exact) < 1.5  # of 255: rounding, linear interpolation, and one image sharper than the other
    assert np.mean(exact) < 0.8
    assert np.mean(shifted) > 3  # half a pixel of error would show
    assert np.abs([displacement(pair) for pair in made]).max() < 0.02


def test_with_objects_it_is_too_wherever_the_reference_is_visible():
    made = pairs(replace(PLAIN, objects=4, object_probability=1.0, perturbations=True), 20)
    assert all(not pair.visible.all() for pair in made)
    for pair in made:
        assert np.median(difference(pair)) < 1.5
        assert difference(pair).mean() < 2.5  # edges of objects are blended
        assert np.abs(displacement(pair)).max() < 0.05


def test_what_is_not_visible_is_indeed_different_or_out_of_view():
    settings = replace(PLAIN, objects=4, object_probability=1.0)
    apart = []
    for pair in pairs(settings, 20):
        in_view = ImageFrame(*settings.size).contains(ImageFrame(*settings.size).grid() + pair.flow)
        assert (in_view | ~pair.visible).all()
        occluded = in_view & ~pair.visible
        apart.append(np.abs(pair.reference.astype(float) - reconstruct(pair)).mean(-1)[occluded])
    assert np.concatenate(apart).mean() > 30


def test_neither_image_is_always_the_untouched_one():
    """Longer steps on the photograph make a finer picture: each image is the finer one in a good part of the pairs."""
    made = pairs(replace(PLAIN, warp=WarpSettings(homography=0, affine=1, tps=0, mixed=0, moderate=0, rotated=0)), 40)
    detail = [[np.abs(np.diff(im.astype(float), axis=1)).mean() for im in (p.reference, p.query)] for p in made]
    finer = np.mean([reference > query for reference, query in detail])
    assert 0.15 < finer < 0.85


@pytest.mark.parametrize("mask", ["none", "injective", "occlusion"])
def test_masks_nest_and_only_the_mask_depends_on_their_choice(mask):
    settings = replace(PLAIN, objects=4, object_probability=1.0)
    for pair, other in zip(pairs(replace(settings, mask=mask), 8), pairs(replace(settings, mask="occlusion"), 8)):
        assert (pair.mask | ~other.mask).all()  # the occlusion mask leaves the fewest pixels
        assert (pair.flow == other.flow).all()
        assert (pair.reference == other.reference).all()
        if mask == "none":
            assert pair.mask.all()


def test_no_two_distant_pixels_of_the_injective_mask_go_to_one_place():
    settings = replace(PLAIN, objects=4, object_probability=1.0, perturbations=True, warp=kind_only("mixed"))
    grid, met = ImageFrame(*settings.size).grid(), {"injective": 0, "none": 0}
    for mask in met:
        for pair in pairs(replace(settings, mask=mask), 12):
            target, source = (grid + pair.flow)[pair.mask], grid[pair.mask]
            cell = np.floor(target * 2).astype(np.int64) @ [1, 100_003]  # half pixels of the query
            order = np.argsort(cell, kind="stable")
            same = np.diff(cell[order]) == 0
            apart = np.abs(np.diff(source[order], axis=0)).max(-1) > 12  # neighbors may share a cell
            met[mask] += int((same & apart).sum())
    assert met["none"] > 500
    assert met["injective"] <= 0.03 * met["none"]  # edges, where a cell straddles an outline


def test_unrelated_pairs_come_in_their_share_and_ask_for_no_flow():
    made = pairs(replace(PLAIN, size=(64, 64), unrelated=0.25), 200)
    assert 0.15 < np.mean([pair.unrelated for pair in made]) < 0.35
    for pair in made:
        if pair.unrelated:
            assert not pair.flow.any()
            assert not pair.mask.any()
            assert not pair.visible.any()
            assert np.abs(pair.reference.astype(float) - pair.query).mean() > 20


def test_a_pair_is_fixed_by_its_random_numbers():
    settings = replace(SyntheticPairSettings(), size=(96, 96))
    first, again = pairs(settings, 4), pairs(settings, 4)
    for one, other in zip(first, again):
        assert all(np.array_equal(getattr(one, name), getattr(other, name)) for name in vars(one))
    assert not np.array_equal(first[0].reference, first[1].reference)


def test_photographs_smaller_or_larger_than_the_training_size_serve():
    for size in ((100, 130), (500, 400)):
        pair = pairs(PLAIN, 1, WavePhotos(2, size))[0]
        assert pair.reference.shape == pair.query.shape == (128, 160, 3)
        assert difference(pair).mean() < 1.5


def test_validation_pairs_are_fixed_homographies_of_the_photographs_in_turn():
    made, again = (list(validation_pairs(PHOTOS, 5, 7, (96, 128))) for _ in range(2))
    assert len(made) == 5
    for pair, same in zip(made, again):
        assert np.array_equal(pair.query, same.query)
        assert pair.mask.all()
        assert not pair.unrelated
        grid = ImageFrame(96, 128).grid().reshape(-1, 2)
        target = grid + pair.flow.reshape(-1, 2)
        fitted, _ = cv2.findHomography(grid[::97], target[::97], 0)
        assert cv2.perspectiveTransform(grid[:, None], fitted)[:, 0] == pytest.approx(target, abs=0.01)


def test_a_smaller_view_is_averaged_not_aliased():
    stripes = np.zeros((256, 256, 3), np.uint8)
    stripes[:, ::2] = 255  # at half size every point falls on a bright stripe
    shrunk = sample(stripes, ImageFrame(120, 120).grid() * 2)[5:-5, 5:-5]
    assert shrunk.mean() == pytest.approx(127, abs=10)
    assert shrunk.std() < 40


def test_settings_are_read_from_words_and_checked():
    settings = load_settings(
        SyntheticPairSettings, None, ["mask=occlusion", "objects=2", "size=256,384", "warp.max_zoom=2"]
    )
    assert settings.mask == "occlusion"
    assert settings.size == (256, 384)
    assert settings.warp.max_zoom == 2
    for words in (["objects=5"], ["mask=all"], ["unrelated=1.5"], ["size=16,16"]):
        with pytest.raises(SettingsError, match=words[0].split("=")[0]):
            load_settings(SyntheticPairSettings, None, words)


def test_on_real_photographs_the_reconstruction_is_the_reference(shared):
    photos, cutouts = open_photographs(shared / "data/photos", "validation"), open_cutouts(shared / "data/objects")
    settings = replace(PLAIN, size=(224, 256), objects=4, object_probability=1.0, perturbations=True)
    exact, shifted = [], []
    for i in range(10):
        pair = make_pair(photos, cutouts, settings, np.random.default_rng([2, i]))
        exact.append(np.median(difference(pair)))
        shifted.append(np.median(difference(pair, 1.0)))
    assert np.mean(exact) < 0.5 * np.mean(shifted)  # interpolation loses detail, an error far more
    assert np.mean(exact) < 4
