"""Who may ask: what stands before every request, and what every answer carries."""

from __future__ import annotations

import hmac
import json
from collections.abc import Collection
from typing import Any
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from pdc_sfm.serve.metrics import Metrics

OPEN = {"/", "/page.css", "/page.js", "/viewer.js", "/api", "/api.js", "/healthz", "/version"}  # need no token
LOOPBACK = {"localhost", "127.0.0.1", "::1"}
HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
    (b"content-security-policy", b"default-src 'self'; img-src 'self' blob: data:; frame-ancestors 'none'"),
]


class Guard:
    """Refuses pages of other sites, names that lead here by a trick, and whoever has no token where one is needed."""

    def __init__(self, app: ASGIApp, token: str | None, local: bool, metrics: Metrics, paths: Collection[str]):
        self._app, self._token, self._local = app, token, local
        self._metrics, self._paths = metrics, frozenset(paths)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        path = scope["path"]
        known = path if path in self._paths else "/" + path.split("/")[1] if path.count("/") > 1 else "other"

        async def noting(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._metrics.responded(known if known in self._paths else "other", message["status"])
                message["headers"] = [*message.get("headers", []), *HEADERS]
            await send(message)

        refusal = self._refusal(scope)
        if refusal is None:
            await self._app(scope, receive, noting)
        else:
            await _refuse(noting, *refusal)

    def _refusal(self, scope: Scope) -> tuple[int, str] | None:
        headers = {key: value.decode("latin-1") for key, value in scope["headers"]}
        host, origin = headers.get(b"host", ""), headers.get(b"origin")
        if self._local and _name(f"//{host}") not in LOOPBACK:
            return 403, "this server answers on this machine only: open it as http://127.0.0.1"
        if origin is not None and urlsplit(origin).netloc != host:
            return 403, "a page of another site may not ask this server"
        if self._token is not None and scope["path"] not in OPEN:
            given = headers.get(b"authorization", "").removeprefix("Bearer ")
            if not hmac.compare_digest(given.encode(), self._token.encode()):
                return 401, "this server needs its token: Authorization: Bearer TOKEN"
        return None


def _name(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None


async def _refuse(send: Any, status: int, said: str) -> None:
    body = json.dumps({"detail": said}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    headers += [(b"www-authenticate", b"Bearer")] if status == 401 else [(b"connection", b"close")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
