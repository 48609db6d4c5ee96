"""How fast the network runs, against what the machine can do and against the published scheme. All in one run.

  python benchmarks/network.py [--size 480x640] [--repeats 5] [--network pdcnet_plus|pdcnet|compact]

Weights are random: they do not change the time. Other load on the machine distorts even ratios; the spread tells.
"""

from __future__ import annotations

import argparse
import re
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import torch
from plain_scheme import PlainPDCNet
from torch.utils.flop_counter import FlopCounterMode

from pdc_sfm.network import COMPACT, PDCNET, PDCNET_PLUS, PDCNet, for_inference
from pdc_sfm.network.correlation import global_correlation
from pdc_sfm.network.decoder import Refinement, ResidualDecoder
from pdc_sfm.network.uncertainty import Predictor, SliceMLP, SliceModule
from pdc_sfm.network.warp import warp

NETWORKS = {"pdcnet_plus": PDCNET_PLUS, "pdcnet": PDCNET, "compact": COMPACT}


@dataclass
class Part:
    name: str
    gflop: float
    seconds: list[float]

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)


def timed(function, repeats: int, clock=time.perf_counter) -> list[float]:
    """Seconds of each of several calls, after one that is not counted."""
    function()
    seconds = []
    for _ in range(repeats):
        start = clock()
        function()
        seconds.append(clock() - start)
    return seconds


def gemm_rate(repeats: int, side: int = 2048, clock=time.perf_counter) -> tuple[float, float]:
    """GFLOP/s of a large matrix product: median and best. `time.process_time` is for one thread beside other work."""
    a, b = torch.randn(side, side), torch.randn(side, side)
    seconds = timed(lambda: a @ b, repeats, clock)
    return 2 * side**3 / statistics.median(seconds) / 1e9, 2 * side**3 / min(seconds) / 1e9


def gflop(function) -> float:
    """Multiplications and additions of the convolutions and products in a call."""
    with FlopCounterMode(display=False) as counter:
        function()
    return counter.get_total_flops() / 1e9


def window_gflop(feature: torch.Tensor, count: int = 1, window: int = 81) -> float:
    """Work of local correlations of a feature map: as many products of C channels a pixel as a window has places."""
    return count * 2 * window * feature.numel() / 1e9


def parts_of(
    network: PDCNet, plain: PDCNet | None, images: torch.Tensor, repeats: int
) -> tuple[list[Part], list[Part]]:
    """The parts of encoding and of decoding, each timed alone on the inputs it gets in a pair."""
    size = tuple(images.shape[-2:])
    encode, decode = [], []
    for name, backbone, target, strides in (
        ("backbone, full resolution", network.backbone_high, size, network.settings.strides),
        ("backbone, 256x256", network.backbone_low or network.backbone_high, (256, 256), (16, 8)),
    ):
        x = network._resized(images, target)
        call = lambda backbone=backbone, x=x, strides=strides: backbone(x, strides)  # noqa: E731
        encode.append(Part(name, gflop(call), timed(call, repeats)))
    code = network.encode(images)
    local = {n: f for n, f in code.features.items() if n != 4}
    if code.filters:
        count = 3 * network.settings.local_iterations
        call = lambda: [network.local_gocor(f) for f in local.values()]  # noqa: E731
        encode.append(Part("filters", sum(window_gflop(f, count) for f in local.values()), timed(call, repeats)))
    f4 = code.features[4]
    call = lambda: (global_correlation(f4, f4), network.global_gocor(f4, f4) if code.filters else None)  # noqa: E731
    decode.append(Part("global correlation", gflop(call), timed(call, repeats)))
    flows = {n: torch.rand(1, 2, *f.shape[-2:]) * 4 * network.strides[n] for n, f in local.items()}

    def correlate() -> None:
        for n, flow in flows.items():
            level = network.levels[str(n)]
            references, query = network._compared(code, code, n, level.correlation_scale)
            network._correlate(references, warp(query, flow, network.strides[n]), level.radius)

    work = sum(window_gflop(f, 2 if code.filters else 1, network.levels[str(n)].volume) for n, f in local.items())
    decode.append(Part("warp and local correlation", work, timed(correlate, repeats)))
    for name, classes in (
        ("decoders", (ResidualDecoder, Refinement)),
        ("uncertainty", (SliceModule, SliceMLP, Predictor)),
    ):
        decode.append(_modules(name, network, plain, code, classes, repeats))
    return encode, decode


