"""Reconstruct cameras and points from images and their matches, with COLMAP.

Writes a COLMAP model, its database, points.ply (colored) and summary.json into the output folder, at the end and all
at once.
A model that may be nonsense is written too, and said to be doubtful; --strict then ends with exit code 1.

--rig names cameras that are fixed to each other, in the JSON of COLMAP's rig_configurator (docs/files.md): images whose
names differ by the prefixes of its cameras only were taken at one moment, and get one pose. Places of cameras in the rig
that the file does not give are estimated from a map made without it; rig.json in the output has them.

Positions of the cameras bring the model into metres: --positions, or what the photographs say themselves (GPS in EXIF).
With latitudes and longitudes x is east, y north, z up; frame.json has the origin, and how well the scale is known.
Positions that disagree with the map are named, and not followed.

Examples:
  pdc-sfm reconstruct --images photos/ --pairs pairs.txt --features feats.h5 --matches matches.h5 --output sfm/ \\
      camera.model=PINHOLE camera.params=920,922,507,336 camera.mode=single camera.refine=false
  pdc-sfm reconstruct --images photos/ --pairs pairs.txt --features feats.h5 --matches matches.h5 --output sfm/ \\
      --positions gps.csv
"""

from __future__ import annotations

import argparse
from pathlib import Path

from pdc_sfm.commands.shared.mapping_arguments import add_mapping_arguments, add_position_arguments, tell


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--rig", type=Path, metavar="FILE", help="cameras that are fixed to each other, as COLMAP's JSON"
    )
    add_mapping_arguments(parser, "pdc_sfm.colmap.mapping.reconstruction:ReconstructionSettings")
    add_position_arguments(parser)


def run(args: argparse.Namespace) -> int:
    from pdc_sfm.colmap.mapping.reconstruction import ReconstructionSettings, reconstruct
    from pdc_sfm.settings import load_settings

    settings = load_settings(ReconstructionSettings, args.config, args.settings)
    rig = {} if args.rig is None else {"rig": args.rig}
    result = reconstruct(
        args.images,
        args.pairs,
        args.features,
        args.matches,
        Path(args.output),
        settings,
        verbose=args.verbose,
        positions=args.positions,
        control=args.control,
        **rig,
    )
    return tell(result, args.output, args.strict)
