"""The network gives the published network's numbers.

Runs every .npz case in the folder named by PDC_SFM_PARITY_DIR, by default the project's own. `-s` prints the differences.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from pdc_sfm.network import mixture, prepare_image, upsample_estimate
from pdc_sfm.network.correlation import Tiles, cut_mean, global_correlation
from pdc_sfm.network.model import _unit

sys.path.insert(0, str(Path(__file__).parent))
from parity_network import FOLDER, build, recipe

TOLERANCE = {"quarter_p_r": 5e-4, "quarter_variance": 5e-4}  # of the array's largest magnitude; 1e-4 for all others
FILES = sorted(FOLDER.glob("*.npz"))


def with_keys(*keys):
    """The cases that have all of these arrays."""
    found = []
    for path in FILES:
        with np.load(path) as data:
            if all(key in data.files for key in keys):
                found.append(pytest.param(path, id=path.stem))
    return found


def assert_close(name: str, got: torch.Tensor, expected: np.ndarray) -> None:
    difference = np.abs(got.detach().numpy() - expected).max() / np.abs(expected).max()
    print(f"{name:<20} {difference:.1e}")
    assert got.shape == expected.shape
    assert difference < TOLERANCE.get(name, 1e-4), f"{name} differs by {difference:.1e} of its largest magnitude"


def test_there_are_cases():
    assert with_keys("flow1"), f"no parity case in {FOLDER}"


@pytest.mark.parametrize("path", with_keys("flow1", "meta"))
def test_every_level_and_the_final_estimate(path):
    with np.load(path) as data:
        expected = dict(data)
    meta = json.loads(str(expected["meta"]))
    iterations = {k: meta[k] for k in ("global_iterations", "local_iterations") if k in meta}
    network = build(meta["model"], meta["seed"], **iterations)
    query, reference = recipe().image_pair(meta["height"], meta["width"], meta["seed"])
    with torch.no_grad():
        outputs = network.decode(network.encode(prepare_image(reference)), network.encode(prepare_image(query)))
    for output in outputs:
        assert_close(f"flow{output.level}", output.flow, expected[f"flow{output.level}"])
        assert_close(f"log_var{output.level}", output.log_var, expected[f"log_var{output.level}"])
        assert_close(f"weight{output.level}", output.logits, expected[f"weight{output.level}"])
    final = upsample_estimate(outputs[-1], (meta["height"] // 4, meta["width"] // 4))
    assert_close("quarter_flow", final.flow, expected["quarter_flow"])
    assert_close("quarter_p_r", mixture.p_r(final.log_var, final.logits, 1.0), expected["quarter_p_r"])
    assert_close("quarter_variance", mixture.variance(final.log_var, final.logits), expected["quarter_variance"])


@pytest.mark.parametrize("path", with_keys("local_corr", "global_gocor_leaky"))
def test_modules(path):
    with np.load(path) as data:
        case = {key: data[key] for key in data.files}
    tensors = {k: torch.from_numpy(v) for k, v in case.items() if v.dtype.kind == "f"}
    network = build("pdcnet_plus", 0)
    ref, qry, ref4, qry4 = tensors["ref"], tensors["qry"], _unit(tensors["ref4"]), _unit(tensors["qry4"])
    leaky = torch.nn.functional.leaky_relu
    with torch.no_grad():
        tiles = Tiles.of(qry, 4)
        assert_close("local_corr", tiles.windows(tiles.multiply(cut_mean(ref))), case["local_corr"])
        assert_close(
            "local_gocor", tiles.windows(tiles.multiply(cut_mean(network.local_gocor(ref)))), case["local_gocor"]
        )
        assert_close("global_gocor_leaky", leaky(network.global_gocor(ref4, qry4), 0.1), case["global_gocor_leaky"])
        plain = _unit(torch.relu(global_correlation(ref4, qry4)))
        assert_close("global_corr_relu_l2", plain, case["global_corr_relu_l2"])
        for level, side in ((1, 9), (4, 16)):
            slices = network.levels[str(level)].slices(tensors[f"x{side}"])
            assert_close(f"uncertainty_module_{side}", slices, case[f"uncertainty_module_{side}"])
