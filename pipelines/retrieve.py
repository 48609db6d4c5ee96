"""For each query the database images that show the same: a pair list for `pipelines/localize.py`, or for hloc.

python pipelines/retrieve.py --images photos/ --queries queries.txt --database db --output outputs/pairs-query.txt
"""

import argparse
import logging
from pathlib import Path

from pdc_sfm.retrieval import RetrievalSettings, retrieve
from pdc_sfm.settings import load_settings


def run(images: Path, queries: Path, database: Path, top: int, output: Path, settings: RetrievalSettings) -> None:
    # Rank the database by the number of confident matches with each query. Counts are kept beside the list: the same
    # call goes on where it was stopped, and another `top` counts nothing again.
    result = retrieve(images, queries, database, output, top, settings)

    # A query that nothing matches has no row; it is better to know than to match it with images of other places.
    for name in result.unmatched:
        print(f"no confident match: {name}")
    print(f"{result} -> {output}")


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s")  # how far it is, where no terminal shows bars
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=Path, required=True, help="folder of all images")
    parser.add_argument("--queries", type=Path, required=True, help="list of names, or a folder below the images")
    parser.add_argument("--database", type=Path, required=True, help="list of names, or a folder below the images")
    parser.add_argument("--top", type=int, default=20)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--settings", nargs="*", default=[], help="for example mode=exhaustive")
    args = parser.parse_args()
    settings = load_settings(RetrievalSettings, None, args.settings)
    run(args.images, args.queries, args.database, args.top, args.output, settings)
