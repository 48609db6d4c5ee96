"""Whole runs on fake CUDA tensors that carry their values: from image files to hloc's files, and retrieval."""

from unittest import mock

import cv2
import numpy as np
import pytest
import torch

from pdc_sfm.dense.settings import DenseSettings
from pdc_sfm.engine.run import match_pairs
from pdc_sfm.matcher import Matcher, PairSettings
from pdc_sfm.network.fake_cuda import FakeCuda
from pdc_sfm.retrieval.run import retrieve
from pdc_sfm.retrieval.settings import RetrievalSettings
from pdc_sfm.store.readers import open_matches
from pdc_sfm.weights import load_network

# the stand-in leans on how torch dispatches: 2.13 is tried, 2.4 aborts
pytest.importorskip("torch", minversion="2.13")

PAIRS = [("a.png", "b.png"), ("a.png", "other.png")]


@pytest.fixture
def photographs(tmp_path):
    """Two views of one texture, and another texture."""
    rng, folder = np.random.default_rng(2), tmp_path / "images"
    folder.mkdir()
    one, other = (cv2.resize(rng.integers(0, 255, (30, 40, 3), np.uint8), (320, 240)) for _ in range(2))
    cv2.imwrite(str(folder / "a.png"), one[:192, :256])
    cv2.imwrite(str(folder / "b.png"), one[-192:, -256:])
    cv2.imwrite(str(folder / "other.png"), other[:192, :256])
    return folder


@pytest.fixture
def gpu():
    with FakeCuda(values=True) as fake, mock.patch("torch.cuda.mem_get_info", return_value=(8 << 30, 8 << 30)):
        yield fake


def counts(result):
    with open_matches(result.matches) as file:
        return [len(file.matches(*pair)[0]) for pair in PAIRS]


def test_a_list_is_matched_as_on_a_cpu(photographs, tmp_path, request):
    network, settings = load_network(), PairSettings(DenseSettings(min_side=192))
    expected = match_pairs(photographs, PAIRS, tmp_path / "cpu", matcher=Matcher(network, settings, device="cpu"))
    fake = request.getfixturevalue("gpu")
    matcher = Matcher(fake.put(network), settings, device="cuda:0")
    found = match_pairs(photographs, PAIRS, tmp_path / "gpu", matcher=matcher)
    np.testing.assert_allclose(counts(found), counts(expected), rtol=0.02)
    assert counts(found)[0] > 500
    assert counts(found)[1] == 0


def test_images_are_retrieved_as_on_a_cpu(photographs, tmp_path, request):
    network, settings = load_network(), RetrievalSettings(min_side=192)
    lists = photographs, ["a.png"], ["other.png", "b.png"]
    retrieve(*lists, tmp_path / "cpu.txt", 2, settings, network=network)
    fake = request.getfixturevalue("gpu")
    with torch.inference_mode():
        retrieve(*lists, tmp_path / "gpu.txt", 2, settings, network=fake.put(network))
    ranked = (tmp_path / "gpu.txt").read_text()
    assert ranked == (tmp_path / "cpu.txt").read_text()
    assert ranked.startswith("a.png b.png")
