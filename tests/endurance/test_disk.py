"""A disk that is full at a random moment: said in one line, nothing half-written stays, and with room it continues."""

import os
import random
import subprocess
import sys

import numpy as np
import pytest
from fault_injection import run, small_files
from readme_commands import ROOT

from pdc_sfm.colmap.io import database
from pdc_sfm.images import write_image

NAMES = ("match", "aggregate", "triangulate", "localize", "retrieve", "train")


def cases(short, count):
    return [
        pytest.param(name, seed, marks=[] if seed == 0 and name in short else [pytest.mark.endurance])
        for name in NAMES
        for seed in range(count)
    ]


def said_in_one_line(code, said):
    """Either there was room enough, or the user was told; training may warn before it goes on."""
    assert code in (0, 2), said
    if code == 2:
        assert said.splitlines()[-1].startswith("pdc-sfm: ")


@pytest.fixture
def disk(tmp_path):
    """Makes a disk of so many bytes, or makes it larger."""
    place = tmp_path / "disk"
    place.mkdir()

    def resize(size, again=False):
        option = f"{'remount,' if again else ''}size={size},mode=755"
        done = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", option, "tmpfs", place], capture_output=True, text=True, check=False
        )
        if done.returncode:
            pytest.skip(f"a small disk can only be mounted by root: {done.stderr.strip()}")
        return place

    yield resize
    if os.path.ismount(place):
        subprocess.run(["umount", "--lazy", place], check=True)


@pytest.mark.parametrize(("name", "seed"), cases({"aggregate", "triangulate"}, 4))
def test_a_small_disk(worlds, tally, disk, name, seed):
    world = worlds(name)
    need = sum(path.stat().st_size for path in world.undisturbed.rglob("*") if path.is_file())
    size = int(need * random.Random(f"{name} {seed}").uniform(0.1, 1.1))
    begun = sum(path.stat().st_size for path in world.inputs.glob("done/*.raw/*")) if name == "aggregate" else 0
    place = disk(max(size, begun + 32768, 65536))
    output = place / "output"
    world.start(output)
    with tally(f"disk full during {name}"):
        said_in_one_line(*run(name, world.inputs, output))
        disk(1 << 30, again=True)
        world.continued(output)


@pytest.mark.parametrize(("name", "seed"), cases({"match"}, 3))
def test_no_room_in_any_file(worlds, tally, name, seed):
    """The same without root: every file ends at a random size."""
    world = worlds(name)
    largest = max(path.stat().st_size for path in world.undisturbed.rglob("*") if path.is_file())
    size = int(largest * random.Random(f"file {name} {seed}").uniform(0.05, 0.95))
    output = world.output()
    with tally(f"files cut off during {name}"):
        said_in_one_line(*run(name, world.inputs, output, small_files, max(size, 2000)))
        world.continued(output)


RECONSTRUCT = """
import sys
from pathlib import Path
from pdc_sfm import cli
from pdc_sfm.colmap.io import database
database.ROOM = int(sys.argv[2])
files = ("--images", "images", "--pairs", "pairs.txt", "--features", "features.h5", "--matches", "matches.h5")
sys.exit(cli.main(["reconstruct", *files, "--output", str(Path(sys.argv[1]) / "sfm"), "threads=1"]))
"""


@pytest.mark.parametrize(("share", "checked"), [(0.05, True), (0.1, True), (0.2, True), (0.4, False), (0.7, False)])
def test_a_small_disk_and_colmaps_database(worlds, disk, share, checked):
    """COLMAP's own functions die of a full disk, so that room for them is asked for; what we write is refused by name."""
    world = worlds("triangulate")
    size = (world.undisturbed / "sfm" / "database.db").stat().st_size
    place = disk(int(max(65536, share * size)))
    command = [sys.executable, "-c", RECONSTRUCT, place, str(database.ROOM if checked else 0)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=world.inputs, env=environment, capture_output=True, text=True, check=False)
    said_in_one_line(done.returncode, done.stderr)
    assert done.returncode == 2
    assert "room" in done.stderr.splitlines()[-1]
    assert not (place / "sfm").exists()
    assert not list(place.rglob("*.db*"))


def test_a_picture_is_whole_or_not_there(disk):
    place = disk(65536)
    picture = np.random.default_rng(0).integers(0, 256, (400, 400, 3), np.uint8)  # half a megabyte of noise
    write_image(place / "p.png", picture[:50, :50])
    before = (place / "p.png").read_bytes()
    with pytest.raises(OSError, match=r"No space left.*p\.png"):
        write_image(place / "p.png", picture)
    assert (place / "p.png").read_bytes() == before
    assert [path.name for path in place.iterdir()] == ["p.png"]
