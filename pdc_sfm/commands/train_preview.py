"""Write a sheet of training pairs: reference, query, flow, masks, and the query warped back onto the reference.

Example:
  pdc-sfm train preview --photos photos/ --objects cutouts/ --output sheet.png size=256,384 photometric.strength=0
"""

from __future__ import annotations

import argparse
from pathlib import Path

from pdc_sfm.commands.common import add_settings
from pdc_sfm.commands.paths import Paths


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--photos", type=Path, required=True, help="folder of photographs")
    parser.add_argument("--objects", type=Path, help="folder of RGBA cut-outs (default: cut from the photographs)")
    parser.add_argument("--output", type=Path, required=True, help="picture to write, for example sheet.png")
    parser.add_argument("--pairs", type=int, default=8, help="rows of the sheet (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="another seed, other pairs (default: %(default)s)")
    add_settings(parser, "pdc_sfm.synthetic.pairs:PairSettings")
    parser.set_defaults(paths=Paths(images=("photos", "objects"), pictures=("output",)))


def run(args: argparse.Namespace) -> None:
    import numpy as np

    from pdc_sfm.errors import UserError
    from pdc_sfm.images import write_image
    from pdc_sfm.settings import load_settings
    from pdc_sfm.synthetic.pairs import PairSettings, make_pair
    from pdc_sfm.synthetic.photographs import open_cutouts, open_photographs
    from pdc_sfm.training.preview import sheet

    if args.pairs < 1 or args.seed < 0:
        raise UserError(f"--pairs {args.pairs} --seed {args.seed}: at least one pair, and a seed of 0 or more")
    settings = load_settings(PairSettings, args.config, args.settings)
    photos = open_photographs(args.photos)
    print(photos.summary())
    cutouts = open_cutouts(args.objects) if args.objects else None
    if cutouts is not None:
        print(cutouts.summary())
    numbers = [np.random.default_rng([args.seed, i]) for i in range(args.pairs)]  # as in training
    write_image(args.output, sheet(make_pair(photos, cutouts, settings, rng) for rng in numbers))
    print(f"wrote {args.pairs} pairs to {args.output}")
