"""Processor time of a pair list outside the network: what the host does while, before and after a GPU works.

    python benchmarks/host_time.py [--size 640 480] [--matches 10000]

Measured with the product's own code on made-up photographs, one thread, `time.process_time`; in the place of the network
stands one that answers at once. On a GPU the selection of matches is partly done there, so that its time is a bound.
"""

from __future__ import annotations

import argparse
import pickle
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from assembly import assemble
from assembly import simulate as simulate_matches

from pdc_sfm.dense.settings import DenseSettings
from pdc_sfm.engine.run import MatchingSettings
from pdc_sfm.engine.work import FoundMatches
from pdc_sfm.images import read_image, resize_image, write_image
from pdc_sfm.matcher import Matcher, PairSettings
from pdc_sfm.matches.types import RawMatches
from pdc_sfm.memory import keep_freed
from pdc_sfm.network import PDCNET_PLUS, ImageCode, LevelOutput
from pdc_sfm.settings import load_settings, preset_path
from pdc_sfm.store.journal import open_raw_store

Size = tuple[int, int]
IN_PROCESSES = 1.3  # times the processor time of one process alone: 6.6 ms a pair instead of 5.0 (docs/scale.md)


@dataclass(frozen=True)
class HostTime:
    """Seconds of one core."""

    read: float  # an image: threads do it, beside the network
    prepare: float  # an image: resized, converted
    select: float  # a pair: its matches chosen and converted
    journal: float  # a pair: written by the one writer
    tracks: float  # a pair: its part in the two files, after matching
    divided: float = 0.0  # share of `tracks` that threads divide among them

    def tracks_on(self, cores: float) -> float:
        """A pair's part in the two files where processes share the work; one alone does what threads cannot divide."""
        return self.tracks if cores < 2 else self.tracks * max(1 - self.divided, IN_PROCESSES / cores)

    def worker(self, images_per_pair: float) -> float:
        """Of a pair, what the thread that drives the GPU does itself."""
        return self.prepare * images_per_pair + self.select


class InstantNetwork:
    """Answers with one flow, a shift, of which `share` of the cells are sure, as a network of the published kind would."""

    settings = PDCNET_PLUS
    confidence_head = None

    def __init__(self, share: float):
        self.share = share
        self.answers: dict[tuple, LevelOutput] = {}

    def encode(self, images: torch.Tensor) -> ImageCode:
        size = tuple(images.shape[-2:])
        high = tuple(max(256, side // 8 * 8) for side in size)
        return ImageCode({4: torch.zeros(len(images), 1, 1, 1)}, {}, size, high)

    def decode(self, reference: ImageCode, query: ImageCode) -> tuple[LevelOutput, ...]:
        key = len(reference), reference.high_size, query.high_size
        if key not in self.answers:
            height, width = (side // 4 for side in reference.high_size)
            shape = len(reference), 2, height, width
            sure = torch.rand(len(reference), 1, height, width, generator=torch.Generator().manual_seed(0)) < self.share
            logits = torch.cat((torch.where(sure, 4.0, -4.0), torch.zeros_like(sure, dtype=torch.float32)), 1)
            log_var = torch.cat((torch.zeros(1, 1, height, width), torch.full((1, 1, height, width), 9.0)), 1)
            output = LevelOutput(
                1, torch.zeros(shape), log_var.expand(shape), logits, reference.high_size, query.high_size
            )
            self.answers[key] = output
        return (self.answers[key],)


def measure(size: Size, matches: int, times: int = 7) -> HostTime:
    """For images of (width, height) pixels and about so many matches a pair; each figure is the least of several."""
    cells = max(1, (size[0] // 4) * (size[1] // 4))
    matcher = Matcher(InstantNetwork(min(1.0, matches / cells)), PairSettings(DenseSettings(method="direct")))
    photograph = resize_image(np.random.default_rng(0).integers(0, 255, (60, 80, 3), np.uint8), size)
    keep_freed()  # as loading a network does
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with tempfile.TemporaryDirectory() as folder:
            write_image(Path(folder) / "photograph.jpg", photograph)
            read = _least(lambda: read_image(Path(folder) / "photograph.jpg"), times)
            raw = simulate_matches(Path(folder) / "raw", 36, matches)
            tracks = load_settings(MatchingSettings, preset_path("aachen")).tracks
            cost = min((assemble(raw, tracks) for _ in range(3)), key=lambda cost: cost.seconds)
        code = matcher.encode(photograph)
        prepare = _least(lambda: matcher.encode(photograph), times)
        select = _least(lambda: matcher.match(code, code), times)
    finally:
        torch.set_num_threads(threads)
    return HostTime(read, prepare, select, journal_seconds(matches), cost.per_pair, cost.divided)


def journal_seconds(matches: int, count: int = 200) -> float:
    """Processor seconds of the writer for a pair: unpacking what a worker sent, checksum, write."""
    points = np.random.default_rng(0).random((2, matches, 2), np.float32)
    found = FoundMatches(("db/000000.jpg", ""), RawMatches(*points, points[0, :, 0]), ((640, 480), (640, 480)))
    sent = pickle.dumps(found, protocol=5)
    with tempfile.TemporaryDirectory() as folder, open_raw_store(Path(folder) / "raw", {}) as store:
        start = time.process_time()
        for i in range(count):
            pair = pickle.loads(sent)
            store.append(("db/000000.jpg", f"db/{i:06d}.jpg"), pair.matches, pair.sizes)
        return (time.process_time() - start) / count


def _least(call: Callable[[], object], times: int) -> float:
    found = []
    for _ in range(times):
        start = time.process_time()
        call()
        found.append(time.process_time() - start)
    return min(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, nargs=2, default=(640, 480), metavar=("WIDTH", "HEIGHT"))
    parser.add_argument("--matches", type=int, default=10_000, help="of a pair (10,000)")
    args = parser.parse_args()
    host = measure(tuple(args.size), args.matches)
    print(f"{args.size[0]}x{args.size[1]}, {args.matches:,} matches a pair, milliseconds of one core")
    for name, per in (
        ("read", "image"),
        ("prepare", "image"),
        ("select", "pair"),
        ("journal", "pair"),
        ("tracks", "pair"),
    ):
        print(f"  {name:8} {1e3 * getattr(host, name):7.2f} {per}")


if __name__ == "__main__":
    main()
