"""Which matches are kept, and that they are where they should be in the original images."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from pdc_sfm.dense.estimate import DenseEstimate
from pdc_sfm.errors import SettingsError
from pdc_sfm.matches.kept import best_of_blocks
from pdc_sfm.matches.select import SelectSettings, select_matches, subsample_spatially
from pdc_sfm.matches.types import RawMatches
from pdc_sfm.pixels import grid_points, inside, transform

SIZE = (320, 240)


def zoom(factor: float, center=(140.0, 110.0)) -> np.ndarray:
    x, y = center
    return np.array([[factor, 0, x * (1 - factor)], [0, factor, y * (1 - factor)], [0, 0, 1.0]])


def exact(homography, reference_size=SIZE, query_size=SIZE, weight=9.0, stride=4, cells=None) -> DenseEstimate:
    """The estimate of a perfect network that saw the image at `stride` pixels a cell; `weight` of component 1."""
    cells = cells or (reference_size[0] // stride, reference_size[1] // stride)
    grid = grid_points(cells, reference_size)
    points = transform(grid, homography)
    logits = np.zeros((*grid.shape[:2], 2), np.float32)
    logits[..., 0] = weight
    log_var = np.zeros_like(logits)
    log_var[..., 1] = 8
    flow, valid = (points - grid).astype(np.float32), inside(points, query_size)
    return DenseEstimate(flow, log_var, logits, valid, reference_size, query_size, stride=stride)


def both(homography, **options):
    return exact(homography, **options), exact(np.linalg.inv(homography), **options)


@pytest.mark.parametrize("factor", [0.5, 2.0, 3.0])
def test_a_zoomed_pair_has_no_shift(factor):
    """Both points taken at the corner of their cell instead of its center would be off by 1.5 (z - 1) pixels."""
    truth = zoom(factor)
    matches = select_matches(*both(truth))
    assert len(matches) > 1000
    shift = matches.keypoints1 - transform(matches.keypoints0, truth)
    np.testing.assert_allclose(shift, 0, atol=1e-3)

    estimate = exact(truth)  # the published way: cell index times 4, and the flow added to it
    rows, columns = np.nonzero(estimate.valid)
    corners = 4.0 * np.stack((columns, rows), 1)
    published = corners + estimate.flow[rows, columns]
    error = published - transform(corners, truth)
    np.testing.assert_allclose(error, 1.5 * (factor - 1), atol=1e-3)


def test_coordinates_are_exact_when_the_network_saw_another_size():
    truth = zoom(2.0)
    for cells in ((60, 64), (64, 64), (40, 30)):  # as for inputs of 240x256, 256x256, 160x120 pixels
        matches = select_matches(exact(truth, cells=cells), exact(np.linalg.inv(truth), cells=cells))
        np.testing.assert_allclose(matches.keypoints1, transform(matches.keypoints0, truth), atol=1e-3)


def test_out_of_view_points_are_dropped_in_both_directions():
    matches = select_matches(*both(zoom(2.0)))
    assert inside(matches.keypoints0, SIZE).all()
    assert inside(matches.keypoints1, SIZE).all()


def test_directions():
    """Zoom 2: a quarter of the first image is seen by all of the second."""
    forward, backward = both(zoom(2.0, (159.5, 119.5)))
    found = {d: select_matches(forward, backward, SelectSettings(directions=d)) for d in ("forward", "both", "mutual")}
    count = {direction: len(matches) for direction, matches in found.items()}
    assert count["forward"] == forward.valid.sum() == 80 * 60 // 4
    assert count["both"] == 80 * 60 // 4 + 80 * 60
    assert count["mutual"] == count["both"]  # all agree
    wrong = exact(np.array([[1, 0, 60.0], [0, 1, 0], [0, 0, 1]]) @ np.linalg.inv(zoom(2.0, (159.5, 119.5))))
    assert len(select_matches(forward, wrong, SelectSettings(directions="mutual"))) == 0
    assert len(select_matches(forward, wrong, SelectSettings(directions="both"))) > 0


def test_swapping_the_images_swaps_the_matches():
    forward, backward = both(zoom(1.3))
    one, other = select_matches(forward, backward), select_matches(backward, forward)
    order = lambda m: np.lexsort((*m.keypoints0.T, *m.keypoints1.T))  # noqa: E731
    swapped = other.swapped()
    np.testing.assert_array_equal(one.keypoints0[order(one)], swapped.keypoints0[order(swapped)])
    np.testing.assert_array_equal(one.keypoints1[order(one)], swapped.keypoints1[order(swapped)])


def test_only_confidence_above_the_threshold_is_kept_and_is_the_score():
    estimate = exact(np.eye(3))
    logits = estimate.logits.copy()
    logits[..., 0] = np.linspace(-9, 9, 80)  # confident to the right
    estimate = replace(estimate, logits=logits)
    confidence = estimate.confidence
    matches = select_matches(estimate, settings=SelectSettings(directions="forward", threshold=0.3))
    assert len(matches) == (confidence > 0.3).sum()
    assert 0 < len(matches) < confidence.size
    assert matches.scores.min() > 0.3
    assert matches.scores.max() == confidence.max()


def test_what_a_confidence_head_states_is_kept_by_and_is_the_score():
    """Whatever the mixture beside it says: here it is sure of nothing."""
    unsure = exact(np.eye(3), weight=-50.0)
    stated = np.linspace(0, 1, 80, dtype=np.float32) * np.ones((60, 1), np.float32)
    estimate = replace(unsure, head_confidence=stated)
    matches = select_matches(estimate, settings=SelectSettings(directions="forward", threshold=0.9))
    assert len(matches) == (stated > 0.9).sum() == 8 * 60
    assert matches.scores.max() == 1
    with pytest.raises(SettingsError, match=r"radius=2: these weights state the probability of an error below 1 pixel"):
        select_matches(estimate, settings=SelectSettings(directions="forward", radius=2))


def test_a_threshold_is_a_probability_and_settings_out_of_range_are_named():
    SelectSettings(threshold=0.9)
    for threshold in (-0.1, 1.0):
        with pytest.raises(SettingsError, match=f"threshold={threshold} must be a probability"):
            SelectSettings(threshold=threshold)
    with pytest.raises(SettingsError, match="radius"):
        SelectSettings(radius=0)
    with pytest.raises(SettingsError, match="max_matches"):
        SelectSettings(max_matches=0)


def test_the_cyclic_error_can_replace_the_confidence():
    forward, backward = both(zoom(1.2))
    unsure = exact(zoom(1.2), weight=-50.0), exact(np.linalg.inv(zoom(1.2)), weight=-50.0)
    assert len(select_matches(*unsure)) == 0
    matches = select_matches(*unsure, SelectSettings(confidence="cyclic"))
    assert len(matches) > 1000
    assert matches.scores.min() > 0.99  # no error at all
    assert len(select_matches(forward, forward, SelectSettings(confidence="cyclic", cyclic_distance=0.5))) < 300


def test_a_finer_grid_gives_at_most_one_match_a_quarter_resolution_cell():
    fine = exact(np.eye(3), stride=2)
    scores = np.random.default_rng(0).normal(size=fine.logits.shape[:2]).astype(np.float32)
    fine = replace(fine, logits=scores[..., None] * np.array([1, 0], np.float32))
    matches = select_matches(fine, settings=SelectSettings(directions="forward", threshold=0.0))
    cell = (matches.keypoints0 + 0.5) // 4
    assert len(np.unique(cell, axis=0)) == len(matches) == 80 * 60
    everything = select_matches(fine, settings=SelectSettings(directions="forward", threshold=0.0, stride=2))
    assert len(everything) == 160 * 120


def test_the_best_cell_of_each_block_is_taken_also_in_incomplete_blocks():
    scores = np.array([[1, 2, 9], [4, 3, 8], [5, 6, 7.0]])
    expected = np.array([[0, 0, 1], [1, 0, 0], [0, 1, 1]], bool)
    np.testing.assert_array_equal(best_of_blocks(torch.from_numpy(scores)[None, None], 2)[0, 0], expected)


def test_the_cap_keeps_the_best_of_every_region():
    """Ten thousand very confident matches in one corner do not push out the only ones elsewhere."""
    rng = np.random.default_rng(0)
    crowd = rng.random((10_000, 2)) * 40
    lonely = np.array([[300.0, 20], [20, 220], [300, 220], [160, 120]])
    points = np.concatenate((crowd, lonely)).astype(np.float32)
    scores = np.r_[rng.uniform(0.4, 0.57, 10_000), [0.11] * 4].astype(np.float32)
    kept = subsample_spatially(RawMatches(points, points, scores), 100, SIZE)
    assert len(kept) == 100
    assert {tuple(p) for p in lonely} <= {tuple(p) for p in kept.keypoints0}
    crowded = kept.select(kept.keypoints0.max(1) < 40)
    assert crowded.scores.mean() > 0.55  # and in the crowd the best are taken
    assert len(subsample_spatially(kept, 1000, SIZE)) == 100


def test_no_matches_at_all_are_empty_arrays():
    matches = select_matches(exact(np.eye(3), weight=-50), exact(np.eye(3), weight=-50))
    assert matches.keypoints0.shape == (0, 2)
    assert len(subsample_spatially(matches, 10, SIZE)) == 0


def test_a_missing_direction_is_a_programming_error():
    with pytest.raises(ValueError, match="both estimates"):
        select_matches(exact(np.eye(3)))
