"""A Python process that calls functions of this package: numpy's many short calls do not run in parallel in threads.

It is no `multiprocessing`, which would run the main script of whoever calls this package once more. It ends with its
standard input, and so with this process, even if that is killed.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable
from typing import TypeVar

from pdc_sfm.errors import UserError

Result = TypeVar("Result")
SERVE = "from pdc_sfm.tracks.subprocesses import serve; serve()"


class Process:
    """One such process, used by one thread at a time."""

    def __init__(self) -> None:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "OMP_NUM_THREADS": "1"}
        pipe = subprocess.PIPE
        self._process = subprocess.Popen([sys.executable, "-c", SERVE], stdin=pipe, stdout=pipe, env=environment)

    def call(self, function: Callable[..., Result], *args: object) -> Result:
        """What a function of a module returns or raises there."""
        send, receive = self._process.stdin, self._process.stdout
        assert send is not None  # both pipes were asked for
        assert receive is not None
        try:
            pickle.dump((function, args), send, pickle.HIGHEST_PROTOCOL)
            send.flush()
            failed, found = pickle.load(receive)
        except (EOFError, OSError, pickle.UnpicklingError):
            raise UserError(
                "a process that makes tracks was killed: is memory exhausted? The same command makes them again"
            ) from None
        if failed:
            raise found
        return found

    def close(self) -> None:
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        self._process.wait()


def serve() -> None:
    """The other side: calls until there are no more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches both; the one that asks decides
    receive, send = sys.stdin.buffer, sys.stdout.buffer
    sys.stdout = sys.stderr  # what is printed is no answer
    while True:
        try:
            function, args = pickle.load(receive)
        except EOFError:
            return
        try:
            answer = False, function(*args)
        except Exception as error:
            answer = True, error
        try:
            pickle.dump(answer, send, pickle.HIGHEST_PROTOCOL)
            send.flush()
        except BrokenPipeError:
            os._exit(1)  # nobody listens any more
