"""The training loss: the masked negative log-likelihood of Eq. 5-6 and appendix B.1 on every pyramid level.

Appendix C.5 weighs the levels so that each contributes equally. Its numbers fit *sums* over pixels, coarse to fine:
.32 * 16^2, .08 * 32^2, .02 * 65^2 in stage 1; .08 * 256^2 and .02 * 520^2 in stage 2. `reduction=sum` is that;
`reduction=mean` divides by the number of pixels, so that the weights mean the same at any image size.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from pdc_sfm.network import LevelOutput, mixture
from pdc_sfm.pixels import ImageShape
from pdc_sfm.settings import require
from pdc_sfm.training.batch import Batch


@dataclass(frozen=True)
class LossSettings:
    """How predictions are compared with the ground truth."""

    resolution: Literal["level", "image"] = "level"  # where they meet: stage 1 at the level's, stage 2 at the image's
    level_weights: tuple[float, ...] = (0.32, 0.08, 0.02, 0.01)  # coarse to fine, appendix C.5; []: all 1
    reduction: Literal["sum", "mean"] = "sum"  # over the pixels of a level
    max_jump: float = 6.0  # px: neighbors farther apart lie on two surfaces; the cell between them is left out
    # beyond the paper: (|d|^2 + .01)^(1/4) beside the likelihood, so that far-off flow is pulled too
    robust_flow_weight: float = 0.0
    robust_flow_until: int = 0  # iteration at which that weight has decayed to nothing (cosine); 0: it stays
    outlier_weight: float = 0.0  # beyond the paper: -log alpha_M where the pixel has no counterpart

    def __post_init__(self) -> None:
        require(all(w >= 0 for w in self.level_weights), "loss.level_weights must be at least 0")
        require(self.max_jump > 0, "loss.max_jump must be positive")
        for name in ("robust_flow_weight", "robust_flow_until", "outlier_weight"):
            require(getattr(self, name) >= 0, f"loss.{name} must be at least 0")

    def robust_weight(self, iteration: int) -> float:
        """The weight of the robust flow loss at an iteration."""
        if not self.robust_flow_until:
            return self.robust_flow_weight
        done = min(iteration / self.robust_flow_until, 1.0)
        return self.robust_flow_weight * 0.5 * (1 + torch.cos(torch.tensor(torch.pi * done)).item())


@dataclass(frozen=True)
class LossValue:
    """The loss to differentiate, and per level its parts as means over the pixels they cover."""

    total: Tensor
    parts: dict[str, Tensor]


def training_loss(levels: Sequence[LevelOutput], batch: Batch, settings: LossSettings, iteration: int = 0) -> LossValue:
    """The weighted loss of all levels (coarse to fine) of one batch, dense and sparse ground truth alike.

    A level that runs several passes shares its weight among them.
    """
    passes = Counter(output.level for output in levels)
    weights = settings.level_weights or (1.0,) * len(passes)
    require(
        len(passes) == len(weights), f"loss.level_weights has {len(weights)} values, the network {len(passes)} levels"
    )
    weight_of = {level: weight / passes[level] for level, weight in zip(passes, weights)}
    factors = {"nll": 1.0, "robust": settings.robust_weight(iteration), "outlier": settings.outlier_weight}
    total = levels[0].flow.new_zeros(())
    parts: dict[str, Tensor] = {}
    for level in levels:
        name, weight = f"level{level.level}", weight_of[level.level]
        dense = _dense_terms(level, batch, settings)
        terms = [dense, *_sparse_terms(level, batch, settings)]
        for kind, factor in factors.items():
            if factor > 0:
                value = sum(term[kind][0] for term in terms if kind in term) / len(batch)
                total = total + weight * factor * value
        parts[f"{name}_nll"] = _mean([term["nll"][1] for term in terms])
        parts[f"{name}_outlier"] = dense["outlier"][1]
    return LossValue(total, {name: value.detach() for name, value in parts.items()})


def _mean(values: list[Tensor]) -> Tensor:
    """Mean of those values that are numbers (an empty set of pixels gives NaN)."""
    return torch.nanmean(torch.stack(values))


def _dense_terms(level: LevelOutput, batch: Batch, settings: LossSettings) -> dict[str, tuple[Tensor, Tensor]]:
    """kind -> (contribution to the loss, mean over covered pixels) from the dense ground truth."""
    if settings.resolution == "level":
        target, valid, hidden = level_ground_truth(level, batch, settings.max_jump)
        flow, log_var, logits = level.flow, level.log_var, level.logits
        scale = 1.0
    else:
        size = batch.size
        flow, log_var, logits = (upsample(x, size) for x in (level.flow, level.log_var, level.logits))
        target, valid, hidden = branch_flow(level, image_grid(batch.flow), batch.flow, batch), batch.valid, batch.hidden
        # the 256 branch's ground truth has the branch's own resolution in the paper
        scale = level.reference_size[0] * level.reference_size[1] / (size[0] * size[1])
    if settings.reduction == "mean":
        scale = 1.0 / (flow.shape[-2] * flow.shape[-1])
    terms = _pixel_terms(flow, log_var, logits, target, valid, settings)
    if "robust" in terms:  # what cannot be seen in the query cannot be matched, only guessed
        terms["robust"] = (terms["robust"][0], valid & ~hidden)
    if logits is not None:
        terms["outlier"] = (-F.log_softmax(logits, 1)[:, -1], hidden)
    else:
        terms["outlier"] = (flow.new_zeros(hidden.shape), hidden)
    return {kind: _reduce(value, where, scale) for kind, (value, where) in terms.items()}


def _sparse_terms(level: LevelOutput, batch: Batch, settings: LossSettings) -> list[dict[str, tuple[Tensor, Tensor]]]:
    """The same from the correspondences of the pairs that have them: the prediction is read at each point (stage 2)."""
    out = []
    size = batch.size
    for number, points in enumerate(batch.points):
        if points is None or len(points) == 0:
            continue
        xy = points[:, :2].T.reshape(1, 2, 1, -1)  # (1, 2, 1, N)
        flow, log_var, logits = (
            None if x is None else sample_image(x[number : number + 1], xy, size)
            for x in (level.flow, level.log_var, level.logits)
        )
        displacement = (points[:, 2:] - points[:, :2]).T.reshape(1, 2, 1, -1)
        target = branch_flow(level, xy, displacement, batch)
        valid = torch.ones_like(target[:, 0], dtype=torch.bool)
        area = level.reference_size[0] * level.reference_size[1] / (size[0] * size[1])
        scale = 1.0 / len(points) if settings.reduction == "mean" else area
        terms = _pixel_terms(flow, log_var, logits, target, valid, settings)
        out.append({kind: _reduce(value, where, scale) for kind, (value, where) in terms.items()})
    return out


def _pixel_terms(
    flow: Tensor, log_var: Tensor | None, logits: Tensor | None, target: Tensor, valid: Tensor, settings: LossSettings
) -> dict[str, tuple[Tensor, Tensor]]:
    """Per-pixel losses and where they count. A network without a mixture (the flow-only baseline) learns by L1."""
    flow, target = flow.float(), target.float()
    target = torch.where(valid[:, None], target, flow.detach())  # NaN never enters, not even the gradient
    if log_var is None or logits is None:
        nll = (flow - target).abs().sum(1)
    else:
        nll = mixture.nll(flow, log_var.float(), logits.float(), target)
    terms = {"nll": (nll.reshape(valid.shape), valid)}
    if settings.robust_flow_weight > 0:
        terms["robust"] = (((flow - target).square().sum(1) + 0.01).pow(0.25), valid)
    return terms


def _reduce(value: Tensor, where: Tensor, scale: float) -> tuple[Tensor, Tensor]:
    total = torch.where(where, value, torch.zeros_like(value)).sum()
    return total * scale, total.detach() / where.sum()


def level_ground_truth(level: LevelOutput, batch: Batch, max_jump: float) -> tuple[Tensor, Tensor, Tensor]:
    """Ground truth at the centers of a level's cells: flow in pixels of the branch's input (B, 2, h, w), valid, hidden.

    Cell i of a level covers image pixels i*s to (i+1)*s, so its center (i+.5)*s-.5 lies between pixels: the four
    around it are interpolated (fewer if it lies on one). The cell counts if they all do and lie on one surface.
    """
    height, width = level.flow.shape[-2:]
    columns = _neighbors(batch.size[1], width, batch.flow.device)
    flow = torch.zeros_like(batch.flow[:, :, :1, :1]).expand(-1, -1, height, width)
    valid = torch.ones(len(batch), height, width, dtype=torch.bool, device=flow.device)
    hidden, high, low = valid, flow - torch.inf, flow + torch.inf
    for row, weight_y in _neighbors(batch.size[0], height, batch.flow.device):
        rows = [maps.index_select(-2, row) for maps in (batch.flow, batch.valid, batch.hidden)]
        for column, weight_x in columns:
            weight = weight_y[:, None] * weight_x  # (h, w)
            counts = weight > 0
            here, is_valid, is_hidden = (maps.index_select(-1, column) for maps in rows)
            valid, hidden = valid & (is_valid | ~counts), hidden & (is_hidden | ~counts)
            high = torch.where(counts, torch.maximum(high, here), high)
            low = torch.where(counts, torch.minimum(low, here), low)
            flow = flow + torch.where(counts, weight * here, 0.0)
    valid = valid & ((high - low).amax(1) <= max_jump)  # false for NaN
    centers = image_grid(flow, batch.size)
    return branch_flow(level, centers, flow, batch), valid, hidden


def _neighbors(pixels: int, cells: int, device: torch.device) -> list[tuple[Tensor, Tensor]]:
    """The two pixels around each cell's center, and their bilinear weights."""
    center = (torch.arange(cells, device=device, dtype=torch.float64) + 0.5) * pixels / cells - 0.5
    center = center.clamp(0, pixels - 1)
    low = center.floor()
    weight = (center - low).float()
    return [(low.long(), 1 - weight), ((low.long() + 1).clamp(max=pixels - 1), weight)]


