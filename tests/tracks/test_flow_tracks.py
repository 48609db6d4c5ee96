"""Tracks by the flow against tracks by hloc's cells, on a plane whose true correspondences are known."""

import numpy as np
import pytest

from pdc_sfm.matches.types import RawMatches
from pdc_sfm.store.journal import open_raw_store
from pdc_sfm.store.readers import open_features, open_matches
from pdc_sfm.tracks import flow_tracks
from pdc_sfm.tracks.assemble import Outputs, aggregate
from pdc_sfm.tracks.settings import TrackSettings

VIEWS, SIZE = 6, (320, 240)
NAMES = [f"{view}.jpg" for view in range(VIEWS)]


def homography(view):
    """From the plane to a view: shifted, turned, scaled, tilted."""
    angle, scale = 0.06 * view, 1 + 0.04 * view
    c, s = scale * np.cos(angle), scale * np.sin(angle)
    return np.array([[c, -s, 14.0 * view], [s, c, -9.0 * view], [1e-5 * view, 2e-5 * view, 1]])


def apply(matrix, points):
    x = np.concatenate((points, np.ones((len(points), 1))), 1) @ matrix.T
    return x[:, :2] / x[:, 2:]


def dense_matches(view0, view1, rng, noise=0.3):
    """A grid of each image as seen in the other, with noise where a network would have it: on the second point."""
    halves = []
    for first, second in ((view0, view1), (view1, view0)):
        grid = np.stack(np.meshgrid(np.arange(2, SIZE[0], 4), np.arange(2, SIZE[1], 4)), -1).reshape(-1, 2)
        there = apply(homography(second) @ np.linalg.inv(homography(first)), grid)
        inside = ((there >= 0) & (there <= np.subtract(SIZE, 1))).all(1)
        halves.append((grid[inside], there[inside] + rng.normal(0, noise, (inside.sum(), 2))))
    (a, b), (d, c) = halves
    points0, points1 = np.concatenate((a, c)), np.concatenate((b, d))
    return RawMatches(points0, points1, rng.uniform(0.3, 0.5, len(points0)))


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Keypoints and matches of six views of a plane by both rules."""
    folder, rng = tmp_path_factory.mktemp("plane"), np.random.default_rng(0)
    pairs = [(NAMES[i], NAMES[j]) for i in range(VIEWS) for j in range(i + 1, VIEWS)]
    found = {}
    with open_raw_store(folder / "raw", {}) as raw:
        for first, second in pairs:
            raw.append((first, second), dense_matches(int(first[0]), int(second[0]), rng), (SIZE, SIZE))
        for rule in ("hloc", "flow"):
            outputs = Outputs(folder / f"f_{rule}.h5", folder / f"m_{rule}.h5", {}, TrackSettings(rule, 2, 8))
            summary = aggregate(raw, pairs, outputs)
            with open_features(outputs.features) as features, open_matches(outputs.matches) as matches:
                keypoints = {name: features.keypoints(name).points for name in NAMES}
                found[rule] = keypoints, {pair: matches.matches(*pair)[0] for pair in pairs}, summary
    return found


def errors(keypoints, matches):
    """How far matched keypoints are from the true correspondence, over all pairs."""
    found = []
    for (first, second), pairs in matches.items():
        there = homography(int(second[0])) @ np.linalg.inv(homography(int(first[0])))
        found.append(apply(there, keypoints[first][pairs[:, 0]]) - keypoints[second][pairs[:, 1]])
    return np.linalg.norm(np.concatenate(found), axis=1)


def track_lengths(keypoints, matches):
    """Lengths of the connected parts, as a mapper would find them."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    offset = dict(zip(NAMES, np.cumsum([0, *(len(keypoints[name]) for name in NAMES)])))
    total = sum(len(points) for points in keypoints.values())
    edges = np.concatenate([np.add(pairs, (offset[a], offset[b])) for (a, b), pairs in matches.items()])
    graph = coo_array((np.ones(len(edges)), edges.T), (total, total))
    lengths = np.bincount(connected_components(graph, directed=False)[1])
    return lengths[lengths > 1]


def test_the_flow_places_keypoints_several_times_more_exactly(results):
    hloc, flow = (np.median(errors(*results[rule][:2])) for rule in ("hloc", "flow"))
    assert flow < 0.25  # the noise of the matches is 0.3 in x and in y
    assert hloc > 3 * flow


def test_tracks_of_the_flow_are_longer_and_more(results):
    lengths = {rule: track_lengths(*results[rule][:2]) for rule in results}
    assert lengths["flow"].mean() > 1.2 * 3
    assert (lengths["flow"] >= 3).sum() > (lengths["hloc"] >= 3).sum()
    assert lengths["flow"].max() <= VIEWS  # no image twice on a track


def test_a_pair_is_written_in_the_order_of_the_list(results):
    keypoints, matches, summary = results["flow"]
    for (first, second), pairs in matches.items():
        assert pairs[:, 0].max() < len(keypoints[first])
        assert pairs[:, 1].max() < len(keypoints[second])
        assert len(np.unique(pairs[:, 0])) == len(np.unique(pairs[:, 1])) == len(pairs)
    assert summary.matches == sum(len(pairs) for pairs in matches.values())


