"""Weights files: which network they hold, that nothing in them runs, and what is said of bad ones."""

from __future__ import annotations

import io
import os
import pickle
import sys
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from pdc_sfm.cli import main
from pdc_sfm.errors import CheckpointError
from pdc_sfm.network import COMPACT, PDCNET, PDCNET_PLUS, PDCNet
from pdc_sfm.weights import load_network, read_checkpoint, save_network
from pdc_sfm.weights.torch_files import Placeholder, read_torch_file

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "network"))
from parity_network import authors_state

ZIP, LEGACY = {}, {"_use_new_zipfile_serialization": False}
FORMS = pytest.mark.parametrize("form", [ZIP, LEGACY], ids=["zip", "legacy"])
SMALL = replace(COMPACT, pyramid_channels=(8, 8, 8), decoder_channels=(8, 8, 8, 8, 8), refined_levels=())


class Statistics:
    """An object of a class no reader has, as training checkpoints carry them."""

    def __init__(self):
        self.values = [1, 2, 3]
        self.inner = {"a": io.BytesIO}


class Bomb:
    """Unpickling this runs a command."""

    def __init__(self, trace: Path):
        self.trace = trace

    def __reduce__(self):
        return os.system, (f"touch {self.trace}",)


@pytest.fixture(scope="module")
def plus():
    return authors_state("pdcnet_plus", 0)


@FORMS
def test_a_training_checkpoint_with_unknown_classes_loads(tmp_path, plus, form):
    content = {"epoch": 7, "state_dict": plus, "stats": Statistics(), "constructor": (Statistics, Statistics())}
    torch.save(content, tmp_path / "PDCNet_plus_m.pth.tar", **form)
    checkpoint = read_checkpoint(tmp_path / "PDCNet_plus_m.pth.tar")
    assert checkpoint.network == "PDC-Net+"
    assert checkpoint.settings == PDCNET_PLUS
    assert checkpoint.complete
    assert len(checkpoint.tensors) == 501
    assert torch.equal(checkpoint.tensors["levels.4.decoder.conv_0.0.weight"], plus["decoder4.conv_0.0.weight"])
    assert torch.equal(checkpoint.tensors["backbone_low.level_4.4.bias"], plus["pyramid_256.level_4.4.bias"])


@FORMS
def test_a_bare_state_dict_loads(tmp_path, form):
    state = authors_state("pdcnet", 1)
    torch.save(state, tmp_path / "PDCNet_m.pth.tar", **form)
    checkpoint = read_checkpoint(tmp_path / "PDCNet_m.pth.tar")
    assert (checkpoint.network, checkpoint.settings) == ("PDC-Net", PDCNET)
    assert checkpoint.form == "PyTorch state dict"
    assert checkpoint.complete


@FORMS
@pytest.mark.parametrize("place", ["beside", "inside", "instead"])
def test_nothing_in_a_file_is_executed(tmp_path, form, place):
    trace = tmp_path / "it_ran"
    bomb, tensor = Bomb(trace), torch.arange(6.0).view(2, 3)
    content = {
        "beside": {"state_dict": {"a": tensor}, "stats": bomb},
        "inside": {"state_dict": {"a": tensor, "b": bomb}},
        "instead": bomb,
    }[place]
    torch.save(content, tmp_path / "file.pth", **form)
    found = read_torch_file(tmp_path / "file.pth")
    if place == "instead":
        assert isinstance(found, Placeholder)
    else:
        assert torch.equal(found["state_dict"]["a"], tensor)
    assert not trace.exists()
    torch.load(tmp_path / "file.pth", weights_only=False)  # the bomb is a real one
    assert trace.exists()


@pytest.mark.parametrize(
    "payload",
    [
        b"cos\nsystem\n(S'touch {}'\ntR.",  # GLOBAL, REDUCE
        b"(S'touch {}'\nios\nsystem\n.",  # INST
        b"(cos\nsystem\nS'touch {}'\no.",  # OBJ
        b"\x80\x04\x8c\x02os\x8c\x06system\x93\x8c\x0ctouch {}\x85R.",  # STACK_GLOBAL
        b'c__builtin__\neval\n(S\'__import__("os").system("touch {}")\'\ntR.',
        b"cpdc_sfm.weights.torch_files\nos.system\n(S'touch {}'\ntR.",
    ],
)
@pytest.mark.parametrize("container", ["zip", "legacy"])
def test_no_opcode_reaches_a_function(tmp_path, monkeypatch, payload, container):
    monkeypatch.chdir(tmp_path)
    data = payload.replace(b"{}", b"it_ran")
    if container == "zip":
        with zipfile.ZipFile("file.pth", "w") as archive:
            archive.writestr("archive/data.pkl", data)
    else:
        head = b"".join(pickle.dumps(x, 2) for x in (0x1950A86A20F9469CFC6C, 1001, {"little_endian": True}))
        Path("file.pth").write_bytes(head + data + pickle.dumps([], 2))
    with pytest.raises(CheckpointError):
        read_checkpoint("file.pth")
    assert not Path("it_ran").exists()


