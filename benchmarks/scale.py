"""A million pairs on 1 to 256 GPUs, simulated with the scheduler and the workers of the product. Needs no images.

    python benchmarks/scale.py [--gpus 1 2 4 8 16 32 64 128 256] [--encode 0.046] [--decode 0.050] ...

The list is the real covisibility list of Aachen (pairs-db-covis20, 56,717 pairs of 4,328 images), repeated: as many
copies as fit, each with images of its own, and for the rest links from one copy to the next, at random: a pair (i, j)
of the list becomes a pair of image i of a copy and image j of the next.

Simulated with the product's own code: the order (`order_pairs`), the giving out of blocks (`Shares`), what each worker
does with them (`PairWork`: cache, encodings). Only the clock is made up: seconds of an encoding and of a decoding are
arguments; each worker has at most two blocks, as in `RayPool`; results wait for the one writer. What a worker's processor
does beside (`benchmarks/host_time.py` measures it: images prepared, matches selected) keeps its GPU waiting, and busy is the
share of the time in which GPUs work. Threads read images ahead: only what they do not manage meanwhile costs time.
"""

from __future__ import annotations

import argparse
import heapq
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from data import DATA, needed
from host_time import HostTime, measure

from pdc_sfm.engine.order import order_pairs
from pdc_sfm.engine.work import PairWork, Plan
from pdc_sfm.store.pair_lists import read_pairs, unique_pairs
from pdc_sfm.workers import Block, Shares
from pdc_sfm.workers.ray_pool import DEPTH

LIST = DATA / "aachen/hloc_pairs/pairs-db-covis20.txt"
MATCH_BYTES = 20


def repeated(path: Path, total: int) -> tuple[int, np.ndarray]:
    """The number of images and the pairs of copies of a list with links between them, `total` in all."""
    pairs = unique_pairs(read_pairs(path))
    number = {name: i for i, name in enumerate(dict.fromkeys(name for pair in pairs for name in pair))}
    one = np.array([(number[a], number[b]) for a, b in pairs])
    copies = total // len(one)
    parts = [one + len(number) * copy for copy in range(copies)]
    some = np.random.default_rng(0).choice(copies * len(one), total - copies * len(one), replace=False)
    copy, link = some // len(one), one[some % len(one)]
    parts.append(np.stack((link[:, 0] + len(number) * copy, link[:, 1] + len(number) * ((copy + 1) % copies)), 1))
    every = np.concatenate(parts)
    print(f"{len(every):,} pairs of {copies * len(number):,} images: {copies} copies of {path.name}, ", end="")
    print(f"{len(some):,} links between them")
    return copies * len(number), every


# --- workers whose time is counted, not spent ---------------------------------------------------------------------------


class Code:
    def __init__(self, nbytes: int):
        self.nbytes = nbytes


class NoMatcher:
    """Codes of the right size and nothing else."""

    def __init__(self, nbytes: int):
        self.code = Code(nbytes)

    def encode(self, image: np.ndarray, name: int) -> Code:
        return self.code

    def match(self, code0: Code, code1: Code) -> None:
        return None


class Numbers:
    """Names of images that are their numbers: a million of strings would only take time."""

    def __getitem__(self, number: int) -> int:
        return int(number)


class NoFolder:
    def __truediv__(self, name: int) -> None:
        return None


def new_worker(args: argparse.Namespace) -> PairWork:
    image, nbytes = np.zeros((1, 1, 3), np.uint8), int(args.code * 1e6)
    return PairWork(NoFolder(), NoMatcher(nbytes), memory=int(args.memory * 1e9), readers=0, read=lambda _: image)


class Queue:
    """The plain way, to compare: the next block of the list to whoever asks, each a job of its own."""

    def __init__(self, count: int, size: int):
        self.count, self.size, self.start = count, size, 0

    def take(self, worker: int) -> Block | None:
        start, self.start = self.start, min(self.count, self.start + self.size)
        return Block(start, self.start, self.start) if start < self.count else None


@dataclass
class Run:
    """What a simulated run took."""

    seconds: float  # until the last block was written
    encodings: int
    idle: float  # seconds that workers waited at the end for the last one, on average
    writing: float  # seconds the writer was busy


def block_seconds(encoded: int, pairs: int, host: HostTime, args: argparse.Namespace) -> float:
    """Of a worker, for a block: the GPU and the thread that drives it take turns, unless reading takes longer than both."""
    own = encoded * (args.encode + host.prepare) + pairs * (args.decode + host.select)
    return max(own, encoded * host.read / args.readers)


