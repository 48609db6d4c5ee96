"""The local-feature challenge on Aachen Day-Night, step by step. `pdc-sfm aachen challenge` is the same, resumable.

python pipelines/aachen_challenge.py --version 1.0 --dataset datasets/aachen --output outputs/challenge
"""

import argparse
import logging
from pathlib import Path

from pdc_sfm.aachen.challenge import check_challenge, night_poses
from pdc_sfm.aachen.dataset import AachenDataset
from pdc_sfm.aachen.reference import write_reference
from pdc_sfm.colmap.io.results import write_poses
from pdc_sfm.colmap.mapping.filled_database import fill_database, verify_database
from pdc_sfm.colmap.mapping.registration import register_images, triangulate_database
from pdc_sfm.engine.run import MatchingSettings
from pdc_sfm.pipeline.matching import ListMatcher, engine_matcher
from pdc_sfm.settings import load_settings
from pdc_sfm.store.pair_lists import read_pairs, unique_pairs, write_pairs


def run(dataset: AachenDataset, output: Path, match: ListMatcher) -> None:
    # What is missing, and where it is expected, before hours of matching.
    check_challenge(dataset)

    # An empty model of the dataset's poses and intrinsics, under the ids of the official database.
    reference = output / "sfm_empty"
    write_reference(dataset, reference, dataset.challenge_database)

    # Our matches of the official pair list, each pair once.
    pairs, features, matches = output / "pairs.txt", output / "features.h5", output / "matches.h5"
    write_pairs(pairs, unique_pairs(read_pairs(dataset.challenge_pairs)))
    match(dataset.images, pairs, features, matches)

    # A copy of the official database takes them, and COLMAP verifies them.
    database = output / "database.db"
    fill_database(dataset.challenge_database, database, pairs, features, matches)
    verify_database(database, pairs, seed=0)

    # Points of the database images with fixed poses, then poses of the queries with fixed intrinsics.
    sfm, registered = output / "sfm_database", output / "sfm_registered"
    print(triangulate_database(reference, database, dataset.images, sfm))
    register_images(sfm, database, registered)

    # The file one uploads to visuallocalization.net: night queries only, those that were registered.
    poses, unregistered = night_poses(registered, dataset)
    results = output / dataset.result_name("pdcnet_plus", challenge=True)
    write_poses(results, poses)
    print(f"{len(poses)} night queries registered, {len(unregistered)} not -> {results}")


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s")  # how far it is, where no terminal shows bars
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--version", choices=("1.0", "1.1"), required=True)
    parser.add_argument("--dataset", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--config", type=Path, help="settings of matching, e.g. configs/aachen.yaml")
    args = parser.parse_args()
    matcher = engine_matcher(load_settings(MatchingSettings, args.config))
    run(AachenDataset(args.dataset, args.version), args.output, matcher)
