"""Pairs a second that a GPU would match, and what limits it: estimated without one, measured where there is one.

    python benchmarks/gpu_plan.py [--gpus T4 A100] [--networks builtin pdcnet_plus] [--sizes 640x480] [--batches 1 8]
    python benchmarks/gpu_plan.py --gpu MINE 20 40 80 700 25      TFLOP/s of float32, TF32, 16 bits; GB/s of memory, of PCIe

Counted on the product's own code, as the engine calls it (`Matcher.encode`, `match_batch` of both directions), by
`pdc_sfm/network/fake_cuda.py`: kernels, syncs, floating-point operations, bytes. Measured here: processor time outside the
network (`benchmarks/host_time.py`). Assumed, each an argument: what GPUs can do at best, and the shares of it that are reached
(`benchmarks/gpu_model.py`, which has the arithmetic).
"""

from __future__ import annotations

import argparse
import statistics
import time
from dataclasses import fields
from typing import get_args

import numpy as np
import torch
from gpu_model import GPUS, Assumed, Gpu, Row, stage
from host_time import HostTime, measure

from pdc_sfm.dense.settings import DenseSettings
from pdc_sfm.device import Precision, set_tf32
from pdc_sfm.images import resize_image
from pdc_sfm.matcher import Matcher, PairSettings
from pdc_sfm.network import PDCNET_PLUS, PDCNet, for_inference
from pdc_sfm.network.counting import Count
from pdc_sfm.network.fake_cuda import FakeCuda
from pdc_sfm.weights import load_network

Size = tuple[int, int]  # (width, height)


# --- what the product does ----------------------------------------------------------------------------------------------


def load(name: str, precision: str = "float32") -> PDCNet:
    """The built-in model, or the published architecture with random weights."""
    if name == "builtin":
        return load_network(precision=precision)
    torch.manual_seed(0)
    return for_inference(PDCNet(PDCNET_PLUS).eval(), precision)


DIRECT = PairSettings(DenseSettings(method="direct"))  # one pass, whatever the stand-in's numbers say


def photographs(size: Size) -> list[np.ndarray]:
    first = resize_image(np.random.default_rng(0).integers(0, 255, (60, 80, 3), np.uint8), size)
    return [first, np.roll(first, 5, 1)]


def counted(network: PDCNet, size: Size, batch: int) -> tuple[Count, Count]:
    """An encoding, and `batch` pairs at a time, on a GPU that is not there: shapes suffice."""
    with FakeCuda() as gpu:
        matcher = Matcher(gpu.put(network), DIRECT, device="cuda:0")
        images = photographs(size)
        codes = [matcher.encode(image) for image in images]  # what is made once is made
        pairs = [tuple(codes)] * batch
        matcher.match_batch(pairs)
        with gpu.counting() as encoding:
            matcher.encode(images[0])
        with gpu.counting() as decoding:
            matcher.match_batch(pairs)
    return encoding, decoding


def measured(network: PDCNet, size: Size, batch: int, precision: Precision, times: int = 10) -> tuple[float, float]:
    """Seconds of an encoding and of a pair, `batch` at a time, by the clock, on the GPU that is here."""
    set_tf32("cuda", precision)
    matcher = Matcher(network.to("cuda"), DIRECT, device="cuda")
    images = photographs(size)
    pairs = [tuple(matcher.encode(image) for image in images)] * batch
    return (
        _clock(lambda: matcher.encode(images[0]), times),
        _clock(lambda: matcher.match_batch(pairs), times) / batch,
    )


def _clock(call, times: int) -> float:
    found = []
    for number in range(times + 3):  # the first ones choose algorithms and reserve memory
        torch.cuda.synchronize()
        start = time.perf_counter()
        call()
        torch.cuda.synchronize()
        if number >= 3:
            found.append(time.perf_counter() - start)
    return statistics.median(found)


# --- tables -------------------------------------------------------------------------------------------------------------


def processor_seconds(host: HostTime, assumed: Assumed) -> float:
    """Of a pair, in the thread that drives the GPU and in what follows."""
    return host.worker(assumed.encodings) + host.journal + host.tracks_on(assumed.cores)


def line(
    gpu: str, what: str, batch: int, encode: float, decode: float, processor: float, total: float, note: str
) -> str:
    times = " ".join(f"{1e3 * value:9.2f}" for value in (encode, decode, processor))
    return f"{gpu:12} {what:22} {batch:5} {times} {1 / total:9.1f}  {note}"


