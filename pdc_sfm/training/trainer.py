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
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from pdc_sfm.device import resolve_device, set_tf32
from pdc_sfm.errors import CheckpointError, UserError
from pdc_sfm.files import exclusive, remove_leftovers, write_text
from pdc_sfm.progress import progress
from pdc_sfm.settings import differences, to_dict
from pdc_sfm.training import resume as checkpoint
from pdc_sfm.training.batch import Batch, collate
from pdc_sfm.training.curve import Table, draw_curve
from pdc_sfm.training.initial import initial_network
from pdc_sfm.training.machine import (
    Group,
    StopSignal,
    TrainingError,
    join_group,
    prepare_process,
    say,
)
from pdc_sfm.training.settings import TrainSettings
from pdc_sfm.training.sources import FixedPairs, Sample, SampleStream, Source
from pdc_sfm.training.step import Stepper
from pdc_sfm.training.validation import validate
from pdc_sfm.weights import save_network


@dataclass
class TrainingProgress:
    """Where a run is. Saved with the state."""

    iteration: int = 0  # iterations done
    minutes: float = 0.0
    validated: float = 0.0  # minute of the last validation
    validated_at: int | None = None  # its iteration
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
    device = torch.device(resolve_device(settings.device))
    set_tf32(device.type)
    group = join_group(device.type)
    if device.type == "cuda" and group.world > 1:
        device = torch.device("cuda", group.local_rank)
    prepare_process(settings.threads)
    output.mkdir(parents=True, exist_ok=True)
    if not group.leads:
        return Trainer(source, validation, settings, output, device, group, quiet=True).run()
    with exclusive(output / "last.safetensors"):
        names = ("last.safetensors", "best.safetensors", "train.csv", "validation.csv", "curve.png", "settings.yaml")
        remove_leftovers(*(output / name for name in names))
        return Trainer(source, validation, settings, output, device, group, quiet).run()