def test_names_from_several_gpus_are_understood(tmp_path, plus):
    torch.save({"module." + n: t for n, t in plus.items()}, tmp_path / "a.pth")
    assert read_checkpoint(tmp_path / "a.pth").complete


def test_what_is_missing_unexpected_or_misshapen_is_named(tmp_path, plus, capsys):
    state = dict(plus, extra=torch.zeros(1))
    del state["deconv4.bias"]
    state["upfeat2.bias"] = torch.zeros(5)
    torch.save(state, tmp_path / "a.pth")
    assert main(["weights", "inspect", str(tmp_path / "a.pth")]) == 1
    shown = capsys.readouterr().out
    assert "levels.3.up_flow.bias" in shown
    assert "extra" in shown
    assert "levels.1.up_feature.bias: (5,) instead of (2,)" in shown
    with pytest.raises(CheckpointError, match=r"1 missing.*1 unexpected.*1 of another shape"):
        load_network(tmp_path / "a.pth")


def test_convert_keeps_every_number_and_the_architecture(tmp_path, plus):
    torch.save({"state_dict": plus}, tmp_path / "a.pth.tar")
    assert main(["weights", "convert", str(tmp_path / "a.pth.tar"), str(tmp_path / "b.safetensors")]) == 0
    checkpoint = read_checkpoint(tmp_path / "b.safetensors")
    assert checkpoint.form == "safetensors"
    assert checkpoint.network == "PDC-Net+"
    original = read_checkpoint(tmp_path / "a.pth.tar").tensors
    assert all(torch.equal(checkpoint.tensors[n], t) for n, t in original.items())


def test_our_own_network_comes_back_as_it_was(tmp_path):
    network = PDCNet(SMALL).eval()
    save_network(tmp_path / "a.safetensors", network)
    again = load_network(tmp_path / "a.safetensors")
    assert again.settings == SMALL
    x = torch.rand(1, 3, 256, 256)
    with torch.no_grad():
        code, same = network.encode(x), again.encode(x)
        ours, theirs = network.decode(code, code)[-1].flow, again.decode(same, same)[-1].flow
    assert (ours - theirs).abs().max() < 1e-3


def bad_files(folder: Path, plus) -> dict[str, tuple[Path, str]]:
    torch.save(plus, folder / "good.pth")
    data = (folder / "good.pth").read_bytes()
    torch.save(plus, folder / "legacy.pth", _use_new_zipfile_serialization=False)
    legacy = (folder / "legacy.pth").read_bytes()
    save_network(folder / "good.safetensors", PDCNet(SMALL))
    safe = (folder / "good.safetensors").read_bytes()
    superpoint = {"conv1a.weight": torch.zeros(1), "convDb.weight": torch.zeros(1)}
    torch.save(superpoint, folder / "superpoint.pth")
    torch.save({"weights": [1, 2]}, folder / "no_tensors.pth")
    contents = {
        "empty": (b"", "empty"),
        "cut zip": (data[: len(data) // 2], "truncated"),
        "cut legacy": (legacy[: len(legacy) // 2], "truncated"),
        "cut safetensors": (safe[: len(safe) // 2], "truncated"),
        "picture": (b"\xff\xd8\xff\xe0" + bytes(range(200)) * 3, "not a readable PyTorch file"),
        "web page": (b"<html>Quota exceeded</html>" * 9, "not a readable PyTorch file"),
    }
    found = {}
    for name, (content, message) in contents.items():
        (folder / name).write_bytes(content)
        found[name] = (folder / name, message)
    found["superpoint"] = (folder / "superpoint.pth", "SuperPoint")
    found["no tensors"] = (folder / "no_tensors.pth", "no named tensors")
    found["absent"] = (folder / "absent.pth", "does not exist")
    found["folder"] = (folder, "is a folder")
    return found


def test_bad_files_get_one_clear_line_and_exit_code_2(tmp_path, plus, capsys):
    for name, (path, message) in bad_files(tmp_path, plus).items():
        assert main(["weights", "inspect", str(path)]) == 2, name
        error = capsys.readouterr().err
        assert message in error, name
        assert error.count("\n") == 1, name
        assert str(path) in error, name


@FORMS
def test_a_tensor_larger_than_the_file_is_refused_before_memory_is_taken(tmp_path, form):
    torch.save({"a": torch.zeros(4)}, tmp_path / "a.pth", **form)
    data = (tmp_path / "a.pth").read_bytes()
    if form is ZIP:
        with zipfile.ZipFile(tmp_path / "a.pth") as archive:
            entries = {info.filename: archive.read(info) for info in archive.infolist()}
        with zipfile.ZipFile(tmp_path / "b.pth", "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in entries.items():
                archive.writestr(name, bytes(1 << 24) if name.endswith("data/0") else content)
    else:
        (tmp_path / "b.pth").write_bytes(data.replace(b"K\x04N", b"\x8a\x05\x00\x00\x00\x00\x10N", 1))
    with pytest.raises(CheckpointError, match=r"larger than the file|truncated or damaged|not a readable"):
        read_torch_file(tmp_path / "b.pth")
