"""A camera does not come back to exactly the same place: a map that says so has laid alike sides over each other."""

import itertools

import numpy as np
import pycolmap
import pytest
from projections import make_scene, write_features, write_images, write_matches, write_model, write_pairs

from pdc_sfm.colmap.io.models import load_model
from pdc_sfm.colmap.mapping.evidence import PairEvidence
from pdc_sfm.colmap.mapping.places import returning_pairs
from pdc_sfm.colmap.mapping.reconstruction import ReconstructionSettings, reconstruct
from pdc_sfm.colmap.mapping.verdict import judge_links

NAMES = [f"img{number}.png" for number in range(6, 14)]  # img10 comes after img9


def pair(first, second, still=0.0, cells=900, explained=1.0) -> PairEvidence:
    return PairEvidence(first, second, 2 * cells, cells, explained, round(explained * cells), 2000, still=still)


@pytest.fixture
def model(tmp_path) -> pycolmap.Reconstruction:
    return load_model(write_model(make_scene(NAMES, points=300, vary=0), tmp_path / "true"))


def numbered(model, chosen) -> list[PairEvidence]:
    """Pairs of (number, number, still), as images are numbered in `NAMES`, beside those of neighbors."""
    ids = {image.name: image_id for image_id, image in model.images.items()}
    near = [pair(ids[a], ids[b]) for a, b in itertools.pairwise(NAMES)]
    return near + [pair(ids[f"img{a}.png"], ids[f"img{b}.png"], still) for a, b, still in chosen]


@pytest.mark.parametrize(
    ("chosen", "returned"),
    [
        ([], []),
        ([(6, 10, 0.9), (7, 11, 0.9)], [(6, 10), (7, 11)]),  # 8 and 9 stand elsewhere
        ([(6, 10, 0.9)], []),  # to one place alone: a ring that closes
        ([(6, 10, 0.9), (10, 13, 0.9)], []),  # to the same one again
        ([(6, 10, 0.3), (7, 11, 0.3)], []),  # near, but not there
        ([(9, 10, 0.9)], []),  # a tripod, a copy
        ([(8, 9, 0.9), (9, 10, 0.9), (8, 10, 0.9)], []),  # three exposures
        ([(8, 9, 0.9), (9, 10, 0.9), (8, 12, 0.9), (7, 13, 0.9)], [(8, 12), (7, 13)]),
    ],
)
def test_images_at_one_place_were_taken_one_after_the_other(model, chosen, returned):
    found = returning_pairs(model, numbered(model, chosen))
    names = {tuple(sorted((model.image(p.first).name, model.image(p.second).name))) for p in found}
    assert names == {tuple(sorted((f"img{a}.png", f"img{b}.png"))) for a, b in returned}


def test_a_map_that_lets_a_camera_come_back_is_doubtful(model):
    verdict = judge_links(model, numbered(model, [(6, 10, 0.9), (7, 11, 0.8)]))
    assert verdict.kind == "doubtful"
    assert set(verdict.images) == {"img6.png", "img10.png", "img7.png", "img11.png"}
    assert verdict.pairs == (("laid over each other", "img6.png", "img10.png"),)
    assert "stand at exactly one place" in verdict.reasons[0]


def test_a_thing_of_two_equal_sides_is_not_mapped_in_silence(tmp_path):
    """Four views of one side, then four of the other, which show the same: the cameras seem to walk the same way twice."""
    scene = make_scene(NAMES, points=1500, vary=0)
    rng = np.random.default_rng(0)
    for first, second in zip(NAMES[:4], NAMES[4:]):
        scene.visible[second] = scene.visible[first]
        noise = rng.normal(0, 0.2, scene.keypoints[first].shape).astype(np.float32)
        scene.keypoints[second] = scene.keypoints[first] + noise
    result = reconstruct(
        write_images(scene, tmp_path / "images"),
        write_pairs(tmp_path / "pairs.txt", scene.pairs()),
        write_features(scene, tmp_path / "features.h5"),
        write_matches(scene, tmp_path / "matches.h5", scene.pairs()),
        tmp_path / "sfm",
        ReconstructionSettings(refine_keypoints=False, threads=1),
    )
    assert result.verdict.kind == "doubtful"
    assert "stand at exactly one place, as 8 images do" in result.verdict.reasons[-1]
