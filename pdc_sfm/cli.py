"""The command line: `pdc-sfm COMMAND ...`. Each command is one module of `pdc_sfm.commands`, imported when it is called."""

from __future__ import annotations

import argparse
import errno
import importlib
import os
import signal
import sys
from collections.abc import Sequence

from pdc_sfm import __version__
from pdc_sfm.commands.shared.common import VerbParser
from pdc_sfm.commands.shared.subverbs import add_subverbs
from pdc_sfm.errors import UnknownSettingError, UserError
from pdc_sfm.interrupts import KEPT, Interrupted, interruptible
from pdc_sfm.logs import screen_log

# command -> what it does. The module `pdc_sfm.commands.VERB` has `add_arguments(parser)` and `run(args) -> int | None`,
# or it is a package of such modules, one for each of its SUBVERBS.
VERBS = {
    "map": "make a map from a folder of photographs: pairs, matches, reconstruction, report",
    "extend": "add photographs to a map, without matching its images again",
    "frames": "extract the sharpest frames of a video",
    "panoramas": "render perspective views of equirectangular images, with their rig",
    "pair": "match two images and draw the result",
    "pairs": "write a pair list: exhaustive, sequential, covisibility, poses, retrieval",
    "match": "match all pairs of a list and write hloc files",
    "keypoints": "detect keypoints, to snap dense matches to",
    "weights": "inspect a weights file, or convert it to safetensors",
    "train": "train a network, fine-tune it on a reconstruction, or look at training pairs",
    "retrieve": "find the database images that show the same place as a query",
    "reconstruct": "find cameras and points from images and their matches",
    "triangulate": "find points from matches of images with known cameras",
    "localize": "find the poses of queries in a model",
    "serve": "serve a map over HTTP: photographs in, poses out, with a web page",
    "densify": "make a dense colored cloud of a map: depth of every image, checked and fused",
    "view": "show a map in a browser, or write a picture of it",
    "export": "write a map for nerfstudio, splat trainers, COLMAP, Bundler, NVM or kapture, or as PLY",
    "aachen": "Aachen Day-Night: full localization, or the local-feature challenge",
    "evaluate": "measure a network on synthetic pairs, scenes, and the datasets of the paper",
    "scene": "render a built-in scene, with known cameras and depth",
    "report": "write one HTML file about a run",
    "demo": "run the whole pipeline on the built-in scene",
}

CONTINUED = {
    "frames",
    "panoramas",
    "match",
    "keypoints",
    "train",
    "retrieve",
    "aachen",
    "demo",
    "densify",
    "map",
    "extend",
}  # commands that continue after a stop
NO_ROOM = {getattr(errno, name, None) for name in ("ENOSPC", "EDQUOT", "EFBIG", "EIO")}  # mended by room on the disk


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command. Returns 0: done, 1: something was left out, 2: the user must mend something; 130 or 143: stopped."""
    argv = list(sys.argv[1:] if argv is None else argv)
    continues = any(verb in CONTINUED for verb in argv[:1])
    parser = make_parser(argv[:1])
    args = argparse.Namespace()
    try:
        with interruptible(continues):
            args = _parse(parser, argv)
            if hasattr(args, "paths"):
                args.paths.check(args)
            with screen_log(getattr(args, "quiet", False)):
                return args.run(args) or 0
    except UnknownSettingError as error:
        return _say(f"{error}; --{error.name} is an option" if hasattr(args, error.name) else error, 2)
    except UserError as error:
        return _say(error, 2)
    except KeyboardInterrupt as error:
        stop = error if isinstance(error, Interrupted) else Interrupted(signal.SIGINT, continues)
        return _say(stop, stop.code)
    except BrokenPipeError:  # the reader of our output (head, less) went away
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:  # a full disk, a folder that may not be written, a file that vanished
        if error.errno is None:
            raise
        kept = f"; {KEPT}" if continues and error.errno in NO_ROOM else ""
        return _say(f"{error.strerror}{f': {error.filename}' if error.filename else ''}{kept}", 2)
    except MemoryError as error:
        kept = f"; {KEPT}" if continues else ""
        return _say(
            f"there is not enough memory ({error or 'of this machine'}): free some, or use smaller images{kept}", 2
        )


def make_parser(verbs_needed: Sequence[str] = ()) -> argparse.ArgumentParser:
    """The parser of the command line; only the named verbs are given their arguments, which costs an import each."""
    parser = argparse.ArgumentParser(
        prog="pdc-sfm",
        description="Dense probabilistic matching (PDC-Net+) for structure-from-motion and visual localization.",
        epilog="`pdc-sfm VERB --help` explains a verb and gives an example.",
    )
    parser.add_argument("--version", action="version", version=f"pdc-sfm {__version__}")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True, parser_class=VerbParser)
    for verb, summary in VERBS.items():
        sub = verbs.add_parser(verb, help=summary, formatter_class=argparse.RawDescriptionHelpFormatter)
        if verb in verbs_needed:
            module = importlib.import_module(f"pdc_sfm.commands.{verb}")
            sub.description = module.__doc__
            if hasattr(module, "SUBVERBS"):
                add_subverbs(sub, module)
            else:
                module.add_arguments(sub)
                sub.set_defaults(run=module.run)
    return parser


def _say(what: object, code: int) -> int:
    print(f"pdc-sfm: {' '.join(str(what).split())}", file=sys.stderr)
    return code


def _parse(parser: argparse.ArgumentParser, argv: list[str]) -> argparse.Namespace:
    """As `parse_args`, but `key=value` words may stand anywhere: argparse alone takes them in one place only."""
    args, rest = parser.parse_known_args(argv)
    unknown = [word for word in rest if word.startswith("-") or "=" not in word or not hasattr(args, "settings")]
    if unknown:
        parser.error(f"unrecognized arguments: {' '.join(unknown)}")
    if rest:
        args.settings = [*args.settings, *rest]
    return args


if __name__ == "__main__":
    sys.exit(main())
