"""A dataset without the challenge's files gets its own, and the challenge runs on them."""

import pytest
from aachen_folder import NIGHT, exact_matcher, write_dataset

from pdc_sfm.aachen.challenge import run_challenge
from pdc_sfm.aachen.challenge_files import write_challenge_files
from pdc_sfm.colmap.io.results import read_poses
from pdc_sfm.evaluation.measures.poses import localization_recall
from pdc_sfm.store.pair_lists import read_pairs


@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_generated_files_serve_the_challenge(tmp_path, version):
    scene, dataset = write_dataset(tmp_path / "data", version)
    dataset.challenge_database.unlink()
    dataset.challenge_pairs.unlink()
    write_challenge_files(dataset)
    queries = {first for first, _ in read_pairs(dataset.challenge_pairs)} - {
        name for name in scene.names if "db" in name
    }
    assert set(NIGHT) <= queries
    result = run_challenge(dataset, tmp_path / "out", exact_matcher(scene))
    true = {query.split("/")[-1]: scene.poses[query] for query in NIGHT}
    assert localization_recall(read_poses(result.path), true, [(1e-3, 1e-2)]) == (1.0,)
