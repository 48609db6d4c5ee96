"""The training run: iterations, checkpoints, validation, records.

Stopped at any moment, the same command continues the same stream of numbers. In the output folder: `last.safetensors`
(the whole state), `best.safetensors` (weights to use), `train.csv`, `validation.csv`, `curve.png`, `settings.yaml`.
"""

from __future__ import annotations

import contextlib
import json
import math
import signal
import time
from dataclasses import dataclass, field
from pathlib import Path

import torch

from pdc_sfm.errors import CheckpointError, UserError
from pdc_sfm.files import exclusive, write_text
from pdc_sfm.network import PDCNet
from pdc_sfm.settings import differences, to_dict
from pdc_sfm.training import checkpoint
from pdc_sfm.training.batch import Batch, collate
from pdc_sfm.training.curve import Table, draw_curve
from pdc_sfm.training.machine import Group, StopSignal, join_group, prepare_process, say
from pdc_sfm.training.options import TrainSettings
from pdc_sfm.training.pretrained import fill_backbone
from pdc_sfm.training.sources import FixedPairs, SampleStream, Source
from pdc_sfm.training.step import Stepper
from pdc_sfm.training.validation import validate
from pdc_sfm.weights import built_in_path, fill, read_checkpoint, save_network
from pdc_sfm.weights.checkpoint import BUILT_IN


class TrainingError(UserError):
    """Training cannot go on."""


@dataclass
class Progress:
    """Where a run is. Saved with the state."""

    iteration: int = 0  # iterations done
    minutes: float = 0.0
    validated: float = 0.0  # minute of the last validation
    best: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class TrainResult:
    """How a run ended: `stopped` is the signal that ended it early, if any."""

    iteration: int
    minutes: float
    best: dict[str, float]
    stopped: signal.Signals | None

    def summary(self, output: Path) -> str:
        """One line: where the run stands and what to do with it."""
        done = f"{self.iteration} iterations in {self.minutes:.0f} minutes"
        best = f"{output / 'best.safetensors'} has PCK-1 {self.best['pck_1']:.3f}" if self.best else "not validated yet"
        after = f"stopped by {self.stopped.name} after" if self.stopped else "trained"
        return f"{after} {done}; {best}" + ("; the same command continues" if self.stopped else "")


def train(
    source: Source, validation: FixedPairs, settings: TrainSettings, output: Path, quiet: bool = False
) -> TrainResult:
    """Train until `schedule.iterations`, or until a signal; continue what `output` holds."""
    output = Path(output)
    device = _device(settings.device)
    group = join_group(device.type)
    if device.type == "cuda" and group.world > 1:
        device = torch.device("cuda", group.local_rank)
    prepare_process(settings.threads)
    output.mkdir(parents=True, exist_ok=True)
    if not group.leads:
        return Trainer(source, validation, settings, output, device, group, quiet=True).run()
    with exclusive(output / "last.safetensors"):
        return Trainer(source, validation, settings, output, device, group, quiet).run()


