"""Safetensors files: whole or not at all, for writers and for readers."""

import safetensors.torch
import torch

from pdc_sfm.weights.tensor_files import read_safetensors, write_safetensors


def test_a_file_replaced_while_it_is_read_gives_the_content_it_had(tmp_path, monkeypatch):
    """Values and header belong together: nothing is opened a second time after the other process has been there."""
    path, load, replaced = tmp_path / "a.safetensors", safetensors.torch.load, []

    def load_late(data):
        write_safetensors(path, {"a": torch.full((1000,), 2.0)}, {"number": "2"})
        replaced.append(path)
        return load(data)

    write_safetensors(path, {"a": torch.full((3,), 1.0)}, {"number": "1"})
    monkeypatch.setattr(safetensors.torch, "load", load_late)
    tensors, metadata = read_safetensors(path)
    assert replaced
    assert metadata["number"] == "1"
    assert torch.equal(tensors["a"], torch.full((3,), 1.0))
    monkeypatch.undo()
    assert read_safetensors(path)[1]["number"] == "2"
