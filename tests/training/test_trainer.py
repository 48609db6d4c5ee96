"""Training runs of a few iterations on generated textures with a tiny network."""

import os
import resource
import signal
from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch
from tiny_training import BASE, TINY, make_settings, make_source, run

from pdc_sfm.errors import CheckpointError, SettingsError
from pdc_sfm.settings import load_settings, preset_path
from pdc_sfm.training import curve, trainer
from pdc_sfm.training.batch import collate
from pdc_sfm.training.curve import read_table
from pdc_sfm.training.initial import initial_network
from pdc_sfm.training.machine import Group, TrainingError
from pdc_sfm.training.resume import load_state, save_state
from pdc_sfm.training.settings import TrainSettings
from pdc_sfm.training.sources import SyntheticSource
from pdc_sfm.training.step import Stepper
from pdc_sfm.weights import load_network, read_checkpoint


@dataclass(frozen=True)
class Disturbed:
    """A source that does something when a certain pair is asked for."""

    inner: SyntheticSource
    at: int
    what: str

    def sample(self, index, size):
        sample = self.inner.sample(index, size)
        if index != self.at:
            return sample
        if self.what == "terminate":
            os.kill(os.getpid(), signal.SIGTERM)
            return sample
        nowhere = np.full_like(sample.flow, np.nan)
        return replace(sample, flow=nowhere, valid=np.ones_like(sample.valid))


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """A run of 5 iterations through every change: descriptor warm-up, larger images, the backbone unfrozen."""
    settings = make_settings(
        descriptors={"iterations": 1, "samples": 32},
        optimizer={**BASE["optimizer"], "unfreeze_at": 3},
        sizes={"phases": [[0, 80, 1], [2, 96, 2]], "aspects": [1, 1.5]},
    )
    output = tmp_path_factory.mktemp("run")
    result = run(settings, output)
    return settings, output, result


def test_a_run_leaves_state_weights_tables_and_curve(undisturbed):
    settings, output, result = undisturbed
    assert result.iteration == 5
    assert result.stopped is None
    assert [row["iteration"] for row in read_table(output / "train.csv")] == [1, 2, 3, 4, 5]
    figures = read_table(output / "validation.csv")[-1]
    assert 0 <= figures["pck_1"] <= figures["pck_5"] <= 1
    assert {"unrelated_confident", "hard_pck_5", "calibration_gap"} <= set(figures)
    assert (output / "curve.png").read_bytes()[:4] == b"\x89PNG"
    assert load_network(output / "best.safetensors").settings == settings.network
    assert load_settings(TrainSettings, output / "settings.yaml") == settings
    modes = {file.stat().st_mode for file in output.iterdir()}
    assert len(modes) == 1  # weights are as readable as any other file


@pytest.mark.parametrize("pair", [1, 3])  # in the warm-up's last iteration, and with larger images
def test_a_stopped_run_continues_to_the_same_numbers(undisturbed, tmp_path, pair):
    settings, reference, _ = undisturbed
    stopped = run(settings, tmp_path, Disturbed(make_source(settings), pair, "terminate"))
    assert stopped.stopped == signal.SIGTERM
    assert 0 < stopped.iteration < 5
    assert "the same command continues" in stopped.summary(tmp_path)
    run(settings, tmp_path)
    expected, actual = (load_state(folder / "last.safetensors")[0] for folder in (reference, tmp_path))
    assert expected.keys() == actual.keys()
    for group, tensors in expected.items():
        assert tensors.keys() == actual[group].keys()
        for name, value in tensors.items():
            assert torch.equal(value, actual[group][name]), f"{group}/{name}"
    columns = [[row["loss"] for row in read_table(folder / "train.csv")] for folder in (reference, tmp_path)]
    assert columns[0] == columns[1]


