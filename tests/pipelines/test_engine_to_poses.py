"""Engine, store and COLMAP together: raw matches of a perfect matcher become tracks, a model, and poses in it."""

import dataclasses

import numpy as np
import pytest
from projections import make_scene, write_images, write_model, write_pairs, write_queries

from pdc_sfm.colmap.localization.localize_sfm import localize
from pdc_sfm.colmap.mapping.triangulation import triangulate
from pdc_sfm.engine.run import MatchingSettings, match_pairs
from pdc_sfm.evaluation.measures.poses import pose_error
from pdc_sfm.matches.types import RawMatches
from pdc_sfm.tracks.settings import TrackSettings

MAP = [f"{i}.png" for i in range(6)]
QUERY = "q.png"


class PerfectMatcher:
    """Sees nothing and knows all: the projections of the same 3D points, as a dense matcher would give them."""

    def __init__(self, scene):
        self._scene = scene

    def encode(self, image, name):
        code = np.zeros(1)
        return code.view(_Code).named(name)

    def match(self, code0, code1):
        matches = self._scene.matches(code0.name, code1.name)
        points0, points1 = self._scene.keypoints[code0.name], self._scene.keypoints[code1.name]
        return RawMatches(points0[matches[:, 0]], points1[matches[:, 1]], np.full(len(matches), 0.5))


class _Code(np.ndarray):
    def named(self, name):
        self.name = name
        return self


@pytest.fixture
def mapped(tmp_path):
    scene = make_scene([*MAP[:3], QUERY, *MAP[3:]], points=600)
    images = write_images(scene, tmp_path / "images")
    pairs = write_pairs(tmp_path / "pairs.txt", scene.pairs(MAP))
    # 600 points are no dense flow to carry keypoints by: they are joined by cells, one a pixel
    settings = MatchingSettings(tracks=TrackSettings(rule="hloc", max_error=1, cell_size=1))
    matched = match_pairs(images, pairs, tmp_path / "out", settings, matcher=PerfectMatcher(scene))
    known = write_model(scene, tmp_path / "known", MAP)
    result = triangulate(known, images, pairs, matched.features, matched.matches, tmp_path / "sfm")
    return scene, images, settings, matched, result


def test_tracks_join_all_views_and_lie_where_the_points_are(mapped):
    scene, _, _, _, result = mapped
    seen = np.mean([sum(i in set(scene.visible[name]) for name in MAP) for i in range(len(scene.points))])
    assert result.summary.mean_track_length > 0.85 * seen
    assert result.summary.points > 0.8 * len(scene.points)
    # keypoints are rounded to pixels: uniform errors of 0.29 px in x and in y
    assert result.summary.reprojection_error < 0.45
    found = np.array([point.xyz for point in result.model.points3D.values()])
    nearest = np.linalg.norm(found[:, None] - scene.points[None], axis=-1).min(axis=1)
    assert np.median(nearest) < 0.02  # a pixel is 0.013 at this distance


def test_a_query_with_exact_points_is_localized_in_the_model(mapped, tmp_path):
    scene, images, settings, matched, _ = mapped
    rows = write_pairs(tmp_path / "rows.txt", [(QUERY, name) for name in MAP])
    exact = dataclasses.replace(settings, tracks=dataclasses.replace(settings.tracks, max_keypoints=None))
    found = match_pairs(
        images, rows, tmp_path / "query", exact, features_ref=[matched.features], matcher=PerfectMatcher(scene)
    )
    queries = write_queries(scene, tmp_path / "q.txt", [QUERY])
    result = localize(tmp_path / "sfm", queries, rows, found.features, found.matches, tmp_path / "r.txt")
    distance, angle = pose_error(result.poses[QUERY].matrix(), scene.poses[QUERY])
    assert distance < 0.01
    assert angle < 0.05
