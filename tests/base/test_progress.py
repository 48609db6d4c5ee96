"""How far a loop is: a bar on a terminal, plain lines in a log, nothing a file should not hold."""

import fcntl
import logging
import os
import pty
import struct
import subprocess
import sys
import termios

import pytest

from pdc_sfm import progress as progress_module
from pdc_sfm.cli import main
from pdc_sfm.logs import run_log, screen_log
from pdc_sfm.progress import progress

LOOP = """
import time
from pdc_sfm.logs import screen_log
from pdc_sfm.progress import progress
with screen_log():
    for _ in progress(range(5), "matching", "pair"):
        time.sleep(0.05)
"""


def in_terminal(width):
    """What a loop writes to a terminal of this width."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24 if width else 0, width, 0, 0))
    child = subprocess.Popen([sys.executable, "-c", LOOP], stdout=theirs, stderr=theirs, stdin=theirs)
    os.close(theirs)
    said = b""
    while True:
        try:
            part = os.read(ours, 4096)
        except OSError:  # the other end is closed
            break
        if not part:
            break
        said += part
    assert child.wait() == 0
    os.close(ours)
    return said.decode()


def test_a_terminal_gets_a_bar():
    said = in_terminal(80)
    assert "matching: 100%|" in said
    assert " of 5 pairs" not in said


def test_a_terminal_without_width_gets_lines():
    lines = in_terminal(0).split("\r\n")
    assert lines[0] == "matching: 0 of 5 pairs"
    assert lines[1].startswith("matching: 5 of 5 pairs, ")
    assert lines[2:] == [""]


def test_a_file_gets_the_first_and_the_last_line_and_no_control_characters(tmp_path):
    with open(tmp_path / "log", "wb") as file:
        subprocess.run([sys.executable, "-c", LOOP], stdout=file, stderr=file, check=True)
    text = (tmp_path / "log").read_text()
    assert text.splitlines()[0] == "matching: 0 of 5 pairs"
    assert text.splitlines()[1].startswith("matching: 5 of 5 pairs, ")
    assert text.count("\n") == 2
    assert text.replace("\n", "").isprintable()


def test_a_long_loop_says_a_line_now_and_then(monkeypatch, caplog):
    now = [1000.0]
    monkeypatch.setattr(progress_module.time, "monotonic", lambda: now[0])
    monkeypatch.setattr("tqdm.std.time", lambda: now[0])
    caplog.set_level(logging.INFO, "pdc_sfm")
    with progress(None, "matching", "pair", 200, done=20) as bar:
        for _ in range(90):
            now[0] += 1
            bar.update()
    said = caplog.messages
    assert said[0] == "matching: 20 of 200 pairs"
    assert said[1] == "matching: 50 of 200 pairs, 1.0 a second, 02:30 left"
    assert said[2] == "matching: 80 of 200 pairs, 1.0 a second, 02:00 left"
    assert said[-1] == "matching: 110 of 200 pairs, 1.0 a second, in 01:30"
    assert len(said) <= 5


def test_an_empty_list_says_nothing(caplog):
    caplog.set_level(logging.INFO, "pdc_sfm")
    assert list(progress([], "matching", "pair")) == []
    assert caplog.messages == []


def test_importing_installs_nothing():
    code = "import logging, pdc_sfm.cli, pdc_sfm.engine.run, pdc_sfm.colmap.localization.localize_sfm as _; "
    code += (
        "print(logging.getLogger('pdc_sfm').handlers, logging.getLogger().handlers, logging.getLogger('pdc_sfm').level)"
    )
    said = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert said.stdout.strip() == "[] [] 0"
    assert said.stderr == ""


def test_quiet_leaves_warnings(capsys):
    with screen_log(quiet=True):
        assert len(list(progress(range(3), "matching", "pair"))) == 3
        logging.getLogger("pdc_sfm.x").info("a step")
        logging.getLogger("pdc_sfm.x").warning("left out: 100 % of it")
    assert capsys.readouterr() == ("", "left out: 100 % of it\n")
    assert logging.getLogger("pdc_sfm").handlers == []


def test_the_log_of_a_run_says_when_and_why_it_ended(tmp_path, capsys):
    path = tmp_path / "run" / "log.txt"

    def work():
        with screen_log(), run_log(path):
            assert not path.exists()  # nothing is left behind by a run that never began
            list(progress(range(3), "matching", "pair"))
            raise ValueError("the disk\nis full")

    with pytest.raises(ValueError, match="is full"):
        work()
    lines = path.read_text().splitlines()
    assert [line[20:41] for line in lines] == [
        "matching: 0 of 3 pair",
        "matching: 3 of 3 pair",
        "ended early: ValueErr",
    ]
    assert all(line[4] == "-" and line[13] == ":" for line in lines)
    assert "ended early" not in capsys.readouterr().err  # the command line says it itself


def test_a_refused_command_leaves_no_log(tmp_path, capsys):
    assert main(["demo", "--images", str(tmp_path), "--output", str(tmp_path / "out")]) == 2
    assert not (tmp_path / "out").exists()
    assert capsys.readouterr().err.count("\n") == 1


def test_the_end_of_a_slow_loop_is_said_once(monkeypatch, caplog):
    now = [1000.0]
    monkeypatch.setattr(progress_module.time, "monotonic", lambda: now[0])
    monkeypatch.setattr("tqdm.std.time", lambda: now[0])
    caplog.set_level(logging.INFO, "pdc_sfm")
    for _ in progress(range(1), "refinement", "block"):
        now[0] += 40
    assert caplog.messages == ["refinement: 0 of 1 blocks", "refinement: 1 of 1 blocks, 40.0 s each, in 00:40"]


def test_units_are_counted_in_english(caplog):
    caplog.set_level(logging.INFO, "pdc_sfm")
    list(progress(range(2), "localization", "query"))
    assert caplog.messages[0] == "localization: 0 of 2 queries"
