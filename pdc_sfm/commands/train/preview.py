"""Write a sheet of training pairs: reference, query, flow, masks, and the query warped back onto the reference.

Example:
  pdc-sfm train preview --photos photos/ --objects cutouts/ --output sheet.png size=256,384 photometric.strength=0
  pdc-sfm train preview --scene room/ --scene object/ --output sheet.jpg size=192,256
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from pdc_sfm.commands.shared.common import add_settings
from pdc_sfm.commands.shared.paths import Paths

if TYPE_CHECKING:
    from pdc_sfm.synthetic.pairs import SyntheticPair, SyntheticPairSettings


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--photos", type=Path, help="folder of photographs")
    parser.add_argument("--objects", type=Path, help="folder of RGBA cut-outs (default: cut from the photographs)")
    parser.add_argument(
        "--scene",
        type=Path,
        action="append",
        default=[],
        help="instead: folder of a rendered scene; may be repeated",
    )
    parser.add_argument("--output", type=Path, required=True, help="picture to write, for example sheet.png")
    parser.add_argument("--pairs", type=int, default=8, help="rows of the sheet (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the random pairs (default: %(default)s)")
    add_settings(parser, "pdc_sfm.synthetic.pairs:SyntheticPairSettings")
    parser.set_defaults(paths=Paths(images=("photos", "objects", "scene"), pictures=("output",)))


def run(args: argparse.Namespace) -> None:
    from pdc_sfm.errors import UserError
    from pdc_sfm.images import write_image
    from pdc_sfm.settings import load_settings
    from pdc_sfm.synthetic.pairs import SyntheticPairSettings
    from pdc_sfm.training.preview import sheet

    if args.pairs < 1 or args.seed < 0:
        raise UserError(f"--pairs {args.pairs} --seed {args.seed}: at least one pair, and a seed of 0 or more")
    if bool(args.photos) == bool(args.scene):
        raise UserError("give either --photos, a folder of photographs, or --scene, a folder of `pdc-sfm scene`")
    settings = load_settings(SyntheticPairSettings, args.config, args.settings)
    pairs = _rendered(args, settings) if args.scene else _warped(args, settings)
    write_image(args.output, sheet(pairs))
    print(f"wrote {args.pairs} pairs to {args.output}")


def _warped(args: argparse.Namespace, settings: SyntheticPairSettings) -> Iterator[SyntheticPair]:
    import numpy as np

    from pdc_sfm.synthetic.pairs import make_pair
    from pdc_sfm.synthetic.photographs import open_cutouts, open_photographs

    photos = open_photographs(args.photos)
    print(photos.summary())
    cutouts = open_cutouts(args.objects) if args.objects else None
    if cutouts is not None:
        print(cutouts.summary())
    numbers = [np.random.default_rng([args.seed, i]) for i in range(args.pairs)]  # as in training
    return (make_pair(photos, cutouts, settings, rng) for rng in numbers)


def _rendered(args: argparse.Namespace, settings: SyntheticPairSettings) -> Iterator[SyntheticPair]:
    from pdc_sfm.synthetic.pairs import SyntheticPair
    from pdc_sfm.training.rendered import RenderedScene, RenderedSource
    from pdc_sfm.training.supervision import SupervisionSettings

    supervision = SupervisionSettings(min_overlap=0.15, max_turn=settings.warp.moderate_rotation)
    scenes = [RenderedScene(folder, supervision.min_overlap) for folder in args.scene]
    source = RenderedSource(scenes, supervision, settings.photometric, args.seed)
    for number in range(args.pairs):
        sample = source.sample(number, settings.size)
        apart = not sample.valid.any()
        yield SyntheticPair(sample.reference, sample.query, sample.flow, sample.valid, sample.valid, apart)
