"""Small versions of the long commands, run in processes of their own under the command line's rules, to be disturbed.

A job has inputs, made once, and writes to an output; `result` is what it is judged by. It takes about a second. The same
call continues what an earlier one left.
"""

from __future__ import annotations

import functools
import json
import multiprocessing
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

PRELOADED = [
    "fault_injection", "cv2", "fake_matcher", "fake_network", "h5py", "matplotlib.backends.backend_agg", "matplotlib.figure",
    "pdc_sfm.cli", "pdc_sfm.colmap.localization.localize_sfm", "pdc_sfm.colmap.mapping.triangulation", "pdc_sfm.commands.weights",
    "pdc_sfm.engine.run", "pdc_sfm.matcher", "pdc_sfm.retrieval.codes", "pdc_sfm.retrieval.coarse", "pdc_sfm.retrieval.run",
    "pdc_sfm.training.curve", "projections", "pycolmap", "scipy.sparse.csgraph", "scipy.spatial", "tiny_training", "torch",
    "tqdm", "yaml",
]  # fmt: skip
DATABASE = [f"db/{i}.png" for i in range(6)]
QUERIES = ["query/a.png", "query/b.png", "query/c.png"]
ORDER = [DATABASE[0], QUERIES[0], *DATABASE[1:3], QUERIES[1], *DATABASE[3:5], QUERIES[2], DATABASE[5]]
TONES = {f"db/{value:03d}.png": value for value in range(100, 124, 2)} | {"query/a.png": 111, "query/b.png": 119}
PAUSE = 0.004  # seconds a pair takes, so that there is a middle to be disturbed in


@dataclass(frozen=True)
class Job:
    """`prepare(inputs)` once, `begin(inputs, output)` before the first run, `run(inputs, output)`, `result(output)`."""

    name: str
    prepare: Callable[[Path], None]
    run: Callable[[Path, Path], Any]
    result: Callable[[Path], Any]
    begin: Callable[[Path, Path], None] = lambda inputs, output: None


# --- the jobs ----------------------------------------------------------------------------------------------------------


def slow_matcher(matches: int = 60, pause: float = PAUSE) -> Any:
    from fake_matcher import FakeMatcher

    class Slow(FakeMatcher):
        identity = "FakeMatcher"

        def match(self, code0, code1):
            time.sleep(pause)
            return super().match(code0, code1)

    return Slow(matches)


def _prepare_match(inputs: Path) -> None:
    from fake_matcher import write_images, write_list

    from pdc_sfm.engine.pairing import exhaustive_pairs

    write_list(inputs / "pairs.txt", exhaustive_pairs(write_images(inputs / "images", 10)))


def _match(inputs: Path, output: Path) -> None:
    from pdc_sfm.engine.run import match_pairs

    match_pairs(inputs / "images", inputs / "pairs.txt", output, matcher=slow_matcher(200))


def _prepare_aggregate(inputs: Path) -> None:
    from pdc_sfm.store.journal import RawStore

    _prepare_match(inputs)
    _match(inputs, inputs / "done")
    assert len(RawStore(inputs / "done" / "matches-pdc_pairs.raw")) == 45


def _begin_aggregate(inputs: Path, output: Path) -> None:
    shutil.copytree(inputs / "done" / "matches-pdc_pairs.raw", output / "matches-pdc_pairs.raw")


def _h5_result(output: Path) -> Any:
    from h5_content import content

    assert not list(output.glob(".*.partial"))
    return content(output)


def _prepare_mapping(inputs: Path) -> None:
    import projections

    scene = projections.make_scene(ORDER, points=400)
    rows = [(query, image) for query in QUERIES for image in DATABASE]
    projections.write_images(scene, inputs / "images", DATABASE)
    projections.write_model(scene, inputs / "known", DATABASE)
    projections.write_pairs(inputs / "pairs.txt", scene.pairs(DATABASE))
    projections.write_pairs(inputs / "retrieval.txt", rows)
    projections.write_features(scene, inputs / "features.h5")
    projections.write_matches(scene, inputs / "matches.h5", [*scene.pairs(DATABASE), *rows], wrong=0.2)
    projections.write_queries(scene, inputs / "queries.txt", QUERIES)


