"""Where the time of a whole `pdc-sfm match` run goes: in the network, and outside it.

  python benchmarks/match_time.py --images datasets/benchmarks/scenes/fountain-P11/images
  python benchmarks/match_time.py --images ... --network pdcnet_plus --count 5     random weights, the full architecture

Processor time of one thread, images read by that thread too: on several cores reading goes on beside the network. What
is loaded once (libraries, weights) is told apart from what grows with the list.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from data import DATA, needed

NETWORK = ("network: encode", "network: coarse levels", "network: fine levels", "network: confidence",
           "network: encode views to search")  # fmt: skip
ALIGNMENT = "sub-pixel alignment"  # works on the images after the network: it counts as outside


class Stopwatch:
    """Processor seconds of named parts, each without the parts inside it."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self._inside: list[float] = [0.0]  # seconds of the parts within each open part

    @contextlib.contextmanager
    def part(self, name: str) -> Iterator[None]:
        start = time.process_time()
        self._inside.append(0.0)
        try:
            yield
        finally:
            spent = time.process_time() - start
            self.seconds[name] += spent - self._inside.pop()
            self._inside[-1] += spent

    def watch(self, owner: Any, attribute: str, name: str) -> None:
        """From now on calls of a function of a module, class or object count as a part."""
        function: Callable[..., Any] = getattr(owner, attribute)

        def timed(*args: Any, **kwargs: Any) -> Any:
            with self.part(name):
                return function(*args, **kwargs)

        setattr(owner, attribute, timed)


def match_time(
    images: Path, count: int, network_name: str, settings: list[str], runs: int = 1, counted: list[float] | None = None
) -> dict[str, float]:
    """Seconds of each part of matching all pairs of the first images of a folder, mean of some runs, loaded once.

    Of one more run the GFLOP of convolutions and matrix products are appended to `counted`. Alters modules: once a process.
    """
    clock = Stopwatch()
    with clock.part("loading libraries and weights"):
        import cv2
        import torch

        import pdc_sfm.matcher
        from pdc_sfm.dense import gray
        from pdc_sfm.dense import subpixel as alignment
        from pdc_sfm.dense.estimator import Estimator
        from pdc_sfm.dense.views import View
        from pdc_sfm.engine import run
        from pdc_sfm.engine.pairing import exhaustive_pairs
        from pdc_sfm.engine.reading import ReadAhead
        from pdc_sfm.images import list_images
        from pdc_sfm.matches import kept
        from pdc_sfm.network.confidence_head import ConfidenceHead
        from pdc_sfm.settings import load_settings
        from pdc_sfm.store.journal import RawStore

        torch.set_num_threads(1)
        cv2.setNumThreads(1)
        options = load_settings(run.MatchingSettings, None, ["readers=0", *settings])
        matcher = make_matcher(network_name, options)
    network = matcher.estimator.network
    run.aggregate = functools.partial(run.aggregate, threads=1)
    for owner, attribute, name in (
        (network, "encode", NETWORK[0]),
        (network, "encode_low", NETWORK[4]),
        (Estimator, "_coarse", NETWORK[1]),
        (Estimator, "_decode", NETWORK[2]),
        (ConfidenceHead, "forward", NETWORK[3]),
        (gray, "gray", ALIGNMENT),
        (alignment, "align_likely", ALIGNMENT),
        (ReadAhead, "take", "reading images"),
        (View, "render", "resizing"),
        (pdc_sfm.matcher, "select_matches", "selecting matches"),
        (kept, "pack", "selecting matches"),
        (pdc_sfm.matcher, "collect", "selecting matches"),
        (RawStore, "append", "writing the journal"),
        (RawStore, "flush", "writing the journal"),
        (run, "aggregate", "keypoints and tracks, both files"),
    ):
        clock.watch(owner, attribute, name)
    names = list_images(images)[:count]
    loading = clock.seconds.copy()
    for _ in range(runs):
        with tempfile.TemporaryDirectory() as folder, clock.part("the rest: order, cache, conversions"):
            run.match_pairs(images, exhaustive_pairs(names), folder, options, matcher=matcher)
    seconds = clock.seconds.copy()
    if counted is not None:
        from torch.utils.flop_counter import FlopCounterMode

        with tempfile.TemporaryDirectory() as folder, FlopCounterMode(display=False) as counter:
            run.match_pairs(images, exhaustive_pairs(names), folder, options, matcher=matcher)
        counted.append(counter.get_total_flops() / 1e9)
    return loading | {name: value / runs for name, value in seconds.items() if name not in loading}


def make_matcher(network_name: str, options: Any) -> Any:
    """The built-in model, or an architecture with random weights."""
    from pdc_sfm.matcher import Matcher, PairSettings, load_matcher
    from pdc_sfm.network import PDCNET_PLUS, PDCNet, for_inference

    settings = PairSettings(options.dense, options.select, options.snap)
    if network_name == "builtin":
        return load_matcher(options.weights, settings)
    import torch

    torch.manual_seed(0)
    settings = replace(settings, dense=replace(settings.dense, method="direct"))  # random weights relate nothing
    return Matcher(for_inference(PDCNet(PDCNET_PLUS).eval()), settings)


def outside_share(seconds: dict[str, float], without: str = "") -> float:
    """The share of a run's time, loading and perhaps another part left out, that is not the network's."""
    run = {name: value for name, value in seconds.items() if not name.startswith("loading") and name != without}
    return 1 - sum(run.get(name, 0) for name in NETWORK) / sum(run.values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--images", type=Path, default=DATA / "scenes/fountain-P11/images", help="folder of photographs"
    )
    parser.add_argument("--count", type=int, default=11, help="of its images; all their pairs are matched")
    parser.add_argument("--network", choices=("builtin", "pdcnet_plus"), default="builtin")
    parser.add_argument("--runs", type=int, default=1, help="their mean is told: the speed of a machine comes and goes")
    parser.add_argument(
        "--gemm", action="store_true", help="what share of a large matrix product's rate the run reaches"
    )
    parser.add_argument("settings", nargs="*", metavar="key=value", help="settings of `pdc-sfm match`")
    args = parser.parse_args()
    counted: list[float] | None = [] if args.gemm else None
    seconds = match_time(needed(args.images), args.count, args.network, args.settings, args.runs, counted)
    pairs = args.count * (args.count - 1) // 2
    print(f"{args.network}: {args.count} images, {pairs} pairs, processor seconds of one thread")
    for name, value in sorted(seconds.items(), key=lambda item: -item[1]):
        print(f"  {name:36}{value:8.2f}{1000 * value / pairs:10.1f} ms a pair")
    print(f"  outside the network: {outside_share(seconds):.1%} of the run; ", end="")
    print(f"had it no {ALIGNMENT}: {outside_share(seconds, ALIGNMENT):.1%}")
    if counted:
        from network import gemm_rate

        spent = sum(value for name, value in seconds.items() if not name.startswith("loading"))
        rate = gemm_rate(5, clock=time.process_time)[0]
        print(f"  {counted[0] / pairs:.1f} GFLOP a pair, {counted[0] / spent:.0f} GFLOP/s: {counted[0] / spent / rate:.0%} of the"
              f" {rate:.0f} GFLOP/s of a large matrix product")  # fmt: skip


if __name__ == "__main__":
    main()
