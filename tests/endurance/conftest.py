"""What happened to the jobs: counted, and shown as a table at the end of `make endurance`."""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from pathlib import Path

import pytest
from fault_injection import JOBS, Running, run

TRIED: Counter[str] = Counter()
SURVIVED: Counter[str] = Counter()


class World:
    """A job's inputs, and what an undisturbed run makes of them."""

    def __init__(self, name: str, folder: Path):
        self.name, self.job, self.inputs, self.folder = name, JOBS[name], folder / "inputs", folder
        self.inputs.mkdir()
        self.job.prepare(self.inputs)
        self._outputs = 0
        output = self.output()
        running = Running(name, self.inputs, output)
        running.wait_until_it_works()
        begun = time.monotonic()
        assert running.end() == 0, running.text()
        self.seconds = time.monotonic() - begun  # without the start of the process
        self.expected = self.job.result(output)
        self.undisturbed = output

    def output(self) -> Path:
        """A fresh output, as the job finds it at first."""
        self._outputs += 1
        folder = self.folder / f"output{self._outputs}"
        self.start(folder)
        return folder

    def start(self, folder: Path) -> None:
        folder.mkdir()
        self.job.begin(self.inputs, folder)

    def continued(self, output: Path) -> None:
        """The same command again ends as if nothing had happened."""
        code, said = run(self.name, self.inputs, output)
        assert code == 0, said
        assert self.job.result(output) == self.expected


@pytest.fixture(scope="session")
def worlds(tmp_path_factory):
    """The world of a job by its name, made when it is first asked for."""
    made: dict[str, World] = {}

    def world(name: str) -> World:
        if name not in made:
            made[name] = World(name, tmp_path_factory.mktemp(name.replace(" ", "_")))
        return made[name]

    return world


@pytest.fixture
def tally():
    """`with tally("fault"): ...` counts a trial, and that it was survived if nothing is raised."""

    @contextlib.contextmanager
    def count(fault: str, trials: int = 1):
        TRIED[fault] += trials
        yield
        SURVIVED[fault] += trials

    return count


def pytest_terminal_summary(terminalreporter, config):
    if TRIED and config.option.markexpr == "":
        width = max(map(len, TRIED))
        terminalreporter.write_line(f"\n{'fault':{width}}  tried  survived")
        for fault, tried in sorted(TRIED.items()):
            terminalreporter.write_line(f"{fault:{width}}  {tried:5}  {SURVIVED[fault]:8}")
        terminalreporter.write_line(f"{'all':{width}}  {sum(TRIED.values()):5}  {sum(SURVIVED.values()):8}")
