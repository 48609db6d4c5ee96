"""Direct against homography, multi-scale and search, on pairs with large rotation, scale and perspective.

Photographs become pairs by known homographies: the reference is the photograph, the query another view of it, in other
light. Printed is the share of reference cells, among those the query shows, whose predicted point is within 1 and 5
pixels of the coarser image (PCK-1, PCK-5), the seconds a pair takes, one direction, encoding included, and how often
the network runs for it: images encoded, pairs decoded, and passes of its 256x256 branch alone.

  python benchmarks/strategies.py --images datasets/benchmarks/photos --held-out --count 10
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
from data import DATA, needed
from torch import Tensor

from pdc_sfm.dense.estimate import DenseEstimate
from pdc_sfm.dense.estimator import Estimator
from pdc_sfm.dense.settings import DenseSettings
from pdc_sfm.dense.views import View
from pdc_sfm.images import fitted_size, resize_image
from pdc_sfm.matcher import load_matcher
from pdc_sfm.network import ImageCode, LevelOutput, PDCNet
from pdc_sfm.pixels import Size, inside, transform
from pdc_sfm.synthetic.photographs import open_photographs

STRATEGIES = {
    "D": {"method": "direct"},
    "H": {"method": "homography"},
    "MS": {"method": "multiscale"},
    "D+rot": {"method": "direct", "rotations": 8},
    "H+rot": {"method": "homography", "rotations": 8},
    "MS+rot": {"method": "multiscale", "rotations": 8},
    "search": {"method": "search"},
    "auto": {"method": "auto"},
}
# kind -> (degrees, zoom of the query, tilt: how much nearer one side is than the other)
KINDS = {
    "easy": (10, 1.1, 0.05),
    "turned 30": (30, 1.0, 0.0),
    "turned 45": (45, 1.0, 0.0),
    "turned 90": (90, 1.0, 0.0),
    "turned 180": (180, 1.0, 0.0),
    "scale 1.5": (0, 1.5, 0.0),
    "scale 2": (0, 2.0, 0.0),
    "scale 2.5": (0, 2.5, 0.0),
    "scale 3": (0, 3.0, 0.0),
    "scale 1/2": (0, 0.5, 0.0),
    "scale 1/2.5": (0, 0.4, 0.0),
    "scale 1/3": (0, 0.34, 0.0),
    "perspective": (15, 1.2, 0.5),
    "strong persp.": (20, 1.3, 0.8),
    "90 and scale 2": (90, 2.0, 0.0),
    "120 and 2.5": (120, 2.5, 0.0),
    "120 and 1/2.5": (120, 0.4, 0.0),
}


class Counted:
    """A network that counts what is asked of it."""

    def __init__(self, network: PDCNet) -> None:
        self.network = network
        self.counts = np.zeros(3, int)  # images encoded, pairs decoded, passes of the 256x256 branch

    def __getattr__(self, name: str) -> Any:
        return getattr(self.network, name)

    def encode(self, images: Tensor) -> ImageCode:
        self.counts[0] += len(images)
        return self.network.encode(images)

    def decode(
        self, reference: ImageCode, query: ImageCode, last_level: int = 0, **options: Any
    ) -> tuple[LevelOutput, ...]:
        outputs = self.network.decode(reference, query, last_level, **options)
        self.counts[2 if last_level else 1] += len(reference)
        return outputs


def query_from_reference(kind: str, size: Size, rng: np.random.Generator) -> np.ndarray:
    """A homography of the kind, about the image's center, with a small random shift."""
    degrees, zoom, tilt = KINDS[kind]
    angle = np.radians(degrees * rng.choice((-1, 1)) + rng.uniform(-4, 4))
    width, height = size
    to_unit = np.array([[2 / width, 0, -1 + 1 / width], [0, 2 / width, -height / width + 1 / width], [0, 0, 1]])
    turn = zoom * np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    homography = np.eye(3)
    homography[:2, :2] = turn
    homography[:2, 2] = rng.uniform(-0.05, 0.05, 2)
    direction = rng.uniform(0, 2 * np.pi)
    homography[2, :2] = 0.5 * tilt * np.array([np.cos(direction), np.sin(direction)])
    return np.linalg.inv(to_unit) @ homography @ to_unit