class Trainer:
    """One run in one output folder."""

    def __init__(self, source, validation, settings: TrainSettings, output: Path, device, group: Group, quiet: bool):
        self.validation, self.settings = validation, settings
        self.output, self.device, self.group, self.quiet = output, device, group, quiet
        self.stream = SampleStream(source, settings.sizes, group.rank, group.world)
        self.progress = Progress()
        torch.manual_seed(settings.seed)
        network = initial_network(settings).to(device, memory_format=torch.channels_last)
        self.stepper = Stepper(network, settings, device, group)
        self.state_path = output / "last.safetensors"
        if self.state_path.exists():
            self._load()
        torch.manual_seed(settings.seed + group.rank) if not self.progress.iteration else None
        if group.leads:
            self.train_table = Table(output / "train.csv", self.progress.iteration)
            self.validation_table = Table(output / "validation.csv", self.progress.iteration)
            self._write_settings()
        self.fixed: dict[str, list[Batch]] = {}

    # --- the loop ----------------------------------------------------------------------------------------------------

    def run(self) -> TrainResult:
        """All iterations that are left."""
        from tqdm import tqdm

        s, p = self.settings, self.progress
        end = s.schedule.iterations
        stream = self.stream.run(p.iteration, end, s.workers)
        shown = tqdm(initial=p.iteration, total=end, unit="it", disable=True if self.quiet else None, mininterval=2)
        sums: dict[str, list[float]] = {}
        last_save = clock = time.monotonic()
        if self.settings.start_from and not p.iteration and self.group.leads:
            self._validate()  # so that one sees what training adds
        with StopSignal() as stop, shown, contextlib.closing(stream):
            while p.iteration < end:
                values = self._iterate(collate(next(stream)).to(self.device))
                now = time.monotonic()
                p.minutes, clock = p.minutes + (now - clock) / 60, now
                p.iteration += 1
                shown.update()
                self._record(values, sums, shown)
                stopping = self.group.any(stop.received is not None, self.device)
                if self.group.leads and (p.minutes - p.validated >= s.validation.minutes or p.iteration == end):
                    self._validate()
                    clock = time.monotonic()
                if stopping or p.iteration == end:
                    break
                if self.group.leads and now - last_save >= s.checkpoint_minutes * 60:
                    last_save = now
                    self._save_or_warn()
            if self.group.leads:
                self._save()
        return TrainResult(p.iteration, p.minutes, p.best, signal.Signals(stop.received) if stop.received else None)

    def _iterate(self, batch: Batch) -> dict[str, float]:
        """One step, or the end of the run if its loss is no number."""
        iteration = self.progress.iteration
        values = self.stepper.step(batch, iteration)
        if math.isfinite(values["loss"]):
            return values
        bad = [name for name, value in values.items() if name != "loss" and not math.isfinite(value)]
        bad = [name for name in bad if not name.endswith("_outlier")] or bad  # undefined where nothing is hidden
        pairs = self.stream.pair_numbers(iteration)
        kept = f"{self.state_path} keeps the last good state" if self.state_path.exists() else "no state was saved yet"
        raise TrainingError(
            f"the loss is not a number at iteration {iteration} (pairs {pairs[0]}-{pairs[-1]}; "
            f"{', '.join(bad) or 'total'}): {kept}; continue with a lower optimiser.rate, or with optimiser.clip"
        )

    def _record(self, values: dict[str, float], sums: dict[str, list[float]], shown) -> None:
        """Gather the iteration's figures; every `log_every` iterations their means become a row."""
        if not self.group.leads:
            return
        for name, value in values.items():
            if math.isfinite(value):
                sums.setdefault(name, []).append(value)
        if self.progress.iteration % self.settings.log_every:
            return
        row = {"iteration": self.progress.iteration, "minutes": self.progress.minutes}
        row["rate"] = self.stepper.optimiser.param_groups[0]["lr"]
        row |= {name: sum(v) / len(v) for name, v in sums.items()}
        self.train_table.add(row)
        shown.set_postfix_str(f"loss {row['loss']:.3f}")
        sums.clear()

    def _say(self, text: str) -> None:
        if not self.quiet:
            say(text)

    # --- validation --------------------------------------------------------------------------------------------------

    def _validate(self) -> None:
        """Measure the (averaged) weights on the fixed pairs, and keep them if they are the best so far."""
        p = self.progress
        figures = validate(self.stepper.result, self._fixed_batches("moderate") + self._fixed_batches("unrelated"))
        for kind in ("hard", "real"):
            fixed = self._fixed_batches(kind)
            more = validate(self.stepper.result, fixed) if fixed else {}
            figures |= {f"{kind}_{name}": value for name, value in more.items()}
        figures["score"] = (figures["score"] + figures.get("real_score", figures["score"])) / 2
        p.validated = p.minutes
        self.validation_table.add({"iteration": p.iteration, "minutes": p.minutes} | figures)
        if figures["score"] >= p.best.get("score", -1.0):
            p.best = {"iteration": p.iteration, **figures}
            extra = {"pdc_sfm.training": self._card(figures)}
            save_network(self.output / "best.safetensors", self.stepper.result, extra=extra)
        draw_curve(self.train_table.rows, self.validation_table.rows, self.output / "curve.png")
        shown = ("pck_1", "pck_5", "kept", "kept_pck_5", "hard_pck_5", "real_pck_1", "unrelated_confident")
        text = ", ".join(f"{name} {figures[name]:.4f}" for name in shown if name in figures)
        self._say(f"iteration {p.iteration}, {p.minutes:.1f} min: {text}")

    def _fixed_batches(self, name: str) -> list[Batch]:
        """The pairs of a kind, made once."""
        if name not in self.fixed:
            v = self.settings.validation
            count = {"moderate": v.pairs, "hard": v.hard, "unrelated": v.unrelated, "real": v.real}[name]
            samples = getattr(self.validation, name)(count, (v.size, v.size))
            self.fixed[name] = [collate(samples[i : i + 4]) for i in range(0, len(samples), 4)]
        return [batch.to(self.device) for batch in self.fixed[name]]

    def _card(self, figures: dict[str, float]) -> str:
        """What is written into the weights file: how they came about."""
        p = self.progress
        facts = {"iteration": p.iteration, "minutes": p.minutes, "figures": figures, "settings": to_dict(self.settings)}
        return json.dumps(facts)

    # --- the state ---------------------------------------------------------------------------------------------------

    def _save(self) -> None:
        p, stepper = self.progress, self.stepper
        groups = {
            "network": stepper.network.state_dict(),
            "optimiser": checkpoint.optimiser_tensors(stepper.optimiser, stepper.names),
            "random": {"torch": torch.get_rng_state()},
        }
        if stepper.average:
            groups["average"] = stepper.average.network.state_dict()
        facts = {"progress": vars(p), "settings": to_dict(self.settings), "scaler": stepper.scaler.state_dict()}
        checkpoint.save_state(self.state_path, groups, facts)

    def _save_or_warn(self) -> None:
        """During a run a full disk is no reason to stop: there will be another try."""
        try:
            self._save()
        except CheckpointError as error:
            self._say(f"pdc-sfm: {error}; training goes on and will try again")

    def _load(self) -> None:
        groups, facts = checkpoint.load_state(self.state_path)
        stored, wanted = facts["settings"], to_dict(self.settings)
        changes = differences(stored["network"], wanted["network"], "network")
        if changes:
            raise CheckpointError(
                f"{self.state_path} is of another architecture ({'; '.join(changes)}): "
                "use its settings, or another output"
            )
        stepper = self.stepper
        checkpoint.load_network_tensors(stepper.network, groups["network"], self.state_path)
        checkpoint.load_optimiser(stepper.optimiser, stepper.names, groups.get("optimiser", {}))
        if stepper.average:
            tensors = groups.get("average", groups["network"])
            checkpoint.load_network_tensors(stepper.average.network, tensors, self.state_path)
        torch.set_rng_state(groups["random"]["torch"])
        if facts["scaler"]:
            stepper.scaler.load_state_dict(facts["scaler"])
        self.progress = Progress(**facts["progress"])
        changes = "".join(f"; {change}" for change in differences(stored, wanted))
        self._say(f"continuing {self.output} at iteration {self.progress.iteration}{changes}")

    def _write_settings(self) -> None:
        import yaml

        write_text(self.output / "settings.yaml", yaml.safe_dump(to_dict(self.settings), sort_keys=False))


