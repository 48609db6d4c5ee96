"""Localize new photographs in a reconstruction that `pipelines/reconstruct.py` or `triangulate.py` made.

    python pipelines/localize.py --images photos/ --map outputs/photos --queries queries.txt --retrieval pairs-query.txt \\
        --output outputs/queries
"""

import argparse
import logging
from pathlib import Path

from pdc_sfm.colmap.localization.localize_sfm import localize
from pdc_sfm.engine.run import MatchingSettings, match_pairs
from pdc_sfm.pipeline.matching import query_settings
from pdc_sfm.settings import load_settings


def run(images: Path, mapped: Path, queries: Path, retrieval: Path, output: Path, matching: MatchingSettings) -> None:
    # Match the queries with the images found for them. The keypoints of the map stay as they are, so that the matches
    # lead to its points; the queries' own points are kept exact, since no track needs to share them.
    features = mapped / f"feats_{matching.output}.h5"
    matched = match_pairs(images, retrieval, output, query_settings(matching), features_ref=[features])

    # Matches to points of the map, then a pose that agrees with most of them. Failed queries are named and left out.
    results = output / "results.txt"
    result = localize(mapped / "sfm", queries, retrieval, matched.features, matched.matches, results)
    for line in result.remarks():
        print(line)
    print(f"{result} -> {results}")


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s")  # how far it is, where no terminal shows bars
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=Path, required=True, help="folder of all images, queries too")
    parser.add_argument("--map", type=Path, required=True, help="output folder of the reconstruction")
    parser.add_argument("--queries", type=Path, required=True, help="NAME MODEL WIDTH HEIGHT PARAMS... a line")
    parser.add_argument("--retrieval", type=Path, required=True, help="`query image` a line, best first")
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--match", nargs="*", default=[], help="settings of matching, as for the reconstruction")
    args = parser.parse_args()
    matching = load_settings(MatchingSettings, None, args.match)
    run(args.images, args.map, args.queries, args.retrieval, args.output, matching)
