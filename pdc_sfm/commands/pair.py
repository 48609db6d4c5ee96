"""Match two images and draw the matches, flow, confidence, and the second image warped onto the first.

Example:
  pdc-sfm pair A.jpg B.jpg --output out.png
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from pdc_sfm.commands.shared.common import add_device, add_settings
from pdc_sfm.commands.shared.paths import Paths

if TYPE_CHECKING:
    from pdc_sfm.matches.types import RawMatches

FEWEST = 16  # matches of which it is said how many agree: any eight do
EPIPOLAR = 2.0  # px


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("image0", type=Path, help="the first image: the reference of the drawn flow")
    parser.add_argument("image1", type=Path, help="the second image")
    parser.add_argument("--output", type=Path, required=True, help="the picture (.png, .jpg)")
    parser.add_argument("--weights", help="weights file (default: the built-in model)")
    add_device(parser)
    add_settings(parser, "pdc_sfm.matcher:PairSettings")
    parser.set_defaults(paths=Paths(inputs=("image0", "image1", "weights"), pictures=("output",)))


def run(args: argparse.Namespace) -> None:
    from pdc_sfm.images import read_photograph, write_image
    from pdc_sfm.matcher import PairSettings, load_matcher, match_images
    from pdc_sfm.pair_picture import pair_picture
    from pdc_sfm.settings import load_settings

    settings = load_settings(PairSettings, args.config, args.settings)
    photographs = read_photograph(args.image0), read_photograph(args.image1)
    result = match_images(*photographs, matcher=load_matcher(args.weights, settings, args.device))
    select = settings.select
    image0, image1 = (photograph.pixels for photograph in photographs)
    picture = pair_picture(
        image0, image1, result.matches, result.forward, radius=select.radius, threshold=select.threshold
    )
    write_image(args.output, picture)
    print(f"{len(result.matches)} matches by {result.forward.method}{agreement(result.matches)} -> {args.output}")
    if settings.dense.method == "direct" and len(result.matches) < settings.dense.min_matches:
        print("few: dense.method=auto also finds turned and zoomed images")


def agreement(matches: RawMatches) -> str:
    """How many of the matches one epipolar geometry explains: without true cameras the best sign that they are right."""
    import cv2

    if len(matches) < FEWEST:
        return ""
    cv2.setRNGSeed(0)
    _, inliers = cv2.findFundamentalMat(matches.keypoints0, matches.keypoints1, cv2.USAC_MAGSAC, EPIPOLAR, 0.999, 2000)
    if inliers is None:
        return ", which agree with no epipolar geometry"
    return f", {100 * inliers.mean():.1f} % within {EPIPOLAR:g} px of one epipolar geometry"
