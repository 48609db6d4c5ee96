"""Maps of rendered scenes with queries whose true poses are known: what the probability of a pose is fitted to.

A town is the run of `pdc-sfm demo` with its seed, and two more maps of half of its database images. A world (a room, a court)
is matched once, all images with each other, and split four times into database and queries, with all and at times with half
of the rest as the database; a mirrored image and one of another world stand among its queries, for which no pose is right.
Every map is asked again with two retrieved images only, and with those alone that look another way than the query.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import cv2
import numpy as np
from mapping import StoredMatches

from pdc_sfm.colmap.io.models import SUMMARY, ReconstructionError
from pdc_sfm.colmap.mapping.triangulation import TriangulationSettings, triangulate
from pdc_sfm.demo import demo_settings, run_scene
from pdc_sfm.demo.true_cameras import known_model
from pdc_sfm.engine.pairing import exhaustive_pairs
from pdc_sfm.engine.run import MatchingSettings, match_pairs
from pdc_sfm.images import read_image, write_image
from pdc_sfm.scenes import Camera, WorldSettings, read_cameras, write_world
from pdc_sfm.settings import load_settings
from pdc_sfm.store.journal import RawStore
from pdc_sfm.store.pair_lists import read_pairs, read_retrieval, write_pairs

TOP = 8  # images of the map matched with each query
FOLDS = 4
TURNED = 35.0  # degrees between viewing directions


@dataclasses.dataclass(frozen=True)
class QueryMap:
    """A map and queries in it, with all files that `localize` takes."""

    title: str
    seed: int
    folder: Path  # sfm/, retrieval.txt, features-query.h5, matches-query.h5
    queries: dict[str, Camera]
    nowhere: frozenset[str] = frozenset()  # queries for which no pose is right
    retrieval: str = "retrieval.txt"

    @property
    def model(self) -> Path:
        return self.folder / "sfm"

    def files(self) -> tuple[Path, Path, Path]:
        """Retrieval list, features, matches."""
        return self.folder / self.retrieval, self.folder / "features-query.h5", self.folder / "matches-query.h5"

    def variants(self, database: dict[str, Camera]) -> Iterator[QueryMap]:
        """The map itself; asked with its second and third retrieved image; with images that look another way."""
        yield self
        rows = read_retrieval(self.folder / self.retrieval)
        turned = {
            query: [image for image in images if _turned(self.queries[query], database[image])]
            for query, images in rows.items()
        }
        few = {query: images[1:3] for query, images in rows.items()}
        # each wing of a court looks like the next one: from another side, all that is seen is another wing
        for name, chosen in (("few", few), *([] if "court" in self.title else [("turned", turned)])):
            if any(chosen.values()):
                write_pairs(
                    self.folder / f"retrieval-{name}.txt", [(q, i) for q, found in chosen.items() for i in found]
                )
                yield dataclasses.replace(self, title=f"{self.title}, {name}", retrieval=f"retrieval-{name}.txt")


def _turned(first: Camera, second: Camera) -> bool:
    return float(first.cam_from_world[2, :3] @ second.cam_from_world[2, :3]) < np.cos(np.radians(TURNED))


def town_maps(work: Path, seed: int, words: tuple[str, ...] = ()) -> Iterator[QueryMap]:
    """The map of the demo, and two of every second of its database images."""
    whole = work / f"town{seed}"
    run_scene(
        whole,
        demo_settings(None, [f"scene.seed={seed}", "report=false", "sift=false", "match.dense.method=direct", *words]),
    )
    cameras = read_cameras(whole)
    database = [name for name in cameras if name.startswith("db/")]
    queries = {name: camera for name, camera in cameras.items() if name not in database}
    yield from QueryMap("town", seed, whole, queries).variants(cameras)
    for half in (0, 1):
        kept = database[half::2]
        folder = work / f"town{seed}_half{half}"
        folder.mkdir(exist_ok=True)
        pairs = [pair for pair in read_pairs(whole / "pairs.txt") if set(pair) <= set(kept)]
        rows = read_retrieval(whole / "retrieval.txt")
        rows = {query: [image for image in images if image in kept] for query, images in rows.items()}
        map_from = _StoredMap(folder, whole / "images", RawStore(whole / "matches.raw"), {n: cameras[n] for n in kept})
        if map_from.make(pairs, rows, whole):
            yield QueryMap("town, half", seed, folder, queries)


def world_maps(work: Path, kind: str, seed: int, photos: list[Path], foreign: Path | None) -> Iterator[QueryMap]:
    """Four splits of a room or court, each twice; `foreign` is a picture of another world."""
    scene, base = work / f"{kind}{seed}", work / f"{kind}{seed}_maps"
    write_world(scene, kind, WorldSettings(seed=seed, width=512, height=384, images=16), photos)
    cameras = read_cameras(scene)
    names, images = list(cameras), base / "images"
    for name in names:
        _link(images / name, scene / "images" / name)
    write_image(images / "nowhere/mirrored.png", cv2.flip(read_image(scene / "images" / names[1]), 1))
    nowhere = {"nowhere/mirrored.png": cameras[names[1]]}
    if foreign is not None:
        _link(images / "nowhere/foreign.jpg", foreign)
        nowhere["nowhere/foreign.jpg"] = cameras[names[0]]
    pairs = exhaustive_pairs(names) + [(query, name) for query in nowhere for name in names[::2]]
    small = load_settings(MatchingSettings, None, ["dense.method=direct", "dense.min_side=null", "dense.max_side=320"])
    matched = match_pairs(images, pairs, base, small)
    raw = RawStore(matched.raw)
    for fold in range(FOLDS):
        chosen = names[fold::FOLDS]
        rest = [name for name in names if name not in chosen]
        for title, kept in ((kind, rest), (f"{kind}, half", rest[fold % 2 :: 2]))[: 1 + fold % 2]:
            queries = {**{name: cameras[name] for name in chosen}, **(nowhere if fold == 0 else {})}
            rows = {query: _most_matched(raw, query, [n for n in kept if (query, n) in raw])[:TOP] for query in queries}
            folder = base / f"{fold}_{'half' if 'half' in title else 'all'}"
            folder.mkdir(exist_ok=True)
            made = _StoredMap(folder, images, raw, {name: cameras[name] for name in kept})
            if made.make(exhaustive_pairs(kept), rows):
                made_map = QueryMap(title, seed, folder, queries, frozenset(nowhere))
                yield from made_map.variants(cameras) if title == kind else (made_map,)


@dataclasses.dataclass(frozen=True)
class _StoredMap:
    """A map of matches that were found before."""

    folder: Path
    images: Path
    raw: RawStore
    database: dict[str, Camera]

    def make(self, pairs: list[tuple[str, str]], rows: dict[str, list[str]], source: Path | None = None) -> bool:
        """Write all files of the map, unless they are there; False if there is none."""
        rows = {query: images for query, images in rows.items() if images}
        if not (self.folder / "sfm" / SUMMARY).is_file():
            write_pairs(self.folder / "pairs.txt", pairs)
            self._match("pairs.txt", "features.h5", "matches.h5", self.raw, [])
            inputs = (self.images, *(self.folder / name for name in ("pairs.txt", "features.h5", "matches.h5")))
            try:
                triangulate(known_model(self.database), *inputs, self.folder / "sfm", TriangulationSettings(threads=1))
            except ReconstructionError:
                return False
        if not rows:
            return False
        if not (self.folder / "matches-query.h5").is_file():
            write_pairs(
                self.folder / "retrieval.txt", [(query, image) for query, found in rows.items() for image in found]
            )
            raw = RawStore(source / "matches-query.raw") if source else self.raw
            self._match("retrieval.txt", "features-query.h5", "matches-query.h5", raw, [self.folder / "features.h5"])
        return True

    def _match(self, pairs: str, features: str, matches: str, raw: RawStore, fixed: list[Path]) -> None:
        limit = "null" if fixed else "8192"
        settings = load_settings(MatchingSettings, None, [f"tracks.max_keypoints={limit}"])
        files = {"features": self.folder / features, "matches": self.folder / matches, "features_ref": fixed}
        given = {"matcher": StoredMatches(raw.folder), "overwrite": "all"}
        match_pairs(self.images, self.folder / pairs, self.folder, settings, **files, **given)


def _most_matched(raw: RawStore, query: str, names: list[str]) -> list[str]:
    """As retrieval ranks them; those without a match are not retrieved."""
    counts = {name: raw.count((query, name)) for name in names}
    return sorted((name for name in names if counts[name]), key=lambda name: -counts[name])


def _link(path: Path, target: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.is_symlink():
        path.symlink_to(target.resolve())