class Trainer:
    """One run in one output folder."""

    def __init__(
        self,
        source: Source,
        validation: FixedPairs,
        settings: TrainSettings,
        output: Path,
        device: torch.device,
        group: Group,
        quiet: bool,
    ):
        self.validation, self.settings = validation, settings
        self.output, self.device, self.group, self.quiet = output, device, group, quiet
        self.stream = SampleStream(source, settings.sizes, group.rank, group.world)
        self.progress = TrainingProgress()
        torch.manual_seed(settings.seed)
        network = initial_network(settings).to(device, memory_format=torch.channels_last)
        self.stepper = Stepper(network, settings, device, group)
        self.state_path = output / "last.safetensors"
        if self.state_path.exists():
            self._load()
        else:
            torch.manual_seed(settings.seed + group.rank)
        if group.leads:
            self.train_table = Table(output / "train.csv", self.progress.iteration)
            at = self.progress.validated_at  # a validation whose result was not saved is done again
            self.validation_table = Table(output / "validation.csv", self.progress.iteration if at is None else at)
            self._write_settings()
        self.fixed: dict[str, list[Batch]] = {}
        self.sums: dict[str, list[float]] = {}

    # --- the loop ----------------------------------------------------------------------------------------------------

    def run(self) -> TrainResult:
        """All iterations that are left."""
        s, p = self.settings, self.progress
        end = s.schedule.iterations
        stream = self.stream.run(p.iteration, end, s.workers)
        shown = progress(None, "training", "iteration", end, p.iteration, show=not self.quiet)
        if s.start_from and not p.iteration and self.group.leads:
            self._validate()  # so that one sees what training adds
        clock = self.saved = time.monotonic()
        with StopSignal() as stop, shown, contextlib.closing(stream):
            while p.iteration < end:
                samples = self._next(stream, stop)
                if samples is None:
                    break
                values = self._iterate(collate(samples).to(self.device))
                now = time.monotonic()
                p.minutes, clock = p.minutes + (now - clock) / 60, now
                p.iteration += 1
                self._record(values, shown)
                if self.group.any(stop.received is not None, self.device):
                    break
                self._look_after(p.iteration == end)
                clock += time.monotonic() - now  # only iterations count as training
            if self.group.leads:
                if p.iteration >= end and p.validated_at != p.iteration and stop.received is None:  # killed before it
                    self._validate()
                self._save()
        return TrainResult(p.iteration, p.minutes, p.best, signal.Signals(stop.received) if stop.received else None)

    @staticmethod
    def _next(stream: Iterator[list[Sample]], stop: StopSignal) -> list[Sample] | None:
        """The next samples; None if the signal to stop also ended those who make them."""
        try:
            return next(stream)
        except RuntimeError:
            if stop.received is None:
                raise
            return None

    def _look_after(self, last: bool) -> None:
        """What is due between two iterations: saving, then validation, which takes a while."""
        if not self.group.leads:
            return
        validation_due = last or self.progress.minutes - self.progress.validated >= self.settings.validation.minutes
        if validation_due or time.monotonic() - self.saved >= self.settings.checkpoint_minutes * 60:
            self._write_or_warn(self._save)
            self.saved = time.monotonic()
        if validation_due:
            self._validate()

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
            f"{', '.join(bad) or 'total'}): {kept}; continue with a lower optimizer.rate, or with optimizer.clip"
        )

    def _record(self, values: dict[str, float], shown: Any) -> None:
        """Gather the iteration's figures; every `log_every` iterations their means become a row."""
        if not self.group.leads:
            return
        shown.update()
        for name, value in values.items():
            if math.isfinite(value):
                self.sums.setdefault(name, []).append(value)
        if self.progress.iteration % self.settings.log_every:
            return
        row = {"iteration": self.progress.iteration, "minutes": self.progress.minutes}
        row["rate"] = self.stepper.optimizer.param_groups[0]["lr"]
        row |= {name: sum(v) / len(v) for name, v in self.sums.items()}
        self._write_or_warn(lambda: self.train_table.add(row))
        shown.set_postfix_str(f"loss {row['loss']:.3f}")
        self.sums.clear()

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
        if share := self.settings.validation.hard_share:
            figures["score"] = (1 - share) * figures["score"] + share * figures["hard_score"]
        p.validated, p.validated_at = p.minutes, p.iteration
        row = {"iteration": p.iteration, "minutes": p.minutes} | figures
        self._write_or_warn(lambda: self.validation_table.add(row))
        if figures["score"] >= p.best.get("score", -1.0) and self._write_or_warn(lambda: self._save_best(figures)):
            p.best = {"iteration": p.iteration, **figures}
        curve = self.output / "curve.png"
        self._write_or_warn(lambda: draw_curve(self.train_table.rows, self.validation_table.rows, curve))
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
            "optimizer": checkpoint.optimizer_tensors(stepper.optimizer, stepper.names),
            "random": {"torch": torch.get_rng_state()},
        }
        if stepper.average:
            groups["average"] = stepper.average.network.state_dict()
        facts = {"progress": vars(p), "settings": to_dict(self.settings), "scaler": stepper.scaler.state_dict()}
        checkpoint.save_state(self.state_path, groups, facts)

    def _save_best(self, figures: dict[str, float]) -> None:
        extra = {"pdc_sfm.training": self._card(figures)}
        save_network(self.output / "best.safetensors", self.stepper.result, extra=extra)

    def _write_or_warn(self, write: Callable[[], None]) -> bool:
        """During a run a full disk is no reason to stop: there will be another try. Returns whether it was written."""
        try:
            write()
        except (OSError, UserError) as error:
            self._say(f"pdc-sfm: {error}; training goes on and will try again")
            return False
        return True

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
        moments = groups.get("optimizer", groups.get("optimiser", {}))  # as states of 0.1 spell it
        checkpoint.load_optimizer(stepper.optimizer, stepper.names, moments)
        if stepper.average:
            tensors = groups.get("average", groups["network"])
            checkpoint.load_network_tensors(stepper.average.network, tensors, self.state_path)
        torch.set_rng_state(groups["random"]["torch"])
        if facts["scaler"]:
            stepper.scaler.load_state_dict(facts["scaler"])
        self.progress = TrainingProgress(**facts["progress"])
        if stored["validation"].get("hard_share", 0.0) != self.settings.validation.hard_share:
            self.progress.best = {}  # it was judged by another measure
        said = "".join(f"; {change}" for change in differences(stored, wanted))
        self._say(f"continuing {self.output} at iteration {self.progress.iteration}{said}")

    def _write_settings(self) -> None:
        import yaml

        write_text(self.output / "settings.yaml", yaml.safe_dump(to_dict(self.settings), sort_keys=False))