def make_pair(photograph: np.ndarray, kind: str, side: int, rng: np.random.Generator):
    """Reference and query images of equal size, and the homography between them."""
    size = fitted_size(photograph.shape[1::-1], max_side=side)
    homography = query_from_reference(kind, size, rng)
    whole = View.whole(photograph, size, size)
    view = whole.seen_from(whole, np.linalg.inv(homography)).render()
    gain, offset = rng.uniform(0.8, 1.2), rng.uniform(-0.08, 0.08)
    query = np.clip(view * gain + offset + rng.normal(0, 0.01, view.shape), 0, 1)
    return resize_image(photograph, size), (query * 255).round().astype(np.uint8), homography


def correct(estimate: DenseEstimate, homography: np.ndarray) -> np.ndarray:
    """Errors of the cells that the query shows, in pixels of the coarser image (a zoomed query has finer ones)."""
    truth = transform(estimate.reference_points, homography)
    seen = inside(truth, estimate.query_size)
    zoom = np.sqrt(abs(np.linalg.det(homography[:2, :2])))
    return np.linalg.norm(estimate.query_points - truth, axis=-1)[seen] / max(zoom, 1.0)


def measure(estimator: Estimator, pairs: list) -> tuple[float, float, float]:
    """PCK-1, PCK-5 (percent, mean over pairs) and seconds a pair."""
    shares, start = [], time.perf_counter()
    for reference, query, homography in pairs:
        estimate = estimator.estimate(estimator.encode(reference), estimator.encode(query))
        errors = correct(estimate, homography)
        shares.append([(errors < limit).mean() for limit in (1, 5)])
    seconds = (time.perf_counter() - start) / len(pairs)
    return (*(100 * np.mean(shares, 0)), seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=Path, default=DATA / "photos", help="folder of photographs")
    parser.add_argument("--held-out", action="store_true", help="only the photographs that training leaves out")
    parser.add_argument("--count", type=int, default=10, help="pairs of each kind")
    parser.add_argument("--side", type=int, default=448, help="longer side of the reference")
    parser.add_argument("--weights", help="weights file; without it the built-in model")
    parser.add_argument("--kinds", nargs="*", default=list(KINDS), choices=list(KINDS))
    parser.add_argument("--strategies", nargs="*", default=list(STRATEGIES), choices=list(STRATEGIES))
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    needed(args.images)

    import torch

    torch.set_num_threads(args.threads)
    network = Counted(load_matcher(args.weights).estimator.network)
    photos = open_photographs(args.images, "validation" if args.held_out else "all")
    photographs = [photos[i] for i in np.linspace(0, len(photos) - 1, args.count).astype(int)]
    print(f"{'PCK-1 / PCK-5':16s}" + "".join(f"{name:>16s}" for name in args.strategies))
    spent, ran = np.zeros(len(args.strategies)), np.zeros((len(args.strategies), 3))
    for kind in args.kinds:
        rng = np.random.default_rng(0)
        pairs = [make_pair(photograph, kind, args.side, rng) for photograph in photographs]
        row = []
        for number, name in enumerate(args.strategies):
            network.counts[:] = 0
            settings = DenseSettings(min_side=None, max_side=None, **STRATEGIES[name])
            row.append(measure(Estimator(network, settings), pairs))
            ran[number] += network.counts / len(pairs)
        spent += [seconds for _, _, seconds in row]
        print(f"{kind:16s}" + "".join(f"{pck1:8.1f} /{pck5:6.1f}" for pck1, pck5, _ in row), flush=True)
    print(f"{'seconds a pair':16s}" + "".join(f"{seconds:16.2f}" for seconds in spent / len(args.kinds)))
    for counts, what in zip(ran.T / len(args.kinds), ("encoded", "decoded", "coarse passes")):
        print(f"{what + ' a pair':16s}" + "".join(f"{count:16.1f}" for count in counts))


if __name__ == "__main__":
    main()
