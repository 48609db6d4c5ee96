"""Answers of the localization server, as the server writes and the client reads them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal


@dataclass(frozen=True)
class QueryPose:
    """Where a photograph was taken, in the frame of the map."""

    cam_from_world: list[list[float]]  # (3, 4)
    quaternion: list[float]  # qw qx qy qz, as in results.txt
    translation: list[float]  # of cam_from_world
    position: list[float]  # of the camera
    covariance: list[list[float]]  # (6, 6) of a small turn (radians) and shift of the camera frame
    sigma_position: float  # standard deviations: units of the map,
    sigma_degrees: float  # and degrees
    latitude: float | None = None  # degrees north and east, metres, where the map knows its place on Earth
    longitude: float | None = None
    altitude: float | None = None


@dataclass(frozen=True)
class QueryCamera:
    """Intrinsics, as COLMAP has them."""

    model: str
    width: int
    height: int
    params: list[float]
    source: str  # where they are from: the request, the map's camera, EXIF


@dataclass(frozen=True)
class UsedImage:
    """An image of the map that was retrieved for a query."""

    name: str
    number: int  # in the map
    matches: int | None = None  # confident ones, by which it was retrieved
    inliers: int | None = None  # of the pose; None: there is none


@dataclass(frozen=True)
class Localization:
    """A pose, or why there is none."""

    localized: bool
    reason: str  # why it is not
    inliers: int
    pose: QueryPose | None = None
    probability: float | None = None  # of being right, see docs/localization.md
    doubt: str = ""  # why the pose may be wrong, and what to do
    camera: QueryCamera | None = None
    images: list[UsedImage] = field(default_factory=list)  # best first
    shown: list[list[float]] = field(
        default_factory=list
    )  # some inliers: x y in the query, x y in the first `shown_image`
    shown_image: int | None = None  # number of the image of the map with most inliers
    seconds: dict[str, float] = field(default_factory=dict)  # by stage
    map: str = ""  # the state of the map that answered


@dataclass(frozen=True)
class Retrieval:
    """Images of the map that show what a photograph shows, best first."""

    images: list[UsedImage]
    seconds: dict[str, float]
    map: str


@dataclass(frozen=True)
class PairMatches:
    """Matches of two photographs, the most confident first."""

    count: int  # of all matches that were found
    matches: list[list[float]]  # x y in the first, x y in the second: indices of pixels
    scores: list[float]  # probabilities of being right
    sizes: list[list[int]]  # (width, height) of both
    seconds: dict[str, float]


@dataclass(frozen=True)
class Addition:
    """Photographs that are in the map now."""

    added: list[str]  # their names in the map
    left_out: list[str]  # those that found no place in it, in the order in which they were sent: `...-0` is the first
    images: int = 0  # that the map has now
    map: str = ""  # its state


@dataclass(frozen=True)
class MappedImage:
    """An image of the map."""

    number: int
    name: str
    position: list[float]
    cam_from_world: list[list[float]]
    width: int
    height: int
    focal: float  # focal length by the width of the image


@dataclass(frozen=True)
class MapSummary:
    """The map that answers. Its points are at /map/points."""

    name: str
    map: str  # its state: another one after the map was made anew
    metres: bool  # whether its unit is the metre
    points: int
    images: list[MappedImage]
    upright: list[list[float]]  # (3, 3) rotation that puts its up along z
    center: list[float]  # of a first view, in the upright frame
    radius: float
    latitude: float | None = None  # of its origin, where it knows its place on Earth
    longitude: float | None = None


State = Literal["queued", "running", "done", "failed", "dropped"]


@dataclass(frozen=True)
class Request:
    """What was asked, how far it is, and its answer when it is done."""

    id: str
    kind: Literal["localize", "match", "retrieve", "add"]
    state: State
    received: float  # seconds since 1970
    finished: float | None = None
    name: str = ""  # as the one who asked calls the photograph
    stage: str = ""  # what is being done,
    done: int = 0  # so far,
    total: int = 0  # of how many
    ahead: int = 0  # requests before it in the queue
    answer: dict[str, Any] | None = None
    error: str = ""  # why it failed,
    status: int = 200  # and the HTTP status of that
