"""A stopped rendering leaves nothing behind."""

import os
import signal
import subprocess
import sys
import time

import pytest

SMALL = ("width=320", "height=240", "database=40", "day_queries=0", "night_queries=0", "sky_directions=16")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGKILL, -9)])
def test_no_process_goes_on(tmp_path, number, code):
    command = [sys.executable, "-m", "pdc_sfm.cli", "scene", "--output", tmp_path / "square", "--workers", "2", *SMALL]
    program = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
    try:
        while workers_of(program.pid) < 2:
            assert program.poll() is None
            time.sleep(0.1)
        program.send_signal(number)
        program.communicate(timeout=60)
        assert program.returncode == code
        assert is_over(program.pid)
    finally:
        if not is_over(program.pid, seconds=0):
            os.killpg(program.pid, signal.SIGKILL)


def workers_of(pid: int) -> int:
    """How many processes a process has begun, and they others."""
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as file:
            children = [int(child) for child in file.read().split()]
    except FileNotFoundError:
        return 0
    return len(children) + sum(workers_of(child) for child in children)


def is_over(group: int, seconds: float = 20) -> bool:
    """Whether all processes of a group have ended, or do within some seconds."""
    until = time.monotonic() + seconds
    while True:
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return True
        if time.monotonic() >= until:
            return False
        time.sleep(0.1)
