"""A matcher in vismatch's form: its outputs are what vismatch's base class checks for. The base is a stand-in."""

import importlib
import sys
import types

import numpy as np
import pytest
import torch
from photo_fakes import waves


class BaseMatcher(torch.nn.Module):
    """vismatch's contract: `_forward` gives seven values for two (3, H, W) images in [0, 1]."""

    def __init__(self, device="cpu", **kwargs):
        super().__init__()
        self.device = device
        self.ransac_iters = kwargs.get("ransac_iters", 2000)

    @torch.inference_mode()
    def forward(self, img0, img1):
        outputs = self._forward(img0, img1)
        assert len(outputs) == 7
        kpts0, kpts1, all0, all1, desc0, desc1, confidences = outputs
        assert kpts0.shape == kpts1.shape == (len(confidences), 2)
        assert (all0, all1, desc0, desc1) == (None,) * 4
        return {"matched_kpts0": kpts0, "matched_kpts1": kpts1, "matched_confidences": confidences}


@pytest.fixture
def plugin(monkeypatch):
    module = types.ModuleType("vismatch")
    module.BaseMatcher = BaseMatcher
    monkeypatch.setitem(sys.modules, "vismatch", module)
    monkeypatch.delitem(sys.modules, "pdc_sfm.vismatch_plugin", raising=False)
    yield importlib.import_module("pdc_sfm.vismatch_plugin")
    sys.modules.pop("pdc_sfm.vismatch_plugin", None)


def tensor(image):
    return torch.from_numpy(np.ascontiguousarray(image)).permute(2, 0, 1).float() / 255


def test_matches_are_pixels_of_the_given_images_with_probabilities(plugin):
    wide = waves(3, (256, 300))
    first, second = wide[:, :280], wide[:, 12:292]  # what is at x in the first is at x - 12 in the second
    matcher = plugin.PDCNetMatcher("cpu", 500, settings=["dense.min_side=256"], ransac_iters=7)
    assert matcher.ransac_iters == 7
    result = matcher(tensor(first), tensor(second))
    shift = result["matched_kpts1"] - result["matched_kpts0"]
    assert 100 < len(shift) <= 500
    assert np.abs(np.median(shift, axis=0) - [-12, 0]).max() < 0.5
    confidences = result["matched_confidences"]
    assert ((confidences > 0) & (confidences <= 1)).all()
    assert (np.diff(confidences) <= 0).all()  # the surest first


def test_without_vismatch_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "vismatch", None)
    monkeypatch.delitem(sys.modules, "pdc_sfm.vismatch_plugin", raising=False)
    plugin = importlib.import_module("pdc_sfm.vismatch_plugin")
    with pytest.raises(ImportError, match="pip install vismatch"):
        plugin.PDCNetMatcher()