def _modules(name, network, plain, code, classes, repeats) -> Part:
    """All modules of some classes, on the inputs they get in a pair. Work is counted on the plain network."""
    calls, hooks = [], []
    for module in network.levels.modules():
        if isinstance(module, classes):
            hooks.append(module.register_forward_hook(lambda m, args, _: calls.append((m, args[0].clone()))))
    network.decode(code, code)
    for hook in hooks:
        hook.remove()
    work = 0.0
    names = {module: path for path, module in network.named_modules()}
    for module, x in calls:
        if plain is not None:
            module = plain.get_submodule(names[module])
            if isinstance(module, ResidualDecoder):  # the folded one of the coarsest level sees no flow, which is zero
                x = torch.nn.functional.pad(x, (0, 0, 0, 0, 0, module.conv_0[0].in_channels - x.shape[1]))
        work += gflop(lambda module=module, x=x: module(x.clone()))
    return Part(name, work, timed(lambda: [m(x.clone()) for m, x in calls], repeats))


def table(title: str, parts: list[Part], rate: float) -> None:
    print(f"\n{title:<30}{'GFLOP':>8}{'s':>9}{'spread':>16}{'GFLOP/s':>9}{'of GEMM':>9}")
    for part in parts:
        speed = part.gflop / part.median
        spread = f"{min(part.seconds):.3f}-{max(part.seconds):.3f}"
        print(f"{part.name:<30}{part.gflop:8.1f}{part.median:9.3f}{spread:>16}{speed:9.0f}{speed / rate:9.0%}")


def peak_memory(name: str, height: int, width: int) -> float:
    """GB a process takes to encode two images of a size and decode both directions, all included."""
    command = [sys.executable, __file__, "--memory", "--network", name, "--size", f"{height}x{width}"]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def pair(network: PDCNet, images: torch.Tensor) -> None:
    a, b = network.encode(images), network.encode(images)
    network.decode(a, b), network.decode(b, a)


@dataclass
class Measured:
    """One network at one size."""

    gemm: float  # GFLOP/s
    gemm_best: float
    encode: list[Part]  # the parts, then the whole
    decode: list[Part]
    pair: dict[str, list[float]]  # seconds of a pair, both directions; the slowest scheme first
    code_bytes: int


@torch.no_grad()
def measure(name: str, height: int, width: int, repeats: int) -> Measured:
    """Time a network with random weights."""
    torch.manual_seed(0)
    original = PDCNet(NETWORKS[name]).eval()
    images = torch.rand(1, 3, height, width)
    plain = PlainPDCNet.of(original) if name != "compact" else None
    network = for_inference(original)
    rate, best = gemm_rate(repeats)
    encode, decode = parts_of(network, plain, images, repeats)
    code = network.encode(images)
    for title, parts, call in (
        ("encode, an image", encode, lambda: network.encode(images)),
        ("decode, a direction", decode, lambda: network.decode(code, code)),
    ):
        parts.append(Part(title, sum(p.gflop for p in parts), timed(call, repeats)))
    rate = statistics.median([rate, gemm_rate(repeats)[0]])
    rows = {}
    if plain is not None:

        def published():
            for _ in range(2):
                plain.decode(plain.encode(images), plain.encode_without_filters(images))

        rows["published scheme, written plainly"] = timed(published, max(1, repeats // 2))
    rows["encoding both images once"] = timed(lambda: pair(network, images), repeats)
    rows["codes already there"] = timed(lambda: (network.decode(code, code), network.decode(code, code)), repeats)
    return Measured(rate, best, encode, decode, rows, code.nbytes)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", default="480x640", help="HEIGHTxWIDTH")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--network", choices=NETWORKS, default="pdcnet_plus")
    parser.add_argument("--memory", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    height, width = map(int, args.size.split("x"))
    if args.memory:
        torch.set_grad_enabled(False)
        pair(for_inference(PDCNet(NETWORKS[args.network]).eval()), torch.rand(1, 3, height, width))
        # VmHWM, because ru_maxrss of a child begins with what its parent held
        print(int(re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())[1]) * 1024 / 1e9)
        return
    found = measure(args.network, height, width, args.repeats)
    print(f"{args.network}, {height}x{width}, {torch.get_num_threads()} threads; ", end="")
    print(f"GEMM {found.gemm:.0f} GFLOP/s (best {found.gemm_best:.0f})")
    for title, parts in (("encode", found.encode), ("decode", found.decode)):
        table(title, parts, found.gemm)
    print(f"\n{'a pair, both directions':<44}{'s':>8}{'spread':>16}{'ratio':>8}")
    slowest = statistics.median(next(iter(found.pair.values())))
    for name, seconds in found.pair.items():
        spread = f"{min(seconds):.2f}-{max(seconds):.2f}"
        print(f"{name:<44}{statistics.median(seconds):8.2f}{spread:>16}{slowest / statistics.median(seconds):8.1f}")
    print(f"\nan ImageCode of this size: {found.code_bytes / 1e6:.0f} MB")
    for h, w in ((600, 800), (1200, 1600)):
        print(f"peak memory of a process, a pair at {w}x{h}, both directions: {peak_memory(args.network, h, w):.2f} GB")


if __name__ == "__main__":
    main()
