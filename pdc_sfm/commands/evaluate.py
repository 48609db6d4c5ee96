"""Measure how good a network is: on made pairs from any photographs, on a scene with known cameras, on the datasets of
the paper.

Examples:
  pdc-sfm evaluate homographies --images photos/
  pdc-sfm evaluate homographies --help
"""

from __future__ import annotations

import argparse

from pdc_sfm.commands.subverbs import add_subverbs, run

SUBVERBS = {
    "homographies": "pairs made from any folder of photographs, of kinds from easy to hard",
    "homography-pair": "two photographs of a plane and the homography between them",
    "homography-sets": "folders of photographs of planes with homographies: Oxford's affine set, HPatches",
    "pairs": "listed pairs with a relative pose, a homography or points set by hand",
    "epipolar": "photographs with known cameras: matches near the epipolar line, relative poses",
    "scene": "the built-in scene: flow, confidence and poses by day and by night",
    "megadepth": "MegaDepth's 1600 test pairs: PCK",
    "robotcar": "RobotCar: PCK",
    "eth3d": "ETH3D at intervals 3 to 15: AEPE, PCK",
    "kitti": "KITTI 2012 or 2015: AEPE, Fl",
    "hpatches": "HPatches: mean matching accuracy",
    "hpatches240": "HPatches at 240x240: AEPE, PCK",
    "yfcc": "YFCC100M: relative poses",
    "scannet": "ScanNet: relative poses",
}
OWN = (
    "homographies",
    "homography-pair",
    "homography-sets",
    "pairs",
    "epipolar",
    "scene",
)  # the others are datasets, one module for all


def add_arguments(parser: argparse.ArgumentParser) -> None:
    modules = {name: name.replace("-", "_") if name in OWN else "dataset" for name in SUBVERBS}
    add_subverbs(parser, SUBVERBS, {name: f"evaluate_{module}" for name, module in modules.items()})


__all__ = ["add_arguments", "run"]
