"""Points for images whose cameras are known, from a COLMAP model of any origin.

python pipelines/triangulate.py --images photos/ --model known/ --output outputs/photos
"""

import argparse
import logging
from pathlib import Path

from pdc_sfm.colmap.io.models import load_model, model_poses
from pdc_sfm.colmap.mapping.triangulation import triangulate
from pdc_sfm.engine.pairing import nearest_pose_pairs
from pdc_sfm.engine.run import MatchingSettings, match_pairs
from pdc_sfm.settings import load_settings
from pdc_sfm.store.pair_lists import unique_pairs, write_pairs


def run(images: Path, model: Path, output: Path, count: int, matching: MatchingSettings) -> None:
    # Each image with the nearest cameras that look the same way.
    pairs = output / "pairs.txt"
    write_pairs(pairs, unique_pairs(nearest_pose_pairs(model_poses(load_model(model)), count)))

    # Dense matches of each pair, and keypoints shared by all pairs of an image. Stopped, it goes on where it was.
    matched = match_pairs(images, pairs, output, matching)

    # Matches that agree with the known poses become points; the poses stay as they are.
    result = triangulate(model, images, pairs, matched.features, matched.matches, output / "sfm")
    print(result.summary)


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s")  # how far it is, where no terminal shows bars
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=Path, required=True)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--count", type=int, default=20, help="pairs of each image")
    parser.add_argument("--match", nargs="*", default=[], help="settings of matching, key=value")
    args = parser.parse_args()
    run(args.images, args.model, args.output, args.count, load_settings(MatchingSettings, None, args.match))
