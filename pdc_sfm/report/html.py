"""Small pieces of HTML: escaped text, tables, pictures as data."""

from __future__ import annotations

import base64
import html
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

QUALITY = 82  # of pictures, JPEG: WebP would be a third smaller and fifteen times slower to write


@dataclass
class Section:
    """A part of the report: a title, content, and what is missing in it."""

    key: str  # its anchor
    title: str
    content: str = ""
    missing: list[str] = field(default_factory=list)


def text(value: object) -> str:
    """Text that is safe between tags and in attributes."""
    return html.escape(str(value), quote=True)


def data_uri(image: np.ndarray, quality: int = QUALITY) -> str:
    """An RGB picture, (H, W, 3) uint8, as an address that needs no file."""
    import cv2

    _, data = cv2.imencode(".jpg", image[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, quality])
    return "data:image/jpeg;base64," + base64.b64encode(data.tobytes()).decode()


def picture(image: np.ndarray, alt: str, quality: int = QUALITY) -> str:
    """An <img> that a click enlarges."""
    height, width = image.shape[:2]
    source = data_uri(image, quality)
    return f'<img class="zoom" loading="lazy" width="{width}" height="{height}" alt="{text(alt)}" src="{source}">'


def figure(image: np.ndarray, caption: str, extra: str = "") -> str:
    """A picture with its caption (text) and further HTML."""
    return f"<figure>{picture(image, caption)}<figcaption>{text(caption)}{extra}</figcaption></figure>"


def table(head: Sequence[str], rows: Iterable[Sequence[object]], numbers_from: int = 1) -> str:
    """Cells are text unless they are `Markup`; columns from `numbers_from` on are set to the right."""

    def cells(row: Sequence[object], tag: str) -> str:
        return "".join(
            f"<{tag}{' class=n' if column >= numbers_from else ''}>{cell if isinstance(cell, Markup) else text(cell)}</{tag}>"
            for column, cell in enumerate(row)
        )

    body = "".join(f"<tr>{cells(row, 'td')}</tr>" for row in rows)
    return f'<div class="scroll"><table><thead><tr>{cells(head, "th")}</tr></thead><tbody>{body}</tbody></table></div>'


class Markup(str):
    """HTML that is already safe."""

    __slots__ = ()


def tiles(items: Iterable[tuple[str, str]]) -> str:
    """Large figures with what they are: (label, value)."""
    cells = (f"<div class=tile><b>{text(value)}</b><span>{text(label)}</span></div>" for label, value in items)
    return f'<div class="tiles">{"".join(cells)}</div>'
