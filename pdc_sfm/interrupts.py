"""SIGTERM and Ctrl-C end a command the same way, with one line that says how to continue."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator

PATIENCE = 5.0  # seconds until a command that is deep inside a library is ended from outside
AGAIN = 0.05  # seconds after which a signal that was lost is raised again
RESTART = "the same command starts again"
KEPT = "what was finished is kept, the same command continues"


class Interrupted(KeyboardInterrupt):
    """A signal arrived that asks this process to end."""

    def __init__(self, number: int, continues: bool = False):
        self.number, self.continues = number, continues

    @property
    def code(self) -> int:
        """The exit code that shells give a process ended by this signal: 130 or 143."""
        return 128 + self.number

    def __str__(self) -> str:
        what = "interrupted" if self.number == signal.SIGINT else "terminated"
        return f"{what}; {KEPT if self.continues else RESTART}"


@contextlib.contextmanager
def interruptible(continues: bool = False) -> Iterator[None]:
    """Turn SIGTERM and Ctrl-C into `Interrupted`, also where a library keeps Python from hearing of them.

    `continues` says whether the command, run again, goes on where it was.
    Nothing happens outside the main thread, and handlers that a command sets itself (training saves its state) win.
    """
    if threading.current_thread() is not threading.main_thread() or not hasattr(signal, "pthread_kill"):
        yield  # as on Windows, where Python's own KeyboardInterrupt has to do
        return
    ended = threading.Event()
    lost: list[int] = []
    report = sys.unraisablehook

    def receive(number: int, _: object) -> None:
        raise Interrupted(number, continues)

    def swallowed(what: sys.UnraisableHookArgs) -> None:
        """Python drops what is raised while it frees an object or is called by a library: then the signal comes again."""
        if isinstance(what.exc_value, Interrupted):
            lost.append(what.exc_value.number)
        else:
            report(what)

    sys.unraisablehook = swallowed
    before = {number: signal.signal(number, receive) for number in (signal.SIGTERM, signal.SIGINT)}
    listen, speak = os.pipe()
    os.set_blocking(speak, False)
    waker = signal.set_wakeup_fd(speak, warn_on_full_buffer=False)
    threading.Thread(target=_watch, args=(listen, receive, ended, lost, continues), daemon=True).start()
    try:
        yield
    finally:
        ended.set()
        signal.set_wakeup_fd(waker)
        os.close(speak)
        sys.unraisablehook = report
        for number, handler in before.items():
            signal.signal(number, handler)


def _watch(listen: int, receive: object, ended: threading.Event, lost: list[int], continues: bool) -> None:
    """End the process if a signal was not heeded in time: every file is whole at any moment, so that loses nothing."""
    with os.fdopen(listen, "rb", buffering=0) as signals:
        while heard := signals.read(1):
            if heard[0] in (signal.SIGTERM, signal.SIGINT) and signal.getsignal(heard[0]) is receive:
                until = time.monotonic() + PATIENCE
                while not ended.wait(AGAIN) and time.monotonic() < until:
                    main = threading.main_thread().ident
                    if lost and main is not None:
                        signal.pthread_kill(main, lost.pop())
                if not ended.is_set() and signal.getsignal(heard[0]) is receive:
                    print(f"\npdc-sfm: {Interrupted(heard[0], continues)}", file=sys.stderr, flush=True)
                    os._exit(128 + heard[0])
