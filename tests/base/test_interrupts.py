"""SIGTERM and Ctrl-C end a command with one line and the exit code that shells expect, wherever it is."""

import signal
import subprocess
import sys
import threading
import time

import pytest

from pdc_sfm.cli import main
from pdc_sfm.interrupts import Interrupted, interruptible

COMMAND = """
import ctypes, sys, time
from pdc_sfm import cli, interrupts
from pdc_sfm.commands import weights
interrupts.PATIENCE = 0.3 if sys.argv[1] == "library" else 60

class Freed:
    def __del__(self):
        time.sleep(30)  # Python drops what is raised here

def work(args):
    print("ready", flush=True)
    if sys.argv[1] == "python":
        time.sleep(30)
    if sys.argv[1] == "freeing":
        Freed()
        time.sleep(30)
    for _ in range(100):
        ctypes.CDLL(None).poll(None, 0, 3000)

weights.run = work
cli.CONTINUED = sys.argv[2:]
sys.exit(cli.main(["weights", "inspect", "x"]))
"""


@pytest.mark.parametrize("where", ["python", "library", "freeing"])
@pytest.mark.parametrize(
    ("number", "code", "word"), [(signal.SIGTERM, 143, "terminated"), (signal.SIGINT, 130, "interrupted")]
)
def test_a_signal_ends_a_command_with_one_line(where, number, code, word):
    continues = number == signal.SIGTERM
    command = [sys.executable, "-c", COMMAND, where, *(["weights"] if continues else [])]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "ready\n"
    begun = time.monotonic()
    process.send_signal(number)
    _, said = process.communicate(timeout=20)
    assert process.returncode == code
    then = "what was finished is kept, the same command continues" if continues else "the same command starts again"
    assert said.split("\n")[-2] == f"pdc-sfm: {word}; {then}"
    assert "Traceback" not in said
    assert time.monotonic() - begun < 15


def test_handlers_are_as_before_afterwards():
    before = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)]
    with pytest.raises(Interrupted), interruptible():
        signal.raise_signal(signal.SIGTERM)
    assert [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)] == before
    assert signal.set_wakeup_fd(-1) == -1


def test_other_errors_that_python_drops_are_still_reported(monkeypatch):
    class Broken:
        def __del__(self):
            raise ValueError("in freeing")

    said = []
    monkeypatch.setattr(sys, "unraisablehook", lambda what: said.append(str(what.exc_value)))
    before = sys.unraisablehook
    with interruptible():
        Broken()
    assert said == ["in freeing"]
    assert sys.unraisablehook is before


def test_another_thread_is_left_alone():
    said = []
    thread = threading.Thread(target=lambda: said.append(main(["weights", "inspect", "nowhere.pth"])))
    thread.start()
    thread.join()
    assert said == [2]


FULL, DENIED = OSError(28, "No space left on device", "out/a.h5"), PermissionError(13, "Permission denied", "/x")


@pytest.mark.parametrize("continued", [(), ("weights",)])
@pytest.mark.parametrize(
    ("error", "line", "kept"),
    [(FULL, "No space left on device: out/a.h5", True), (DENIED, "Permission denied: /x", False),
     (MemoryError(), "there is not enough memory", True)],
)  # fmt: skip
def test_what_the_machine_refuses_is_one_line(monkeypatch, capsys, error, line, kept, continued):
    """That the same command continues is said of commands that do, where they can."""
    from pdc_sfm import cli
    from pdc_sfm.commands import weights

    def work(args):
        raise error

    monkeypatch.setattr(weights, "run", work)
    monkeypatch.setattr(cli, "CONTINUED", continued)
    assert main(["weights", "inspect", "x"]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"pdc-sfm: {line}")
    assert said.count("\n") == 1
    assert ("what was finished is kept" in said) == (kept and bool(continued))


def test_colmap_leaves_sigterm_to_us():
    """Importing pycolmap installs a handler that ends the process with a dump of the stack."""
    script = """
import os, signal
from pdc_sfm.interrupts import Interrupted, interruptible
try:
    with interruptible():
        import pdc_sfm.colmap.mapping.reconstruction
        os.kill(os.getpid(), signal.SIGTERM)
        signal.pause()
except Interrupted as error:
    print(error)
"""
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120)
    assert ended.stdout == "terminated; the same command starts again\n"
    assert ended.stderr == ""
