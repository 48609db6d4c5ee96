"""Inspect a weights file, or convert it to safetensors.

  pdc-sfm weights inspect PDCNet_plus_m.pth.tar
  pdc-sfm weights convert PDCNet_plus_m.pth.tar pdcnet_plus.safetensors

Accepted: the authors' PDC-Net and PDC-Net+ files (training checkpoints or bare state dicts; PDCNet_plus_m.pth.tar is
also called PDCNet_plus_megadepth.pth.tar, and either name finds the other) and our safetensors files.
Nothing in a file is executed.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from pdc_sfm.commands.shared.paths import Paths


def add_arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    inspect = actions.add_parser("inspect", help="show which network a file holds, and what is missing or unexpected")
    inspect.add_argument("file", type=Path)
    convert = actions.add_parser("convert", help="write a safetensors file with the architecture in its metadata")
    convert.add_argument("file", type=Path)
    convert.add_argument("output", type=Path)
    convert.add_argument("--half", action="store_true", help="store 16-bit floats: half the size")
    inspect.set_defaults(paths=Paths(inputs=("file",)))
    convert.set_defaults(paths=Paths(inputs=("file",), files=("output",)))


def run(args: argparse.Namespace) -> int:
    from pdc_sfm.errors import CheckpointError
    from pdc_sfm.weights.checkpoint import read_checkpoint, save_tensors, sha256

    checkpoint = read_checkpoint(args.file)
    if args.action == "convert":
        if not checkpoint.complete:
            raise CheckpointError(f"{args.file} is not complete: `pdc-sfm weights inspect` says what is wrong")
        save_tensors(args.output, checkpoint.tensors, checkpoint.settings, args.half)
        print(f"{checkpoint.network}, {checkpoint.parameters:,} parameters -> {args.output}")
        return 0
    print(f"file        {checkpoint.path} ({checkpoint.path.stat().st_size / 1e6:.1f} MB, {checkpoint.form})")
    print(f"sha256      {sha256(checkpoint.path)}")
    print(f"network     {checkpoint.network}")
    print(f"parameters  {checkpoint.parameters:,} in {len(checkpoint.tensors)} tensors")
    for word, names in (
        ("missing", checkpoint.missing),
        ("unexpected", checkpoint.unexpected),
        ("misshapen", checkpoint.misshapen),
    ):
        print(f"{word:<11} {len(names) or 'none'}")
        for name in names:
            print(f"  {name}")
    return 0 if checkpoint.complete else 1