HEAD = f"{'GPU':12} {'network, size':22} batch encode ms decode ms processor   pairs/s  bottleneck"


def estimate(args: argparse.Namespace, assumed: Assumed, gpus: list[Gpu], hosts: dict[Size, HostTime]) -> None:
    rows = []
    print("counted                batch    of  kernels  syncs   GFLOP      MB  MB copied")
    for name in args.networks:
        network = load(name, args.precision)
        for size in args.sizes:
            for batch in args.batches:
                what = f"{name} {size[0]}x{size[1]}"
                counts = counted(network, size, batch)
                for of, count in zip(("image", "batch"), counts):
                    numbers = f"{count.kernels:8} {count.syncs:6} {count.flops / 1e9:7.1f} {count.nbytes / 1e6:7.0f}"
                    print(f"{what:22} {batch:5} {of} {numbers} {count.copied / 1e6:10.2f}", flush=True)
                rows.append((what, batch, counts, processor_seconds(hosts[size], assumed)))
    print(f"\n{HEAD}")
    for gpu in gpus:
        for what, batch, (encoding, decoding), processor in rows:
            encode, decode = (stage(count, gpu, assumed, args.precision == "tf32") for count in (encoding, decoding))
            row = Row(encode, decode * (1 / batch), processor)
            times = row.encode.seconds, row.decode.seconds, processor, row.seconds(assumed)
            print(line(gpu.name, what, batch, *times, row.bottleneck(assumed)))


def measure_here(args: argparse.Namespace, assumed: Assumed, hosts: dict[Size, HostTime]) -> None:
    """The clock already has what the host does for a pair; journal and tracks come to it."""
    print(f"measured\n{HEAD}")
    for name in args.networks:
        network = load(name, args.precision)
        for size in args.sizes:
            for batch in args.batches:
                encode, decode = measured(network, size, batch, args.precision)
                after = hosts[size].journal + hosts[size].tracks_on(assumed.cores)
                total = encode * assumed.encodings + decode + after
                device = torch.cuda.get_device_name()
                note = "processor" if after > decode else "matching"
                print(line(device, f"{name} {size[0]}x{size[1]}", batch, encode, decode, after, total, note))


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpus", nargs="+", choices=[gpu.name for gpu in GPUS], default=[gpu.name for gpu in GPUS])
    parser.add_argument(
        "--gpu", nargs=6, action="append", default=[], metavar="X", help="NAME and five numbers, see above"
    )
    parser.add_argument("--networks", nargs="+", choices=("builtin", "pdcnet_plus"), default=["builtin", "pdcnet_plus"])
    parser.add_argument("--sizes", nargs="+", type=_size, default=[(640, 480)], metavar="WxH")
    parser.add_argument("--batches", nargs="+", type=int, default=[1, 8], help="pairs at a time (1 8)")
    parser.add_argument("--precision", choices=get_args(Precision), default="float32")
    parser.add_argument("--matches", type=int, default=10_000, help="of a pair (10,000)")
    parser.add_argument("--estimate", action="store_true", help="estimate where there is a GPU, too")
    for f in fields(Assumed):
        parser.add_argument(
            f"--{f.name.replace('_', '-')}", type=float, default=f.default, metavar="X", help=f"({f.default:g})"
        )
    return parser.parse_args()


def _size(text: str) -> Size:
    width, height = text.split("x")
    return int(width), int(height)


def main() -> None:
    args = parse()
    assumed = Assumed(**{f.name: getattr(args, f.name) for f in fields(Assumed)})
    gpus = [gpu for gpu in GPUS if gpu.name in args.gpus]
    gpus += [Gpu(name, *map(float, numbers)) for name, *numbers in args.gpu]
    hosts = {size: measure(size, args.matches) for size in args.sizes}
    for (width, height), host in hosts.items():
        parts = ", ".join(
            f"{name} {1e3 * getattr(host, name):.2f}" for name in ("prepare", "select", "journal", "tracks")
        )
        print(f"{width}x{height}: processor ms: read {1e3 * host.read:.2f} (beside), {parts}")
    if torch.cuda.is_available() and not args.estimate:
        measure_here(args, assumed, hosts)
    else:
        estimate(args, assumed, gpus, hosts)


if __name__ == "__main__":
    main()