def _triangulate(inputs: Path, output: Path) -> None:
    from pdc_sfm.colmap.mapping.triangulation import TriangulationSettings, triangulate

    files = (inputs / name for name in ("images", "pairs.txt", "features.h5", "matches.h5"))
    triangulate(inputs / "known", *files, output / "sfm", TriangulationSettings(threads=1))


def _model_result(output: Path) -> Any:
    from pdc_sfm.colmap.io.models import load_model

    assert (output / "sfm" / "summary.json").is_file()
    model = load_model(output / "sfm")
    points = sorted((*np.round(point.xyz, 9).tolist(), len(point.track.elements)) for point in model.points3D.values())
    return points, {
        model.image(i).name: model.image(i).cam_from_world().matrix().tobytes() for i in model.reg_image_ids()
    }


def _prepare_localize(inputs: Path) -> None:
    _prepare_mapping(inputs)
    _triangulate(inputs, inputs)


def _localize(inputs: Path, output: Path) -> None:
    from pdc_sfm.colmap.localization.localize_sfm import LocalizationSettings, localize

    files = (inputs / name for name in ("sfm", "queries.txt", "retrieval.txt", "features.h5", "matches.h5"))
    localize(*files, output / "results.txt", LocalizationSettings(threads=1))


def _localize_result(output: Path) -> Any:
    logs = json.loads((output / "results.txt_logs.json").read_text())
    return (output / "results.txt").read_text(), {name: entry["inliers"] for name, entry in logs["queries"].items()}


def _prepare_retrieve(inputs: Path) -> None:
    from fake_network import gray_images

    gray_images(inputs / "images", TONES)


def _retrieve(inputs: Path, output: Path) -> None:
    from fake_network import FakeNetwork

    from pdc_sfm.retrieval import RetrievalSettings, retrieve

    class Slow(FakeNetwork):
        def decode(self, *arguments, **options):
            time.sleep(PAUSE)
            return super().decode(*arguments, **options)

    lists = [[name for name in TONES if name.startswith(part)] for part in ("query", "db")]
    settings = RetrievalSettings(method="direct", min_side=48, readers=0, candidates=9, best=6, coarse_batch=2)
    retrieve(inputs / "images", *lists, output / "pairs.txt", 5, settings, network=Slow())


def _retrieve_result(output: Path) -> Any:
    return (output / "pairs.txt").read_text(), json.loads((output / "pairs.json").read_text())["queries"]


def _train(inputs: Path, output: Path) -> None:
    from tiny_training import make_settings, run

    schedule = {"kind": "trapezoid", "iterations": 4, "warm_up": 2}
    result = run(make_settings(checkpoint_minutes=1e-9, schedule=schedule), output)
    if result.stopped:
        raise SystemExit(128 + result.stopped)


def _train_result(output: Path) -> Any:
    from pdc_sfm.training.curve import read_table
    from pdc_sfm.training.resume import load_state
    from pdc_sfm.weights import read_checkpoint

    groups, facts = load_state(output / "last.safetensors")
    tensors = {
        f"{group}/{name}": value.numpy().tobytes() for group, values in groups.items() for name, value in values.items()
    }
    best = {
        name: value.numpy().tobytes() for name, value in read_checkpoint(output / "best.safetensors").tensors.items()
    }
    losses = [(row["iteration"], row["loss"]) for row in read_table(output / "train.csv")]
    assert not list(output.glob(".*.partial"))
    return facts["progress"]["iteration"], tensors, best, losses


def _match_greedily(inputs: Path, output: Path) -> None:
    """Codes of 8 MB, as many as there is room for."""
    from fake_matcher import FakeMatcher

    from pdc_sfm.commands.match import tell
    from pdc_sfm.engine.run import MatchingSettings, match_pairs

    class Greedy(FakeMatcher):
        def encode(self, image, name):
            code = super().encode(image, name)
            object.__setattr__(code, "ballast", np.ones(1_000_000))
            object.__setattr__(code, "nbytes", 8_000_000)
            return code

    settings = MatchingSettings(memory="1GB", readers=0)
    tell(match_pairs(inputs / "images", inputs / "pairs.txt", output, settings, matcher=Greedy(20)))


