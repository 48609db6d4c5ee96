"""The plan for a GPU: its arithmetic against sums by hand, and the command itself on the smallest images."""

import sys

import gpu_plan
import pytest
import scale
import torch
from gpu_model import Assumed, Gpu, Row, Stage, stage
from host_time import HostTime, measure

from pdc_sfm.network.counting import Count, Kernel

# 1 TFLOP/s in float32, 2 as TF32, 4 in 16 bits; 100 GB/s of memory, 10 of PCIe
SMALL = Gpu("small", 1, 2, 4, 100, 10)
ASSUMED = Assumed(compute=0.5, bandwidth=0.5, pcie=0.5, kernel=4, launch=10, sync=30, pairs_per_image=20)
NOTHING = Kernel("add", 0, 0, torch.float32)


def test_a_kernel_takes_what_limits_it():
    work = [
        Kernel("convolution", 10**9, 10**6, torch.float32),  # 10^9 / (2 * 10^12 / 2) s = 1 ms; 20 us of memory
        Kernel("bmm", 10**9, 10**6, torch.float32),  # no TF32: 2 ms
        Kernel("convolution", 10**9, 10**6, torch.float16),  # 0.5 ms
        Kernel("add", 0, 5 * 10**6, torch.float32),  # 5 * 10^6 / (50 * 10^9) s = 100 us
        NOTHING,  # 4 us
    ]
    found = stage(Count(work), SMALL, ASSUMED, tf32=True)
    assert found.compute == pytest.approx(3.5e-3)
    assert found.memory == pytest.approx(100e-6)
    assert found.short == pytest.approx(4e-6)
    assert found.launches == pytest.approx(50e-6)
    assert found.seconds == pytest.approx(3.604e-3)


def test_a_convolution_is_no_tf32_unless_that_is_asked_for():
    """As in the package, whose float32 has all its bits."""
    convolution = Count([Kernel("convolution", 10**9, 10**6, torch.float32)])
    assert stage(convolution, SMALL, ASSUMED).compute == pytest.approx(2e-3)
    assert stage(convolution, SMALL, ASSUMED, tf32=True).compute == pytest.approx(1e-3)


def test_processes_share_the_tracks_up_to_what_one_must_do():
    host = HostTime(0.0, 0.0, 0.0, 0.0, tracks=10e-3, divided=0.8)
    assert host.tracks_on(1) == 10e-3
    assert host.tracks_on(4) == pytest.approx(10e-3 * 1.3 / 4)
    assert host.tracks_on(16) == pytest.approx(2e-3)


def test_the_host_launches_while_the_device_works_and_copies_come_after():
    found = stage(Count([NOTHING] * 100, copied=5 * 10**6, waits=["item"] * 2), SMALL, ASSUMED)
    assert found.launches == pytest.approx(100 * 10e-6 + 2 * 30e-6)  # more than 100 * 4 us
    assert found.copies == pytest.approx(1e-3)  # 5 MB at 5 GB/s
    assert found.seconds == pytest.approx(2.06e-3)


@pytest.mark.parametrize(
    ("decode", "processor", "limit"),
    [
        (Stage(compute=6e-3, memory=2e-3, launches=1e-3), 1e-3, "compute 60%"),
        (Stage(compute=2e-3, memory=6e-3, launches=1e-3), 1e-3, "memory bandwidth 60%"),
        (Stage(short=8e-3, launches=1e-3), 1e-3, "short kernels 80%"),
        (Stage(compute=7e-3, launches=8e-3), 1e-3, "launches 90%"),  # those of the encoding, too
        (Stage(compute=3e-3, copies=5e-3), 1e-3, "copies 50%"),
        (Stage(compute=3e-3), 6e-3, "processor 60%"),
    ],
)
def test_a_pair_and_its_bottleneck(decode, processor, limit):
    row = Row(Stage(launches=10e-3), decode, processor)  # of which a pair of twenty an image has two twentieths: 1 ms
    assert row.seconds(ASSUMED) == pytest.approx(10e-3)
    assert row.bottleneck(ASSUMED) == limit


@pytest.fixture(scope="module")
def counts():
    """Of the built-in model, by pairs at a time."""
    network = gpu_plan.load("builtin")
    return {batch: gpu_plan.counted(network, (64, 48), batch) for batch in (1, 2)}


def test_more_pairs_at_a_time_are_counted_as_more_work_and_copies(counts):
    (image, one), (same, two) = counts[1], counts[2]
    assert (image.flops, image.kernels) == (same.flops, same.kernels)
    assert image.flops > 10**9  # both branches of the network see at least 256x256 pixels
    assert two.flops == pytest.approx(2 * one.flops, rel=0.01)
    assert two.copied == pytest.approx(2 * one.copied, rel=0.01)


def test_the_command_prints_a_row_for_each_gpu(counts, monkeypatch, capsys):
    monkeypatch.setattr(gpu_plan, "counted", lambda network, size, batch: counts[batch])
    monkeypatch.setattr(gpu_plan, "measure", lambda size, matches: HostTime(1.0, 0.02, 0.003, 0.001, 0.004))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    words = "--networks builtin --sizes 64x48 --batches 1 --gpus T4 --gpu mine 1e9 1e9 1e9 1e9 1e9 --launch 0 --sync 0 --kernel 0"
    monkeypatch.setattr(sys, "argv", ["gpu_plan.py", *words.split()])
    gpu_plan.main()
    *_, t4, mine = capsys.readouterr().out.splitlines()
    assert t4.startswith("T4 ")
    # nothing is left but the processor: 20 ms / 10 to prepare, 3 to select, 1 to write, 4 for the tracks
    assert mine.split() == ["mine", "builtin", "64x48", "1", "0.00", "0.00", "10.00", "100.0", "processor", "100%"]


def test_a_gpu_that_is_here_is_measured(monkeypatch, capsys):
    monkeypatch.setattr(gpu_plan, "measure", lambda size, matches: HostTime(1.0, 0.02, 0.003, 0.001, 0.004))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "this one")
    monkeypatch.setattr(gpu_plan, "measured", lambda network, size, batch, precision: (0.05, 0.01))
    monkeypatch.setattr(sys, "argv", ["gpu_plan.py", "--networks", "builtin", "--sizes", "64x48", "--batches", "4"])
    gpu_plan.main()
    last = capsys.readouterr().out.splitlines()[-1]
    # 50 / 10 + 10 + 1 + 4 = 20 ms
    assert last.split()[-8:] == ["builtin", "64x48", "4", "50.00", "10.00", "5.00", "50.0", "matching"]


def test_processor_time_is_measured_for_every_part():
    host = measure((64, 48), 100, times=1)
    assert min(host.read, host.prepare, host.select, host.journal, host.tracks) > 0
    assert 0 < host.divided < 1
    assert host.worker(0.1) == pytest.approx(0.1 * host.prepare + host.select)


def test_a_simulated_worker_waits_for_its_processor_and_for_slow_reading():
    host = HostTime(read=0.4, prepare=0.01, select=0.005, journal=0.0, tracks=0.0)
    args = type("Arguments", (), {"encode": 0.04, "decode": 0.05, "readers": 2})
    assert scale.block_seconds(1, 10, host, args) == pytest.approx(0.05 + 0.55)
    assert scale.block_seconds(10, 10, host, args) == pytest.approx(2.0)  # ten images, 0.4 s each, by two threads
