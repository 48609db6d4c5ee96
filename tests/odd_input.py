"""Input that nobody should write and somebody will: odd names, and files cut, flipped, doubled or filled with junk.

For the property-based tests. Examples are the same in every run; a failure prints the input that caused it.
"""

from __future__ import annotations

import contextlib
import os
import resource
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from pdc_sfm.errors import UserError

FIXTURES = [HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large]
SAMPLES = ["a", "-rf", "--output", "#1.jpg", "ü.png", "日本/図.jpg", "a b.jpg", "…", "x" * 300, "C:\\x", "C:/x", "~",
           "$HOME", "%s", "{0}",
           "a\\..\\b", "CON", "a\u202eb", "\ufeffa", "a'b\"c", "<b>", "null", "1e5", "db/1.jpg"]  # fmt: skip
JUNK = ["nan", "-1", "0", "1e999", "9" * 30, "1_0", "x", "#", "\n", "\r", "\0", "\x0c", "١", "0x1", "inf", ""]
ESCAPES = [
    "..",
    "../a",
    "a/../../b",
    "/etc/passwd",
    "/a",
    "./a",
    "a//b",
    "a/./b",
    "",
    "a\0b",
    "a/..",
    "//a",
    "\udcff.jpg",
]


def examples(count: int) -> settings:
    """So many examples, always the same ones."""
    return settings(max_examples=count, derandomize=True, database=None, deadline=None, suppress_health_check=FIXTURES)


def names(*more: str) -> st.SearchStrategy[str]:
    """Names as they may stand in a list or on a disk, good and bad."""
    text = st.text(st.characters(codec=None, exclude_categories=()), max_size=12)
    return st.one_of(st.sampled_from([*SAMPLES, *ESCAPES, *more]), text)


@st.composite
def damaged(draw: Any, whole: bytes) -> bytes:
    """The bytes of a file after an accident: cut off, bits flipped, a piece lost, doubled, zeroed or replaced."""
    data = bytearray(whole)
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.integers(0, max(len(data) - 1, 0)))
        length = draw(st.integers(1, 64))
        kind = draw(st.sampled_from(["cut", "flip", "flip", "lose", "double", "zero", "junk", "number"]))
        if kind == "cut":
            del data[place:]
        elif kind == "flip" and data:
            data[place] ^= 1 << draw(st.integers(0, 7))
        elif kind == "lose":
            del data[place : place + length]
        elif kind == "double":
            data[place:place] = data[place : place + length]
        elif kind == "zero":
            data[place : place + length] = bytes(len(data[place : place + length]))
        elif kind == "junk":
            data[place : place + 4] = draw(st.binary(max_size=8))
        elif kind == "number":
            data[place : place + 8] = draw(st.sampled_from([0, 1, 2**31, 2**63, 2**64 - 1])).to_bytes(8, "little")
    return bytes(data)


@st.composite
def damaged_text(draw: Any, whole: str) -> str:
    """A list after someone edited it: words lost, doubled, replaced; lines joined or cut."""
    words = whole.replace("\n", " \n ").split(" ")
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.integers(0, len(words) - 1))
        junk = st.sampled_from(JUNK)
        words[place : place + draw(st.integers(0, 2))] = draw(st.lists(st.one_of(junk, names()), max_size=2))
        if not words:
            break
    return " ".join(words).replace(" \n ", "\n")


def refused_or(read: Callable[[], Any]) -> Any:
    """What `read` returns; None if it refuses with a line for the user. Anything else it raises fails the test."""
    try:
        with memory_limit():
            return read()
    except UserError as error:
        if not str(error).strip():
            raise AssertionError("an error without a text") from error
        return None


def in_child(work: Callable[[], Any], seconds: int = 20) -> str:
    """Do something in a copy of this process: "done", "refused" (by a line for the user), or what became of it.

    For libraries that may end the whole process, or never return.
    """
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        signal.alarm(seconds)
        try:
            with memory_limit(4 << 30):
                work()
            os.write(write, b"done")
        except UserError:
            os.write(write, b"refused")
        except BaseException as error:
            os.write(write, f"{type(error).__name__}: {error}".encode()[:2000])
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        said = pipe.read().decode(errors="replace")
    status = os.waitpid(child, 0)[1]
    return said or f"ended by signal {signal.Signals(os.WTERMSIG(status)).name}"


def lines_of(path: Path, text: str) -> Path:
    """Write a list with bytes as they are, surrogates included."""
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    return path


@contextlib.contextmanager
def memory_limit(more: int = 2 << 30) -> Iterator[None]:
    """A reader that believes a damaged length fails here, instead of taking the machine's memory."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + more, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