JOBS = {
    job.name: job
    for job in (
        Job("match", _prepare_match, _match, _h5_result),
        Job("aggregate", _prepare_aggregate, _match, _h5_result, _begin_aggregate),
        Job("triangulate", _prepare_mapping, _triangulate, _model_result),
        Job("localize", _prepare_localize, _localize, _localize_result),
        Job("retrieve", _prepare_retrieve, _retrieve, _retrieve_result),
        Job("train", lambda inputs: None, _train, _train_result),
        Job("greedy match", _prepare_match, _match_greedily, _h5_result),
    )
}

CONTINUED = {"match", "aggregate", "retrieve", "train", "greedy match"}  # the others begin anew, and write at the end

# --- running them ------------------------------------------------------------------------------------------------------


@functools.cache
def processes() -> Any:
    """Processes begin as copies of one that has loaded everything and done nothing: quickly, and all alike."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    return context


class Running:
    """A job in a process. `fault` is done in it before the job begins."""

    def __init__(
        self, name: str, inputs: Path, output: Path, fault: Callable[..., None] | None = None, *arguments: Any
    ):
        self.said = inputs.with_name(f"said.{time.monotonic_ns()}")  # not on the disk that may be full
        work = (name, inputs, output, self.said, fault, arguments)
        self.process = processes().Process(target=_in_process, args=work)
        self.begun = time.monotonic()
        self.process.start()

    def wait_until_it_works(self) -> None:
        while not self.said.exists() and self.process.is_alive():
            time.sleep(0.002)

    def kill(self, moment: float, number: int = signal.SIGKILL) -> None:
        """Send a signal so many seconds after the job began."""
        self.wait_until_it_works()
        time.sleep(moment)
        if self.process.is_alive():
            os.kill(self.process.pid, number)

    def end(self, seconds: float = 900) -> int:
        """The exit code; a process that ends in a traceback fails the test."""
        self.process.join(seconds)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()
            raise AssertionError(f"it hangs: {self.text()}")
        assert "Traceback" not in self.text(), self.text()
        return self.process.exitcode

    def text(self) -> str:
        return self.said.read_text(errors="replace") if self.said.exists() else ""


def run(
    name: str, inputs: Path, output: Path, fault: Callable[..., None] | None = None, *arguments: Any
) -> tuple[int, str]:
    """Run a job to its end: exit code and what it said."""
    running = Running(name, inputs, output, fault, *arguments)
    return running.end(), running.text()


def _in_process(name: str, inputs: Path, output: Path, said: Path, fault: Any, arguments: tuple) -> None:
    """The job in the place of a command, so that errors and signals are dealt with as on the command line."""
    import torch

    from pdc_sfm import cli
    from pdc_sfm.commands import weights

    torch.set_num_threads(1)

    def work(_: Any) -> None:
        ready = os.open(said, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        os.dup2(ready, 2)
        os.dup2(ready, 1)
        sys.stdout = sys.stderr = os.fdopen(2, "w", buffering=1, closefd=False)
        if fault is not None:
            fault(*arguments)
        JOBS[name].run(inputs, output)

    weights.run = work
    cli.CONTINUED = {"weights"} if name in CONTINUED else set()
    try:
        code = cli.main(["weights", "inspect", "-"])
    except BaseException as error:
        if not isinstance(error, SystemExit):
            import traceback

            traceback.print_exc()
        code = error.code if isinstance(error, SystemExit) else 1
    sys.stderr.flush()
    os._exit(code)


# --- faults, done in the process of the job ------------------------------------------------------------------------------


def die_at(operation: int, count: Path) -> None:
    """Kill this process at its n-th operation on the names of files; `count` receives how many there were."""
    done = [0]

    def counted(real: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        done[0] += 1
        if done[0] == operation:
            os.kill(os.getpid(), signal.SIGKILL)
        count.write_text(str(done[0]))
        return real(*arguments, **options)

    for name in ("replace", "rename", "fsync", "unlink", "mkdir", "symlink"):
        setattr(os, name, functools.partial(counted, getattr(os, name)))


def small_files(size: int) -> None:
    """No file may grow beyond this, as if the disk ended there."""
    import resource

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def little_memory(more: int) -> None:
    """This process may take so many bytes more than it has."""
    import resource

    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + more, used + more))


def jumping_clock(seed: int) -> None:
    """The time of day jumps by up to a year, either way, at every look."""
    rng, real = np.random.default_rng(seed), time.time
    time.time = lambda: real() + rng.uniform(-3e7, 3e7)
    time.time_ns = lambda: int(time.time() * 1e9)
