"""Two images with known correspondences."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pdc_sfm.pixels import Size

Correspondences = Callable[[Size, Size], tuple[np.ndarray, np.ndarray]]


@dataclass(frozen=True)
class FlowPair:
    """Two images, and a function from their sizes to points (N, 2) of the reference and where they lie in the query."""

    name: str
    reference: Path
    query: Path
    correspondences: Correspondences  # original pixel indices
    group: str = ""
