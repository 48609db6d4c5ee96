"""Ray clusters: joins one, or starts one on this machine for a run, reachable from this machine only."""

from __future__ import annotations

import contextlib
import importlib
import os
import secrets
import shutil
import signal
import socket
import tempfile
import threading
from collections.abc import Iterator
from types import ModuleType
from typing import Any

from pdc_sfm.errors import ClusterError

# Ray reads these when it is imported or started
QUIET = {
    "RAY_DEDUP_LOGS_SKIP_REGEX": ".",  # what it would print into the console; we say ourselves what matters
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
}
ALONE = {**QUIET, "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}  # on any system: listen to this machine only
TOKEN = "RAY_AUTH_TOKEN"  # and to its owner; without it Ray writes one into the home folder
KNOCK_SECONDS = 10  # for a head node to accept a connection
SOCKET_ROOM = 30  # characters of the temporary folder: sockets below it have names of 107 at most


def import_ray() -> ModuleType:
    """Ray, or an error that says how to get it."""
    try:
        return importlib.import_module("ray")
    except ImportError:
        raise ClusterError('engine=ray needs Ray: pip install "pdc_sfm[ray]"') from None


@contextlib.contextmanager
def connected(address: str | None, cores: int) -> Iterator[ModuleType]:
    """Ray, connected to the cluster at `address`, or to a new one of so many cores. One that is there already serves."""
    if address and address != "auto":
        _knock(address)
    with _environment(QUIET if address else {**ALONE, TOKEN: secrets.token_hex(32)}):
        ray = import_ray()
        if ray.is_initialized():
            yield ray
            return
        with contextlib.ExitStack() as stack:
            stack.enter_context(_interruptible())
            here = {} if address else {"num_cpus": cores, "include_dashboard": False, "_temp_dir": _folder(stack)}
            stack.callback(_shut_down, ray)
            _init(ray, address or "local", **here)
            yield ray


def _init(ray: ModuleType, address: str, **options: Any) -> None:
    with _handlers_kept():
        try:
            ray.init(address, log_to_driver=False, logging_level="critical", configure_logging=True, **options)
        except ConnectionError:
            raise _nobody(address) from None
        except Exception as error:  # Ray's own are of no common kind
            raise ClusterError(f"Ray does not start: {str(error).strip().splitlines()[0]}") from error


def _shut_down(ray: ModuleType) -> None:
    """Not to be interrupted, which would leave processes behind."""
    ours = (signal.SIGINT, signal.SIGTERM) if threading.current_thread() is threading.main_thread() else ()
    before = {number: signal.signal(number, signal.SIG_IGN) for number in ours}
    try:
        ray.shutdown()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _knock(address: str) -> None:
    """Ray itself would try for minutes."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), KNOCK_SECONDS).close()
    except (OSError, ValueError):
        raise _nobody(address) from None


def _nobody(address: str) -> ClusterError:
    return ClusterError(
        f"there is no Ray cluster at ray.address={address}: start it with `ray start --head`, or leave ray.address out"
    )


def _folder(stack: contextlib.ExitStack) -> str:
    """A temporary folder that is removed in the end."""
    parent = tempfile.gettempdir()
    folder = tempfile.mkdtemp(prefix="pdc-ray-", dir=parent if len(parent) <= SOCKET_ROOM else "/tmp")
    stack.callback(shutil.rmtree, folder, ignore_errors=True)
    return folder


@contextlib.contextmanager
def _environment(values: dict[str, str]) -> Iterator[None]:
    """Variables for the time being; those the user has set stay."""
    added = {key: value for key, value in values.items() if key not in os.environ}
    os.environ.update(added)
    try:
        yield
    finally:
        for key in added:
            os.environ.pop(key, None)


@contextlib.contextmanager
def _handlers_kept() -> Iterator[None]:
    """Ray takes SIGTERM for itself; it is given back."""
    handler = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, handler)


@contextlib.contextmanager
def _interruptible() -> Iterator[None]:
    """SIGTERM as Ctrl-C, if nobody else handles it, so that the cluster is ended and its folder removed."""
    ours = threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    if ours:
        signal.signal(signal.SIGTERM, _interrupt)
    try:
        yield
    finally:
        if ours:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _interrupt(number: int, frame: Any) -> None:
    raise KeyboardInterrupt
