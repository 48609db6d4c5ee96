"""The HTTP side: which paths there are, what they take, and how they wait."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from importlib import resources
from typing import Annotated, Any

from fastapi import FastAPI, HTTPException, Path, Query, Request, Response
from fastapi.responses import JSONResponse, PlainTextResponse
from starlette.concurrency import run_in_threadpool

from pdc_sfm import __version__
from pdc_sfm.client import answers
from pdc_sfm.engine.cache import parse_bytes
from pdc_sfm.errors import UserError
from pdc_sfm.serve.guard import Guard
from pdc_sfm.serve.map_view import map_points, map_summary, thumbnail
from pdc_sfm.serve.receiving import GONE, MOST_PARTS, read_pictures
from pdc_sfm.serve.requests import ADDITION, Full, new_number
from pdc_sfm.serve.server import MOST_MATCHES, MOST_RETRIEVED, MapServer, read_where
from pdc_sfm.serve.uploads import Refused, check_header

PAGES = {
    "/": "index.html",
    "/api": "api.html",
    **{f"/{name}": name for name in ("page.css", "page.js", "viewer.js", "api.js")},
}
KINDS = {"html": "text/html; charset=utf-8", "css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8"}
LOOK_SECONDS = 0.5  # how often it is looked whether one who waits is still there
LONGEST_NAME = 200  # characters
ONE = range(1, 2)  # picture of a request
BODY = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}
DESCRIPTION = """Where was this photograph taken? Send it to /localize: as the body, or as a file of a form.

    curl --data-binary @photo.jpg http://127.0.0.1:8080/localize
