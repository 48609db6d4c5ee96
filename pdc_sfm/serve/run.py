"""Runs a localization server until it is stopped: the function behind `pdc-sfm serve`."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from pdc_sfm.demo.queries import open_map
from pdc_sfm.errors import SettingsError
from pdc_sfm.files import exclusive
from pdc_sfm.serve.resident_map import QuerySettings
from pdc_sfm.serve.settings import ServeSettings

if TYPE_CHECKING:
    from pdc_sfm.network import PDCNet

SHORTEST_TOKEN = 16  # characters


def serve(
    folder: Path | str,
    *,
    host: str = "127.0.0.1",
    port: int = 8080,
    token: str | None = None,
    images: Path | None = None,
    features: Path | None = None,
    state: Path | None = None,
    queries: QuerySettings | None = None,
    settings: ServeSettings | None = None,
    network: PDCNet | None = None,
    started: Callable[[str], None] = print,
) -> None:
    """Answer requests to the map in `folder` until SIGTERM or SIGINT; then finish what is in work.

    What is kept between two runs lies in `state` (by default `folder`/serve). `started` is told the address.
    """
    check_token(host, token)
    try:
        from pdc_sfm.serve.app import make_app
        from pdc_sfm.serve.http import run_app
        from pdc_sfm.serve.server import MapServer
    except ImportError as error:
        raise SettingsError(f"a server needs more packages ({error}): pip install 'pdc-sfm[serve]'") from None
    folder = Path(folder)
    state = Path(state) if state is not None else folder / "serve"
    with exclusive(state / "requests.sqlite"):
        server = MapServer(
            lambda: open_map(folder, images, features),
            state,
            queries or QuerySettings(),
            settings or ServeSettings(),
            network,
        )
        run_app(make_app(server, token, is_loopback(host)), host, port, started, server.workers.end)


def check_token(host: str, token: str | None) -> None:
    """Whoever can reach this machine could use what it has computed: beyond the machine itself a token is needed."""
    if token is not None and len(token) < SHORTEST_TOKEN:
        raise SettingsError(f"a token has at least {SHORTEST_TOKEN} characters: openssl rand -hex 16 makes one")
    if token is None and not is_loopback(host):
        raise SettingsError(
            f"--host {host} lets other machines ask: give --token-file, which they must then send; or leave --host out"
        )


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches it."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
