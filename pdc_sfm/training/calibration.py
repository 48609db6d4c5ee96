"""Making confidence a probability that is true: a confidence head (`network.confidence_head`), fitted to pairs with known truth.

Pairs of different kinds have different errors (warped photographs no depth edges, views of a scene no exact planes), so
every kind counts alike, and the confidence head sees enough of a cell to tell them apart. The flow stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from pdc_sfm.dense.confidence import confidence_map
from pdc_sfm.dense.estimator import Estimator
from pdc_sfm.dense.subpixel import align_likely, align_with_features
from pdc_sfm.network.confidence_head import CONFIDENCE_FEATURES, ConfidenceHead
from pdc_sfm.synthetic.pairs import SyntheticPair

FEW = 0.003  # share of the cells below which a tenth says little
BATCH = 4096  # cells of each kind in a step of the fit
RATE = 3e-3  # of Adam: three times its default, as the head has about a thousand weights


@dataclass(frozen=True)
class ObservedCells:
    """What is known of many cells, what was stated of them, and whether they are right."""

    features: Tensor  # (N, CONFIDENCE_FEATURES)
    stated: Tensor  # (N,) confidence of the network as it is
    right: Tensor  # (N,) bool: |error|_inf below 1 px, the event whose probability is stated


@torch.inference_mode()
def observe(estimator: Estimator, pairs: Iterable[SyntheticPair]) -> ObservedCells:
    """All cells that the query shows, matched and aligned as in use."""
    network, parts = estimator.network, []
    for pair in pairs:
        reference, query = estimator.encode(pair.reference), estimator.encode(pair.query)
        output = network.decode(reference.code, query.code)[-1]
        assert reference.gray is not None  # kept, since the network is aligned
        assert query.gray is not None
        aligned, features = align_with_features(output, reference.gray, query.gray)
        assert features is not None
        now = align_likely(output, [reference.gray], [query.gray], network.confidence_head)
        stated = confidence_map(now.head_confidence, now.log_var, now.logits)
        target, seen = cell_truth(pair, output.flow.shape[-2:], output.reference_size, output.query_size)
        right = (aligned.flow[0] - target).abs().amax(0) < 1
        rows = (features[0].movedim(0, -1), stated[0, 0], right)
        parts.append([row[seen].clone() for row in rows])
    return ObservedCells(*(torch.cat(column) for column in zip(*parts)))


def cell_truth(
    pair: SyntheticPair, cells: tuple[int, int], size: tuple[int, int], query_size: tuple[int, int]
) -> tuple[Tensor, Tensor]:
    """Flow (2, h, w) at the centers of cells, in pixels of the network's inputs, and whether the query shows it (h, w).

    At an edge the pixel next to the center decides: a cell there is on one of the two surfaces, not between them.
    """
    image, seen_by = pair.reference.shape[:2], pair.query.shape[:2]
    rows, columns = ((np.arange(n) + 0.5) / n for n in cells)
    place = np.stack(np.meshgrid(columns, rows), -1)  # (h, w, 2), shares of the image
    center = place * image[::-1] - 0.5
    pixel = np.clip(np.rint(center), 0, np.subtract(image[::-1], 1)).astype(int)
    at = (pixel[..., 1], pixel[..., 0])
    target = (center + pair.flow[at] + 0.5) * np.divide(query_size, seen_by)[::-1] - place * size[::-1]
    return torch.from_numpy(target).float().movedim(-1, 0), torch.from_numpy(pair.visible[at])


def fit(kinds: Sequence[ObservedCells], channels: tuple[int, ...], steps: int = 2500, seed: int = 0) -> ConfidenceHead:
    """A confidence head whose probabilities are those of being right, for all kinds of pairs alike."""
    torch.manual_seed(seed)
    everything = torch.cat([kind.features for kind in kinds])
    mean, scale = everything.mean(0), everything.std(0).clamp(min=1e-3)
    head = ConfidenceHead(channels)
    optimizer = torch.optim.Adam(head.parameters(), RATE)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for _ in range(steps):
        loss = torch.zeros(())
        for kind in kinds:
            chosen = torch.randint(len(kind.right), (BATCH,))
            odds = _odds(head, (kind.features[chosen] - mean) / scale)
            loss = loss + F.binary_cross_entropy_with_logits(odds, kind.right[chosen].float())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    first = head.layers[0]
    with torch.no_grad():  # from now on it takes the features as they are
        first.weight /= scale.view(1, CONFIDENCE_FEATURES, 1, 1)
        first.bias -= (first.weight * mean.view(1, CONFIDENCE_FEATURES, 1, 1)).sum((1, 2, 3))
    return head.eval()


def _odds(head: ConfidenceHead, features: Tensor) -> Tensor:
    """(N, CONFIDENCE_FEATURES) -> (N,): the cells as one row of a map."""
    return head(features.T[None, :, None]).reshape(-1)


@torch.no_grad()
def head_confidence(head: ConfidenceHead, seen: ObservedCells) -> Tensor:
    """(N,) as the confidence head states it."""
    return _odds(head, seen.features).sigmoid()


def reliability(said: Tensor, right: Tensor, bins: int = 10) -> np.ndarray:
    """(bins, 3): cells, mean of what was said and share of right ones, in equal steps from 0 to 1."""
    which = (said * bins).long().clamp(0, bins - 1).numpy()
    counts = np.bincount(which, minlength=bins)
    sums = [np.bincount(which, weight.double().numpy(), minlength=bins) for weight in (said, right)]
    return np.stack([counts, *(total / np.maximum(counts, 1) for total in sums)], 1)


def largest_gap(table: np.ndarray) -> float:
    """The largest difference between stated and true share, over steps with more than a few of the cells."""
    counts, said, right = table.T
    gaps = np.abs(said - right)
    return float(gaps[counts >= FEW * counts.sum()].max())
