"""A map becomes a dense cloud: `densify`. Every image of every step is kept as it is done; a stopped run goes on."""

from __future__ import annotations

import functools
import json
import logging
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from pdc_sfm.colmap.io.maps import find_map
from pdc_sfm.colmap.io.poisson_mesh import write_mesh
from pdc_sfm.colmap.io.posed_views import PosedView
from pdc_sfm.engine.cache import parse_bytes
from pdc_sfm.engine.weights_file import WeightsFile
from pdc_sfm.errors import FormatError, OtherSettingsError, OutputError
from pdc_sfm.files import exclusive, file_digest
from pdc_sfm.fusion.checks import check_step
from pdc_sfm.fusion.cloud import fuse
from pdc_sfm.fusion.depth import (
    AGREED,
    FLOW,
    GEOMETRIC,
    PHOTOMETRIC,
    DensePlan,
    agreed_step,
    geometric_step,
    photometric_step,
    rho_limits,
)
from pdc_sfm.fusion.flows import FlowSource, flow_steps
from pdc_sfm.fusion.model_planes import model_planes
from pdc_sfm.fusion.partners import choose_partners
from pdc_sfm.fusion.prepare import checked_model, prepare
from pdc_sfm.fusion.settings import DensifySettings
from pdc_sfm.fusion.workspace import DENSE, Workspace, write_lists
from pdc_sfm.matches.masks import Masks
from pdc_sfm.paths import keep_apart
from pdc_sfm.processes import core_count, in_order
from pdc_sfm.progress import progress
from pdc_sfm.run_folder import versions, write_json
from pdc_sfm.settings import differences, result_settings, to_dict

log = logging.getLogger(__name__)

PLAN = "plan.json"  # in .work: what depth is made of
MESH = "meshed-poisson.ply"  # as COLMAP calls it
# settings that change no depth, only what is kept of it
OF_THE_CLOUD = ("seen", "probability", "speckle")


@dataclass(frozen=True)
class DenseCloud:
    """What was made, and where it lies."""

    output: Path  # a dense workspace of COLMAP's: fused.ply, stereo/depth_maps, ...
    points: int
    images: int
    left_out: tuple[str, ...]  # images that share too little with others
    seconds: dict[str, float]  # of each step, in this run

    def __str__(self) -> str:
        return f"{self.points:,} points of {self.images} images"


def densify(
    folder: Path | str,
    output: Path | str | None = None,
    settings: DensifySettings | None = None,
    *,
    images: Path | str | None = None,
    masks: Path | str | None = None,
    mesh: bool = False,
    workers: int | None = None,
    source: FlowSource | None = None,
) -> DenseCloud:
    """The dense cloud of the map in `folder`, by default in `dense` below it; nothing else of the map is touched.

    `images` if they were moved; `masks` as for matching, by default those that the map was made with. `workers` is the
    number of processes (default: one a core), `source` stands in for the network.
    """
    settings, folder = settings or DensifySettings(), Path(folder)
    found = find_map(folder)
    model, lies = checked_model(found, None if images is None else Path(images))
    output = folder / DENSE if output is None else Path(output)
    keep_apart(images=[lies], models=[found.model], folders=[output])
    where = folder / "masks" if masks is None and (folder / "masks").is_dir() else masks
    held = None if where is None else Masks(where)
    workspace = Workspace(output)
    with exclusive(workspace.record):
        _begin(workspace, _identity(found.model, settings, held))
        steps = _Steps(core_count() if workers is None else workers)
        views = steps.time("images", lambda: prepare(model, lies, workspace, settings.max_side, held))
        plan, left_out = _plan(workspace, views, settings)
        steps.depth(plan, settings, source)
        count = steps.cloud(plan, settings)
        if mesh:
            steps.time("mesh", lambda: write_mesh(workspace.cloud, output / MESH, count))
        made = DenseCloud(output, count, len(plan.views) - len(left_out), tuple(left_out), steps.seconds)
        record = {"points": count, "images": made.images, "left_out": left_out, "map": str(folder.absolute())}
        record |= {"settings": to_dict(settings), "seconds": steps.seconds, "versions": versions()}
        write_json(workspace.record, record)
        for step in (FLOW, PHOTOMETRIC, AGREED):  # what other settings of the cloud do not need
            shutil.rmtree(workspace.work / step, ignore_errors=True)
    return made