def test_few_images_in_memory_give_the_same_files(tmp_path, monkeypatch):
    rng, pairs = np.random.default_rng(0), [(NAMES[i], NAMES[j]) for i in range(4) for j in range(i + 1, 4)]
    with open_raw_store(tmp_path / "raw", {}) as raw:
        for first, second in pairs:
            raw.append((first, second), dense_matches(int(first[0]), int(second[0]), rng), (SIZE, SIZE))
        found = []
        for most in (512, 1):
            monkeypatch.setattr(flow_tracks, "OPEN_IMAGES", most)
            outputs = Outputs(tmp_path / f"f{most}.h5", tmp_path / f"m{most}.h5", {}, TrackSettings("flow", 2, 8))
            aggregate(raw, pairs, outputs)
            with open_features(outputs.features) as features, open_matches(outputs.matches) as matches:
                found.append([features.keypoints(name).points for name in NAMES[:4]])
                found[-1] += [matches.matches(*pair)[0] for pair in pairs]
    assert all(len(part) > 100 for part in found[0])
    for one, other in zip(*found):
        np.testing.assert_array_equal(one, other)


def test_few_keypoints_are_spread_over_the_whole_image(tmp_path):
    rng = np.random.default_rng(0)
    with open_raw_store(tmp_path / "raw", {}) as raw:
        raw.append(("0.jpg", "1.jpg"), dense_matches(0, 1, rng), (SIZE, SIZE))
        tracks = TrackSettings("flow", max_keypoints=100)
        aggregate(raw, [("0.jpg", "1.jpg")], Outputs(tmp_path / "f.h5", tmp_path / "m.h5", {}, tracks))
    with open_features(tmp_path / "f.h5") as features:
        for name in ("0.jpg", "1.jpg"):
            points = features.keypoints(name).points
            assert 60 <= len(points) <= 100
            quarters = np.bincount(2 * (points[:, 1] > SIZE[1] / 2) + (points[:, 0] > SIZE[0] / 2), minlength=4)
            assert quarters.min() >= 10


def test_queries_are_placed_by_the_flow_from_the_fixed_map(results, tmp_path):
    rng = np.random.default_rng(1)
    pairs = [(NAMES[5], name) for name in NAMES[:3]]
    import h5py

    with h5py.File(tmp_path / "map.h5", "w") as file:
        for name in NAMES[:3]:
            file[f"{name}/keypoints"] = results["flow"][0][name]
    with open_raw_store(tmp_path / "raw", {}) as raw:
        for first, second in pairs:
            raw.append((first, second), dense_matches(int(first[0]), int(second[0]), rng), (SIZE, SIZE))
        tracks = TrackSettings("flow", 2, 8, None)
        aggregate(raw, pairs, Outputs(tmp_path / "f.h5", tmp_path / "m.h5", {}, tracks, (tmp_path / "map.h5",)))
    with open_features(tmp_path / "f.h5") as features, open_matches(tmp_path / "m.h5") as matches:
        keypoints = {name: features.keypoints(name).points for name in (*NAMES[:3], NAMES[5])}
        found = {pair: matches.matches(*pair)[0] for pair in pairs}
    np.testing.assert_array_equal(keypoints[NAMES[0]], results["flow"][0][NAMES[0]])
    assert len(keypoints[NAMES[5]]) == sum(len(m) for m in found.values()) > 500
    assert np.median(errors(keypoints, found)) < 0.25


def test_images_that_join_a_fixed_map_share_points_with_all_its_images(results, tmp_path):
    """Its images see the same points: a keypoint of a new image is matched to that of each, not to one of them."""
    import h5py

    rng, old, new = np.random.default_rng(1), NAMES[:4], NAMES[4:]
    pairs = [(name, other) for name in new for other in old] + [tuple(new)]
    with h5py.File(tmp_path / "map.h5", "w") as file:
        for name in old:
            file[f"{name}/keypoints"] = results["flow"][0][name]
    with open_raw_store(tmp_path / "raw", {}) as raw:
        for first, second in pairs:
            raw.append((first, second), dense_matches(int(first[0]), int(second[0]), rng), (SIZE, SIZE))
        outputs = Outputs(tmp_path / "f.h5", tmp_path / "m.h5", {}, TrackSettings("flow", 2, 8), (tmp_path / "map.h5",))
        aggregate(raw, pairs, outputs)
    with open_features(tmp_path / "f.h5") as features, open_matches(tmp_path / "m.h5") as matches:
        keypoints = {name: features.keypoints(name).points for name in NAMES}
        found = {pair: matches.matches(*pair)[0] for pair in pairs}
    before = results["flow"][1]
    for pair, some in found.items():
        assert len(np.unique(some[:, 0])) == len(np.unique(some[:, 1])) == len(some)
        # of a map made at once, which knows the old tracks; not a quarter, as if each old image had points of its own
        assert len(some) > 0.6 * len(before[tuple(sorted(pair))])
    assert np.median(errors(keypoints, found)) < 0.35
