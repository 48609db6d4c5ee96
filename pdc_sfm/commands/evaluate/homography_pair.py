"""Evaluate one pair of photographs of a plane with a known homography.

The homography maps pixels of the first image to pixels of the second: nine numbers in a text file, or OpenCV's XML.

Example (images of Debian's package opencv-doc):
  pdc-sfm evaluate homography-pair graf1.png graf3.png H1to3p.xml dense.method=homography
"""

from __future__ import annotations

import argparse
from pathlib import Path

from pdc_sfm.commands.evaluate.network import add_network, load_network, network_name
from pdc_sfm.commands.shared.paths import Paths


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("image0", type=Path, help="the first image: the reference")
    parser.add_argument("image1", type=Path, help="the second image")
    parser.add_argument("homography", type=Path, help="file of the homography from the first to the second image")
    add_network(parser, "pdc_sfm.matcher:PairSettings", None, " (default: they are only printed)")
    inputs = ("image0", "image1", "homography", "weights")
    parser.set_defaults(paths=Paths(inputs=inputs, folders=("output",), replaced=("results.json", "results.txt")))


def run(args: argparse.Namespace) -> None:
    from pdc_sfm.evaluation.datasets.homography_pair import load_pair
    from pdc_sfm.evaluation.runs.homographies import HomographyResult, KindResult, score_pair
    from pdc_sfm.evaluation.runs.homography_report import summarize, text, write_results
    from pdc_sfm.matcher import PairSettings
    from pdc_sfm.settings import load_settings

    settings, found = load_settings(PairSettings, args.config, args.settings), KindResult()
    pair = load_pair(args.image0, args.image1, args.homography)
    score_pair(pair, load_network(args, settings), found)
    whole = HomographyResult({f"{args.image0.name} {args.image1.name}": found}, [], [], [])
    summary = summarize(whole, settings, network_name(args))
    print(text(summary))
    if args.output:
        for path in write_results(args.output, whole, summary):
            print(path)
