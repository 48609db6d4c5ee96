"""Write a list of image pairs to match.

  exhaustive    all pairs: n(n-1)/2, for up to a few hundred images
  sequential    each image with the next --count images of its folder, by name (video)
  covisibility  each image with the --count images that share most points in a COLMAP model (--model)
  poses         each image with the --count nearest cameras of a COLMAP model that look in the same direction
  retrieval     each image with the --count most similar ones, for large unordered collections; codes of the images are
                kept next to the output (.counts), so that images can be added

`pdc-sfm retrieve` does the same for queries and a separate database, with more settings.

Examples:
  pdc-sfm pairs exhaustive --images photos/ --output pairs.txt
  pdc-sfm pairs retrieval --images photos/ --output pairs.txt
  pdc-sfm pairs covisibility --images photos/ --model sfm/ --count 20 --output pairs-db-covis20.txt
"""

from __future__ import annotations

import argparse
from pathlib import Path

from pdc_sfm.commands.shared.paths import Paths
from pdc_sfm.errors import FormatError, ImageError, SettingsError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "kind", choices=["exhaustive", "sequential", "covisibility", "poses", "retrieval"], help="see above"
    )
    parser.add_argument("--images", type=Path, required=True, help="folder of the images")
    parser.add_argument("--output", type=Path, required=True, help="the pair list to write")
    parser.add_argument("--count", type=int, help="pairs of each image: 10 for sequential, 20 for the others")
    parser.add_argument("--model", type=Path, help="COLMAP model, for covisibility and poses")
    parser.add_argument("--max-angle", type=float, default=30.0, help="poses: degrees between viewing directions")
    parser.add_argument(
        "--quadratic", action="store_true", help="sequential: also the images 2, 4, 8, ... places ahead"
    )
    parser.set_defaults(
        paths=Paths(
            images=("images",),
            models=("model",),
            files=("output",),
            also=lambda args: (
                [args.output.with_name(f"{args.output.stem}.retrieved{end}") for end in (".txt", ".json")]
                if args.kind == "retrieval" and args.output.name
                else []
            ),
        )
    )


def run(args: argparse.Namespace) -> int:
    from pdc_sfm.images import list_images
    from pdc_sfm.store.pair_lists import unique_pairs, write_pairs

    count = args.count if args.count is not None else {"sequential": 10}.get(args.kind, 20)
    if count < 1:
        raise SettingsError(f"--count {count} must be at least 1")
    names = list_images(args.images)
    if len(names) < 2:
        raise ImageError(f"{args.images} holds {len(names)} image: a pair needs two")
    pairs = unique_pairs(_pairs(args, names, count))
    known = set(names)
    absent = {name for pair in pairs for name in pair if name not in known}
    pairs = [pair for pair in pairs if not absent & set(pair)]
    if not pairs:
        raise FormatError(f"no pair was found among {args.images}: does the model have the same image names?")
    write_pairs(args.output, pairs)
    print(f"{len(pairs)} pairs of {len({name for pair in pairs for name in pair})} images -> {args.output}")
    if absent:
        print(f"left out: {len(absent)} images of the model that are not in {args.images}, such as {min(absent)}")
    return 1 if absent else 0


def _pairs(args: argparse.Namespace, names: list[str], count: int) -> list[tuple[str, str]]:
    from pdc_sfm.engine.pairing import exhaustive_pairs, nearest_pose_pairs, sequential_pairs

    if args.kind == "exhaustive":
        return exhaustive_pairs(names)
    if args.kind == "sequential":
        return sequential_pairs(names, count, args.quadratic)
    if args.kind == "retrieval":
        return _similar(args.images, names, args.output, count)
    if args.model is None:
        raise SettingsError(f"{args.kind} needs --model, a COLMAP model of these images")
    from pdc_sfm.colmap.io.covisibility import pairs_from_covisibility
    from pdc_sfm.colmap.io.models import load_model, model_poses

    model = load_model(args.model)
    if args.kind == "covisibility":
        return pairs_from_covisibility(model, count)
    return nearest_pose_pairs(model_poses(model), count, args.max_angle)


def _similar(images: Path, names: list[str], output: Path, count: int) -> list[tuple[str, str]]:
    from pdc_sfm.commands.retrieve import tell
    from pdc_sfm.retrieval import RetrievalSettings, retrieve

    place = output.with_name(f"{output.stem}.retrieved.txt")
    finding = RetrievalSettings(best=0)  # the full network matches the pairs anyway
    result = retrieve(images, names, names, place, count, finding, counts=output.with_suffix(".counts"))
    tell(result)
    return [(query, image.name) for query, found in result.found.items() for image in found]
