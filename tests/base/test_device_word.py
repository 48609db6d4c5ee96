"""`device=`: what its words mean on a machine, what is refused, and what a GPU computes 32 bits with."""

import argparse
import inspect

import pytest
import torch

from pdc_sfm import load_matcher
from pdc_sfm.cli import VERBS, make_parser
from pdc_sfm.device import check_device, require_device, resolve_device, set_tf32
from pdc_sfm.engine.run import MatchingSettings
from pdc_sfm.errors import SettingsError
from pdc_sfm.hloc_plugin import confs, settings_of
from pdc_sfm.keypoints.types import KeypointSettings
from pdc_sfm.report import write_report
from pdc_sfm.retrieval.settings import RetrievalSettings
from pdc_sfm.training.settings import TrainSettings
from pdc_sfm.weights import load_network

SETTINGS = (MatchingSettings, RetrievalSettings, KeypointSettings, TrainSettings)


@pytest.fixture
def gpus(monkeypatch):
    """A machine with so many GPUs. Networks stay where they are; what torch is told about TF32 is forgotten."""

    def machine(count, cuda="12.8"):
        monkeypatch.setattr("torch.cuda.is_available", lambda: count > 0)
        monkeypatch.setattr("torch.cuda.device_count", lambda: count)
        monkeypatch.setattr("torch.version.cuda", cuda)
        monkeypatch.setattr(torch.nn.Module, "to", lambda self, *where, **how: self)

    before = torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32
    yield machine
    torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32 = before


@pytest.mark.parametrize("count", [0, 1, 2])
def test_auto_is_a_gpu_where_there_is_one(gpus, count):
    gpus(count)
    assert resolve_device("auto") == ("cuda" if count else "cpu")
    assert resolve_device("cpu") == "cpu"


def test_auto_is_what_everything_does_unless_told():
    assert {make().device for make in SETTINGS} == {"auto"}
    assert {settings_of(conf).device for conf in confs.values()} == {"auto"}
    assert {inspect.signature(f).parameters["device"].default for f in (load_matcher, write_report)} == {"auto"}
    found = [action.default for parser in parsers() for action in parser._actions if action.dest == "device"]
    assert found == ["auto"] * 16  # pair, report, 14 of evaluate


def parsers(parser=None):
    parser = parser or make_parser(list(VERBS))
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for sub in action.choices.values():
                yield from parsers(sub)


@pytest.mark.parametrize("word", ["banana", "", "CUDA", "cuda:", "cuda:-1", "cuda:x", "cuda:01", "gpu", "mps", "auto "])
@pytest.mark.parametrize("make", SETTINGS)
def test_what_is_no_device_anywhere_is_no_setting(make, word):
    with pytest.raises(SettingsError, match="use auto, cpu, cuda or cuda:NUMBER"):
        make(device=word)


def test_a_gpu_that_is_not_there_is_refused(gpus):
    gpus(0)
    with pytest.raises(SettingsError, match=r"device=cuda:1: torch finds no usable GPU.*device=auto"):
        resolve_device("cuda:1")
    gpus(0, cuda=None)
    with pytest.raises(SettingsError, match=r"device=cuda: this torch .* is built without CUDA.*device=auto"):
        check_device("cuda")
    gpus(2)
    assert resolve_device("cuda:1") == "cuda:1"
    with pytest.raises(SettingsError, match="device=cuda:7: this machine has cuda:0 to cuda:1 only"):
        check_device("cuda:7")
    gpus(1)
    with pytest.raises(SettingsError, match="device=cuda:1: this machine has cuda:0 only"):
        check_device("cuda:1")


def test_workers_see_for_themselves(gpus):
    gpus(0)
    check_device("cuda", "float16", engine="ray")
    check_device("auto", "float16", engine="ray")
    with pytest.raises(SettingsError, match="banana"):
        check_device("banana", engine="ray")


@pytest.mark.parametrize("precision", ["tf32", "float16", "bfloat16"])
def test_fewer_than_32_bits_need_a_gpu_also_if_auto_finds_none(gpus, precision):
    require_device("auto", precision)
    with pytest.raises(SettingsError, match=f"precision={precision} is for a GPU, and device=cpu is none"):
        MatchingSettings(device="cpu", precision=precision)
    gpus(1)
    assert resolve_device("auto", precision) == "cuda"
    gpus(0)
    for refuse in (check_device, resolve_device):
        with pytest.raises(SettingsError, match=f"precision={precision} is for a GPU, and this machine has none"):
            refuse("auto", precision)


def test_a_matcher_knows_which_device_auto_is(gpus):
    gpus(1)
    assert load_matcher().estimator.device == "cuda"
    gpus(0)
    assert load_matcher().estimator.device == "cpu"


def test_32_bits_are_32_bits_on_a_gpu_unless_told(gpus):
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = True
    load_network(device="cpu")
    set_tf32("cpu", "float32")
    assert torch.backends.cudnn.allow_tf32  # nothing to do with us
    gpus(1)
    load_network(device="auto")
    assert (torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32) == (False, False)
    network = load_network(device="cuda", precision="tf32")
    assert (torch.backends.cudnn.allow_tf32, torch.backends.cuda.matmul.allow_tf32) == (True, False)
    assert network.precision is None
