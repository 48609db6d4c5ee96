"""Aachen Day-Night: day and night queries in a model of our own matches. `pdc-sfm aachen localize` is the same, resumable.

    python pipelines/aachen_localize.py --version 1.1 --dataset datasets/aachen --retrieval pairs-query-netvlad50.txt \\
        --output outputs/aachen
"""

import argparse
import logging
from pathlib import Path

from pdc_sfm.aachen.dataset import AachenDataset
from pdc_sfm.aachen.localization import check_localization, shorten_retrieval
from pdc_sfm.aachen.reference import covisible_pairs, write_reference
from pdc_sfm.colmap.io.cameras import read_camera_list
from pdc_sfm.colmap.localization.localize_sfm import localize
from pdc_sfm.colmap.mapping.triangulation import triangulate
from pdc_sfm.engine.run import MatchingSettings
from pdc_sfm.pipeline.matching import ListMatcher, engine_matcher
from pdc_sfm.settings import load_settings
from pdc_sfm.store.pair_lists import write_pairs


def run(dataset: AachenDataset, retrieval: Path, output: Path, match: ListMatcher) -> None:
    # What is missing, and where it is expected, before hours of matching.
    check_localization(dataset, retrieval)

    # The dataset's poses as a COLMAP model without points; each database image with the 20 it shares most points with.
    reference, sfm_pairs = output / "sfm_reference", output / "pairs-db.txt"
    write_reference(dataset, reference)
    write_pairs(sfm_pairs, covisible_pairs(dataset, 20))

    # Our matches of these pairs, and the points they make with the known poses.
    features, matches, sfm = output / "features.h5", output / "matches.h5", output / "sfm"
    match(dataset.images, sfm_pairs, features, matches)
    print(triangulate(reference, dataset.images, sfm_pairs, features, matches, sfm).summary)

    # Each query with the first 50 images of the retrieval list; the keypoints of the model stay as they are.
    loc_pairs, loc_features, loc_matches = (output / f for f in ("pairs-query.txt", "query.h5", "query-matches.h5"))
    write_pairs(loc_pairs, shorten_retrieval(retrieval, read_camera_list(dataset.queries), 50))
    match(dataset.images, loc_pairs, loc_features, loc_matches, features)

    # The file one uploads to visuallocalization.net.
    results = output / dataset.result_name("pdcnet_plus")
    print(localize(sfm, dataset.queries, loc_pairs, loc_features, loc_matches, results), "->", results)


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s")  # how far it is, where no terminal shows bars
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--version", choices=("1.0", "1.1"), required=True)
    parser.add_argument("--dataset", type=Path, required=True)
    parser.add_argument("--retrieval", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--config", type=Path, help="settings of matching, e.g. configs/aachen.yaml")
    args = parser.parse_args()
    matcher = engine_matcher(load_settings(MatchingSettings, args.config))
    run(AachenDataset(args.dataset, args.version), args.retrieval, args.output, matcher)
