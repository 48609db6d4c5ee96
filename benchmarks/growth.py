"""How time and memory grow with the number of images, of pairs, and with the image size: slopes in log-log.

  python benchmarks/growth.py [images pairs size] [--threads 2] [--small]

Images and pairs: the whole of `match_pairs` but the network, whose place takes one that gives 500 matches a pair at once:
order, cache, journal, tracks, both files. Size: the built-in model, one image encoded and one direction decoded. Every
point is a process of its own; memory is its peak above what it held when everything was loaded.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from rows import Row, seconds

PART = "growth"
IMAGES, PAIRS = (50, 200, 800), (250, 1000, 4000)  # 10 pairs an image; and pairs among 100 images
SIZES = ((320, 240), (640, 480), (1280, 960), (1920, 1440))
MATCHES = 500  # of a pair, simulated
CODES = 64 * 10**6  # bytes of memory for codes of 1 MB each


def memory(field: str) -> float:
    """MB of this process: VmRSS now, VmHWM at its highest."""
    return int(re.search(rf"{field}:\s+(\d+)", Path("/proc/self/status").read_text())[1]) / 1024


# --- what a child process does ------------------------------------------------------------------------------------------


class Simulated:
    """In the network's place: images are numbers, a pair's matches are one grid with noise."""

    identity = "simulated"

    def __init__(self) -> None:
        from pdc_sfm.matches.types import RawMatches

        points = np.random.default_rng(0).uniform(0, (639, 479), (MATCHES, 2)).astype(np.float32)
        noise = np.random.default_rng(1).normal(0, 0.3, points.shape).astype(np.float32)
        self._matches = RawMatches(points, points + noise, np.full(MATCHES, 0.5))

    def encode(self, image: np.ndarray, name: str) -> np.ndarray:
        return np.ones(10**6, np.uint8)

    def match(self, code0: np.ndarray, code1: np.ndarray):
        return self._matches


def pair_list(images: int, pairs: int) -> list[tuple[str, str]]:
    """Each image with those after it, in a ring, as many as are needed."""
    each = -(-pairs // images)
    return [(f"{i}.png", f"{(i + k) % images}.png") for k in range(1, each + 1) for i in range(images)][:pairs]


def run_list(images: int, pairs: int) -> dict[str, float]:
    """Seconds and memory of a list."""
    import scipy.spatial  # noqa: F401

    from pdc_sfm.engine.run import MatchingSettings, match_pairs
    from pdc_sfm.images import write_image

    listed = pair_list(images, pairs)
    with tempfile.TemporaryDirectory() as folder:
        for i in range(images):
            write_image(Path(folder) / "images" / f"{i}.png", np.zeros((480, 640, 3), np.uint8))
        matcher, before = Simulated(), memory("VmRSS")
        start = time.process_time()
        settings = MatchingSettings(memory=str(CODES), readers=0)
        match_pairs(Path(folder) / "images", listed, Path(folder) / "out", settings, matcher=matcher)
        return {"seconds": time.process_time() - start, "memory": memory("VmHWM") - before}


def run_size(width: int, height: int, threads: int) -> dict[str, float]:
    """Seconds and memory of the built-in model at a size."""
    import torch

    from pdc_sfm.network import for_inference
    from pdc_sfm.weights import load_network

    torch.set_num_threads(threads)
    torch.set_grad_enabled(False)
    network = for_inference(load_network())
    image = torch.rand(1, 3, height, width)
    before = memory("VmRSS")
    network.decode(code := network.encode(image), code)
    taken = []
    for call in (lambda: network.encode(image), lambda: network.decode(code, code)):
        spent = []
        for _ in range(2):
            start = time.perf_counter()
            call()
            spent.append(time.perf_counter() - start)
        taken.append(min(spent))
    return {"encode": taken[0], "decode": taken[1], "code": code.nbytes / 1e6, "memory": memory("VmHWM") - before}


def child(kind: str, a: int, b: int, threads: int) -> dict[str, float]:
    """The same in a process of its own."""
    command = [sys.executable, __file__, "--child", kind, str(a), str(b), "--threads", str(threads)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


# --- slopes -------------------------------------------------------------------------------------------------------------


def slope(x: list[float], y: list[float]) -> float:
    """Of the line through log y over log x."""
    return float(np.polyfit(np.log(x), np.log(np.maximum(y, 1e-9)), 1)[0])


def rows_of(kind: str, threads: int, small: bool) -> list[Row]:
    every = slice(0, 3 if not small else 2)
    if kind == "size":
        return _size_rows(SIZES[: 2 if small else None], threads)
    counts = (IMAGES if kind == "images" else PAIRS)[every]
    if small:
        counts = tuple(count // 5 for count in counts)
    lists = [(n, 5 * n) if kind == "images" else (100, n) for n in counts]
    found = [child("list", *one, threads) for one in lists]
    label = "number of images, 5 pairs for each" if kind == "images" else "number of pairs, of 100 images"
    shown = [f"{n}: {seconds(f['seconds'])}, {f['memory']:.0f} MB" for n, f in zip(counts, found)]
    x = [float(n) for n in counts]
    note = f"without the network; memory for codes {CODES / 1e6:.0f} MB"
    return [
        Row(PART, f"time with the {label}", slope(x, [f["seconds"] for f in found]), "; ".join(shown), "linear: 1",
            note, "slope"),
        Row(PART, f"memory with the {label}", slope(x, [f["memory"] for f in found]), "; ".join(shown), "constant: 0",
            note, "slope"),
    ]  # fmt: skip


def _size_rows(sizes: tuple[tuple[int, int], ...], threads: int) -> list[Row]:
    found = [child("size", *size, threads) for size in sizes]
    x = [float(w * h) for w, h in sizes]
    rows = []
    for key, unit in (("encode", "s"), ("decode", "s"), ("memory", "MB"), ("code", "MB")):
        values = [f[key] for f in found]
        texts = [seconds(v) if unit == "s" else f"{v:.0f} MB" for v in values]
        shown = "; ".join(f"{w}x{h}: {text}" for (w, h), text in zip(sizes, texts))
        what = {"encode": "time to encode an image", "decode": "time to decode a direction", "code": "size of a code",
                "memory": "peak memory of a direction"}[key]  # fmt: skip
        note = "a part at 256x256 does not grow" if unit == "s" else ""
        rows.append(Row(PART, f"{what} with its pixels", slope(x, values), shown, "linear: 1", note, "slope"))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kinds", nargs="*", help="images, pairs, size; without it all")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        kind, a, b = args.child[0], int(args.child[1]), int(args.child[2])
        print(json.dumps(run_list(a, b) if kind == "list" else run_size(a, b, args.threads)))
        return
    for kind in args.kinds or ("images", "pairs", "size"):
        for row in rows_of(kind, args.threads, args.small):
            print(f"{row.ratio_text:>12}  {row.what}: {row.ours}", flush=True)


if __name__ == "__main__":
    main()