"""

Name = Annotated[str, Query(max_length=LONGEST_NAME, description="what to call the photograph in the list of requests")]
Wait = Annotated[
    bool, Query(description="false: answer at once with the number of the request, see /requests/{number}")
]


class _Api:
    """The paths of a server."""

    def __init__(self, server: MapServer):
        self.server, self._uploading = server, 0

    async def localize(
        self,
        request: Request,
        camera: Annotated[
            str | None, Query(description="intrinsics: MODEL WIDTH HEIGHT PARAMS..., as COLMAP has them")
        ] = None,
        position: Annotated[
            str | None, Query(description="x,y,z in the map: only images within the radius are used")
        ] = None,
        place: Annotated[
            str | None, Query(description="latitude,longitude instead, where the map knows its own")
        ] = None,
        pose: Annotated[
            str | None,
            Query(
                description="qw,qx,qy,qz,tx,ty,tz, camera from world, instead: of those images the ones that look alike"
            ),
        ] = None,
        radius: Annotated[float | None, Query(description="around the position, in units of the map")] = None,
        name: Name = "",
        wait: Wait = True,
    ) -> Any:
        """Where a photograph was taken: its pose in the map, how sure that is, and by which images of the map."""
        given = {"camera": camera, "position": position, "place": place, "pose": pose, "radius": radius}
        parameters = {key: value for key, value in given.items() if value is not None}
        try:
            read_where(parameters, self.server.map)
        except UserError as error:
            raise HTTPException(422, str(error)) from None
        return await self._take(request, "localize", parameters, ONE, name, wait)

    async def retrieve(
        self,
        request: Request,
        top: Annotated[int, Query(ge=1, le=MOST_RETRIEVED)] = 20,
        name: Name = "",
        wait: Wait = True,
    ) -> Any:
        """Images of the map that show what a photograph shows, best first."""
        return await self._take(request, "retrieve", {"top": top}, ONE, name, wait)

    async def match(
        self,
        request: Request,
        most: Annotated[int, Query(ge=1, le=MOST_MATCHES)] = 2000,
        name: Name = "",
        wait: Wait = True,
    ) -> Any:
        """Matches of two photographs, files of a form, the most confident first."""
        return await self._take(request, "match", {"most": most}, range(2, 3), name, wait)

    async def add(
        self,
        request: Request,
        name: Name = "",
        wait: Annotated[bool, Query(description="true: answer when they are in the map, which takes minutes")] = False,
    ) -> Any:
        """Add photographs to the map, the body or files of a form; where a server takes them (serve.additions=true)."""
        if not self.server.settings.additions:
            raise HTTPException(403, "this server takes no additions to its map: start it with serve.additions=true")
        return await self._take(request, ADDITION, {}, range(1, MOST_PARTS + 1), name, wait)

    async def _take(
        self, request: Request, kind: str, parameters: dict[str, Any], counts: range, name: str, wait: bool
    ) -> Response:
        server, settings = self.server, self.server.settings
        waiting = await run_in_threadpool(server.store.waiting)  # before uploads are looked at: none counts twice
        if waiting + self._uploading >= settings.queue:
            raise self._busy()
        self._uploading += 1
        try:
            pictures = await read_pictures(request, counts, parse_bytes(settings.upload), settings.upload_seconds)
            for content in pictures:
                await run_in_threadpool(check_header, content, settings.pixels)
        except Refused as error:
            raise HTTPException(error.status, str(error)) from None
        finally:
            self._uploading -= 1
        number = new_number()
        done = server.workers.watch(number) if wait else None
        try:
            await run_in_threadpool(server.store.add, number, kind, parameters, pictures, name)
        except Full:
            server.workers.forget(number)
            raise self._busy() from None
        del pictures
        server.workers.wake()
        if done is None:
            found = await run_in_threadpool(server.workers.look, number)
            return JSONResponse(_plain(found), 202, {"Location": f"/requests/{number}"})
        return await self._wait(request, number, done)

    async def _wait(self, request: Request, number: str, done: asyncio.Event) -> Response:
        """The answer when it is there; if it takes too long, or the server ends, where it will be."""
        server, until = self.server, time.monotonic() + self.server.settings.answer_seconds
        headers = {"X-Request-Id": number, "Location": f"/requests/{number}"}
        try:
            while not done.is_set():
                with contextlib.suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(done.wait(), LOOK_SECONDS)
                    break
                if await request.is_disconnected():
                    await run_in_threadpool(server.store.drop, number)
                    return Response(status_code=GONE)
                found = await run_in_threadpool(server.store.get, number)
                kept = f"the request is kept: ask GET /requests/{number}"
                if server.workers.ended and found is not None and found.state == "queued":
                    return JSONResponse({"detail": f"the server ends now; {kept}", "id": number}, 503, headers)
                if time.monotonic() > until:
                    return JSONResponse({"detail": f"it takes longer; {kept}", "id": number}, 504, headers)
        finally:
            server.workers.forget(number)
        found = await run_in_threadpool(server.store.get, number)
        if found is None or found.answer is None:
            status, said = (found.status, found.error) if found else (500, "the answer was not kept")
            return JSONResponse({"detail": said, "id": number}, status, headers)
        return JSONResponse(found.answer, 200, headers)

    def _busy(self) -> HTTPException:
        after = self.server.workers.retry_after()
        said = f"{self.server.settings.queue} requests are waiting: come back in {after} s"
        return HTTPException(503, said, {"Retry-After": str(after)})

    async def requests(self, most: Annotated[int, Query(ge=1, le=1000)] = 50) -> list[answers.Request]:
        """What was asked last, the latest first."""
        return await run_in_threadpool(self.server.store.latest, most)

    async def request(self, number: Annotated[str, Path(max_length=64)]) -> answers.Request:
        """What became of a request: how far it is, then its answer."""
        found = await run_in_threadpool(self.server.workers.look, number)
        if found is None:
            raise HTTPException(404, "there is no request of this number, or it was long ago")
        return found

    async def map(self) -> answers.MapSummary:
        """The map: its images with their poses, and how many points it has."""
        return await run_in_threadpool(map_summary, self.server.map)

    async def points(self, most: Annotated[int, Query(ge=1, le=2_000_000)] = 100_000) -> Response:
        """Points evenly drawn from the map: so many times x y z (float32), then so many times r g b (bytes)."""
        content = await run_in_threadpool(map_points, self.server.map, most)
        return Response(content, media_type="application/octet-stream")

    async def image(
        self, number: Annotated[int, Path(ge=0)], side: Annotated[int, Query(ge=64, le=1600)] = 640
    ) -> Response:
        """An image of the map, small."""
        content = await run_in_threadpool(thumbnail, self.server.map, number, side)
        if content is None:
            raise HTTPException(404, "the map has no image of this number, or it cannot be read")
        return Response(content, media_type="image/jpeg")

    async def health(self) -> dict[str, Any]:
        """Whether the server answers, and how many requests wait."""
        waiting = await run_in_threadpool(self.server.store.waiting)
        told = {"additions": self.server.settings.additions, "map": self.server.map.state}
        return {"ready": not self.server.workers.ended, "waiting": waiting, **told}

    async def version(self) -> dict[str, str]:
        """Of the server."""
        return {"pdc_sfm": __version__}

    async def metrics(self) -> PlainTextResponse:
        """For Prometheus."""
        held, waiting = self.server.map, await run_in_threadpool(self.server.store.waiting)
        gauges = {
            "queued_requests": ("requests that wait", float(waiting)),
            "cache_bytes": ("codes and keypoints of the map in memory", float(held.kept_bytes)),
            "map_images": ("images of the map", float(len(held.ids))),
        }
        text = self.server.metrics.text(gauges)
        return PlainTextResponse(text, media_type="text/plain; version=0.0.4; charset=utf-8")

    async def page(self, request: Request) -> Response:
        name = PAGES[request.url.path]
        content = resources.files("pdc_sfm.serve").joinpath(f"page/{name}").read_bytes()
        return Response(content, media_type=KINDS[name.rpartition(".")[2]])


def make_app(server: MapServer, token: str | None = None, local: bool = True) -> FastAPI:
    """The application. `local`: only names of this machine are answered; `token`: what others must bring."""

    @contextlib.asynccontextmanager
    async def life(_: FastAPI) -> AsyncIterator[None]:
        server.start()
        yield
        await run_in_threadpool(server.stop)

    app = FastAPI(
        title="pdc-sfm serve",
        version=__version__,
        description=DESCRIPTION,
        docs_url=None,
        redoc_url=None,
        lifespan=life,
    )
    api = _Api(server)
    body = {"requestBody": {"required": True, "content": BODY}}
    form = {"type": "object", "properties": {f"image{n}": {"type": "string", "format": "binary"} for n in (0, 1)}}
    two = {"requestBody": {"required": True, "content": {"multipart/form-data": {"schema": form}}}}
    asked = (
        ("/localize", api.localize, answers.Localization, body),
        ("/retrieve", api.retrieve, answers.Retrieval, body),
        ("/match", api.match, answers.PairMatches, two),
        ("/images", api.add, answers.Addition, body),
    )
    for path, call, model, extra in asked:
        told: dict[int | str, dict[str, Any]] = {
            202: {"model": answers.Request},
            503: {"description": "busy: see Retry-After"},
        }
        app.add_api_route(path, call, methods=["POST"], response_model=model, openapi_extra=extra, responses=told)
    looked_at: dict[str, Callable[..., Any]] = {
        "/map": api.map,
        "/map/points": api.points,
        "/map/images/{number}": api.image,
        "/requests": api.requests,
        "/requests/{number}": api.request,
        "/healthz": api.health,
        "/version": api.version,
        "/metrics": api.metrics,
    }
    for path, look in looked_at.items():
        app.add_api_route(path, look, methods=["GET"])
    for path in PAGES:
        app.add_api_route(path, api.page, methods=["GET"], include_in_schema=False)
    known = {path.partition("/{")[0] for path in (route.path for route in app.routes if hasattr(route, "path"))}
    app.add_middleware(Guard, token=token, local=local, metrics=server.metrics, paths=known)
    return app


def _plain(found: answers.Request | None) -> dict[str, Any]:
    return {} if found is None else {"id": found.id, "kind": found.kind, "state": found.state, "ahead": found.ahead}
