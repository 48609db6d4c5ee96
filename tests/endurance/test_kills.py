"""kill -9, SIGTERM and Ctrl-C at random moments: the same command continues, and ends as if nothing had happened."""

import random
import signal

import pytest
from fault_injection import CONTINUED, Running, die_at, run

from pdc_sfm.interrupts import KEPT, RESTART

KILLS = {"match": 10, "aggregate": 8, "triangulate": 8, "localize": 8, "retrieve": 8, "train": 8}  # 50
SHORT = {"match", "aggregate", "retrieve"}  # in `make test`, one each


def moments(counts, short=SHORT):
    """(job, seed), all but a few for `make endurance` only."""
    return [
        pytest.param(name, seed, marks=[] if seed == 0 and name in short else [pytest.mark.endurance])
        for name, count in counts.items()
        for seed in range(count)
    ]


def stopped(world, seed, number):
    """Send a signal at a random moment; the output it leaves, the exit code and what was said."""
    rng = random.Random(f"{world.name} {seed} {number}")
    share = rng.random()
    for _ in range(6):  # if it was done before, earlier
        output = world.output()
        running = Running(world.name, world.inputs, output)
        running.kill(share * world.seconds, number)
        code = running.end()
        if code != 0:
            return output, code, running.text()
        share /= 3
    pytest.fail(f"{world.name} is too quick to be disturbed")


@pytest.mark.parametrize(("name", "seed"), moments(KILLS))
def test_killed_at_a_random_moment(worlds, tally, name, seed):
    world = worlds(name)
    with tally(f"kill -9 during {name}"):
        output, code, _ = stopped(world, seed, signal.SIGKILL)
        assert code == -signal.SIGKILL
        world.continued(output)


@pytest.mark.parametrize(("name", "seed"), moments(dict.fromkeys(KILLS, 6), {"aggregate", "localize"}))
def test_killed_between_two_operations_on_files(worlds, tally, name, seed):
    world = worlds(name)
    count, everything = world.folder / "operations", world.folder / "all_operations"
    if not everything.exists():
        assert run(name, world.inputs, world.output(), die_at, 0, everything)[0] == 0
    total = int(everything.read_text())
    operation = 1 + (seed * total // 6 + random.Random(f"{name} {seed}").randrange(max(1, total // 6))) % total
    with tally(f"kill -9 between file operations of {name}"):
        output = world.output()
        assert run(name, world.inputs, output, die_at, operation, count)[0] == -signal.SIGKILL
        world.continued(output)


@pytest.mark.parametrize(("number", "word"), [(signal.SIGTERM, "terminated"), (signal.SIGINT, "interrupted")])
@pytest.mark.parametrize(("name", "seed"), moments(dict.fromkeys(KILLS, 2), {"match"}))
def test_stopped_by_a_signal(worlds, tally, name, seed, number, word):
    world = worlds(name)
    with tally(f"{number.name} during {name}"):
        output, code, said = stopped(world, seed, number)
        assert code == 128 + number
        if name != "train":  # which says where it stands
            then = KEPT if name in CONTINUED else RESTART
            assert said.splitlines()[-1] == f"pdc-sfm: {word}; {then}"  # after lines of progress
            assert "Traceback" not in said
        world.continued(output)
