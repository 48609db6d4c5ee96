"""Flow at known correspondences of a dataset: pairs are read one by one, resized as the protocol says, matched, judged."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np

from pdc_sfm.dense.settings import DenseSettings
from pdc_sfm.evaluation.datasets.flow_pair import FlowPair
from pdc_sfm.evaluation.measures.dense_scores import DenseScores
from pdc_sfm.images import fitted_size, read_image, resize_image
from pdc_sfm.matcher import Matcher
from pdc_sfm.pixels import Size, rescale


@dataclass(frozen=True)
class FlowProtocol:
    """At which size errors are measured, in pixels; by default at that of the query itself."""

    min_side: int | None = None  # of a query whose smaller side has this length
    exact: Size | None = None  # both images resized to this (width, height)


@dataclass(frozen=True)
class FlowSettings:
    """How pairs are matched."""

    # one pass by default: the paper's protocol scores the flow everywhere, also where nothing is sure
    dense: DenseSettings = field(default_factory=lambda: DenseSettings(method="direct"))
    backward: bool = True  # also the other direction, to rank by forward-backward consistency


def evaluate_flow(
    pairs: Iterable[FlowPair],
    matcher: Matcher,
    protocol: FlowProtocol,
    settings: FlowSettings,
    progress: Callable[[str], None] | None = None,
) -> DenseScores:
    """Scores of a dataset, or of one part of it."""
    scores = DenseScores()
    for pair in pairs:
        paths = (pair.reference, pair.query)
        images = [read_image(path) for path in paths]
        points, true = (np.asarray(p, np.float64) for p in pair.correspondences(*(i.shape[1::-1] for i in images)))
        scale = 1.0
        if protocol.exact:
            points, true = (rescale(p, i.shape[1::-1], protocol.exact) for p, i in zip((points, true), images))
            images = [resize_image(image, protocol.exact) for image in images]
        elif protocol.min_side:
            scale = protocol.min_side / min(images[1].shape[:2])
        codes = [matcher.encode(image, str(path)) for image, path in zip(images, paths)]
        forward = matcher.estimator.estimate(*codes)
        backward = matcher.estimator.estimate(*codes[::-1]) if settings.backward else None
        width = images[1].shape[1]
        seen = fitted_size(images[1].shape[1::-1], settings.dense.min_side, settings.dense.max_side)[0] / width
        scores.add(forward, backward, points, true, scale=scale, query_seen=seen, group=pair.group)
        if progress:
            progress(pair.name)
    return scores