def test_a_run_killed_in_its_last_validation_validates_when_continued(undisturbed, tmp_path, monkeypatch):
    settings, reference, _ = undisturbed

    def killed(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(trainer, "validate", killed)
        with pytest.raises(KeyboardInterrupt):
            run(settings, tmp_path)
    assert not (tmp_path / "best.safetensors").exists()
    (tmp_path / ".last.safetensors.1.partial").write_bytes(b"what a killed process left")
    assert run(settings, tmp_path).best
    expected, actual = (read_checkpoint(folder / "best.safetensors").tensors for folder in (reference, tmp_path))
    assert all(torch.equal(value, actual[name]) for name, value in expected.items())
    assert run(settings, tmp_path).iteration == 5  # and once is enough
    assert [row["iteration"] for row in read_table(tmp_path / "validation.csv")] == [5]
    assert not list(tmp_path.glob(".*.partial"))


def test_a_disk_that_is_full_for_a_while_costs_no_row_and_no_state(tmp_path, monkeypatch):
    full, real = [True], curve.atomic_path

    def atomic_path(path):
        if full:
            raise OSError(28, "No space left on device", str(path))
        return real(path)

    monkeypatch.setattr(curve, "atomic_path", atomic_path)
    table = curve.Table(tmp_path / "train.csv")
    for iteration in (1, 2):
        with pytest.raises(OSError, match="No space"):
            table.add({"iteration": iteration, "loss": 0.5})
    full.clear()
    table.add({"iteration": 3, "loss": 0.25})
    table.add({"iteration": 4, "loss": 0.125})
    assert [row["loss"] for row in read_table(tmp_path / "train.csv")] == [0.5, 0.5, 0.25, 0.125]


def test_a_finished_run_can_be_extended(undisturbed, tmp_path):
    settings, reference, _ = undisturbed
    (tmp_path / "last.safetensors").write_bytes((reference / "last.safetensors").read_bytes())
    longer = replace(settings, schedule=replace(settings.schedule, iterations=6))
    assert run(longer, tmp_path).iteration == 6


def test_another_architecture_is_refused(undisturbed, tmp_path):
    settings, reference, _ = undisturbed
    other = replace(settings, network=replace(TINY, radius=3))
    (tmp_path / "last.safetensors").write_bytes((reference / "last.safetensors").read_bytes())
    with pytest.raises(CheckpointError, match=r"another architecture \(network.radius: 2 -> 3\)"):
        run(other, tmp_path)
    with pytest.raises(CheckpointError, match=r"network.radius: 2 -> 3"):
        initial_network(replace(other, start_from=str(reference / "best.safetensors")))


def test_weights_of_an_earlier_run_are_the_beginning_of_a_new_one(undisturbed):
    settings, reference, _ = undisturbed
    network = initial_network(replace(settings, start_from=str(reference / "best.safetensors")))
    expected = read_checkpoint(reference / "best.safetensors").tensors
    assert all(torch.equal(value, expected[name]) for name, value in network.state_dict().items())


def test_a_file_that_is_no_training_state_is_refused(tmp_path):
    (tmp_path / "last.safetensors").write_bytes(b"something else")
    with pytest.raises(CheckpointError, match=r"last.safetensors is not a readable .* remove it to start afresh"):
        run(make_settings(), tmp_path)


def test_a_loss_that_is_no_number_stops_and_keeps_the_last_good_state(tmp_path):
    settings = make_settings(loss={**BASE["loss"], "resolution": "image"}, checkpoint_minutes=1e-9)
    source = replace(make_source(settings))
    with pytest.raises(TrainingError, match=r"iteration 2 \(pairs 2-2; level4_nll.*last good state"):
        run(settings, tmp_path, Disturbed(source, 2, "nan"))
    groups, facts = load_state(tmp_path / "last.safetensors")
    assert facts["progress"]["iteration"] == 2
    assert all(torch.isfinite(value).all() for value in groups["network"].values() if value.is_floating_point())


def test_a_full_disk_leaves_the_saved_state_intact(tmp_path):
    path = tmp_path / "last.safetensors"
    save_state(path, {"network": {"a": torch.ones(3)}}, {"iteration": 1})
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))  # every file ends here, as on a full disk
    try:
        with pytest.raises(CheckpointError, match="what was saved before is intact"):
            save_state(path, {"network": {"a": torch.ones(100_000)}}, {"iteration": 2})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    groups, facts = load_state(path)
    assert facts == {"iteration": 1}
    assert torch.equal(groups["network"]["a"], torch.ones(3))
    assert [file.name for file in tmp_path.iterdir()] == ["last.safetensors"]


def test_training_on_one_pair_lowers_its_loss():
    torch.manual_seed(0)
    settings = make_settings(schedule={"kind": "steps", "milestones": []})
    batch = collate([make_source(settings).sample(0, (64, 64))])
    stepper = Stepper(initial_network(settings), settings, torch.device("cpu"), Group())
    losses = [stepper.step(batch, iteration)["loss"] for iteration in range(8)]
    assert losses[-1] < 0.7 * losses[0]


def test_the_backbone_waits_until_it_is_unfrozen():
    settings = make_settings(optimizer={**BASE["optimizer"], "unfreeze_at": 1})
    batch = collate([make_source(settings).sample(0, (64, 64))])
    stepper = Stepper(initial_network(settings), settings, torch.device("cpu"), Group())
    weight = stepper.network.backbone_high.backbone.stem.conv.weight
    projection = stepper.network.backbone_high.lateral["16"].weight
    before = [weight.detach().clone(), projection.detach().clone()]
    stepper.step(batch, 0)
    assert torch.equal(weight, before[0])
    assert not torch.equal(projection, before[1])
    stepper.step(batch, 1)
    assert not torch.equal(weight, before[0])