def simulate(
    plan: Plan, gpus: int, blocks: Shares | Queue, per_pair: float, host: HostTime, args: argparse.Namespace
) -> Run:
    """Blocks go to workers, results to the writer in the order in which they are finished."""
    workers = [new_worker(args) for _ in range(gpus)]
    free = [args.start] * gpus  # when each worker will have finished what it has
    finished: list[tuple[float, int, int]] = []  # (when, worker, pairs) of blocks on their way to the writer
    encodings, now, writing = 0, args.start, 0.0

    def hand_out(worker: int, when: float) -> None:
        nonlocal encodings
        block = blocks.take(worker)
        if block is None:
            return
        done = workers[worker].match(plan, block)
        encodings += len(done.encoded)
        free[worker] = max(free[worker], when) + block_seconds(len(done.encoded), len(done.found), host, args)
        heapq.heappush(finished, (free[worker], worker, len(done.found)))

    for _ in range(DEPTH):
        for worker in range(gpus):
            hand_out(worker, args.start)
    while finished:
        when, worker, pairs = heapq.heappop(finished)
        now = max(now, when) + pairs * per_pair
        writing += pairs * per_pair
        hand_out(worker, now)
    return Run(now, encodings, max(free) - sum(free) / gpus, writing)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    number = {"type": float, "metavar": "X"}
    parser.add_argument("--gpus", type=int, nargs="+", default=[1, 2, 4, 8, 16, 32, 64, 128, 256])
    parser.add_argument("--encode", **number, default=0.046, help="seconds to encode an image (0.046)")
    parser.add_argument("--decode", **number, default=0.050, help="seconds for a pair, both directions (0.050)")
    parser.add_argument("--code", **number, default=32.1, help="MB of a code (32.1)")
    parser.add_argument("--memory", **number, default=8.0, help="GB for codes of each worker (8)")
    parser.add_argument("--image", **number, default=0.5, help="MB of an image file (0.5)")
    parser.add_argument("--matches", type=int, default=10_000, help="matches of a pair (10,000)")
    parser.add_argument("--link", **number, default=500.0, help="MB/s to the writer and its disk (500)")
    parser.add_argument("--assemble", **number, help="ms of a core for a pair's part in the two files (measured)")
    parser.add_argument("--size", type=int, nargs=2, default=(640, 480), metavar=("WIDTH", "HEIGHT"), help="of images")
    parser.add_argument("--readers", type=int, default=2, help="threads of a worker that read images ahead (2)")
    parser.add_argument("--start", **number, default=30.0, help="seconds until workers are ready (30)")
    parser.add_argument("--block", type=int, default=32, help="pairs of a block (32)")
    parser.add_argument("--pairs", type=int, default=1_000_000)
    parser.add_argument("--list", type=Path, default=LIST, help="the covisibility list")
    args = parser.parse_args()
    if args.pairs < 120_000:
        parser.error("at least two copies of the list: --pairs 120000")
    needed(args.list)
    images, pairs = repeated(args.list, args.pairs)
    capacity = max(2, int(args.memory * 1e9 // (args.code * 1e6)))
    begun = time.process_time()
    plan = Plan(Numbers(), pairs[order_pairs(pairs, capacity)].astype(np.int32))
    print(f"ordered for {capacity} codes of {args.code:g} MB in {time.process_time() - begun:.0f} s of one core")
    host = measure(tuple(args.size), args.matches)
    own = host.journal
    pair_bytes = args.matches * MATCH_BYTES
    per_pair = max(own, pair_bytes / (args.link * 1e6))
    print(f"a pair returns {pair_bytes / 1e3:.0f} kB; the writer takes {1e3 * per_pair:.2f} ms for it ", end="")
    print(f"({1e3 * own:.2f} ms of its processor, measured here; {args.link:g} MB/s)")
    print(f"a worker's processor, measured here: {1e3 * host.prepare:.1f} ms to prepare an image, ", end="")
    print(f"{1e3 * host.select:.1f} ms to select a pair's matches; {1e3 * host.read:.1f} ms to read an image, beside\n")
    table(plan, images, per_pair, host, args)


def table(plan: Plan, images: int, per_pair: float, host: HostTime, args: argparse.Namespace) -> None:
    count = len(plan.pairs)
    print(" GPUs    hours  speed-up  busy  encodings   images read    returned   idle at  writer")
    print("                               per image     TB     MB/s       MB/s       end    busy")
    alone = rate = None
    for gpus in args.gpus:
        run = simulate(plan, gpus, Shares(count, gpus, args.block), per_pair, host, args)
        alone = alone or run.seconds * gpus
        read, returned = run.encodings * args.image, count * args.matches * MATCH_BYTES / 1e6
        work = run.encodings * args.encode + count * args.decode
        rate = rate or block_seconds(run.encodings, count, host, args) / count  # seconds of a worker for a pair
        print(
            f"{gpus:5} {run.seconds / 3600:8.2f} {alone / run.seconds:9.1f} {work / gpus / run.seconds:5.0%} "
            f"{run.encodings / images:10.2f} {read / 1e6:6.2f} {read / run.seconds:8.1f} {returned / run.seconds:10.1f} "
            f"{run.idle:7.1f} s {run.writing / run.seconds:7.0%}",
            flush=True,
        )
    plain = simulate(plan, 1, Queue(count, args.block), per_pair, host, args)
    print(f"\nBlocks as jobs of their own, without shares: {plain.encodings / images:.2f} encodings per image.")
    print(f"One writer suffices for {rate / per_pair:.0f} GPUs at {rate * 1e3:.0f} ms a pair.")
    assembling(count, alone / 3600, host, args)


def assembling(count: int, alone: float, host: HostTime, args: argparse.Namespace) -> None:
    """What follows matching: measured on some 400 pairs, the same for each of a million (`benchmarks/growth.py`)."""
    per_pair = host.tracks if args.assemble is None else args.assemble / 1e3
    hours = count * per_pair / 3600
    print(
        f"Assembling the two files follows, in one process (preset aachen): {1e3 * per_pair:.1f} ms a pair on one core,"
    )
    print(f"{hours:.1f} hours, as long as matching on {alone / hours:.1f} GPUs; ", end="")
    least = (f"{hours * (1 - host.divided + host.divided / cores):.1f} on {cores}" for cores in (4, 8, 16))
    print(f"{host.divided:.0%} of it is for threads to divide: at best {', '.join(least)} cores.")


if __name__ == "__main__":
    main()
