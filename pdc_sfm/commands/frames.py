"""Extract the sharpest frames of a video as JPEG, about N per second.

The sharpest frame around each instant is taken; frames half as sharp as their neighbors (motion blur) are skipped. A
truncated video is used as far as it can be read. After an interruption the same command continues.
`pdc-sfm map --video` includes this step.

Example:
  pdc-sfm frames walk.mp4 --fps 2 --output outputs/frames
"""

from __future__ import annotations

import argparse
from pathlib import Path

from pdc_sfm.commands.shared.paths import Paths


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("video", type=Path, metavar="VIDEO", help="a file that OpenCV reads: mp4, mov, mkv, webm, avi")
    parser.add_argument("--output", type=Path, required=True, metavar="DIR", help="folder of the frames")
    parser.add_argument("--fps", type=float, default=2.0, metavar="N", help="frames per second (2)")
    parser.set_defaults(paths=Paths(inputs=("video",), folders=("output",)))


def run(args: argparse.Namespace) -> int:
    from pdc_sfm.media.video import extract_frames

    found = extract_frames(args.video, args.output, args.fps)
    print(f"{found} -> {args.output}")
    return 1 if found.said else 0
