"""What a request brings, within its limits of bytes and time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from fastapi import HTTPException, Request
from starlette.datastructures import UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import ClientDisconnect

MOST_PARTS = 8  # of a form
CLOSE = {"Connection": "close"}  # the rest of what is sent is not read
GONE = 499  # the status of one who did not wait for it, as nginx counts them


async def read_pictures(request: Request, counts: range, most: int, seconds: float) -> list[bytes]:
    """The files of a form, or the body itself: as many pictures as may be, of at most so many bytes together."""
    body = await _read_body(request, most, seconds)
    kind = request.headers.get("content-type", "")
    found = await _files(request, body) if kind.startswith("multipart/form-data") else [body]
    if len(found) not in counts or not all(found):
        least, largest = counts[0], counts[-1]
        many = f"{least} pictures" if least == largest else f"{least} to {largest} pictures"
        pictures = "one picture" if largest == 1 else many
        raise HTTPException(422, f"send {pictures}: as the body, or as files of a form (curl -F image=@photo.jpg)")
    return found


async def _read_body(request: Request, most: int, seconds: float) -> bytes:
    too_large = HTTPException(413, f"a request may have {most:,} bytes at most", CLOSE)
    stated = request.headers.get("content-length", "")
    if stated.isdigit() and int(stated) > most:
        raise too_large

    async def read() -> bytes:
        content = bytearray()
        async for chunk in request.stream():
            content += chunk
            if len(content) > most:
                raise too_large
        return bytes(content)

    try:
        return await asyncio.wait_for(read(), seconds)
    except asyncio.TimeoutError:
        raise HTTPException(408, f"the request did not arrive within {seconds:g} s", CLOSE) from None
    except ClientDisconnect:  # no failure of ours: nothing for the log
        raise HTTPException(GONE, "the one who asked went away while sending") from None


async def _files(request: Request, body: bytes) -> list[bytes]:
    async def stream() -> AsyncIterator[bytes]:
        yield body

    parser = MultiPartParser(request.headers, stream(), max_files=MOST_PARTS, max_fields=MOST_PARTS)  # type: ignore[arg-type]
    try:
        form = await parser.parse()
    except (MultiPartException, KeyError, ValueError) as error:
        said = getattr(error, "message", None) or "it cannot be read"
        raise HTTPException(400, f"the form is damaged: {said}") from None
    try:
        return [await part.read() for _, part in form.multi_items() if isinstance(part, UploadFile)]
    finally:
        await form.close()
