"""One optimization step: forward, loss, backward, update. All of it is a function of the iteration and the batch."""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn

from pdc_sfm.network import ImageCode, PDCNet
from pdc_sfm.network.backbone import EfficientNetLite0
from pdc_sfm.training.batch import Batch
from pdc_sfm.training.descriptors import descriptor_loss
from pdc_sfm.training.loss import training_loss
from pdc_sfm.training.machine import Group
from pdc_sfm.training.settings import TrainSettings


class Objective(nn.Module):
    """The loss of a batch as one module, so that several processes can share its gradient."""

    def __init__(self, network: PDCNet, settings: TrainSettings):
        super().__init__()
        self.network, self.settings = network, settings

    def forward(self, batch: Batch, iteration: int) -> tuple[Tensor, dict[str, Tensor]]:
        """Loss and its parts; during the descriptor warm-up the decoders do not run."""
        s = self.settings
        images = torch.cat((batch.reference, batch.query))
        coarse = s.trained == "coarse"
        code = self.network.encode_low(images) if coarse else self.network.encode(images)
        parts: dict[str, Tensor] = {}
        loss = images.new_zeros(())
        warming = iteration < s.descriptors.iterations
        if warming or s.descriptors.weight > 0:
            maps0, maps1 = ([x[part] for x in code.features.values()] for part in _halves(batch))
            contrast, hits = descriptor_loss(maps0, maps1, batch, s.descriptors, s.seed + iteration)
            parts |= {"descriptor_loss": contrast.detach(), "descriptor_hits": hits}
            loss = contrast * (1.0 if warming else s.descriptors.weight)
        if not warming:
            reference, query = (_part(code, part) for part in _halves(batch))
            levels = self.network.decode(reference, query, last_level=3 if coarse else 0)
            value = training_loss(levels, batch, s.loss, iteration)
            loss, parts = loss + value.total, parts | value.parts
        return loss, parts


def _halves(batch: Batch) -> tuple[slice, slice]:
    return slice(0, len(batch)), slice(len(batch), None)


def _part(code: ImageCode, part: slice) -> ImageCode:
    features, filters = ({level: x[part] for level, x in group.items()} for group in (code.features, code.filters))
    return ImageCode(features, filters, code.size, code.high_size)


class Average:
    """The running average of a network's weights. Early on it forgets faster, so that it is useful from the start."""

    def __init__(self, network: nn.Module, decay: float):
        self.network = copy.deepcopy(network).eval().requires_grad_(False)
        self.decay = decay

    @torch.no_grad()
    def update(self, network: nn.Module, iteration: int) -> None:
        """Take in the weights after an iteration."""
        keep = min(self.decay, (1 + iteration) / (10 + iteration))
        for mean, value in zip(self.network.state_dict().values(), network.state_dict().values()):
            if mean.is_floating_point():
                mean.lerp_(value, 1 - keep)
            else:
                mean.copy_(value)