def image_grid(like: Tensor, size: ImageShape | None = None) -> Tensor:
    """(1, 2, h, w): the centers of the cells of `like`, in pixels of an image of `size` (default: its own)."""
    height, width = like.shape[-2:]
    rows, columns = size or (height, width)
    y = (torch.arange(height, device=like.device, dtype=torch.float32) + 0.5) * (rows / height) - 0.5
    x = (torch.arange(width, device=like.device, dtype=torch.float32) + 0.5) * (columns / width) - 0.5
    return torch.stack([x.expand(height, width), y[:, None].expand(height, width)])[None]


def branch_flow(level: LevelOutput, reference_xy: Tensor, flow: Tensor, batch: Batch) -> Tensor:
    """Flow in image pixels at image points -> the same in pixels of the branch's inputs, which may be resized."""

    def resize(xy: Tensor, old: ImageShape, new: ImageShape) -> Tensor:
        factor = torch.tensor([new[1] / old[1], new[0] / old[0]], device=xy.device).view(1, 2, 1, 1)
        return (xy + 0.5) * factor - 0.5

    query_xy = resize(reference_xy + flow, batch.query_size, level.query_size)
    return query_xy - resize(reference_xy, batch.size, level.reference_size)


def upsample(x: Tensor | None, size: ImageShape) -> Tensor | None:
    """A prediction at the image's resolution, bilinearly; its values keep their unit."""
    return None if x is None else F.interpolate(x.float(), size, mode="bilinear", align_corners=False)


def sample_image(x: Tensor, xy: Tensor, size: ImageShape) -> Tensor:
    """A prediction at points (1, 2, 1, N) of the image: what `upsample` holds there, without computing the rest."""
    extent = torch.tensor([size[1], size[0]], device=xy.device, dtype=torch.float32).view(1, 2, 1, 1)
    grid = ((xy + 0.5) / extent * 2 - 1).permute(0, 2, 3, 1)
    return F.grid_sample(x.float(), grid, mode="bilinear", padding_mode="border", align_corners=False)
