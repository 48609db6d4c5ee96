"""Reconstruct cameras and points from images and their matches, with COLMAP.

Writes a COLMAP model, its database, points.ply (colored) and summary.json into the output folder when
everything is finished. A doubtful model is written too and reported as such; with --strict the exit code is then 1.

--rig names cameras that are fixed to each other, in the JSON of COLMAP's rig_configurator (docs/files.md): images whose
names differ only in the prefixes of its cameras were taken at the same moment and get one pose. If the file does not
give the poses of cameras in the rig, they are estimated from a map made without it and written to rig.json in the
output.

With known camera positions the model is in metres: --positions, or GPS in EXIF.
With latitudes and longitudes, x is east, y north, z up; frame.json has the origin and the uncertainty of the scale.
Positions that disagree with the map are reported and not used.

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
