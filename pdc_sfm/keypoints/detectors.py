"""From settings to a detector: one object with `detect(image)`, in pixels of the original image."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pdc_sfm.device import resolve_device, set_tf32
from pdc_sfm.errors import SettingsError
from pdc_sfm.images import fitted_size, resize_image
from pdc_sfm.keypoints.types import Detector, Keypoints, KeypointSettings, in_original_pixels


@dataclass(frozen=True)
class ResizingDetector:
    """Detects in the resized image and reports in the original one."""

    detect_resized: Callable[[np.ndarray], Keypoints]
    settings: KeypointSettings

    def detect(self, image: np.ndarray) -> Keypoints:
        height, width = image.shape[:2]
        size = fitted_size((width, height), self.settings.min_side, self.settings.max_side)
        return in_original_pixels(self.detect_resized(resize_image(image, size)), (width, height))


def make_detector(settings: KeypointSettings) -> Detector:
    """The detector that the settings name, its weights loaded."""
    make = {"sift": _sift, "superpoint": _superpoint, "disk": _disk}[settings.detector]
    return ResizingDetector(make(settings), settings)


def _sift(settings: KeypointSettings) -> Callable[[np.ndarray], Keypoints]:
    """Needs no weights, so it is always there."""
    from pdc_sfm.sift import detect

    return lambda image: Keypoints(*detect(image, settings.max_keypoints), image.shape[1::-1])


def _superpoint(settings: KeypointSettings) -> Callable[[np.ndarray], Keypoints]:
    import torch

    from pdc_sfm.keypoints import superpoint
    from pdc_sfm.keypoints.weights_file import load_state

    if settings.weights is None:
        raise SettingsError(
            "SuperPoint's weights may not be redistributed: download superpoint_v1.pth (magicleap/"
            "SuperPointPretrainedNetwork on GitHub) and add weights=superpoint_v1.pth, or use detector=sift"
        )
    device, network = _device(settings), superpoint.SuperPoint()
    load_state(network, settings.weights)
    network = network.eval().to(device)

    def run(image: np.ndarray) -> Keypoints:
        gray = torch.from_numpy(superpoint.gray_of(image)).to(device)
        return superpoint.detect(
            network,
            gray,
            max_keypoints=settings.max_keypoints,
            nms_radius=settings.nms_radius,
            threshold=settings.threshold,
            border=settings.border,
        )

    return run


def _disk(settings: KeypointSettings) -> Callable[[np.ndarray], Keypoints]:
    from pdc_sfm.keypoints import disk
    from pdc_sfm.keypoints.weights_file import load_state

    device, network = _device(settings), disk.Disk()
    load_state(network, settings.weights or disk.packaged_weights(), disk.our_name)
    network = network.eval().to(device)

    def run(image: np.ndarray) -> Keypoints:
        rgb = disk.rgb_tensor(image).to(device)
        return disk.detect(network, rgb, max_keypoints=settings.max_keypoints, nms_radius=settings.nms_radius)

    return run


def _device(settings: KeypointSettings) -> str:
    """The device of a network that detects, ready for it."""
    device = resolve_device(settings.device)
    set_tf32(device)
    return device
