"""What answers: the map that is held now, taken up anew when its files are, and the requests to it."""

from __future__ import annotations

import dataclasses
import logging
import math
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pdc_sfm.client.answers import Addition
from pdc_sfm.colmap.io.cameras import make_camera
from pdc_sfm.demo.queries import Map
from pdc_sfm.device import check_device, resolve_device
from pdc_sfm.errors import FormatError, SettingsError, UserError
from pdc_sfm.retrieval.resident import Report
from pdc_sfm.serve.additions import Additions
from pdc_sfm.serve.metrics import Metrics
from pdc_sfm.serve.requests import ADDITION, RequestStore, Task
from pdc_sfm.serve.resident_map import QuerySettings, ResidentMap, Where, map_state
from pdc_sfm.serve.settings import ServeSettings
from pdc_sfm.serve.uploads import as_jpeg, decode_upload
from pdc_sfm.serve.worker import Workers

if TYPE_CHECKING:
    from pdc_sfm.network import PDCNet

log = logging.getLogger(__name__)

MOST_MATCHES, MOST_RETRIEVED = 20_000, 200  # that one answer holds


class MapServer:
    """A folder of a map and the state of a server, in `folder`: codes of a large map, requests and their answers."""

    def __init__(
        self,
        find: Callable[[], Map],
        folder: Path,
        queries: QuerySettings,
        settings: ServeSettings,
        network: PDCNet | None = None,
    ):
        from pdc_sfm.weights import load_network

        matching = queries.matching
        if network is None:
            check_device(matching.device, matching.precision)
            device = resolve_device(matching.device, matching.precision)
            network = load_network(matching.weights, device, matching.precision)
            matching = dataclasses.replace(matching, device=device)
            finding = dataclasses.replace(queries.finding, device=device)
            queries = dataclasses.replace(queries, matching=matching, finding=finding)
        self._additions = Additions(find, map_state, folder, queries.matching) if settings.additions else None
        self._find = find if self._additions is None else self._additions.current
        self._folder, self._network, self._taking_up = folder, network, threading.Lock()
        self._queries, self.settings, self.metrics = queries, settings, Metrics()
        self.map = self._load()
        self.store = RequestStore(folder / "requests.sqlite", settings.queue, settings.history)
        self.workers = Workers(self.store, self._answer, settings.workers, self.metrics, settings.additions)
        self._ended = threading.Event()
        self._watch = threading.Thread(target=self._watch_map, name="serve-map", daemon=True)

    def start(self) -> None:
        self.workers.start()
        if self.settings.reload_seconds:
            self._watch.start()

    def stop(self) -> None:
        """What is in work is finished, what is queued is kept."""
        self._ended.set()
        self.workers.stop()
        self.store.close()

    def _load(self) -> ResidentMap:
        return ResidentMap(self._find(), self._folder / "codes", self._queries, self._network)

    def _watch_map(self) -> None:
        """A map made anew is taken up when its files have come to rest; requests in work keep the one they began with."""
        before = refused = self.map.state
        while not self._ended.wait(self.settings.reload_seconds):
            now = "not there"
            try:
                now = map_state(self._find())
                if now == before and now not in (self.map.state, refused):
                    self._take_up()
            except (UserError, OSError) as error:
                if now != refused:
                    log.warning("the map that is there now cannot be used, the last one stays: %s", error)
                refused = now
            before = now

    def _take_up(self) -> None:
        """The map that is there now answers from here on."""
        with self._taking_up:
            if map_state(self._find()) != self.map.state:
                self.map = self._load()
                log.info("another map answers now: %d images", len(self.map.ids))

    def _add(self, task: Task, report: Report) -> Addition:
        if self._additions is None:
            raise SettingsError("this server takes no additions to its map any more")
        found = self._additions.add(task.id, [as_jpeg(content) for content in task.pictures], report)
        report("load", 0, 1)
        self._take_up()
        return dataclasses.replace(found, images=len(self.map.ids), map=self.map.state)

    def _answer(self, task: Task, report: Report) -> dict[str, Any]:
        """Work on one request."""
        if task.kind == ADDITION:
            return dataclasses.asdict(self._add(task, report))
        report("read", 0, 1)
        held, pixels = self.map, self.settings.pixels
        contents = [as_jpeg(content) for content in task.pictures]
        photographs = [decode_upload(content, pixels) for content in contents]
        if task.kind == "match":
            found: Any = held.match(photographs[0], photographs[1], task.parameters["most"], report)
        elif task.kind == "retrieve":
            found = held.retrieve(photographs[0], task.parameters["top"], report)
        else:
            where = read_where(task.parameters, held)
            found = held.localize(photographs[0], contents[0], where, report)
        return dataclasses.asdict(found)


def read_where(parameters: dict[str, Any], held: ResidentMap) -> Where:
    """What a request tells of a photograph; an error that says what is wrong with it."""
    camera, radius = parameters.get("camera"), parameters.get("radius")
    position, place, pose = (
        _numbers(parameters, key, count) for key, count in (("position", 3), ("place", 2), ("pose", 7))
    )
    given = [value is not None for value in (position, place, pose)]
    if sum(given) > 1:
        raise SettingsError("give one of position, place and pose")
    if any(given) and radius is None:
        raise SettingsError("give a radius with the position, place or pose, in units of the map")
    if radius is not None and not any(given):
        raise SettingsError("give a position, place or pose with the radius around it")
    if radius is not None and not (math.isfinite(radius) and radius > 0):
        raise SettingsError(f"radius={radius} must be above 0")
    if place is not None:
        if held.frame is None or held.frame.origin is None:
            raise SettingsError("place: this map does not know its place on the earth; give a position in the map")
        position = held.frame.from_geographic(np.r_[place, held.frame.origin[2]])[0]
    direction = None
    if pose is not None:
        rotation = _rotation(pose[:4])
        position, direction = -rotation.T @ pose[4:], rotation[2]
    return Where(None if camera is None else _camera(camera), position, place is not None, radius, direction)


def _rotation(quaternion: np.ndarray) -> np.ndarray:
    """(3, 3) of qw qx qy qz, whatever their length."""
    length = np.linalg.norm(quaternion)
    if length < 1e-9:
        raise FormatError("pose: its quaternion is zero; write qw,qx,qy,qz,tx,ty,tz as results.txt has them")
    w, x, y, z = quaternion / length
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + 2 * w * cross + 2 * cross @ cross


def _camera(text: str) -> Any:
    model, *numbers = text.split() or [""]
    try:
        width, height, *params = numbers
        return make_camera(model, int(width), int(height), [float(number) for number in params])
    except (ValueError, UserError) as error:
        raise FormatError(f"camera={text[:100]}: write MODEL WIDTH HEIGHT PARAMS..., as in COLMAP ({error})") from None


def _numbers(parameters: dict[str, Any], key: str, count: int) -> np.ndarray | None:
    text = parameters.get(key)
    if text is None:
        return None
    try:
        found = np.array([float(word) for word in str(text).split(",")])
    except ValueError:
        found = np.zeros(0)
    if len(found) != count or not np.isfinite(found).all():
        raise FormatError(f"{key}={str(text)[:100]}: write {count} numbers with commas between them")
    return found
