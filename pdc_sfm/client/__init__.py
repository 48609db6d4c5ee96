"""Client of `pdc-sfm serve`: `Client("http://127.0.0.1:8080").localize("photo.jpg").pose`. Standard library only."""

from pdc_sfm.client.answers import (
    Addition,
    Localization,
    MappedImage,
    MapSummary,
    PairMatches,
    QueryCamera,
    QueryPose,
    Request,
    Retrieval,
    UsedImage,
)
from pdc_sfm.client.http import Client, ServerError

__all__ = [
    "Addition",
    "Client",
    "Localization",
    "MapSummary",
    "MappedImage",
    "PairMatches",
    "QueryCamera",
    "QueryPose",
    "Request",
    "Retrieval",
    "ServerError",
    "UsedImage",
]
