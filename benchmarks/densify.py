"""How much of a rendered scene `pdc-sfm densify` finds, how much of what it finds is wrong, and what OpenCV's SGBM finds.

    pdc-sfm scene --output outputs/town
    python benchmarks/densify.py outputs/town

A scene without a map gets one of its true cameras (truth_map.py); after `pdc-sfm demo` its own is taken.
Truth is the depth that the scene was rendered with. The visible surface is all of it, pixel by pixel, that another image of the
map shows too, from wherever; sky and things that move are left out. Wrong is what lies further off than 3 % of its depth, or
where there is nothing but sky.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from sgbm import agreeing, rectifiable, sgbm
from truth_map import write_truth_map

from pdc_sfm.colmap.io.models import load_model
from pdc_sfm.colmap.io.posed_views import PosedView, posed_views
from pdc_sfm.fusion import densify
from pdc_sfm.fusion.cloud import read_cloud
from pdc_sfm.fusion.geometry import Transfer, lookup
from pdc_sfm.fusion.partners import choose_partners
from pdc_sfm.fusion.workspace import DENSE, Workspace, read_map
from pdc_sfm.scenes.layouts.plain import read_depth

SAME = 0.02  # of its depth: what two images show there is the same surface
PAIRS = 4  # of each image that SGBM is given, of those that can be rectified; two must agree within 1 %


class Truth(NamedTuple):
    """Of an image, (h, w) each."""

    depth: np.ndarray  # 0 in the sky
    moving: np.ndarray
    visible: np.ndarray  # surface that another image shows


def true_depths(scene: Path, views: Sequence[PosedView], numbers: Sequence[int]) -> list[Truth]:
    """Of these images."""
    read = [read_depth(scene / "depth" / view.name) for view in views]
    found = []
    for number in numbers:
        view, (depth, moving) = views[number], read[number]
        rows, columns = np.nonzero((depth > 0) & ~moving)
        rho, visible = 1 / depth[rows, columns], np.zeros(len(rows), bool)
        for there, (other, _) in zip(views, read):
            if there is not view:
                u, v, expected = Transfer.between(view, there, view.size, there.size).points(columns, rows, rho)
                shown = lookup(other, u, v)
                visible |= (shown > 0) & (np.abs(shown * expected - 1) < SAME)
        seen = np.zeros(depth.shape, bool)
        seen[rows[visible], columns[visible]] = True
        found.append(Truth(depth, moving, seen))
    return found


class Score:
    """Shares over all images."""

    def __init__(self) -> None:
        self.surface = self.right = self.found = self.wrong = 0
        self.ratios: list[np.ndarray] = []

    def add(self, depth: np.ndarray, truth: Truth, sigma: np.ndarray | None = None) -> None:
        there, has, moving, truth = truth.visible, depth > 0, truth.moving, truth.depth
        error = np.where(truth > 0, np.abs(depth - truth) / np.maximum(truth, 1e-9), np.inf)
        self.surface += there.sum()
        self.right += (there & has & (error < 0.01)).sum()
        self.found += (has & ~moving).sum()
        self.wrong += (has & ~moving & (error > 0.03)).sum()
        if sigma is not None:
            good = has & there & (error < 0.03)
            self.ratios.append((np.abs(depth - truth)[good] / sigma[good])[::50])

    def __str__(self) -> str:
        text = f"{self.right / self.surface:7.1%} of the visible surface within 1 %; {self.found / self.surface:6.1%} found"
        text += f", {self.wrong / max(1, self.found):6.1%} of it further off than 3 %"
        if self.ratios:
            ratio = np.concatenate(self.ratios)
            text += f"; within 1, 2, 3 sigma {np.mean(ratio < 1):.0%} {np.mean(ratio < 2):.0%} {np.mean(ratio < 3):.0%}"
        return text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("scene", type=Path, help="folder of `pdc-sfm scene` or `demo`, with depth")
    parser.add_argument("--output", type=Path, help="of the cloud (default: SCENE/dense)")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--every", type=int, default=1, metavar="N", help="measure depth of every Nth image only")
    args = parser.parse_args()
    start, spent = time.perf_counter(), _processor()
    found = args.scene if (args.scene / "sfm").is_dir() else write_truth_map(args.scene)
    made = densify(found, args.output or args.scene / DENSE, workers=args.workers)
    wall, spent = time.perf_counter() - start, _processor() - spent
    workspace = Workspace(made.output)
    views = posed_views(load_model(workspace.sparse))
    ours, best, agreed = Score(), Score(), Score()
    seconds = 0.0
    partners = choose_partners(views, 2 * PAIRS)
    numbers = range(0, len(views), args.every)
    for number, truth in zip(numbers, true_depths(args.scene, views, numbers)):
        view = views[number]
        if workspace.map("depth", view.name).is_file():
            ours.add(read_map(workspace.map("depth", view.name)), truth, read_map(workspace.map("sigma", view.name)))
        else:
            ours.add(np.zeros_like(truth.depth), truth)
        begun = time.process_time()
        others = rectifiable(number, views, partners[number], PAIRS)
        maps = np.stack(
            [np.zeros(truth.depth.shape), *(sgbm(workspace.images, view, views[other]) for other in others)]
        )
        together = agreeing(maps[1:]) if others else maps[0]
        seconds += time.process_time() - begun
        best.add(maps[min(1, len(others))], truth)
        agreed.add(together, truth)
    print(f"densify            {ours}")
    print(f"SGBM, best pair    {best}")
    print(f"SGBM, {PAIRS} pairs      {agreed} ({seconds:.0f} s of a processor)")
    print(f"cloud: {wrong_points(made.output / 'fused.ply', args.scene, views)}")
    print(f"{len(views)} images: {wall:.0f} s, processor {spent:.0f} s; {made.seconds}")


def wrong_points(path: Path, scene: Path, views: list[PosedView]) -> str:
    """Points of the cloud that lie before or behind what every image in which they lie shows there, by 3 % and more."""
    cloud = read_cloud(path)["xyz"].astype(np.float64)
    right = np.zeros(len(cloud), bool)
    for view in views:
        truth = read_depth(scene / "depth" / view.name)[0]
        there = cloud @ view.cam_from_world[:, :3].T + view.cam_from_world[:, 3]
        pixels = there @ view.intrinsics.T
        ahead = pixels[:, 2] > 0
        x, y = (np.where(ahead, np.rint(pixels[:, k] / np.where(ahead, pixels[:, 2], 1)), -1) for k in (0, 1))
        on = ahead & (x >= 0) & (y >= 0) & (x < view.size[0]) & (y < view.size[1])
        depth = np.where(on, truth[np.where(on, y, 0).astype(int), np.where(on, x, 0).astype(int)], 0)
        right |= (depth > 0) & (np.abs(there[:, 2] - depth) < 0.03 * depth)
    return f"{len(cloud):,} points, {1 - right.mean():.1%} of them on no surface that any image shows"


def _processor() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


if __name__ == "__main__":
    main()
