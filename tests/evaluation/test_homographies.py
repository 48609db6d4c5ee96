"""The benchmark from photographs: an exact matcher gets full marks, a wrong one none."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from photo_fakes import WavePhotos

from pdc_sfm.dense.estimate import DenseEstimate
from pdc_sfm.dense.settings import DenseSettings
from pdc_sfm.errors import SettingsError
from pdc_sfm.evaluation.measures.dense_scores import DenseScores
from pdc_sfm.evaluation.measures.match_scores import homography_error
from pdc_sfm.evaluation.runs.homographies import (
    KINDS,
    HomographySettings,
    evaluate_homographies,
    pairs_of,
    score_flow,
    unrelated_pairs,
)
from pdc_sfm.evaluation.runs.homography_report import summarize, text, write_results
from pdc_sfm.matcher import PairSettings
from pdc_sfm.matches.select import SelectSettings
from pdc_sfm.matches.types import RawMatches
from pdc_sfm.pixels import inside

SIZE = (96, 128)
FORWARD = SelectSettings(directions="forward")  # the one direction that is known below
SETTINGS = HomographySettings(count=2, kinds=("viewpoint", "blur"), size=SIZE, select=FORWARD)
PHOTOS = WavePhotos(3)


class KnowingMatcher:
    """Knows the true flow of the benchmark's pairs; errs by `offset` pixels and is sure of all of them, of no others."""

    def __init__(self, settings, offset=0.0):
        self.offset, self.settings = offset, PairSettings(settings.dense, settings.select)
        pairs = [pair for kind in settings.kinds for pair in pairs_of(PHOTOS, kind, settings)]
        self.flows = {(p.reference.tobytes(), p.query.tobytes()): p.flow for p in pairs}
        self.estimator = SimpleNamespace(estimate_both=self.estimate_both)

    def encode(self, image, name=""):
        return image

    def estimate_both(self, reference, query):
        flow = self.flows.get((reference.tobytes(), query.tobytes()))
        known = flow is not None
        forward = self._estimate(np.zeros((*SIZE, 2), np.float32) if flow is None else flow + self.offset, known)
        return forward, self._estimate(np.zeros((*SIZE, 2), np.float32), False)

    def _estimate(self, flow, sure):
        size = SIZE[::-1]
        y, x = np.mgrid[: SIZE[0], : SIZE[1]]
        valid = inside(np.stack([x, y], -1) + flow, size)
        log_var = np.zeros((*SIZE, 2), np.float32) + np.float32([0, 6])
        logits = np.zeros((*SIZE, 2), np.float32) + np.float32([8, 0] if sure else [-8, 0])
        return DenseEstimate(flow.astype(np.float32), log_var, logits, valid, size, size, stride=1)


@pytest.fixture(scope="module")
def exact():
    return evaluate_homographies(PHOTOS, KnowingMatcher(SETTINGS), SETTINGS)


def test_an_exact_matcher_gets_full_marks(exact):
    for kind in SETTINGS.kinds:
        dense, ours = exact.kinds[kind].dense.summary(), exact.kinds[kind].ours.summary()
        assert dense["pairs"] == 2
        assert dense["aepe"] < 1e-3
        assert dense["pck_1"] == dense["kept"] == dense["kept_pck_5"] == 1
        assert ours["within_1"] > 0.99
        assert ours["homography_found"] == 1


def test_unrelated_photographs_have_no_confident_pixel(exact):
    assert exact.unrelated_confident == [0, 0]
    assert exact.unrelated_matches == [0, 0]


def test_an_offset_of_three_and_a_half_pixels_is_seen_by_pck_1_and_passes_pck_5():
    settings = HomographySettings(count=1, kinds=("viewpoint",), size=SIZE)
    result = evaluate_homographies(PHOTOS, KnowingMatcher(settings, offset=2.5), settings)
    dense = result.kinds["viewpoint"].dense.summary()
    assert dense["aepe"] == pytest.approx(2.5 * np.sqrt(2), rel=1e-3)
    assert (dense["pck_1"], dense["pck_3"], dense["pck_5"]) == (0, 0, 1)
    assert dense["calibration"][5]["true"] == 0  # as sure as a mixture can be, .573, and never within a pixel
    assert dense["calibration_error"] > 0.5


@pytest.mark.parametrize(("min_side", "offset", "within"), [(480, 0.19, 1), (480, 0.21, 0), (48, 1.9, 1), (48, 2.1, 0)])
def test_calibration_counts_pixels_of_the_network(min_side, offset, within):
    # pairs of 96 pixels seen at 480: one pixel of the network is 0.2 of theirs; seen at 48 it is 2
    settings = HomographySettings(count=1, kinds=("viewpoint",), size=SIZE, dense=DenseSettings(min_side=min_side))
    forward = KnowingMatcher(settings, offset)
    pair = next(iter(pairs_of(PHOTOS, "viewpoint", settings)))
    scores = DenseScores()
    score_flow(pair, *forward.estimate_both(pair.reference, pair.query), scores, settings.dense)
    assert scores.summary()["calibration"][5]["true"] == within


def test_the_same_seed_gives_the_same_pairs_and_every_kind_can_be_made():
    settings = HomographySettings(count=1, size=SIZE)
    for kind in KINDS:
        first, again = (next(iter(pairs_of(PHOTOS, kind, settings))) for _ in range(2))
        assert np.array_equal(first.reference, again.reference)
        assert np.array_equal(first.flow, again.flow)
        assert first.visible.mean() > 0.02
    assert all(pair.unrelated for pair in unrelated_pairs(PHOTOS, settings))


def test_strong_zoom_zooms_more_than_zoom():
    settings = HomographySettings(count=8, size=SIZE)

    def zoom(pair):
        step = np.diff(pair.flow[48, :, 0]) + 1
        return abs(np.log(abs(np.median(step))))

    means = {kind: np.mean([zoom(p) for p in pairs_of(PHOTOS, kind, settings)]) for kind in ("zoom", "strong zoom")}
    assert means["strong zoom"] > 1.5 * means["zoom"]


def test_too_few_matches_give_no_homography():
    assert homography_error(RawMatches.empty(), np.zeros((1, 2)), np.zeros((1, 2))) == np.inf


def test_results_are_printed_and_written(exact, tmp_path):
    summary = summarize(exact, SETTINGS, "none")
    said = text(summary)
    for word in ("viewpoint", "blur", "all", "AUSE", "SIFT", "Calibration", "Unrelated"):
        assert word in said
    written = write_results(tmp_path, exact, summary)
    assert all(path.exists() for path in written)
    stored = json.loads((tmp_path / "results.json").read_text())
    assert stored["settings"]["count"] == 2
    assert stored["dense"]["all"]["pairs"] == 4
    assert {path.name for path in (tmp_path / "pairs").iterdir()} == {"viewpoint.jpg", "blur.jpg"}


def test_an_unknown_kind_is_refused_by_name():
    with pytest.raises(SettingsError, match="choose from viewpoint"):
        HomographySettings(kinds=("sideways",))
