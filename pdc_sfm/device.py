"""Where the network runs: resolves `device=` on this machine, and refuses missing devices before anything is read.

torch is imported only if a GPU is in question.
"""

from __future__ import annotations

import re
from typing import Literal

from pdc_sfm.errors import SettingsError

Precision = Literal["float32", "tf32", "float16", "bfloat16"]  # of the network's convolutions
AUTO = "auto"
WORDS = re.compile(r"auto|cpu|cuda(:(0|[1-9][0-9]{0,3}))?")


def require_device(device: str, precision: Precision = "float32") -> None:
    """Refuse words that mean no device on any machine, and a precision that the device never has: for `__post_init__`."""
    if not WORDS.fullmatch(device):
        raise SettingsError(f"device={ascii(device)[1:-1]} is not possible: use auto, cpu, cuda or cuda:NUMBER")
    if device == "cpu":
        _require_float32(precision, "device=cpu is none")


def check_device(device: str, precision: Precision = "float32", engine: str = "local") -> None:
    """Refuse what this machine cannot do. Workers of Ray are not asked: they may run on machines that can."""
    require_device(device, precision)
    if engine == "local" and (device, precision) != (AUTO, "float32"):
        resolve_device(device, precision)


def resolve_device(device: str, precision: Precision = "float32") -> str:
    """The device that a word means on this machine, as torch writes it: `auto` is a GPU where torch can use one."""
    require_device(device, precision)
    if device == "cpu":
        return device
    import torch

    usable = torch.cuda.is_available()
    if device == AUTO:
        if not usable:
            _require_float32(precision, "this machine has none that torch can use")
        return "cuda" if usable else "cpu"
    if not usable:
        raise SettingsError(
            f"device={device}: this torch ({torch.__version__}) is built without CUDA: install one with it, or use device=auto"
            if torch.version.cuda is None
            else f"device={device}: torch finds no usable GPU on this machine: see nvidia-smi, or use device=auto"
        )
    count, number = torch.cuda.device_count(), int(device.partition(":")[2] or 0)
    if number >= count:
        there = "cuda:0" if count == 1 else f"cuda:0 to cuda:{count - 1}"
        raise SettingsError(f"device={device}: this machine has {there} only: use one of them, or device=auto")
    return device


def set_tf32(device: str, precision: Precision = "float32") -> None:
    """Before a network computes on a GPU: 32-bit convolutions have all their bits, unless `precision` is tf32.

    By default torch lets cuDNN round what they multiply to 10 bits, which moves coordinates; some installations let
    products of matrices too, which correlate features. Holds for the whole process, as torch has it.
    """
    if device.startswith("cuda"):
        import torch

        torch.backends.cudnn.allow_tf32 = precision == "tf32"
        torch.backends.cuda.matmul.allow_tf32 = False


def _require_float32(precision: Precision, why: str) -> None:
    """Less than 32 bits are for devices made for them: a CPU is slower with them, and some crash on bfloat16."""
    if precision != "float32":
        raise SettingsError(f"precision={precision} is for a GPU, and {why}: use precision=float32")