def initial_network(settings: TrainSettings) -> PDCNet:
    """The network training begins with: given weights, or a fresh one on a pretrained backbone."""
    network = PDCNet(settings.network)
    if not settings.start_from:
        fill_backbone(network, settings.backbone_weights)
        if settings.initial_sigma:
            widen_outliers(network, settings.initial_sigma)
        return network
    given = read_checkpoint(built_in_path() if settings.start_from == BUILT_IN else settings.start_from)
    changes = differences(to_dict(given.settings), to_dict(settings.network), "network")
    changes = [change for change in changes if "_iterations" not in change]  # GOCor's count of steps is no weight
    if changes:
        raise CheckpointError(f"start_from={settings.start_from} is of another architecture: {'; '.join(changes)}")
    fill(network, given)
    return network


def widen_outliers(network: PDCNet, sigma: float) -> None:
    """Let the last component of every level begin at `sigma` pixels.

    A fresh network's flow is off by tens of pixels, while h = 0 means a sigma of 1.7: the gradient would be
    busy with the variances alone until they have grown.
    """
    for level in network.levels.values():
        if level.predictor is not None:
            bias = getattr(level.predictor, "output", level.predictor).bias
            with torch.no_grad():
                bias[level.constraint.inputs - 1] = 2 * math.log(sigma)


def _device(name: str) -> torch.device:
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        raise TrainingError(f"device={name} is not a device: use cpu, cuda or auto") from None
    if device.type == "cuda" and not torch.cuda.is_available():
        raise TrainingError("device=cuda: this machine has no usable GPU; use device=cpu")
    return device
