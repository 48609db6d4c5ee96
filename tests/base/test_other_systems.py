"""Systems that lack what Linux has: no `fcntl` (Windows), no `sched_getaffinity` (macOS), no `pthread_kill`."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from fake_matcher import write_images
from readme_commands import ROOT

from pdc_sfm.errors import BusyError, StorageError
from pdc_sfm.files import exclusive, write_text

BARE = """
import os, signal, sys
sys.modules["fcntl"] = None
sys.modules["resource"] = None
for module, name in ((os, "sched_getaffinity"), (signal, "pthread_kill")):
    delattr(module, name)
"""
IMPORT_ALL = """
import importlib, pkgutil
import pdc_sfm
for module in pkgutil.walk_packages(pdc_sfm.__path__, "pdc_sfm."):
    importlib.import_module(module.name)
"""
JOB = """
from pdc_sfm.cli import main
from pdc_sfm.colmap.options import thread_count
from pdc_sfm.tracks.threads import Threads
assert thread_count(0) >= 1
assert Threads().ahead >= 2
assert main(["keypoints", "--images", "images", "--output", "k.h5"]) == 0
assert main(["pairs", "exhaustive", "--images", "images", "--output", "pairs.txt"]) == 0
"""


def bare(code, folder):
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-W", "ignore", "-c", BARE + code]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


def test_every_module_is_imported(tmp_path):
    done = bare(IMPORT_ALL, tmp_path)
    assert done.returncode == 0, done.stderr


def test_a_small_job_is_done(tmp_path):
    write_images(tmp_path / "images", 3)
    done = bare(JOB, tmp_path)
    assert done.returncode == 0, done.stderr
    assert len((tmp_path / "pairs.txt").read_text().splitlines()) == 3
    assert (tmp_path / "k.h5").is_file()


def test_a_lock_refuses_a_second_owner_and_is_free_again_afterwards(tmp_path):
    with exclusive(tmp_path / "x"):
        code = f"from pdc_sfm.files import exclusive\nwith exclusive({str(tmp_path / 'x')!r}): pass"
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        done = subprocess.run(
            [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
        )
        assert "BusyError" in done.stderr
        with pytest.raises(BusyError), exclusive(tmp_path / "x"):
            pass
    with exclusive(tmp_path / "x"):
        write_text(tmp_path / "x", "mine")


@pytest.mark.skipif(
    not Path("/proc/self").is_dir(), reason="needs a folder in which nothing can be made: Linux's /proc"
)
def test_where_nothing_can_be_written_nobody_else_is_blamed():
    with pytest.raises(StorageError, match="nothing can be written in /proc"), exclusive("/proc/x"):
        pass