class _Steps:
    """Steps over the images, each image once, in processes; and what they took."""

    def __init__(self, workers: int):
        self.workers, self.seconds = workers, dict[str, float]()

    def time(self, name: str, work: Callable[[], Any]) -> Any:
        start = time.monotonic()
        made = work()
        self.seconds[name] = round(time.monotonic() - start, 2)
        return made

    def depth(self, plan: DensePlan, settings: DensifySettings, source: FlowSource | None) -> None:
        """Flows, then planes of each image alone, then planes that agree, twice: of what is not there already."""
        usable = [number for number, partners in enumerate(plan.partners) if partners]
        last = self._lacking(plan, GEOMETRIC, usable)
        agreed = self._lacking(plan, AGREED, _with_partners(plan, last))
        alone = self._lacking(plan, PHOTOMETRIC, _with_partners(plan, agreed))
        flows = self._lacking(plan, FLOW, sorted({*last, *agreed, *alone}))
        if flows:
            network = source or _network(settings)
            self.time("flows", lambda: flow_steps(plan, flows, network, parse_bytes(settings.memory)))
        self._each("photometric depth", alone, functools.partial(photometric_step, plan))
        self._each("agreed depth", agreed, functools.partial(agreed_step, plan))
        self._each("geometric depth", last, functools.partial(geometric_step, plan))

    def cloud(self, plan: DensePlan, settings: DensifySettings) -> int:
        """What views agree on, as maps and as one cloud. Returns the number of points."""
        usable = [number for number, partners in enumerate(plan.partners) if partners]
        plan.workspace.record.unlink(missing_ok=True)
        self._each("checks", usable, functools.partial(check_step, plan, settings))
        write_lists(plan.workspace, [plan.views[number].name for number in usable])
        return self.time("fusion", lambda: fuse(plan))

    def _each(self, label: str, numbers: Sequence[int], step: Callable[[int], Any]) -> None:
        if not numbers:
            return
        make = functools.partial(_item, step, numbers)
        workers = min(self.workers, len(numbers)) if self.workers > 1 else 0
        done = in_order(make, 0, len(numbers), workers=workers)
        self.time(label, lambda: list(progress(done, label, "image", len(numbers))))

    @staticmethod
    def _lacking(plan: DensePlan, step: str, numbers: Sequence[int]) -> list[int]:
        return [number for number in numbers if not plan.workspace.made(step, plan.views[number].name).is_file()]


def _with_partners(plan: DensePlan, numbers: Sequence[int]) -> list[int]:
    return sorted({*numbers, *(other for number in numbers for other in plan.partners[number])})


def _item(step: Callable[[int], Any], numbers: Sequence[int], index: int) -> Any:
    return step(numbers[index])


def _network(settings: DensifySettings) -> FlowSource:
    from pdc_sfm.dense.settings import DenseSettings
    from pdc_sfm.matcher import PairSettings, load_matcher

    pair = PairSettings(dense=DenseSettings(method="direct"))
    return load_matcher(settings.weights, pair, settings.device, settings.precision).estimator


def _plan(workspace: Workspace, views: Sequence[PosedView], settings: DensifySettings) -> tuple[DensePlan, list[str]]:
    partners = choose_partners(views, settings.partners)
    for number, own in enumerate(partners):  # one that is none's partner and has none would only be read
        partners[number] = own if len(own) + 1 >= settings.seen else []
    left_out = [view.name for view, own in zip(views, partners) if not own]
    if len(left_out) == len(views):
        raise FormatError(
            f"no image of the map shares points with {settings.seen - 1} others: match more pairs, or set seen=2"
        )
    if left_out:
        log.warning("%d images share too little with others and get no depth (first: %s)", len(left_out), left_out[0])
    partners = [[other for other in own if partners[other]] for own in partners]
    limits = [rho_limits(view) if own else (1.0, 1.0) for view, own in zip(views, partners)]
    planes = [_planes(view, settings.seed, number) for number, view in enumerate(views)]
    bare = [replace(view, points=np.zeros((0, 3)), point_ids=np.zeros(0, np.int64)) for view in views]
    return DensePlan(workspace, bare, partners, limits, planes, settings.seed), left_out


def _planes(view: PosedView, seed: int, number: int) -> np.ndarray:
    points = view.points @ view.cam_from_world[:, :3].T + view.cam_from_world[:, 3]
    return model_planes(points, np.random.default_rng((seed, 0, number)))


def _identity(model: Path, settings: DensifySettings, masks: Masks | None) -> dict[str, Any]:
    """All that depth depends on."""
    files = [path for path in sorted(model.iterdir()) if path.stem in ("cameras", "images", "points3D")]
    chosen = {key: value for key, value in result_settings(settings).items() if key not in OF_THE_CLOUD}
    weights = WeightsFile.of(settings.weights).fingerprint
    made_of = {"map": [file_digest(path) for path in files], "masks": None if masks is None else masks.digest()}
    return {**chosen, "weights": weights, **made_of}


def _begin(workspace: Workspace, identity: dict[str, Any]) -> None:
    """Go on with what is there, if it was made of the same; refuse what is not ours."""
    path = workspace.work / PLAN
    if not path.is_file():
        there = workspace.folder.iterdir() if workspace.folder.is_dir() else ()
        if any(entry.name != f".{workspace.record.name}.lock" for entry in there):
            raise OutputError(f"{workspace.folder} holds other files: choose an empty folder, or a new one (--output)")
        write_json(path, identity)
        return
    try:
        earlier = json.loads(path.read_text(encoding="utf-8"))
        changed = differences(earlier, identity)
    except (OSError, ValueError, AttributeError) as error:
        raise FormatError(
            f"cannot read {path}: {error}; remove {workspace.folder}, or choose another --output"
        ) from None
    if changed:
        raise OtherSettingsError(
            f"{workspace.folder} was made otherwise ({', '.join(changed)}): choose another --output, or remove it",
            workspace.folder,
        )
