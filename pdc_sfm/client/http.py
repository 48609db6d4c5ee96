"""The client: plain HTTP by Python's own library, answers as dataclasses."""

from __future__ import annotations

import dataclasses
import http.client
import json
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from pdc_sfm.client.answers import Localization, MapSummary, PairMatches, Request, Retrieval
from pdc_sfm.errors import UserError

T = TypeVar("T")
BOUNDARY = "pdc-sfm-photographs-0f5d"
BUSY = 503


class ServerError(UserError):
    """A request that the server refused or could not handle."""

    def __init__(self, message: str, status: int = 0, retry_after: float | None = None):
        super().__init__(message)
        self.status, self.retry_after = status, retry_after


class Client:
    """A client of one server. If its queue is full (503), it waits up to `patience` seconds."""

    def __init__(self, url: str = "http://127.0.0.1:8080", token: str | None = None, *, timeout: float = 120.0):
        self.url, self.token, self.timeout = url.rstrip("/"), token, timeout
        self.patience = timeout

    def localize(
        self,
        image: Path | str | bytes,
        *,
        camera: str | None = None,
        position: tuple[float, float, float] | None = None,
        place: tuple[float, float] | None = None,
        pose: Sequence[float] | None = None,
        radius: float | None = None,
    ) -> Localization:
        """The pose of a photograph, a file or its bytes.

        `camera` are intrinsics as COLMAP writes them, "PINHOLE 640 480 500 500 320 240". With a `position` in the map, or a
        `place` (latitude, longitude), only images of the map within `radius` of it are used; with a `pose` (qw, qx, qy, qz,
        tx, ty, tz, camera from world), only those of them that look the same way.
        """
        where = {"camera": camera, "position": position, "place": place, "pose": pose, "radius": radius}
        return _read(Localization, self._post("/localize", image, where))

    def retrieve(self, image: Path | str | bytes, *, top: int | None = None) -> Retrieval:
        """Images of the map that show the same place as a photograph, best first."""
        return _read(Retrieval, self._post("/retrieve", image, {"top": top}))

    def match(self, image0: Path | str | bytes, image1: Path | str | bytes, *, most: int = 2000) -> PairMatches:
        """Matches of two photographs, at most so many."""
        return _read(PairMatches, self._ask("POST", "/match", {"most": most}, *_form([image0, image1])))

    def add(self, images: Sequence[Path | str | bytes], *, name: str | None = None) -> str:
        """Queue photographs to be added to the map, if the server allows it; `request` returns the result."""
        return self._ask("POST", "/images", {"name": name}, *_form(images))["id"]

    def submit(self, image: Path | str | bytes, **where: Any) -> str:
        """Queue a photograph without waiting, with the arguments of `localize`; `request` returns the result."""
        return self._post("/localize", image, {**where, "wait": "false"})["id"]

    def request(self, number: str) -> Request:
        """The state or result of a queued request."""
        return _read(Request, self._ask("GET", f"/requests/{urllib.parse.quote(number, safe='')}"))

    def map(self) -> MapSummary:
        """The map: its images, and how many points it has."""
        return _read(MapSummary, self._ask("GET", "/map"))

    def healthy(self) -> bool:
        """Whether the server answers."""
        try:
            return bool(self._ask("GET", "/healthz")["ready"])
        except ServerError:
            return False

    def _post(self, path: str, image: Path | str | bytes, where: dict[str, Any]) -> Any:
        name = Path(image).name if isinstance(image, Path | str) else None
        return self._ask("POST", path, {"name": name, **where}, _content(image), "application/octet-stream")

    def _ask(
        self, verb: str, path: str, where: dict[str, Any] | None = None, body: bytes | None = None, kind: str = ""
    ) -> Any:
        given = {key: _written(value) for key, value in (where or {}).items() if value is not None}
        url = f"{self.url}{path}{'?' + urllib.parse.urlencode(given) if given else ''}"
        headers = {"Content-Type": kind} if kind else {}
        headers |= {"Authorization": f"Bearer {self.token}"} if self.token else {}
        until = time.monotonic() + self.patience
        while True:
            try:
                return self._once(urllib.request.Request(url, body, headers, method=verb))
            except ServerError as error:
                wait = error.retry_after or 1.0
                if error.status != BUSY or time.monotonic() + wait > until:
                    raise
                time.sleep(wait)

    def _once(self, request: urllib.request.Request) -> Any:
        try:
            with urllib.request.urlopen(request, timeout=self.timeout) as response:
                return json.load(response)
        except urllib.error.HTTPError as error:
            said = _detail(error.read())
            again = error.headers.get("Retry-After", "")
            wait = float(again) if again.isdigit() else None
            raise ServerError(f"{self.url}: {said or error.reason}", error.code, wait) from None
        except (OSError, ValueError, http.client.HTTPException) as error:  # the last: it ended within an answer
            reason = getattr(error, "reason", None) or error
            raise ServerError(f"{self.url} does not answer ({reason}): is pdc-sfm serve running there?") from None


def _form(images: Sequence[Path | str | bytes]) -> tuple[bytes, str]:
    """Files of a form, and its kind."""
    parts = []
    for number, image in enumerate(images):
        head = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="image{number}"; filename="{number}"\r\n\r\n'
        parts += [head.encode(), _content(image), b"\r\n"]
    return b"".join([*parts, f"--{BOUNDARY}--\r\n".encode()]), f"multipart/form-data; boundary={BOUNDARY}"


def _content(image: Path | str | bytes) -> bytes:
    return image if isinstance(image, bytes) else Path(image).read_bytes()


def _written(value: Any) -> str:
    """A parameter of a request: numbers with commas between them."""
    return str(value) if isinstance(value, str | int | float) else ",".join(map(repr, map(float, value)))


def _detail(content: bytes) -> str:
    try:
        return str(json.loads(content)["detail"])
    except (ValueError, KeyError, TypeError):
        return ""


def _read(kind: Any, value: Any) -> Any:
    """A value of JSON as a dataclass, and what is within it. Fields that this version does not know are left out."""
    if dataclasses.is_dataclass(kind):
        hints = get_type_hints(kind)
        known = {field.name: field for field in dataclasses.fields(kind)}
        return kind(**{key: _read(hints[key], item) for key, item in value.items() if key in known})  # type: ignore[operator]
    inner = [one for one in get_args(kind) if one is not type(None)]
    if get_origin(kind) is list:
        return [_read(inner[0], item) for item in value]
    if value is not None and len(inner) == 1 and dataclasses.is_dataclass(inner[0]):
        return _read(inner[0], value)
    return value
