"""Hours, memory and disk of each verb for maps of a hundred to a million images on one machine with a GPU: a model.

    python benchmarks/budget.py                       an RTX 3090's pairs a second (docs/scale.md), 8 cores
    python benchmarks/budget.py --pairs-a-second 1.3 --cores 2 --gpu-encode 0.035 --gpu-coarse 0.0143       without a GPU

What a pair, an image or a query takes was measured on small maps (the constants below: where, and how far they are off there);
the number of pairs and images does the rest. What grows otherwise than in proportion is left out, and said.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

# Processor seconds of one core, unless said otherwise. benchmarks/knee.py on the demo (24 images, 83 pairs) and the same on a
# kitchen (24 images, 113 pairs), 4,096 keypoints an image.
TRIANGULATE = {"demo": (24, 7.8), "kitchen": (24, 12.0)}  # images, seconds
# Of triangulation what the calling thread does itself, however many others there are: time.thread_time() against
# time.process_time() of `triangulate` with threads=2, a town of 16 images, without the look at known poses, which is of 300 pairs
# at most
ALONE = 0.45
LOCALIZE = {"demo": (16, 2.9), "kitchen": (20, 4.1)}  # queries, seconds
JOURNAL = {"demo": (83, 83 * 4733 * 4.2), "kitchen": (276, 8.97e6)}  # pairs, bytes
MATCH_FILE = {"demo": (83, 1.66e6), "kitchen": (113, 2.80e6)}
DATABASE = {"demo": (83, 2.51e6), "kitchen": (113, 4.33e6)}  # of COLMAP
FEATURES = {"demo": (24, 1.58e6), "kitchen": (24, 1.63e6)}  # images, bytes
TRACKS = 5.0e-3  # a pair (benchmarks/assembly.py, docs/scale.md)
DESCRIBE = 2e-3  # an image: words, sums (benchmarks/million.py)
CELLS = 100 * 32e-6  # of a shortlist of 100, a query
CANDIDATES = 30  # of the coarse branch, a query
CODES, DESCRIPTORS = 262e3, 2048  # bytes an image on disk
INDEX = 128 + 2048  # bytes an image, beyond 50,000: short codes in memory, descriptors mapped into it
# Bytes an image in memory while a map is triangulated. The model is 0.22 MB of them, from a hundred to 3,000 images
# (benchmarks/model_memory.py); matches and what refines keypoints are the rest, by their sizes, not measured.
MODEL = 1.5e6
# Maps that the constants above are not from (benchmarks/knee.py): every second image of the kitchen and of its queries
OTHER_MAPS = {"half of the kitchen": ((12, 6.0), (10, 1.4))}  # images, seconds of triangulation; queries, seconds


@dataclass(frozen=True)
class Machine:
    pairs: float  # a second, matched by the GPU with all its processor does meanwhile
    encode: float  # seconds of the GPU an image, coarse
    coarse: float  # seconds of the GPU a pair of the coarse branch
    cores: int


def mean(measured: dict[str, tuple[float, float]]) -> float:
    """Of one image or pair, over the maps."""
    return sum(total / count for count, total in measured.values()) / len(measured)


def error(measured: dict[str, tuple[float, float]]) -> float:
    """The largest difference of a map from the mean, as a share."""
    return max(abs(total / count / mean(measured) - 1) for count, total in measured.values())


def row(images: int, each: int, machine: Machine) -> str:
    pairs = images * each
    search = images * 0.3e-6 if images <= 50_000 else 8e-3 + images * 7e-9  # benchmarks/million.py: 9 and 15 ms
    find = images * (machine.encode + CANDIDATES * machine.coarse + (DESCRIBE + CELLS + search) / machine.cores)
    hours = {
        "pairs": find,
        "match": pairs / machine.pairs,
        "tracks": pairs * TRACKS / machine.cores,
        "triangulate": images * mean(TRIANGULATE) * (ALONE + (1 - ALONE) / machine.cores),
    }
    memory = max(4e9 + INDEX * images, MODEL * images)
    disk = {
        "codes": images * (CODES + DESCRIPTORS),
        "journal": pairs * mean(JOURNAL),
        "h5": pairs * mean(MATCH_FILE) + images * mean(FEATURES),
        "database": pairs * mean(DATABASE),
    }
    figures = "".join(f" {value / 3600:>11.3g}" for value in hours.values())
    figures += f" {memory / 1e9:>9.3g}" + "".join(f" {value / 1e9:>8.3g}" for value in disk.values())
    return f"{images:>9,} {pairs:>11,}{figures}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--pairs-a-second", type=float, default=117.5, help="benchmarks/gpu_plan.py: built-in model, RTX 3090"
    )
    parser.add_argument("--gpu-encode", type=float, default=2.2e-3, help="seconds an image")
    parser.add_argument(
        "--gpu-coarse", type=float, default=0.5e-3, help="seconds a pair of the coarse branch: an eighth of all levels"
    )
    parser.add_argument("--cores", type=int, default=8)
    parser.add_argument("--pairs-an-image", type=int, default=20)
    args = parser.parse_args()
    machine = Machine(args.pairs_a_second, args.gpu_encode, args.gpu_coarse, args.cores)
    print(f"{'':>21} hours:{'':>42} GB: memory, disk")
    print(f"{'images':>9} {'pairs':>11} {'find pairs':>11} {'match':>11} {'tracks':>11} {'triangulate':>11} {'memory':>9}"
          f" {'codes':>8} {'journal':>8} {'h5':>8} {'database':>8}")  # fmt: skip
    for power in range(2, 7):
        print(row(10**power, args.pairs_an_image, machine))
    print(
        f"\na query: {mean(LOCALIZE):.2f} s of a core after matching (the two maps: within {100 * error(LOCALIZE):.0f} %)"
    )
    for name, measured in (
        ("triangulate", TRIANGULATE),
        ("journal", JOURNAL),
        ("match file", MATCH_FILE),
        ("database", DATABASE),
    ):
        print(f"{name}: the two maps differ from the model by up to {100 * error(measured):.0f} %")
    for name, ((images, seconds), (queries, located)) in OTHER_MAPS.items():
        modeled = images * mean(TRIANGULATE), queries * mean(LOCALIZE)
        print(
            f"{name}, {images} images, {queries} queries: triangulate {seconds:.1f} s, modeled {modeled[0]:.1f}; "
            f"localize {located:.1f} s, modeled {modeled[1]:.1f}"
        )


if __name__ == "__main__":
    main()
