"""Training in 16 bits, as on a GPU: convolutions in float16 with scaled gradients, or bfloat16; all else in float32."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from half_kernels import HalfKernels
from tiny_training import TINY, Textures, make_settings, make_source

from pdc_sfm.settings import load_settings, preset_path
from pdc_sfm.training import step
from pdc_sfm.training.batch import collate
from pdc_sfm.training.initial import initial_network
from pdc_sfm.training.machine import Group
from pdc_sfm.training.settings import TrainSettings
from pdc_sfm.training.sources import SyntheticSource
from pdc_sfm.training.step import Stepper
from pdc_sfm.training.validation import validate

NETWORKS = {"compact": TINY, "paper": replace(TINY, normalize_local=False, correlation="gocor")}
CPU = torch.device("cpu")


def stepper_of(settings, scale=512.0):
    """The scale of gradients begins near where it settles for these small networks: 65536 takes eight steps to get there."""
    torch.manual_seed(0)
    stepper = Stepper(initial_network(settings), settings, CPU, Group())
    assert stepper.scaler.is_enabled() == (settings.precision == "float16")
    stepper.scaler = torch.amp.GradScaler("cpu", init_scale=scale, enabled=stepper.scaler.is_enabled())
    return stepper


def learn(stepper, batch, first, steps):
    """Losses of a few steps on one batch, leaving out those at which the scale of the gradients was too large."""
    losses = []
    with HalfKernels() as kernels:
        for iteration in range(first, first + steps):
            values = stepper.step(batch, iteration)
            assert np.isfinite(values["loss"])
            if np.isfinite(values["gradient"]):
                losses.append(values["loss"])
    assert kernels.count > 0
    assert all(torch.isfinite(parameter).all() for parameter in stepper.network.parameters())
    return losses


@pytest.mark.parametrize(
    ("network", "precision"),
    [
        ("compact", "float16"),
        ("compact", "bfloat16"),
        ("paper", "float16"),
        pytest.param("paper", "bfloat16", marks=pytest.mark.endurance),
    ],
)
def test_steps_in_16_bits_are_finite_and_learn(network, precision):
    settings = make_settings(
        network=NETWORKS[network], precision=precision, schedule={"kind": "steps", "milestones": []}
    )
    batch = collate([make_source(settings).sample(0, (64, 64))])
    losses = learn(stepper_of(settings), batch, 0, 8)
    assert len(losses) >= 6
    assert losses[-1] < 0.8 * losses[0]


# The networks themselves, at the smallest size there is and the full rate, on one batch. Of the built-in network single steps lie
# up to 8 % off the trend (float32 too: 99, 103, 96, 92), means of three a few: after twelve steps a fifth is gone. Steps of the
# published one follow their trend within 1 %, and take ten times as long.
@pytest.mark.parametrize(
    ("preset", "precision", "first", "scale", "steps", "left"),
    [
        ("compact", "float16", 1000, 2048.0, 12, 0.9),
        pytest.param("compact", "bfloat16", 1000, 2048.0, 12, 0.9, marks=pytest.mark.endurance),
        pytest.param("paper_stage2", "float16", 0, 0.125, 6, 0.96, marks=pytest.mark.endurance),
        pytest.param("paper_stage2", "bfloat16", 0, 0.125, 6, 0.96, marks=pytest.mark.endurance),
    ],
)
def test_the_presets_learn_in_16_bits(preset, precision, first, scale, steps, left):
    words = ["backbone_weights=none", f"precision={precision}"]
    settings = load_settings(TrainSettings, preset_path(preset, "train"), words)
    batch = collate([SyntheticSource(Textures(), None, settings.pairs, settings.seed).sample(0, (64, 64))])
    losses = learn(stepper_of(settings, scale), batch, first, steps)
    assert len(losses) >= steps - 2  # others were left out: a scale that is halved twice fits
    assert np.mean(losses[-3:]) < left * losses[0]


@pytest.mark.parametrize(
    ("precision", "device", "dtype"),
    [("auto", "cuda", torch.float16), ("auto", "cpu", None), ("float32", "cuda", None), ("bfloat16", "cuda", torch.bfloat16)],
)  # fmt: skip
def test_a_gpu_trains_in_float16_unless_told(precision, device, dtype):
    assert step._dtype(make_settings(precision=precision), torch.device(device)) is dtype


@pytest.mark.parametrize("network", NETWORKS)
def test_only_convolutions_are_in_16_bits_and_the_loss_sees_float32(network, monkeypatch):
    seen = []

    def loss(levels, *rest):
        seen.extend(x.dtype for level in levels for x in (level.flow, level.log_var, level.logits))
        return own(levels, *rest)

    own = step.training_loss
    monkeypatch.setattr(step, "training_loss", loss)
    settings = make_settings(network=NETWORKS[network], precision="float16")
    batch = collate([make_source(settings).sample(0, (64, 64))])
    stepper_of(settings).step(batch, 0)
    assert set(seen) == {torch.float32}


def test_what_is_kept_is_validated_in_float32():
    settings = make_settings(precision="bfloat16")
    batch = collate([make_source(settings).sample(0, (64, 64))])
    network = stepper_of(settings).network
    figures = validate(network, [batch])
    assert network.precision is torch.bfloat16  # training goes on
    network.precision = None
    assert validate(network, [batch]) == figures
