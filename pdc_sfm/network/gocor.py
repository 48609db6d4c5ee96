"""GOCor: filters optimized by steepest descent so that their correlation is high at the match and low elsewhere.

The activation of the residual is linear in the filter once its sign pattern is fixed, and correlation is linear in the
filter, so the correlation of the filter follows from that of the gradient and is never recomputed:
corr(w - t g) = corr(w) - t corr(g). That saves a third of all correlations, with the same numbers.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pdc_sfm.network.constants import chunk_size
from pdc_sfm.network.correlation import Tiles, band_mask, cut

# Of the published modules (tests/parity compares their outputs); they keep divisions finite and the first steps short.
MIN_REGULARIZATION = 1e-10
MIN_ENERGY = 1e-6  # of features, squared
MIN_CURVATURE = 1e-8
STEP_REGULARIZATION = 0.1  # of the squared gradient, in the global module's step length
START = 0.02  # standard deviation of untrained filters
CHUNK = 32  # tiles optimized together: filters, windows and products of 128 channels are 7 MB, and stay in a processor's cache
BINS, SPACING = 10, 0.5  # of the distance functions, as published (GOCor, Truong et al. 2020)


def distance_bins(distance: Tensor) -> Tensor:
    """Triangular bins of a distance, the last one open: (...) -> (10, ...)."""
    position = distance / SPACING
    ks = torch.arange(BINS, device=distance.device, dtype=distance.dtype).view(-1, *[1] * distance.dim())
    bins = F.relu(1 - (position - ks).abs())
    bins[-1] = (1 + position - (BINS - 1)).clamp(0, 1)
    return bins


class _Objective(nn.Module):
    """Label y, weight v+ and mask m as functions of the distance, and the step; shared by both GOCor modules."""

    def __init__(self) -> None:
        super().__init__()
        centers = torch.arange(BINS) * SPACING
        self.label = nn.Parameter(torch.exp(-0.5 * centers**2).view(1, -1, 1, 1))
        self.weight = nn.Parameter(torch.ones(1, BINS, 1, 1))
        self.mask = nn.Parameter(4 * torch.tanh(2 - centers).view(1, -1, 1, 1))
        self.log_step_length = nn.Parameter(torch.zeros(1))
        self.filter_reg = nn.Parameter(
            torch.full((1,), 0.1)
        )  # a start, as the other parameters here; weights replace it

    def maps(self, distance: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """y, v+ and m at the given distances."""
        bins = distance_bins(distance)
        mix = lambda w: torch.tensordot(w.flatten().to(bins.dtype), bins, 1)  # noqa: E731
        return mix(self.label), mix(self.weight), torch.sigmoid(mix(self.mask))

    @property
    def regularization(self) -> Tensor:
        return (self.filter_reg**2).clamp(min=MIN_REGULARIZATION)


class _Residual:
    """The residual r = v+ (s(c, m) - y) of a correlation c, and its slope v+ s'.

    s(c, m) = (1-m)/2 |c| + (1+m)/2 c equals s'(c, m) c, so both come from the sign of c.
    """

    def __init__(self, label: Tensor, weight: Tensor, mask: Tensor):
        self.odd, self.even, self.target = weight * (1 - mask) / 2, weight * (1 + mask) / 2, -weight * label

    def __call__(self, correlation: Tensor) -> tuple[Tensor, Tensor]:
        """-> v+ s' r, which goes back to the filter, and v+ s'."""
        slope = torch.addcmul(self.even, self.odd, correlation.sign())
        return slope * torch.addcmul(self.target, slope, correlation), slope


class LocalGOCor(nn.Module):
    """Filters for the local correlation. They depend on the reference alone."""

    def __init__(self, iterations: int, radius: int):
        super().__init__()
        self.iterations, self.radius = iterations, radius
        self.scaling = nn.Parameter(torch.ones(1))
        self.objective = _Objective()

    def forward(self, reference: Tensor) -> Tensor:
        """Features (B, C, H, W) -> optimized filters (B, C, H, W)."""
        channels = reference.shape[1]
        initial = self.scaling * reference / ((reference**2).mean(1, keepdim=True) + MIN_ENERGY)
        if self.iterations == 0:
            return initial
        tiles = Tiles.of(reference, self.radius)
        filters = cut(initial)
        largest = 4 * filters.shape[1] * tiles.neighbors.shape[1]
        chunk = filters.shape[0] if torch.is_grad_enabled() else chunk_size(CHUNK, largest, filters.device)
        pieces = [self._optimize(w, n, channels) for w, n in zip(filters.split(chunk), tiles.neighbors.split(chunk))]
        return tiles.join(torch.cat(pieces))

    def _optimize(self, w: Tensor, neighbors: Tensor, channels: int) -> Tensor:
        """Steepest descent on a few tiles: w (T, 64, C), neighbors (T, side^2, C)."""
        residual = _Residual(*(band_mask(self.radius, v) for v in self.objective.maps(self._distance(w))))
        regularization = self.objective.regularization / channels**2
        step = self.objective.log_step_length.exp()
        scaled = neighbors / channels  # the local correlation is a mean over channels
        across = scaled.transpose(1, 2)
        correlation = torch.bmm(w, across)
        for iteration in range(self.iterations):
            back, slope = residual(correlation)
            gradient = torch.addcmul(torch.bmm(back, scaled), w, regularization)
            gradient_correlation = torch.bmm(gradient, across)
            norm = _squares(gradient)
            length = (
                -step * norm / (_squares(slope * gradient_correlation) + regularization * norm).clamp(min=MIN_CURVATURE)
            )
            w = torch.addcmul(w, gradient, length)
            if iteration + 1 < self.iterations:
                correlation = torch.addcmul(correlation, gradient_correlation, length)
        return w

    def _distance(self, like: Tensor) -> Tensor:
        steps = torch.arange(-self.radius, self.radius + 1, device=like.device, dtype=like.dtype)
        return torch.hypot(steps[:, None], steps[None, :]).flatten()


class GlobalGOCor(nn.Module):
    """Filters for the global correlation, optimized on the reference and, for smoothness, on the query."""

    def __init__(self, channels: int, iterations: int):
        super().__init__()
        self.iterations = iterations
        self.target_fg = nn.Parameter(torch.ones(channels))
        self.target_bg = nn.Parameter(torch.zeros(channels))
        self.weight1 = nn.Parameter(START * torch.randn(16, 1, 3, 3))
        self.weight2 = nn.Parameter(START * torch.randn(16, 16, 3, 3))
        self.objective = _Objective()

    def forward(self, reference: Tensor, query: Tensor) -> Tensor:
        """L2-normalized features (B, C, h, w) -> correlation (B, hq*wq, h, w), the query's position in the channels."""
        batch, _, height, width = reference.shape
        sizes = (*reference.shape[-2:], *query.shape[-2:])
        ref, qry = reference.flatten(2).transpose(1, 2), query.flatten(2).transpose(1, 2)  # (B, P, C)
        residual = _Residual(*self.objective.maps(self._distances(height, width, reference)))
        regularization, step = self.objective.regularization, self.objective.log_step_length.exp()
        filters = self._initial(ref)
        on_ref, on_qry = filters @ ref.mT, filters @ qry.mT  # (B, P, P), (B, P, Q)
        smooth = self._smooth(on_qry, sizes)
        for _ in range(self.iterations):
            back, slope = residual(on_ref)
            gradient = back @ ref + regularization * filters + self._smooth_transposed(smooth, sizes) @ qry
            gradient_on_ref, gradient_on_qry = gradient @ ref.mT, gradient @ qry.mT
            gradient_smooth = self._smooth(gradient_on_qry, sizes)
            norm = _squared(gradient)
            curvature = _squared(slope * gradient_on_ref) + _squared(gradient_smooth) + regularization * norm
            length = step * norm / (curvature.clamp(min=MIN_CURVATURE) + STEP_REGULARIZATION * norm)  # per pair
            filters = filters - length * gradient
            on_ref, on_qry = on_ref - length * gradient_on_ref, on_qry - length * gradient_on_qry
            smooth = smooth - length.view(-1, 1, 1, 1, 1) * gradient_smooth
        return on_qry.mT.reshape(batch, -1, height, width)

    def _initial(self, features: Tensor) -> Tensor:
        mean = features.mean(1, keepdim=True)
        ff, bb = (features**2).sum(-1, keepdim=True), (mean**2).sum(-1, keepdim=True)
        fb = (features * mean).sum(-1, keepdim=True)
        fg, bg = self.target_fg, self.target_bg
        return ((fg * bb - bg * fb) * features - (fg * fb - bg * ff) * mean) / (ff * bb - fb**2).clamp(min=MIN_ENERGY)

    def _distances(self, height: int, width: int, like: Tensor) -> Tensor:
        ys = torch.arange(height, device=like.device, dtype=like.dtype).repeat_interleave(width)
        xs = torch.arange(width, device=like.device, dtype=like.dtype).repeat(height)
        return torch.hypot(ys[:, None] - ys[None], xs[:, None] - xs[None])

    def _smooth(self, correlation: Tensor, sizes: tuple[int, int, int, int]) -> Tensor:
        """R: 3x3 over the query's dimensions, then 3x3 over the reference's: (B, P, Q) -> (B, Q, 16, h, w)."""
        batch = correlation.shape[0]
        h, w, hq, wq = sizes
        x = F.conv2d(correlation.reshape(batch * h * w, 1, hq, wq), self.weight1, padding=1)
        x = x.view(batch, h * w, -1, hq * wq).permute(0, 3, 2, 1).reshape(batch * hq * wq, -1, h, w)
        return F.conv2d(x, self.weight2, padding=1).view(batch, hq * wq, -1, h, w)

    def _smooth_transposed(self, x: Tensor, sizes: tuple[int, int, int, int]) -> Tensor:
        """R^T: (B, Q, 16, h, w) -> (B, P, Q)."""
        batch = x.shape[0]
        h, w, hq, wq = sizes
        x = F.conv_transpose2d(x.flatten(0, 1), self.weight2, padding=1)
        x = x.view(batch, hq * wq, -1, h * w).permute(0, 3, 2, 1).reshape(batch * h * w, -1, hq, wq)
        return F.conv_transpose2d(x, self.weight1, padding=1).view(batch, h * w, hq * wq)


def _squares(x: Tensor) -> Tensor:
    """Sum of squares over the last dimension, kept."""
    return torch.einsum("...i,...i->...", x, x).unsqueeze(-1)


def _squared(x: Tensor) -> Tensor:
    return (x * x).flatten(1).sum(1).view(-1, 1, 1)
