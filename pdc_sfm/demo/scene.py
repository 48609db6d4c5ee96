"""The built-in scene: a model of its database images from known poses, then day and night queries in it."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from pdc_sfm.colmap.io.models import ReconstructionError
from pdc_sfm.colmap.mapping.sift_files import match_sift
from pdc_sfm.demo.chain import Chain
from pdc_sfm.demo.method import Method, Scene
from pdc_sfm.demo.settings import DemoSettings, demo_settings, retrieval_settings
from pdc_sfm.demo.table import GROUPS, empty_row, localization_record
from pdc_sfm.demo.true_cameras import write_queries
from pdc_sfm.engine.pairing import nearest_pose_pairs
from pdc_sfm.files import exclusive
from pdc_sfm.pipeline.matching import ListMatcher, describe, describe_matching, engine_matcher
from pdc_sfm.processes import core_count
from pdc_sfm.progress import progress
from pdc_sfm.retrieval import retrieve
from pdc_sfm.run_folder import RECORD, RunFolder, write_json
from pdc_sfm.scenes import Camera, read_cameras, write_scene
from pdc_sfm.settings import to_dict
from pdc_sfm.store.pair_lists import unique_pairs, write_pairs

log = logging.getLogger(__name__)


def run_scene(
    output: Path | str,
    settings: DemoSettings | None = None,
    *,
    match: ListMatcher | None = None,
    network: Any = None,
    workers: int | None = None,
) -> RunFolder:
    """Render the scene, map it, localize its queries, compare with SIFT, write the report. Stopped, it goes on.

    `match` and `network` stand in for the network of the settings.
    """
    settings, output = settings or demo_settings(), Path(output)
    match = match or engine_matcher(settings.match)
    output.mkdir(parents=True, exist_ok=True)
    with exclusive(output / RECORD):
        folder = RunFolder(output)
        folder.begin("scene", to_dict(settings))
        chain = Chain(folder)
        scene = _scene_steps(chain, settings, workers or core_count())
        ours = _ours(folder, scene, match, network)
        ours.run(chain, scene)
        rows = [ours.row(scene)]
        if settings.sift:
            rows.append(_sift(chain, scene))
        chain.finish(rows, settings.report)
    return folder


def _scene_steps(chain: Chain, settings: DemoSettings, workers: int) -> Scene:
    """Pictures, then which of them are matched."""
    folder, s = chain.folder, settings.scene

    def cameras(*groups: str) -> dict[str, Camera]:
        known = read_cameras(folder.path)
        return {name: camera for name, camera in known.items() if name.split("/")[0] in groups}

    def render() -> str:
        with progress(None, "scene", "image", s.total) as bar:
            write_scene(folder.path, s, workers, lambda *_: bar.update())
        return f"{s.database} database, {s.day_queries} day and {s.night_queries} night images of {s.width}x{s.height}"

    def choose() -> str:
        poses = {name: camera.cam_from_world for name, camera in cameras("db").items()}
        pairs = unique_pairs(nearest_pose_pairs(poses, settings.neighbors, settings.max_angle))
        write_pairs(folder / "pairs.txt", pairs)
        write_queries(folder / "queries.txt", cameras(*GROUPS))
        return f"{len(pairs)} pairs of {len(poses)} images: the nearest that look the same way"

    chain.run("scene", to_dict(s), [folder / "cameras.json"], render)
    chosen = [folder / "pairs.txt", folder / "queries.txt"]
    chain.run("pairs", [settings.neighbors, settings.max_angle], chosen, choose)
    return Scene(folder / "images", folder / "pairs.txt", cameras("db"), cameras(*GROUPS), settings)


def _ours(folder: RunFolder, scene: Scene, match: ListMatcher, network: Any) -> Method:
    s, finding = scene.settings, retrieval_settings(scene.settings)

    def find(pairs: Path) -> str:
        lists = list(scene.queries), list(scene.database)
        result = retrieve(scene.images, *lists, pairs, s.retrieved, finding, network=network)
        return f"{result}{'; no confident match: ' * bool(result.unmatched)}{', '.join(result.unmatched)}"

    return Method(
        "pdc_sfm", folder.path, match, find, describe_matching(s.match, None), [s.retrieved, describe(finding)]
    )


def _sift(chain: Chain, scene: Scene) -> dict[str, Any]:
    """The same by SIFT; every query is matched with every database image, as retrieval is not compared."""

    def find(pairs: Path) -> str:
        write_pairs(pairs, [(query, image) for query in scene.queries for image in scene.database])
        return f"all {len(scene.database)} images for each of {len(scene.queries)} queries"

    sift = Method("SIFT", chain.folder / "sift", match_sift, find, "sift", "all", prefix="SIFT ")
    try:
        sift.run(chain, scene)
        row = sift.row(scene)
    except ReconstructionError as error:  # the comparison fails, not the demo
        log.warning("SIFT has no model: %s", error)
        row = empty_row("SIFT", len(scene.database))
    record = localization_record(sift.file("results.txt"), scene.true_queries)
    write_json(chain.folder / "sift.json", {"row": row, **record})
    return row
