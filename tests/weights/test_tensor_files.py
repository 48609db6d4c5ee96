"""Safetensors files: whole or not at all, for writers and for readers."""

import threading

import torch

from pdc_sfm.weights.tensor_files import read_safetensors, write_safetensors


def test_a_reader_while_the_file_is_replaced_gets_one_of_its_contents(tmp_path):
    """Files of other sizes take turns; what is read belongs together, header and values."""
    path, stop = tmp_path / "a.safetensors", threading.Event()

    def write(number: int) -> None:
        write_safetensors(path, {"a": torch.full((1 + 1000 * (number % 7),), float(number))}, {"number": str(number)})

    def keep_writing() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            write(number)

    write(0)
    writer = threading.Thread(target=keep_writing)
    writer.start()
    try:
        for _ in range(300):
            tensors, metadata = read_safetensors(path)
            number = int(metadata["number"])
            assert torch.equal(tensors["a"], torch.full((1 + 1000 * (number % 7),), float(number)))
    finally:
        stop.set()
        writer.join()
    assert number > 0
