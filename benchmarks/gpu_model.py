"""How long counted work takes on a GPU that is not here, and what limits it.

    a kernel   = max(operations / (peak x --compute), bytes / (memory x --bandwidth), --kernel)
    the device = all kernels;   the host = kernels x --launch + syncs x --sync
    a stage    = max(device, host) + copied / (PCIe x --pcie)
    a pair     = 2 / --pairs-per-image encodings + a decoding both ways + processor

With `--precision tf32` convolutions run as TF32 where a GPU has it; by default they do not, as in the package. Processor time is
that of one thread that also drives the GPU, and does nothing meanwhile: prepare, select, journal; and after it tracks, on all
--cores. Images are read beside it.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import torch

from pdc_sfm.network.counting import Count, Kernel


@dataclass(frozen=True)
class Gpu:
    """At best, by its data sheet: TFLOP/s of dense products, 16 bits with 32-bit sums; GB/s."""

    name: str
    float32: float
    tf32: float
    half: float
    memory: float
    pcie: float

    def peak(self, kernel: Kernel, tf32: bool) -> float:
        """Operations a second of the unit that a kernel runs on."""
        if kernel.dtype in (torch.float16, torch.bfloat16):
            return 1e12 * self.half
        return 1e12 * (self.tf32 if tf32 and kernel.name == "convolution" else self.float32)


GPUS = (
    Gpu("T4", 8.1, 8.1, 65, 320, 16),
    Gpu("RTX 2080 Ti", 13.4, 13.4, 54, 616, 16),
    Gpu("RTX 3090", 35.6, 35.6, 71, 936, 32),
    Gpu("RTX 4090", 82.6, 82.6, 165, 1008, 32),
    Gpu("A100", 19.5, 156, 312, 1555, 32),
    Gpu("H100", 67, 494, 989, 3350, 64),
)


@dataclass(frozen=True)
class Assumed:
    """What is not counted: shares of the peaks that are reached, and times in microseconds."""

    compute: float = 0.35  # of the peak operations: layers of 32 to 128 channels do not fill a GPU
    bandwidth: float = 0.7  # of the memory's bandwidth
    pcie: float = 0.4  # of PCIe's: memory that is not pinned
    kernel: float = 3.0  # the shortest kernel
    launch: float = 8.0  # host time of an operation: Python, torch, driver
    sync: float = 20.0  # host time lost where it waits for the device
    cores: float = 4.0  # of the host, which share the assembling of tracks
    pairs_per_image: float = 20.0  # pairs of the list that an image is in; each has two images

    @property
    def encodings(self) -> float:
        """Of a pair."""
        return 2 / self.pairs_per_image


@dataclass(frozen=True)
class Stage:
    """Seconds of an encoding, or of a pair's decoding both ways."""

    compute: float = 0.0  # kernels that are limited by operations
    memory: float = 0.0  # by bytes
    short: float = 0.0  # kernels too small for either
    launches: float = 0.0  # the host, beside the device
    copies: float = 0.0

    @property
    def seconds(self) -> float:
        return max(self.compute + self.memory + self.short, self.launches) + self.copies

    def __add__(self, other: Stage) -> Stage:
        return Stage(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    def __mul__(self, factor: float) -> Stage:
        return Stage(*(getattr(self, f.name) * factor for f in fields(self)))


def stage(count: Count, gpu: Gpu, assumed: Assumed, tf32: bool = False) -> Stage:
    """What counted work takes on a GPU."""
    parts = {"compute": 0.0, "memory": 0.0, "short": 0.0}
    for kernel in count.launched:
        times = {
            "compute": kernel.flops / (gpu.peak(kernel, tf32) * assumed.compute),
            "memory": kernel.nbytes / (1e9 * gpu.memory * assumed.bandwidth),
            "short": 1e-6 * assumed.kernel,
        }
        limit = max(times, key=times.get)
        parts[limit] += times[limit]
    launches = 1e-6 * (count.kernels * assumed.launch + count.syncs * assumed.sync)
    return Stage(**parts, launches=launches, copies=count.copied / (1e9 * gpu.pcie * assumed.pcie))


@dataclass(frozen=True)
class Row:
    """A pair of the list."""

    encode: Stage  # of one image
    decode: Stage
    processor: float

    def seconds(self, assumed: Assumed) -> float:
        return self.encode.seconds * assumed.encodings + self.decode.seconds + self.processor

    def bottleneck(self, assumed: Assumed) -> str:
        """The largest share of a pair's time."""
        shares = {"processor": self.processor}
        for part in (self.encode * assumed.encodings, self.decode):
            device = {"compute": part.compute, "memory bandwidth": part.memory, "short kernels": part.short}
            if sum(device.values()) < part.launches:
                device = {"launches": part.launches}
            for name, value in (device | {"copies": part.copies}).items():
                shares[name] = shares.get(name, 0.0) + value
        name = max(shares, key=shares.get)
        return f"{name} {shares[name] / self.seconds(assumed):.0%}"
