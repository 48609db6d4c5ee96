"""Photographs that are added to the map that answers: each addition is a map of its own beside the one that was given.

In the folder of a server's state: pictures/ are the photographs, maps/NUMBER the map with those of a request, map.json which of
them answers. A request that was broken off goes on where it was.
"""

from __future__ import annotations

import dataclasses
import json
import logging
import shutil
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from pdc_sfm.client.answers import Addition
from pdc_sfm.colmap.io.models import SUMMARY, load_model, model_poses
from pdc_sfm.demo.extension import ExtendSettings, extend_map
from pdc_sfm.demo.queries import Map, open_map
from pdc_sfm.engine.run import MatchingSettings
from pdc_sfm.errors import UserError
from pdc_sfm.files import write_text
from pdc_sfm.pipeline.matching import engine_matcher
from pdc_sfm.retrieval.resident import Report
from pdc_sfm.serve.uploads import suffix_of

log = logging.getLogger(__name__)

WELL = "consistent"


class NotAdded(UserError):
    """Photographs that the map does not take, and why."""

    status = 422


def both_ways(matching: MatchingSettings) -> MatchingSettings:
    """Settings of queries for images of a map: without a pose to check them, matches must agree in both directions."""
    if matching.select.directions != "forward":
        return matching
    return dataclasses.replace(matching, select=dataclasses.replace(matching.select, directions="mutual"))


class Additions:
    """`find` has the files of the map that was given, `state_of` what changes when they are made anew."""

    def __init__(
        self, find: Callable[[], Map], state_of: Callable[[Map], str], folder: Path, matching: MatchingSettings
    ):
        self._find, self._state_of, self._matching = find, state_of, both_ways(matching)
        self._maps, self._pictures, self._which = folder / "maps", folder / "pictures", folder / "map.json"

    def current(self) -> Map:
        """The map with all that was added. One that is given anew takes its place, without what was added to the last one."""
        given = self._find()
        try:
            which = json.loads(self._which.read_text(encoding="utf-8"))
            if which["given"] == self._state_of(given):
                return open_map(self._maps / Path(which["map"]).name)
            log.warning("the map was made anew: what was added to the last one is not in it (%s)", self._pictures)
        except FileNotFoundError:
            pass
        except (OSError, ValueError, KeyError, TypeError, UserError) as error:
            log.warning("the map with additions cannot be used: %s", error)
        return given

    def add(self, number: str, pictures: Sequence[bytes], report: Report) -> Addition:
        """The map with these photographs of a request in it; `current` is that map then."""
        report("pairs", 0, 1)
        given, mapped = self._state_of(self._find()), self.current()
        folder, photographs = self._maps / number, self._pictures / number
        if mapped.model.parent == folder:  # the server was killed after that, before it could say so
            return _found(
                sorted(path.name for path in photographs.iterdir()), set(model_poses(load_model(mapped.model)))
            )
        names = _save(pictures, photographs, number)
        match = engine_matcher(self._matching)

        def match_and_tell(images: Path, pairs: Path, features: Path, matches: Path, fixed: Path | None = None) -> None:
            report("match", 0, 1)
            match(images, pairs, features, matches, fixed)
            report("extend", 0, 1)

        settings = ExtendSettings(match=self._matching, report=False)
        try:
            extend_map(mapped, photographs, folder, settings, match=match_and_tell)
            found = _check(mapped, folder, names)
        except UserError:
            shutil.rmtree(folder, ignore_errors=True)
            shutil.rmtree(photographs, ignore_errors=True)
            raise
        write_text(self._which, json.dumps({"map": number, "given": given}) + "\n")
        kept = {number, mapped.model.parent.name}  # requests in work may still read the one before
        for other in self._maps.iterdir():
            if other.name not in kept:
                shutil.rmtree(other, ignore_errors=True)
        return found


def _save(pictures: Sequence[bytes], folder: Path, number: str) -> list[str]:
    """The photographs as files, under names that are ours and that no other has."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    names = []
    for place, content in enumerate(pictures):
        path = folder / f"added-{number}-{place}{suffix_of(content)}"
        path.write_bytes(content)
        names.append(path.name)
    return names


def _found(names: Sequence[str], now: Collection[str]) -> Addition:
    """Which of the photographs the images of a map are, and which are not among them."""
    return Addition([name for name in names if name in now], [name for name in names if name not in now])


def _check(mapped: Map, folder: Path, names: Sequence[str]) -> Addition:
    """What was added and what was not; refuses a map that is worse than it was."""
    before, now = (set(model_poses(load_model(model))) for model in (mapped.model, folder / "sfm"))
    found, said = _found(names, now), _summary(folder / "sfm")
    if not found.added:
        remarks = said.get("remarks", [])
        raise NotAdded(f"none of the photographs has a place in the map: {remarks[-1] if remarks else 'no match'}")
    if before - now:
        raise NotAdded(f"with them {len(before - now)} images of the map would lose their place: left as it was")
    verdict = said.get("verdict", {})
    if verdict.get("kind", WELL) != WELL and _summary(mapped.model).get("verdict", {}).get("kind", WELL) == WELL:
        raise NotAdded(f"with them the map is {verdict['kind']}, left as it was: {'; '.join(verdict['reasons'][:3])}")
    return found


def _summary(model: Path) -> dict:
    path = model / SUMMARY
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
