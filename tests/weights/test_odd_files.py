"""Weights files after an accident: read as they were saved, or refused. Nothing in between, and no memory taken for it."""

import io
import pickle

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from odd_input import damaged, examples, refused_or

from pdc_sfm.errors import CheckpointError, FormatError
from pdc_sfm.network import COMPACT
from pdc_sfm.training.resume import load_state, save_state
from pdc_sfm.weights import read_checkpoint, read_tensors
from pdc_sfm.weights.checkpoint import save_tensors
from pdc_sfm.weights.pickles import check_opcodes

STATE = {"a.weight": torch.arange(6.0).reshape(2, 3), "a.bias": torch.zeros(3), "steps": torch.tensor(7)}
STATE["empty"] = torch.zeros(0, 4)


def torch_bytes(content, **form):
    buffer = io.BytesIO()
    torch.save(content, buffer, **form)
    return buffer.getvalue()


ZIP = torch_bytes({"state_dict": STATE, "epoch": 3, "notes": ["ü", None, 1.5]})
LEGACY = torch_bytes({"state_dict": STATE, "epoch": 3}, _use_new_zipfile_serialization=False)


@pytest.fixture(scope="module")
def safe(tmp_path_factory):
    path = tmp_path_factory.mktemp("safe") / "a.safetensors"
    save_tensors(path, STATE, COMPACT)
    return path.read_bytes()


@pytest.fixture(scope="module")
def training(tmp_path_factory):
    path = tmp_path_factory.mktemp("state") / "last.safetensors"
    save_state(path, {"network": STATE, "random": {"torch": torch.get_rng_state()}}, {"iteration": 3})
    return path.read_bytes()


def check(path, data):
    """Read what may be damaged: whatever comes out are tensors no larger than the file."""
    path.write_bytes(data)
    found = refused_or(lambda: read_tensors(path))
    for value in (found or ({},))[0].values():
        assert value.numel() * value.element_size() <= len(data)
        value.double().sum()  # its data are there
    refused_or(lambda: read_checkpoint(path))


def test_undamaged_files_are_read_as_saved(tmp_path, safe):
    for data in (ZIP, LEGACY, safe):
        (tmp_path / "a").write_bytes(data)
        tensors = read_tensors(tmp_path / "a")[0]
        assert tensors.keys() == STATE.keys()
        assert all(torch.equal(value, STATE[name]) for name, value in tensors.items())


@examples(80)
@given(damaged(ZIP))
def test_a_damaged_zip_file(tmp_path, data):
    check(tmp_path / "a.pth", data)


@examples(120)
@given(damaged(LEGACY))
def test_a_damaged_legacy_file(tmp_path, data):
    check(tmp_path / "a.pth", data)


@examples(80)
@given(st.data())
def test_a_damaged_safetensors_file(tmp_path, safe, data):
    check(tmp_path / "a.safetensors", data.draw(damaged(safe)))


@examples(80)
@given(st.data())
def test_a_damaged_training_state(tmp_path, training, data):
    (tmp_path / "last.safetensors").write_bytes(data.draw(damaged(training)))
    found = refused_or(lambda: load_state(tmp_path / "last.safetensors"))
    assert found is None or isinstance(found[1], dict)


def test_a_flipped_bit_in_a_weight_is_noticed(tmp_path, safe, training):
    for data, read in ((safe, read_tensors), (training, load_state)):
        value = STATE["a.weight"].numpy().tobytes()
        place = data.index(value) + 7
        (tmp_path / "a.safetensors").write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
        with pytest.raises(CheckpointError, match="checksum is not that of its content"):
            read(tmp_path / "a.safetensors")


@examples(60)
@given(st.binary(max_size=60))
def test_any_bytes(tmp_path, data):
    (tmp_path / "a").write_bytes(data)
    assert refused_or(lambda: read_checkpoint(tmp_path / "a")) is None


@pytest.mark.parametrize(
    "opcodes", [b"r\xff\xff\xff\x7f", b"p99999999999\n", b"\x96" + b"\xff" * 7 + b"\0", b"\x8e" + b"\xff" * 6 + b"\0\0"]
)
def test_a_pickle_that_asks_for_memory_gets_none(tmp_path, opcodes):
    data = b"\x80\x04]" + opcodes + b"."
    with pytest.raises((FormatError, ValueError)):
        check_opcodes(io.BytesIO(data))
    (tmp_path / "a.pth").write_bytes(pickle.dumps(0x1950A86A20F9469CFC6C, 2) + data)
    with pytest.raises(CheckpointError):
        read_tensors(tmp_path / "a.pth")


def test_a_tensor_that_repeats_its_data_without_end_is_refused(tmp_path):
    torch.save({"a": torch.zeros(1).expand(10**9)}, tmp_path / "a.pth")
    with pytest.raises(CheckpointError, match="1000000000 values with data of 1"):
        read_tensors(tmp_path / "a.pth")
