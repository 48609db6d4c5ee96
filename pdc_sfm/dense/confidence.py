"""Confidence: the probability, between 0 and 1, that the match of a cell is right. It is computed here and nowhere else.

Two things can say it. Of the published networks it is P_R (Eq. 7), the mass of the mixture within R pixels of the flow; as the
narrowest component has sigma 1, P_1 does not exceed (1 - exp(-sqrt 2))^2 = 0.573 there. A network with a confidence head
(`network.confidence_head`), its flow aligned to a fraction of a pixel, says how likely a cell is less than one pixel off:
that is the probability itself, and the mixture beside it is the network's own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import numpy as np

from pdc_sfm.errors import SettingsError
from pdc_sfm.settings import require

if TYPE_CHECKING:
    from torch import Tensor

    from pdc_sfm.network.confidence_head import ConfidenceHead
    from pdc_sfm.network.settings import NetworkSettings

Maps = TypeVar("Maps")  # tensors or arrays


def head_confidence(head: ConfidenceHead | None, features: Tensor | None) -> Tensor | None:
    """Confidence features (B, CONFIDENCE_FEATURES, h, w) -> probability (B, 1, h, w); None without a head."""
    return None if head is None or features is None else head(features).sigmoid()


def confidence_map(stated: Tensor | None, log_var: Tensor | None, logits: Tensor | None, radius: float = 1.0) -> Tensor:
    """(B, 1, h, w): what a head states (B, 1, h, w), else P_R of the mixture (B, M, h, w) twice."""
    if stated is not None:
        require_radius(radius)
        return stated
    from pdc_sfm.network import mixture

    return mixture.p_r(*_require_mixture(log_var, logits), radius)


def confidence_array(
    stated: np.ndarray | None, log_var: np.ndarray | None, logits: np.ndarray | None, radius: float = 1.0
) -> np.ndarray:
    """The same for arrays: (...), (..., M) twice -> (...) float32."""
    if stated is not None:
        require_radius(radius)
        return stated
    mixture = _require_mixture(log_var, logits)
    import torch

    rows = (torch.from_numpy(np.ascontiguousarray(np.moveaxis(x, -1, 0), np.float32)) for x in mixture)
    rows_log_var, rows_logits = (x.reshape(1, len(x), -1, 1) for x in rows)  # (1, M, N, 1)
    return confidence_map(None, rows_log_var, rows_logits, radius).reshape(mixture[0].shape[:-1]).numpy()


def _require_mixture(log_var: Maps | None, logits: Maps | None) -> tuple[Maps, Maps]:
    if log_var is None or logits is None:
        raise SettingsError("this network predicts no uncertainty: use confidence=cyclic, or other weights")
    return log_var, logits


def require_radius(radius: float) -> None:
    """Refuse another radius than 1 where a confidence head speaks: it was fitted to that event alone."""
    require(
        radius == 1,
        f"radius={radius:g}: these weights state the probability of an error below 1 pixel, and of no other radius; "
        "leave it at 1 (other radii are for P_R of networks without a confidence head)",
    )


def require_reachable(network: NetworkSettings, aligned: bool, radius: float, threshold: float) -> None:
    """Refuse a radius that the network's confidence is not about, and a threshold that it never exceeds."""
    from pdc_sfm.network.mixture import highest_p_r

    if aligned and network.confidence_channels:
        require_radius(radius)
    else:
        top = highest_p_r(network.mixture, radius)
        said = f"with radius={radius:g}, P_R of this network never exceeds {top:.3f}"
        require(threshold < top, f"threshold={threshold:g} keeps nothing: {said}")