def test_batch_statistics_stay_once_they_are_frozen():
    settings = make_settings(optimizer={**BASE["optimizer"], "freeze_statistics_at": 1})
    batch = collate([make_source(settings).sample(0, (64, 64))])
    stepper = Stepper(initial_network(settings), settings, torch.device("cpu"), Group())
    norm = next(m for m in stepper.network.modules() if isinstance(m, torch.nn.BatchNorm2d))
    start, weight = norm.running_mean.clone(), norm.weight.detach().clone()
    stepper.step(batch, 0)
    seen = norm.running_mean.clone()
    assert not torch.equal(seen, start)
    stepper.step(batch, 1)
    assert torch.equal(norm.running_mean, seen)
    assert not torch.equal(norm.weight, weight)


def test_the_outlier_component_can_begin_wide():
    network = initial_network(make_settings(initial_sigma=20.0)).eval()
    for level in network.levels.values():
        torch.nn.init.zeros_(level.predictor.output.weight)  # leaves what the bias alone says
    image = torch.rand(1, 3, 64, 64)
    with torch.no_grad():
        for level in network(image, image):
            assert (level.log_var[:, 0] == 0).all()
            assert torch.allclose((level.log_var[:, -1] / 2).exp(), torch.tensor(20.0), rtol=0.01)


def test_image_sizes_are_steered_in_one_place():
    with pytest.raises(SettingsError, match=r"leave out pairs.size"):
        make_settings(pairs={"size": [128, 128]})


@pytest.mark.parametrize("name", ["compact", "compact_stage2", "paper_stage1", "paper_stage2"])
def test_presets_load(name):
    settings = load_settings(TrainSettings, preset_path(name, "train"))
    assert len(settings.loss.level_weights) == len(settings.network.levels)


def test_presets_of_the_paper_have_its_numbers():
    first, second = (load_settings(TrainSettings, preset_path(f"paper_stage{n}", "train")) for n in (1, 2))
    factor = first.schedule.factor
    assert [first.optimizer.rate * factor(i) for i in (0, 132_999, 133_000, 240_000)] == [1e-4, 1e-4, 5e-5, 2.5e-5]
    assert [second.optimizer.rate * second.schedule.factor(i) for i in (0, 210_000)] == [5e-5, 2.5e-5]
    assert (first.schedule.iterations, second.schedule.iterations) == (350_000, 225_000)
    assert (first.sizes.phases, second.sizes.phases) == (((0, 520, 15),), ((0, 520, 10),))
    assert (first.loss.level_weights, second.loss.level_weights) == ((0.32, 0.08, 0.02, 0.01), (0.08, 0.08, 0.02, 0.02))
    assert (first.loss.resolution, second.loss.resolution) == ("level", "image")
    assert not first.optimizer.learns_backbone(349_999)
    assert second.optimizer.learns_backbone(0)
    for settings in (first, second):
        assert settings.optimizer.name == "adam"
        assert settings.optimizer.weight_decay == 4e-4
        assert (settings.pairs.objects, settings.pairs.object_probability, settings.pairs.mask) == (4, 0.8, "injective")
        assert settings.pairs.perturbations
        assert settings.network.global_iterations == settings.network.local_iterations == 3


@pytest.mark.parametrize(("share", "best"), [(0.0, 0), (0.8, 1)])
def test_the_best_weights_are_those_of_moderate_or_also_of_hard_pairs(tmp_path, monkeypatch, share, best):
    """Training for hard pairs costs a little on moderate ones: by these alone the first weights would stay the best."""
    moderate, hard = {"score": 0.9, "pck_1": 0.9}, {"score": 0.5}

    def judged(network, batches):
        figures = dict(moderate if judged.calls % 2 == 0 else hard)
        figures["score"] += (-0.05, 0.2)[judged.calls % 2] * (judged.calls // 2)
        judged.calls += 1
        return figures

    judged.calls = 0
    monkeypatch.setattr(trainer, "validate", judged)
    validation = {"pairs": 1, "hard": 1, "unrelated": 1, "size": 64, "minutes": 1e-9, "hard_share": share}
    result = run(make_settings(validation=validation, schedule={"iterations": 2}), tmp_path)
    assert result.best["iteration"] == best + 1
    other = make_settings(validation=validation | {"hard_share": 0.5}, schedule={"iterations": 3})
    assert run(other, tmp_path).best["iteration"] == 3  # judged by another measure, what was best before does not count


def test_hard_pairs_cannot_count_where_there_are_none():
    with pytest.raises(SettingsError, match="hard_share needs hard pairs"):
        make_settings(validation={"hard": 0, "hard_share": 0.5})


def test_a_state_of_the_older_spelling_keeps_the_memory_of_the_optimizer(undisturbed, tmp_path):
    settings, reference, _ = undisturbed
    run(settings, tmp_path, Disturbed(make_source(settings), 3, "terminate"))
    groups, facts = load_state(tmp_path / "last.safetensors")
    groups["optimiser"] = groups.pop("optimizer")
    assert groups["optimiser"]
    save_state(tmp_path / "last.safetensors", groups, facts)
    run(settings, tmp_path)
    expected, actual = (load_state(folder / "last.safetensors")[0]["network"] for folder in (reference, tmp_path))
    assert all(torch.equal(value, actual[name]) for name, value in expected.items())
