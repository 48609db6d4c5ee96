"""An application on a socket, until a signal ends it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import socket
from collections.abc import Callable, Iterator

import uvicorn
from fastapi import FastAPI

from pdc_sfm.errors import SettingsError

log = logging.getLogger(__name__)

WAITING = 128  # connections that are not yet taken
KEPT_OPEN = 5  # seconds a connection stays open without a request


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """They are ours: the end of a server by SIGTERM is no failure."""
        yield


def run_app(app: FastAPI, host: str, port: int, started: Callable[[str], None], ending: Callable[[], None]) -> None:
    """Serve until SIGTERM or SIGINT, which call `ending`; `started` is told the address. Requests in work are finished."""
    listening = _listen(host, port)
    address = listening.getsockname()
    config = uvicorn.Config(
        app,
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        lifespan="on",
        timeout_keep_alive=KEPT_OPEN,
    )
    with contextlib.closing(listening):
        asyncio.run(_serve(_Server(config), listening, lambda: started(_url(host, address[1])), ending))


async def _serve(
    server: _Server, listening: socket.socket, started: Callable[[], None], ending: Callable[[], None]
) -> None:
    def end(number: int) -> None:
        log.info("ending: what is in work is finished, what is queued is kept")
        ending()
        server.handle_exit(number, None)

    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, end, number)
    serving = asyncio.create_task(server.serve(sockets=[listening]))
    while not server.started and not serving.done():
        await asyncio.sleep(0.02)
    if server.started:
        started()
    await serving


def _listen(host: str, port: int) -> socket.socket:
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family, backlog=WAITING)
    except (OSError, OverflowError) as error:
        raise SettingsError(f"cannot listen on {host} port {port}: {error}; choose another --port") from None


def _url(host: str, port: int) -> str:
    shown = "127.0.0.1" if host in ("0.0.0.0", "localhost") else f"[{host}]" if ":" in host else host
    return f"http://{shown}:{port}"
