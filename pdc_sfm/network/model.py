"""PDC-Net+ and its relatives, as two halves: `encode` an image once, `decode` any pair of codes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from pdc_sfm.network.backbone import build_backbone
from pdc_sfm.network.code import ImageCode, LevelOutput
from pdc_sfm.network.confidence_head import ConfidenceHead
from pdc_sfm.network.constants import channels, made_once
from pdc_sfm.network.correlation import Tiles, cut_mean, expected_displacement, expected_way, global_correlation
from pdc_sfm.network.decoder import SLOPE
from pdc_sfm.network.gocor import GlobalGOCor, LocalGOCor
from pdc_sfm.network.level import GRID, Level
from pdc_sfm.network.mixture import at_least_float32
from pdc_sfm.network.settings import NetworkSettings
from pdc_sfm.network.warp import pixel_grid, rescale_flow, resize, resize_area, warp
from pdc_sfm.pixels import COARSE_SIDE, ImageShape

Sizes = tuple[ImageShape, ImageShape]  # of the inputs of a branch: reference and query
Maps = TypeVar("Maps", Tensor, tuple[Tensor, Tensor], dict[int, Tensor])  # what parts of the network give


class PDCNet(nn.Module):
    """Dense flow and its distribution from a reference image to a query image."""

    def __init__(self, settings: NetworkSettings | None = None):
        super().__init__()
        self.settings = s = settings or NetworkSettings()
        self.backbone_high = build_backbone(s)
        self.backbone_low = None if s.shared_backbone else build_backbone(s)
        channels = self.backbone_high.channels
        self.strides = {level: stride for level, stride in zip(s.levels, (16, 8, *s.strides))}
        self.passes = dict(zip(s.levels[1:], s.passes or (1,) * len(s.levels)))
        if s.correlation == "gocor":
            self.global_gocor = GlobalGOCor(channels[16], s.global_iterations)
            self.local_gocor = LocalGOCor(s.local_iterations, s.radius)
        self.levels = nn.ModuleDict({str(level): Level(level, s) for level in s.levels})
        self.confidence_head = ConfidenceHead(s.confidence_channels) if s.confidence_channels else None
        self.precision: torch.dtype | None = None  # of the convolutions, see `for_inference`
        self._initialize()

    def _initialize(self) -> None:
        """Start with residuals near zero and bilinear upsampling, so that an untrained level passes its input on."""
        ramp = torch.tensor((0.25, 0.75, 0.75, 0.25))  # of the kernel that doubles a map's size linearly
        for level in self.levels.values():
            outputs = [level.decoder.output] + ([level.refinement.output] if level.refinement is not None else [])
            for layer in outputs:
                nn.init.normal_(layer.weight, std=1e-3)  # of some hundred inputs: corrections of hundredths of a pixel
                nn.init.zeros_(layer.bias)
            if level.up_flow is not None:
                nn.init.zeros_(level.up_flow.weight)
                nn.init.zeros_(level.up_flow.bias)
                for axis in range(2):
                    level.up_flow.weight.data[axis, axis] = torch.outer(ramp, ramp).to(level.up_flow.weight.device)

    # --- one image -------------------------------------------------------------------------------------------------

    def encode(self, images: Tensor) -> ImageCode:
        """Images of one size, RGB in [0, 1], (B, 3, H, W) -> their code."""
        with _full_precision(images):
            return self._encode(images)

    def _encode(self, images: Tensor) -> ImageCode:
        size = (images.shape[-2], images.shape[-1])
        high_size = tuple(max(COARSE_SIDE, side // 8 * 8) for side in size)
        if self.backbone_low is None and high_size == (COARSE_SIDE, COARSE_SIDE):  # both branches see the same
            high = self._run(self.backbone_high, self._resized(images, high_size), (16, *self.settings.strides))
            low = {4: high[16], 3: high[8]}
        else:
            low = self._low_features(images)
            high = self._run(self.backbone_high, self._resized(images, high_size), self.settings.strides)
        return self._code(low | {n: high[self.strides[n]] for n in self.settings.levels[2:]}, size, high_size)

    def encode_low(self, images: Tensor) -> ImageCode:
        """As `encode`, of the 256x256 branch alone: a code for `decode(..., last_level=3)`."""
        size = (images.shape[-2], images.shape[-1])
        with _full_precision(images):
            return self._code(self._low_features(images), size, (COARSE_SIDE, COARSE_SIDE))

    def coarsest_features(self, images: Tensor) -> Tensor:
        """Level 4's of unit length, (B, C, H / 16, W / 16), of images (B, 3, H, W) as they are: sides are multiples of 16."""
        backbone = self.backbone_low or self.backbone_high
        with _full_precision(images):
            return _unit(self._run(backbone, images.contiguous(memory_format=torch.channels_last), (16,))[16])

    def _low_features(self, images: Tensor) -> dict[int, Tensor]:
        backbone = self.backbone_low or self.backbone_high
        maps = self._run(backbone, self._resized(images, (COARSE_SIDE, COARSE_SIDE)), (16, 8))
        return {4: maps[16], 3: maps[8]}

    def _code(self, features: dict[int, Tensor], size: tuple[int, int], high_size: tuple[int, int]) -> ImageCode:
        features[4] = _unit(features[4])
        if self.settings.normalize_local:  # scaled so that a mean over channels is a cosine
            features |= {n: _unit(x) * x.shape[1] ** 0.5 for n, x in features.items() if n != 4}
        filters = {}
        if self.settings.correlation == "gocor":
            filters = {level: self.local_gocor(x) for level, x in features.items() if level != 4}
        return ImageCode(features, filters, size, high_size)

    def _run(self, function: Callable[..., Maps], *inputs: Tensor | tuple[int, ...] | None) -> Maps:
        """Convolutions in the chosen precision; what leaves them, and all correlation, is float32."""
        if self.precision is None:
            return function(*inputs)
        device = next(x for x in inputs if isinstance(x, Tensor)).device.type
        with torch.autocast(device, dtype=self.precision):
            found = function(*inputs)
        if isinstance(found, dict):
            return {key: x.float() for key, x in found.items()}
        return found.float() if isinstance(found, Tensor) else tuple(x.float() for x in found)

    @staticmethod
    def _resized(images: Tensor, size: tuple[int, int]) -> Tensor:
        return resize_area(images, size).contiguous(memory_format=torch.channels_last)

    # --- a pair ----------------------------------------------------------------------------------------------------

    def decode(
        self,
        reference: ImageCode,
        query: ImageCode,
        last_level: int = 0,
        passes: int | None = None,
        coarse: LevelOutput | None = None,
    ) -> tuple[LevelOutput, ...]:
        """Estimates from coarse to fine, one a pass. `last_level=3` stops after the 256x256 branch.

        `passes` is the most of each level; None: as many as the network was trained for. `coarse` is an estimate of level 3:
        only what comes after it runs, further passes of that level too, and gives the numbers of all in one. After the last of
        those passes codes need only be `fine`.
        """
        with _full_precision(next(iter(reference.features.values()))):
            return tuple(self._decode(reference, query, last_level, passes, coarse))

    def _decode(
        self,
        reference: ImageCode,
        query: ImageCode,
        last_level: int,
        passes: int | None,
        coarse: LevelOutput | None,
    ) -> Iterator[LevelOutput]:
        low = (COARSE_SIDE, COARSE_SIDE)
        feature: Tensor | None = None
        if coarse is None:
            output, feature = self._decode_global(reference, query)
            yield output
        else:  # neither level 3 nor level 2, which sees other pixels, takes features of what came before
            output = coarse
        for level in self.settings.levels[1:]:
            if level < last_level:
                break
            done = 0 if coarse is None or level < 3 else coarse.number
            wanted = range(done, min(self.passes[level], passes or self.passes[level]))
            if not wanted:
                continue
            sizes = (low, low) if level == 3 else (reference.high_size, query.high_size)
            compared = self._compared(reference, query, level, self.levels[str(level)].correlation_scale)
            held: Tensor | None = None  # the feature of the level before, for all passes
            for number in wanted:
                passed = self._passed(output)
                if number:  # the level starts again from where it ended
                    up = Upsampled(passed.flow, self._mixture_of(passed), held)
                else:
                    up = self._upsample(level, passed, feature, sizes, reference.features[level].shape[-2:])
                    held = up.feature
                output, feature = self._decode_local(level, up, *compared, sizes)
                output = replace(output, number=number + 1)
                yield output

    def _passed(self, output: LevelOutput) -> LevelOutput:
        """What the next level or pass receives of an estimate."""
        return output.detached() if self.settings.detach_levels else output

    def forward(self, reference: Tensor, query: Tensor) -> tuple[LevelOutput, ...]:
        """Both halves at once, for training: images (B, 3, H, W) each."""
        if reference.shape == query.shape:  # one pass of the backbone over both
            codes = self.encode(torch.cat((reference, query)))
            half = reference.shape[0]
            return self.decode(codes.map(lambda x: x[:half]), codes.map(lambda x: x[half:]))
        return self.decode(self.encode(reference), self.encode(query))

    def _decode_global(self, reference: ImageCode, query: ImageCode) -> tuple[LevelOutput, Tensor]:
        """Level 4: every position against every position of 16x16 maps."""
        level = self.levels["4"]
        ref, qry = (at_least_float32(code.features[4]) for code in (reference, query))
        plain = global_correlation(ref, qry)
        correlation = self.global_gocor(ref, qry) if self.settings.correlation == "gocor" else plain
        volume = F.leaky_relu(correlation, SLOPE)
        if (
            missing := level.decoder.conv_0[0].in_channels - level.volume
        ) > 0:  # two, unless folded: there is no flow yet
            volume = F.pad(volume, (0, 0, 0, 0, 0, missing))
        feature, position = self._run(level.decoder, volume)
        if (
            self.settings.soft_argmax
        ):  # the decoder then corrects the correlation's own answer, zero being no correction
            scores = plain * level.sharpness
            # both ways: a match is the best of its row and of its column, along which another softmax follows
            scores = scores + scores.flatten(2).log_softmax(2).view_as(scores)
            start = expected_way(scores, GRID, GRID, COARSE_SIDE / GRID)
        else:
            start = _to_middle(position.device, position.dtype)
        flow = torch.add(start, position, alpha=(GRID - 1) / 2 * (COARSE_SIDE / GRID))
        slices = _unit(F.relu(plain)) if level.slices is not None else None
        log_var, logits = self._mixture(level, slices, feature, [])
        return LevelOutput(4, flow, log_var, logits, (COARSE_SIDE,) * 2, (COARSE_SIDE,) * 2), feature

    def _upsample(
        self, level: int, previous: LevelOutput, feature: Tensor | None, sizes: Sizes, shape: ImageShape
    ) -> Upsampled:
        """The estimate of the level before, brought to this level's resolution and units."""
        module = self.levels[str(level)]
        if level == 2:  # from the 256x256 branch to the images' own resolution
            flow = rescale_flow(
                resize(previous.flow, shape), ((COARSE_SIDE,) * 2, sizes[0]), ((COARSE_SIDE,) * 2, sizes[1])
            )
        else:
            flow = module.up_flow(previous.flow)
        mixture = [resize(x, shape) for x in self._mixture_of(previous)]
        return Upsampled(flow, mixture, None if module.up_feature is None else module.up_feature(feature))

    def _mixture_of(self, output: LevelOutput) -> list[Tensor]:
        """What of an estimate's mixture is handed on: nothing where there is none or it is not to be handed on."""
        return [output.log_var, output.logits] if output.log_var is not None and self.settings.propagate else []

    def _mixture(
        self, level: Level, slices: Tensor | None, feature: Tensor, previous: list[Tensor]
    ) -> tuple[Tensor | None, Tensor | None]:
        """-> log-variances and logits (B, M, h, w) each, or None twice for the flow-only baseline."""
        if level.predictor is None:
            return None, None
        raw = self._run(level.raw_mixture, slices, feature, *previous)
        h, logits = raw.split((level.constraint.inputs, raw.shape[1] - level.constraint.inputs), 1)
        return level.constraint(h), logits

    def _decode_local(
        self, number: int, up: Upsampled, references: list[Tensor], query: Tensor, sizes: Sizes
    ) -> tuple[LevelOutput, Tensor]:
        """Levels 3 to 0: each position against a window around where the flow so far points.

        `references` are the reference's features, and its filters where it has them, cut into tiles.
        """
        level, stride = self.levels[str(number)], self.strides[number]
        correlations = self._correlate(references, warp(query, up.flow, stride), level.radius)
        plain = correlations[0]
        inputs = [correlations[-1], up.flow, *([] if up.feature is None else [up.feature]), *up.mixture]
        feature, residual = self._run(level.decoder, torch.cat(inputs, 1))
        flow = residual + up.flow  # in the memory order of the first
        if self.settings.soft_argmax:
            flow = expected_displacement(plain, level.radius, level.sharpness, flow, stride)
        predictor_feature = feature
        if level.refinement is not None:
            context, correction = self._run(level.refinement, torch.cat((feature, flow), 1))
            # Two additions in one kernel, which has no public name; with two a pair takes 503 kernels on a GPU, not 499
            flow, predictor_feature = torch._foreach_add((flow, feature), (correction, context))  # noqa: SLF001
        log_var, logits = self._mixture(level, plain, predictor_feature, [*up.mixture, up.flow])
        return LevelOutput(number, flow, log_var, logits, *sizes), feature

    @staticmethod
    def _compared(reference: ImageCode, query: ImageCode, level: int, scale: float) -> tuple[list[Tensor], Tensor]:
        """What the passes of a level compare: the reference's features, and its filters, cut into tiles; the query's features."""
        maps = [group[level] for group in (reference.features, reference.filters) if group]
        return [cut_mean(at_least_float32(x), scale) for x in maps], at_least_float32(query.features[level])

    @staticmethod
    def _correlate(references: list[Tensor], warped: Tensor, radius: int) -> list[Tensor]:
        """The window of every position (B, (2r+1)^2, h, w), for each of the reference's maps."""
        tiles = Tiles.of(warped, radius)
        return [tiles.windows(tiles.multiply(x), SLOPE) for x in references]


