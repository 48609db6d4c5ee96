"""Measure the accuracy of a network: on synthetic pairs of any photographs, on a scene with known cameras, on the datasets of
the paper.

Examples:
  pdc-sfm evaluate homographies --images photos/
  pdc-sfm evaluate homographies --help
"""

from __future__ import annotations

# sub-verb -> its module, and what it does; the datasets of the paper share one
SUBVERBS = {
    "homographies": ("homographies", "pairs made from any folder of photographs, of kinds from easy to hard"),
    "homography-pair": ("homography_pair", "two photographs of a plane and the homography between them"),
    "homography-sets": (
        "homography_sets",
        "folders of photographs of planes with homographies: Oxford's affine set, HPatches",
    ),
    "pairs": ("pairs", "listed pairs with a relative pose, a homography or points set by hand"),
    "epipolar": ("epipolar", "photographs with known cameras: matches near the epipolar line, relative poses"),
    "scene": ("scene", "the built-in scene: flow, confidence and poses by day and by night"),
    "megadepth": ("dataset", "MegaDepth's 1600 test pairs: PCK"),
    "robotcar": ("dataset", "RobotCar: PCK"),
    "eth3d": ("dataset", "ETH3D at intervals 3 to 15: AEPE, PCK"),
    "kitti": ("dataset", "KITTI 2012 or 2015: AEPE, Fl"),
    "hpatches": ("dataset", "HPatches: mean matching accuracy"),
    "hpatches240": ("dataset", "HPatches at 240x240: AEPE, PCK"),
    "yfcc": ("dataset", "YFCC100M: relative poses"),
    "scannet": ("dataset", "ScanNet: relative poses"),
}
