"""The probability that a depth is right, by all that is known of it: a small network (two hidden layers) a pixel.

A logistic function weighs each by itself; how much a view that sees the same surface says depends on the texture, on how many
could see it, and on what is believed around. docs/densify.md has what that came to.
"""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from pdc_sfm.fusion.probability import guided_mean, log_odds, own_features

WEIGHTS = Path(__file__).with_name("probability.json")  # written by benchmarks/depth_probability.py
FEW = 0.1  # views: fewer are not told apart
FLAT = 1e-3  # change of inverse depth over a focal length, by itself: less is not told apart
TEXTURE = 7  # pixels: the side of the square whose contrast is taken
NEAR, WIDE = 8, 24  # pixels each way, over which features are averaged
ROWS = 64  # of an image at a time, which bounds memory
OWN = ("agreement", "support", "flat", "nearer")
VIEWS = ("same", "through", "before")
MEAN_NEAR = ("agreement", "support", "nearer", "same", "through", "sigma")
MEAN_WIDE = ("agreement", "support", "same", "through")
MEANS = tuple((key, reach) for keys, reach in ((MEAN_NEAR, NEAR), (MEAN_WIDE, WIDE)) for key in keys)
FEATURES = (
    *OWN,
    *VIEWS,
    "count",
    "asked",
    "own",
    "belief",
    "sigma",
    "slope",
    "texture",
    *(f"{k}_{r}" for k, r in MEANS),
)
# More of these makes a depth more probable (1) or less (-1), whatever the others are; what is not here may do either.
SIGNS = {"agreement": 1, "support": 1, "flat": 1, "same": 1, "count": 1, "own": 1, "belief": 1} | {
    "nearer": -1,
    "through": -1,
    "sigma": -1,
}


def final_features(
    made: dict[str, np.ndarray], views: dict[str, np.ndarray], gray: np.ndarray, focal: float
) -> np.ndarray:
    """(h, w, F) float32 of what the image found (`made`), what its partners say (`views`), its gray levels and focal length."""
    rho, gx, gy = (made[key] for key in ("rho", "gx", "gy"))
    own = own_features(rho, gx, gy, made["agreement"], made["support"])
    found = dict(zip(OWN, np.moveaxis(own, -1, 0)))
    found |= {key: np.log(views[key] + FEW) for key in VIEWS}
    found |= {key: views[key] for key in ("count", "asked")}
    found |= {"own": log_odds(made["probability"]), "belief": log_odds(made["belief"])}
    found["sigma"] = np.log(made["sigma"] / rho)
    found["slope"] = np.log(FLAT + focal * np.hypot(gx, gy) / rho)
    gray = gray.astype(np.float32)
    side = (TEXTURE, TEXTURE)
    found["texture"] = 0.5 * np.log(1 + np.maximum(cv2.blur(gray * gray, side) - cv2.blur(gray, side) ** 2, 0))
    found |= {f"{key}_{reach}": guided_mean(found[key], gray, reach) for key, reach in MEANS}
    return np.stack([found[name].astype(np.float32) for name in FEATURES], -1)


def signs() -> np.ndarray:
    """(F,): 1, -1 or 0 of every feature, as of `SIGNS`; a mean has that of what is averaged."""
    return np.array([SIGNS.get(name.split("_")[0], 0) for name in FEATURES])


@dataclass(frozen=True)
class ProbabilityNetwork:
    """Features (..., F), brought to mean 0 and deviation 1, through two layers to log-odds."""

    mean: np.ndarray
    deviation: np.ndarray
    layers: tuple[tuple[np.ndarray, np.ndarray], ...]  # weights (in, out), bias (out,)

    def __call__(self, features: np.ndarray) -> np.ndarray:
        """(...) float32."""
        if features.ndim == 3:
            strips = range(0, len(features), ROWS)
            return np.concatenate([self._probability(features[top : top + ROWS]) for top in strips])
        return self._probability(features)

    def _probability(self, features: np.ndarray) -> np.ndarray:
        values = (features - self.mean) / self.deviation
        for number, (weights, bias) in enumerate(self.layers):
            values = values @ weights + bias
            if number + 1 < len(self.layers):
                values = np.tanh(values)
        return (1 / (1 + np.exp(-np.clip(values[..., 0], -30, 30)))).astype(np.float32)

    def to_dict(self) -> dict[str, Any]:
        """As it is written, four digits of each number."""
        layers = [{"weights": _short(weights), "bias": _short(bias)} for weights, bias in self.layers]
        return {"mean": _short(self.mean), "deviation": _short(self.deviation), "layers": layers}

    @staticmethod
    def from_dict(written: dict[str, Any]) -> ProbabilityNetwork:
        """What `to_dict` gave."""
        mean, deviation = (np.array(written[key], np.float32) for key in ("mean", "deviation"))
        layers = [tuple(np.array(layer[key], np.float32) for key in ("weights", "bias")) for layer in written["layers"]]
        return ProbabilityNetwork(mean, deviation, tuple((weights, bias) for weights, bias in layers))


@functools.cache
def probability_network() -> ProbabilityNetwork:
    """The built-in one."""
    return ProbabilityNetwork.from_dict(json.loads(WEIGHTS.read_text(encoding="utf-8")))


def _short(values: np.ndarray) -> Any:
    return np.vectorize(lambda value: float(f"{value:.4g}"))(np.asarray(values, np.float64)).tolist()
