"""The probability that the pose of a query is right: at the right place, and within 25 cm and 2 degrees.

A pose is wrong in two ways, which different figures tell. At a place that looks like the right one, its own residuals are as
small as ever, but few database images vouch for it, other matches tell of another place, or the network is less sure. At the
right place it is off by what its matches leave open, which its covariance tells. So the probability is a product of two
logistic functions.
Where a map has no metres, "25 cm" is a sixtieth of the median depth of what the query shows.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from pdc_sfm.colmap.localization.evidence import PoseEvidence

METRES, DEGREES = 0.25, 2.0  # within which a pose is called right (visuallocalization.net's first threshold)
MOST_IMAGES = 8  # database images beyond which more of them say nothing new
WIDE = 45.0  # degrees from the nearest view of the database: matches there are often off together
UNSURE = 0.4  # mean confidence of inliers, at which the odds of the right place are a ninth of those at 1
LITTLE = 0.05  # share of the picture that inliers of a certain pose hardly ever cover alone

# Weights of the two functions, fitted by `python benchmarks/localization_probability.py`, which prints the reliability on
# scenes that it did not see (table: docs/localization.md)
PLACE = {"constant": -1.25, "unexplained": -2.51, "images": 1.38, "confidence": 3.65}
PRECISION = {"constant": -0.77, "sigma": -2.12}


@dataclasses.dataclass(frozen=True)
class PoseProbability:
    """The probability of a right pose and its two factors, with what it was told by."""

    evidence: PoseEvidence
    place: float  # of being at the right place
    precision: float  # of being within the tolerance, if so

    @property
    def probability(self) -> float:
        return self.place * self.precision

    def doubt(self, limit: float) -> str:
        """Why the pose may be wrong and what to do, if its probability is below the limit; else nothing."""
        return "" if self.probability >= limit else self._reason()

    def _reason(self) -> str:
        e = self.evidence
        if self.precision < self.place:
            known = f"known to {e.sigma_position:.2g} and {e.sigma_degrees:.2g} degrees only"
            if e.focal_share > 0.5:
                return f"{known}, as its focal length is a guess: list its intrinsics"
            if e.angle > WIDE:
                return f"{known}, seen {e.angle:.0f} degrees from any view of the map: add images from its side"
            if e.covered < LITTLE:
                return f"{known}, inliers cover {100 * e.covered:.0f} % of it: match more images of the map with it"
            return f"{known}: match more images of the map with it, or larger ones"
        if e.unexplained > 0.5:
            return "most of its matches tell of another place, which may look alike: look at it"
        if e.confidence < UNSURE and e.images > 2:
            return f"its inliers are unsure ({e.confidence:.2f}), as those of a place that looks alike are: look at it"
        vouching = f"{e.images} image{'s' * (e.images != 1)} of the map"
        return f"only {vouching} vouch{'es' * (e.images == 1)} for it: match more images of the map with it"


def pose_probability(evidence: PoseEvidence) -> PoseProbability:
    """The probability of a pose with these figures."""
    x = features(evidence)
    return PoseProbability(evidence, _logistic(PLACE, x), _logistic(PRECISION, x))


def features(evidence: PoseEvidence) -> dict[str, float]:
    """What the weights belong to."""
    return {
        "constant": 1.0,
        "unexplained": evidence.unexplained,
        "images": float(np.log(np.clip(evidence.images, 1, MOST_IMAGES))),
        "confidence": evidence.confidence,
        "sigma": float(np.log(max(evidence.sigma(DEGREES), 0.01))),
    }


def _logistic(weights: dict[str, float], x: dict[str, float]) -> float:
    return float(1 / (1 + np.exp(-sum(weight * x[name] for name, weight in weights.items()))))
