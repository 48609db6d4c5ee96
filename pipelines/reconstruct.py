"""Reconstruct a folder of photographs: pairs, matches, then cameras and points.

python pipelines/reconstruct.py --images photos/ --output outputs/photos
"""

import argparse
import logging
from pathlib import Path

from pdc_sfm.colmap.mapping.reconstruction import ReconstructionSettings, reconstruct
from pdc_sfm.engine.pairing import exhaustive_pairs
from pdc_sfm.engine.run import MatchingSettings, match_pairs
from pdc_sfm.images import list_images
from pdc_sfm.settings import load_settings
from pdc_sfm.store.pair_lists import write_pairs


def run(images: Path, output: Path, matching: MatchingSettings, mapping: ReconstructionSettings) -> None:
    # Which images to match with which. All with all is best up to some hundred images; for more, see `pdc-sfm pairs`
    # (video, known poses) and `pdc-sfm retrieve` (similar images).
    pairs = output / "pairs.txt"
    write_pairs(pairs, exhaustive_pairs(list_images(images)))

    # Dense matches of each pair, and keypoints shared by all pairs of an image. Stopped, it goes on where it was.
    matched = match_pairs(images, pairs, output, matching)

    # Geometric verification, then COLMAP's mapper. The model, its points.ply and summary.json appear at the end.
    result = reconstruct(images, pairs, matched.features, matched.matches, output / "sfm", mapping)
    print(result.summary)


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s")  # how far it is, where no terminal shows bars
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--match", nargs="*", default=[], help="settings of matching, key=value")
    parser.add_argument("--map", nargs="*", default=[], help="settings of mapping, key=value")
    args = parser.parse_args()
    run(
        args.images,
        args.output,
        load_settings(MatchingSettings, None, args.match),
        load_settings(ReconstructionSettings, None, args.map),
    )
