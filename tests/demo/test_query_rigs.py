"""Queries that cameras fixed to each other took: one pose a moment, by the matches of all of them."""

import json
import shutil

import numpy as np
import pytest
from projections import Scene, write_features, write_images, write_matches, write_model, write_pairs
from rig_scene import PREFIXES, cam_from_rig, compose, rig_entry, rig_scene

from pdc_sfm.cli import main
from pdc_sfm.colmap.io.results import read_poses
from pdc_sfm.colmap.mapping.triangulation import triangulate
from pdc_sfm.demo.queries import localize_in_map, open_map
from pdc_sfm.errors import FormatError
from pdc_sfm.evaluation.measures.poses import pose_error
from pdc_sfm.store.pair_lists import read_pairs
from pdc_sfm.store.pair_lists import write_pairs as write_list

MOMENTS = (7, 8, 9)


def merged(*scenes):
    parts = {
        key: {k: v for scene in scenes for k, v in getattr(scene, key).items()}
        for key in ("cameras", "poses", "visible", "keypoints")
    }
    return Scene(points=scenes[0].points, **parts)  # fmt: skip


def renamed(scene):
    """As queries are linked beside the images of the map."""
    names = {name: f"query/{name.replace('/', '_')}" for name in scene.names}
    return Scene(
        {names[k]: v for k, v in scene.cameras.items()},
        {names[k]: v for k, v in scene.poses.items()},
        scene.points,
        {names[k]: v for k, v in scene.visible.items()},
        {names[k]: v for k, v in scene.keypoints.items()},
    )


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    """A map of the left camera's pictures, and later moments of three cameras with keypoints two pixels off; the right camera
    saw nothing at the last."""
    folder = tmp_path_factory.mktemp("queries")
    base = rig_scene(frames=6, points=250, prefixes=PREFIXES[:1])
    taken = rig_scene(frames=3, points=250, noise=2.0, start=MOMENTS[0])
    taken.visible["right/9.png"], taken.keypoints["right/9.png"] = np.zeros(0, int), np.zeros((0, 2), np.float32)
    write_images(taken, folder / "queries")
    scene = merged(base, renamed(taken))
    pairs = scene.pairs(base.names)
    features, matches = write_features(scene, folder / "f.h5", base.names), write_matches(scene, folder / "m.h5", pairs)
    known, images = write_model(scene, folder / "known", base.names), write_images(base, folder / "photos")
    triangulate(known, images, write_pairs(folder / "p.txt", pairs), features, matches, folder / "sfm")
    (folder / "rig.json").write_text(json.dumps([{"cameras": [rig_entry(p, intrinsics=True) for p in PREFIXES]}]))
    return folder, scene, taken


@pytest.fixture
def localized(world, monkeypatch, tmp_path):
    folder, scene, _ = world

    def retrieve(images, queries, database, output, top, settings, network=None):
        write_list(output, [(query, name) for query in queries for name in database[:top]])

    def match(images, pairs, features, matches, fixed=None):
        write_features(scene, features)
        write_matches(scene, matches, read_pairs(pairs), wrong=0.3)

    monkeypatch.setattr("pdc_sfm.demo.queries.retrieve", retrieve)

    def run(output, **more):
        _, rows = localize_in_map(open_map(folder / "sfm"), folder / "queries", tmp_path / output, match=match, **more)
        return rows, read_poses(tmp_path / output / "results.txt")

    return run


def errors(poses, taken):
    return {name: pose_error(poses[name], taken.poses[name])[0] for name in taken.names if name in poses}


def test_a_rig_has_one_pose_that_is_better_than_those_of_its_images(world, localized, tmp_path):
    folder, _, taken = world
    (tmp_path / "list.txt").write_text(
        "".join(
            f"{name} SIMPLE_RADIAL 640 480 {' '.join(map(str, taken.cameras[name].params))}\n" for name in taken.names
        )
    )
    rows, alone = localized("alone", queries=tmp_path / "list.txt")
    assert not rows["right/9.png"].localized
    rows, poses = localized("rig", rig=folder / "rig.json")
    assert all(row.localized and row.camera == "the rig file" for row in rows.values())
    assert rows["right/9.png"].inliers == 0  # it stands where its rig does
    own, single = errors(poses, taken), errors(alone, taken)
    assert len(own) == 9
    assert np.mean([own[name] for name in single]) < 0.7 * np.mean(list(single.values()))
    frames = read_poses(tmp_path / "rig" / "frames.txt")
    assert list(frames) == [f"{moment}.png" for moment in MOMENTS]
    for moment, pose in frames.items():
        assert pose_error(pose, taken.poses[f"left/{moment}"])[0] < 0.05
        for prefix in PREFIXES:
            assert np.allclose(poses[f"{prefix}{moment}"], compose(cam_from_rig(prefix), np.asarray(pose)), atol=1e-9)
    assert len({rows[f"{prefix}7.png"].probability for prefix in PREFIXES}) == 1  # they are right or wrong together


def test_a_rig_that_is_not_known_in_the_map_is_refused(world, localized, tmp_path, capsys):
    folder, _, _ = world
    (tmp_path / "rig.json").write_text(json.dumps([{"cameras": [rig_entry(p, known=False) for p in PREFIXES]}]))
    with pytest.raises(FormatError, match="does not say where middle/ stands"):
        localized("out", rig=tmp_path / "rig.json")
    shutil.copytree(folder / "sfm", tmp_path / "map")
    summary = json.loads((tmp_path / "map" / "summary.json").read_text())
    summary["settings"]["mapper"] = "incremental"  # as `reconstruct` says it: its unit is any
    (tmp_path / "map" / "summary.json").write_text(json.dumps(summary))
    words = ["localize", "--map", tmp_path / "map", "--images", folder / "queries", "--output", tmp_path / "out"]
    assert main([*map(str, words), "--rig", str(folder / "rig.json")]) == 2
    (line,) = capsys.readouterr().err.strip().split("\n")
    assert "has no metres, and the map was not made with this rig" in line


def test_a_map_made_with_the_rig_says_what_the_file_does_not(world, localized, tmp_path):
    folder, _, taken = world
    (tmp_path / "rig.json").write_text(json.dumps([{"cameras": [rig_entry(p, False, True) for p in PREFIXES]}]))
    shutil.copy(folder / "rig.json", folder / "sfm" / "rig.json")
    try:
        _, poses = localized("out", rig=tmp_path / "rig.json")
    finally:
        (folder / "sfm" / "rig.json").unlink()
    assert max(errors(poses, taken).values()) < 0.1
