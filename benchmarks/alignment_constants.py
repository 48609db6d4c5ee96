"""Each constant of sub-pixel alignment halved and doubled: the share of cells within half a pixel of the truth.

  pdc-sfm scene --output outputs/town seed=903
  python benchmarks/alignment_constants.py --photos PHOTOS --scene outputs/town

Pairs are those that `train calibrate` judges by: warped photographs that are not trained on, and views of rendered scenes. The
network runs once a pair, alignment once a value. Cells count that both images show and that the network finds likely.
"""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from data import needed

from pdc_sfm.dense import gray, subpixel
from pdc_sfm.dense.estimator import Estimator
from pdc_sfm.matcher import load_matcher
from pdc_sfm.network import LevelOutput, prepare_image
from pdc_sfm.network.mixture import p_r
from pdc_sfm.synthetic.pairs import SyntheticPair
from pdc_sfm.training.calibration import cell_truth
from pdc_sfm.training.calibration_pairs import calibration_kinds

# module, name, values beside the present one
CONSTANTS: list[tuple[Any, str, tuple[Any, ...]]] = [
    (gray, "LEAST_CONTRAST", (0.005, 0.02)),
    (gray, "NEIGHBORHOOD", ((2, 2), (2, 1, 1))),
    (subpixel, "STIFFNESS", (5e-4, 2e-3)),
    (subpixel, "ROBUST", (0.25, 1.0)),
    (subpixel, "SMOOTHING", ((1, 1), (3, 2, 2, 1))),
    (subpixel, "LARGEST_JUMP", (0.5, 2.0)),
    (subpixel, "LARGEST_STEP", (0.75, 3.0)),
    (subpixel, "LARGEST_SHIFT", (1.5, 6.0)),
    (subpixel, "LIKELY", (0.015, 0.06)),
    (subpixel, "MARGIN", (4, 16)),
]
LIKELY = subpixel.LIKELY
NEAR = 0.5  # pixels of the network's input


class Case:
    """A pair, and what the network says of it."""

    def __init__(self, estimator: Estimator, pair: SyntheticPair) -> None:
        self.images = [prepare_image(image) for image in (pair.reference, pair.query)]
        codes = [estimator.network.encode(image) for image in self.images]
        self.sizes = [code.high_size for code in codes]
        self.output: LevelOutput = estimator.network.decode(*codes)[-1]
        shape = self.output.flow.shape[-2:]
        self.truth, seen = cell_truth(pair, shape, self.output.reference_size, self.output.query_size)
        self.counted = seen & (p_r(self.output.log_var, self.output.logits)[0, 0] > LIKELY)

    def near(self) -> float:
        """The share of cells that alignment, as it is now, brings to their place."""
        grays = [gray.gray(image, size) for image, size in zip(self.images, self.sizes)]
        found = subpixel.align_likely(self.output, grays[:1], grays[1:])
        error = (found.flow[0] - self.truth).abs().amax(0)[self.counted]
        return float((error < NEAR).float().mean()) if len(error) else float("nan")


@contextlib.contextmanager
def changed(module: Any, name: str, value: Any) -> Iterator[None]:
    """The constant with another value."""
    kept = getattr(module, name)
    setattr(module, name, value)
    try:
        yield
    finally:
        setattr(module, name, kept)


@torch.inference_mode()
def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--photos", type=Path, required=True, help="folder of photographs")
    parser.add_argument("--scene", type=Path, action="append", default=[], help="folder of `pdc-sfm scene`; repeatable")
    parser.add_argument("--pairs", type=int, default=6, help="pairs of each kind")
    args = parser.parse_args()
    torch.set_num_threads(1)
    kinds = calibration_kinds(needed(args.photos), None, [needed(scene) for scene in args.scene], 4 * args.pairs)
    estimator = load_matcher().estimator
    cases = {kind.name: [Case(estimator, pair) for pair in kind.judging] for kind in kinds}
    print(f"{'':32}" + "".join(f"{name:>24}" for name in cases))
    print(f"{'as it is':32}{row(cases)}", flush=True)
    for module, name, values in CONSTANTS:
        for value in values:
            with changed(module, name, value):
                print(f"{name + '=' + str(value):32}{row(cases)}", flush=True)


def row(cases: dict[str, list[Case]]) -> str:
    shares = (torch.tensor([case.near() for case in some]).nanmean().item() for some in cases.values())
    return "".join(f"{share:24.3f}" for share in shares)


if __name__ == "__main__":
    main()