class Stepper:
    """A network with its optimizer. `step` is one iteration."""

    def __init__(self, network: PDCNet, settings: TrainSettings, device: torch.device, group: Group):
        self.network, self.settings, self.device, self.group = network, settings, device, group
        o = settings.optimizer
        self.names, self.backbone = _split(network)
        self.fixed = _fixed(network, settings)
        parameters = dict(network.named_parameters())
        kind = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[o.name]
        groups = [
            {"params": [parameters[n] for n in self.names if (n in self.backbone) == back], "factor": factor}
            for back, factor in ((False, 1.0), (True, o.backbone_factor))
        ]
        self.names = [n for back in (False, True) for n in self.names if (n in self.backbone) == back]
        groups = [g for g in groups if g["params"]]
        self.optimizer = kind(groups, lr=o.rate, weight_decay=o.weight_decay)
        network.precision = _dtype(settings, device)  # correlation, GOCor, mixture and loss are float32 in any case
        self.scaler = torch.amp.GradScaler(device.type, enabled=network.precision is torch.float16)
        self.average = Average(network, o.average) if o.average else None
        self.objective: nn.Module = Objective(network, settings)
        self.mode: tuple[bool, bool] | None = None  # whether the backbone learns, whether descriptors warm up

    @property
    def result(self) -> PDCNet:
        """The network to validate and keep: the averaged one, if there is one."""
        return self.average.network if self.average else self.network

    def prepare(self, iteration: int) -> None:
        """Learning rate, and which parameters learn, at an iteration."""
        s = self.settings
        warming = iteration < s.descriptors.iterations
        rate = s.descriptors.rate if warming else s.optimizer.rate * s.schedule.factor(iteration)
        for group in self.optimizer.param_groups:
            group["lr"] = rate * group["factor"]
        learns = s.optimizer.learns_backbone(iteration)
        if (learns, warming) != self.mode:
            self.mode = (learns, warming)
            for name, parameter in self.network.named_parameters():
                parameter.requires_grad_(name not in self.fixed and (learns or name not in self.backbone))
            self._share(warming)
        self.network.train()
        if s.optimizer.freezes_statistics(iteration):
            for module in self.network.modules():
                if isinstance(module, nn.BatchNorm2d):
                    module.eval()

    def _share(self, warming: bool) -> None:
        """With several processes: gradients are averaged over them."""
        if self.group.world == 1:
            return
        from torch.nn.parallel import DistributedDataParallel

        inner = self.objective.module if isinstance(self.objective, DistributedDataParallel) else self.objective
        devices = [self.device.index] if self.device.type == "cuda" else None
        self.objective = DistributedDataParallel(inner, device_ids=devices, find_unused_parameters=warming)

    def step(self, batch: Batch, iteration: int) -> dict[str, float]:
        """One iteration. If loss or gradient are no numbers, the weights stay as they were and NaN is returned."""
        self.prepare(iteration)
        loss, parts = self.objective(batch, iteration)
        values = {"loss": loss.item()} | {name: value.item() for name, value in parts.items()}
        if values["loss"] != values["loss"] or abs(values["loss"]) == float("inf"):
            return values
        self.optimizer.zero_grad(set_to_none=True)
        self.scaler.scale(loss).backward()
        self.scaler.unscale_(self.optimizer)
        learning = [p for p in self.network.parameters() if p.grad is not None]
        norm = torch.nn.utils.clip_grad_norm_(learning, self.settings.optimizer.clip or float("inf"))
        values["gradient"] = norm.item()
        if not self.scaler.is_enabled() and not torch.isfinite(norm):
            return values | {"loss": float("nan")}
        self.scaler.step(self.optimizer)  # leaves steps out whose scaled gradients overflow in float16
        self.scaler.update()
        if self.average:
            self.average.update(self.network, iteration)
        return values


def _dtype(settings: TrainSettings, device: torch.device) -> torch.dtype | None:
    """The 16 bits that convolutions are trained in; None: float32."""
    wanted = settings.precision
    if wanted == "auto":
        wanted = "float16" if device.type == "cuda" else "float32"
    return None if wanted == "float32" else getattr(torch, wanted)


def _split(network: PDCNet) -> tuple[list[str], set[str]]:
    """All parameter names in order, and those of the pretrained backbone (projections above it are not)."""
    names = [name for name, _ in network.named_parameters()]
    mark = "backbone_" if network.settings.backbone == "vgg16" else ".backbone."
    return names, {name for name in names if mark in name}


def _fixed(network: PDCNet, settings: TrainSettings) -> set[str]:
    """Names of the parameters that never learn."""
    names, backbone = _split(network)
    fixed = set()
    if settings.trained == "coarse":
        fixed |= {name for name in names if not name.startswith(("backbone_low.", "levels.4.", "levels.3."))}
    if stride := settings.optimizer.fixed_stride:
        first = ("stem.", *(f"blocks.{n}." for n in range(EfficientNetLite0.ends[stride])))
        fixed |= {name for name in backbone if name.split(".backbone.")[1].startswith(first)}
    return fixed
