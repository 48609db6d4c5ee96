"""Others at work: a second run on the same output, readers while it is written, a clock that jumps, little memory."""

import os
import random
import shutil
import time

import pytest
from fault_injection import Running, jumping_clock, little_memory, run
from h5_content import content

from pdc_sfm.errors import UserError
from pdc_sfm.store.journal import RawStore
from pdc_sfm.training.resume import load_state

NAMES = ("match", "aggregate", "triangulate", "localize", "retrieve", "train")


def jobs(*short):
    return pytest.mark.parametrize(
        "name", [pytest.param(name, marks=[] if name in short else [pytest.mark.endurance]) for name in NAMES]
    )


@jobs("match")
def test_two_runs_on_one_output(worlds, tally, name):
    world = worlds(name)
    output = world.output()
    with tally("two runs on one output"):
        both = [Running(name, world.inputs, output) for _ in range(2)]
        codes = sorted(running.end() for running in both)
        assert codes in ([0, 2], [0, 0])  # [0, 0]: one was done before the other looked
        if codes == [0, 2]:
            told = next(running.text() for running in both if running.process.exitcode == 2)
            assert "another process is writing" in told
            assert told.count("\n") == 1
        assert world.job.result(output) == world.expected
        world.continued(output)


def read_match(world, output):
    store = RawStore(output / "matches-pdc_pairs.raw")
    for pair in store.pairs():
        assert len(store.read(pair)) == 200
    found = content(output)
    assert all(world.expected[key] == value for key, value in found.items())
    return len(store)


def read_train(world, output):
    return load_state(output / "last.safetensors")[1]["progress"]["iteration"]


def read_result(world, output):
    assert world.job.result(output) == world.expected


READERS = {"match": read_match, "aggregate": read_match, "train": read_train}


@jobs("match", "localize")
def test_a_reader_while_it_is_written(worlds, tally, name):
    """Whoever reads meanwhile gets what was there before, or what is there after, or hears that it is not there yet."""
    world = worlds(name)
    output = world.output()
    read = READERS.get(name, read_result)
    if read is read_result:  # so that there is something to be replaced
        shutil.copytree(world.undisturbed, output, dirs_exist_ok=True)
    running, reads, newest = Running(name, world.inputs, output), 0, 0
    with tally(f"readers during {name}"):
        while running.process.is_alive():
            try:
                newest = max(newest, found) if (found := read(world, output)) is not None else newest
                assert found is None or found >= newest  # nothing that was there vanishes
                reads += 1
            except (UserError, FileNotFoundError):
                time.sleep(0.005)
            except AssertionError as error:  # the results of these two are judged with what lies around them
                if "partial" not in str(error) and "summary.json" not in str(error):
                    raise
        assert running.end() == 0
        read(world, output)


@jobs("retrieve", "localize")
def test_a_clock_that_jumps(worlds, tally, name):
    world = worlds(name)
    output = world.output()
    rng = random.Random(name)
    with tally("a clock that jumps"):
        running = Running(name, world.inputs, output, jumping_clock, 1)
        running.kill(0.5 * world.seconds)
        running.end()
        for path in output.rglob("*"):  # files of the past and of the future
            when = time.time() + rng.uniform(-3e7, 3e7)
            os.utime(path, (when, when))
        code, said = run(name, world.inputs, output, jumping_clock, 2)
        assert code == 0, said
        assert world.job.result(output) == world.expected


@pytest.mark.parametrize("megabytes", [60, *(pytest.param(n, marks=pytest.mark.endurance) for n in (40, 50, 70))])
def test_memory_below_need(worlds, tally, megabytes):
    world = worlds("greedy match")
    output = world.output()
    with tally("memory limit below need"):
        code, said = run("greedy match", world.inputs, output, little_memory, megabytes << 20)
        assert code == 0, said
        assert "memory did not suffice" in said
        assert world.job.result(output) == world.expected