class Upsampled:
    """What a level receives from the one before it."""

    def __init__(self, flow: Tensor, mixture: list[Tensor], feature: Tensor | None):
        self.flow, self.mixture, self.feature = flow, mixture, feature


def _unit(x: Tensor) -> Tensor:
    """L2-normalize over channels."""
    least = channels((1e-3,), x.device, x.dtype)  # hypot: f / sqrt(sum f^2 + 1e-6), as in the published network
    return x / torch.hypot(torch.linalg.vector_norm(x, dim=1, keepdim=True), least)


@made_once
def _to_middle(device: torch.device, dtype: torch.dtype) -> Tensor:
    """The flow from each cell of the coarsest maps to their middle (1, 2, h, w)."""
    return ((GRID - 1) / 2 - pixel_grid(GRID, GRID, torch.zeros((), device=device, dtype=dtype))) * (COARSE_SIDE / GRID)


def _full_precision(like: Tensor) -> torch.autocast:
    """What is not chosen to run in 16 bits (`PDCNet._run`) does not, whatever surrounds the network."""
    return torch.autocast(like.device.type, enabled=False)


def upsample_estimate(
    output: LevelOutput, size: tuple[int, int], query_size: tuple[int, int] | None = None
) -> LevelOutput:
    """The finest level at another resolution of the reference (and of the query): flow rescaled, mixture as it is."""
    query_size = query_size or size
    flow = rescale_flow(resize(output.flow, size), (output.reference_size, size), (output.query_size, query_size))
    log_var, logits = (None if x is None else resize(x, size) for x in (output.log_var, output.logits))
    return LevelOutput(output.level, flow, log_var, logits, size, query_size)
