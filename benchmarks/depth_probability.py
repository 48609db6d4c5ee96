"""Fit the probability of `densify`'s depths to scenes whose depth is known, and see how true it is of others.

    pdc-sfm scene --output outputs/town
    pdc-sfm scene --output outputs/room72 --kind room seed=72 width=400 height=300 images=8
    python benchmarks/depth_probability.py --fit outputs/town --test outputs/room72

A scene without a map gets one of its true cameras and of points of its true depth, in SCENE/sfm, and a cloud in SCENE/dense.
Printed are the weights of pdc_sfm/fusion/probability.py, and of each scene how many of the depths of a stated probability are
right; a quantile is what part of the surface is believed from some probability on.
"""

from __future__ import annotations

import argparse
import itertools
from pathlib import Path

import cv2
import numpy as np
from truth_map import write_truth_map

from pdc_sfm.colmap.io.models import load_model
from pdc_sfm.colmap.io.posed_views import posed_views
from pdc_sfm.fusion import densify
from pdc_sfm.fusion.checks import see
from pdc_sfm.fusion.depth import GEOMETRIC, DensePlan
from pdc_sfm.fusion.partners import choose_partners
from pdc_sfm.fusion.probability import RIGHT, belief, logistic, own_features, seen_features
from pdc_sfm.fusion.settings import DensifySettings
from pdc_sfm.fusion.workspace import DENSE, Workspace
from pdc_sfm.images import read_image
from pdc_sfm.scenes.layouts.plain import read_depth

SHARE = 0.15  # of the pixels, drawn by chance, that are fitted to
STATED = (0.0, 0.3, 0.5, 0.6, 0.7, 0.8, 0.9)


class KnownScene:
    """A cloud's planes, with other beliefs than those that were written."""

    def __init__(self, folder: Path):
        self.folder = folder
        if not (folder / DENSE / "densify.json").is_file():
            found = folder if (folder / "sfm").is_dir() else write_truth_map(folder)
            densify(found, folder / DENSE)
        self.workspace = Workspace(folder / DENSE)
        self.views = posed_views(load_model(self.workspace.sparse))
        self.plan = DensePlan(self, self.views, choose_partners(self.views, DensifySettings().partners), (), ())  # type: ignore[arg-type]
        self.made = {view.name: self.workspace.load(GEOMETRIC, view.name) for view in self.views}
        rng = np.random.default_rng(0)
        self.errors, self.drawn, self.surface = [], [], 0
        for view in self.views:
            truth, moving = read_depth(folder / "depth" / view.name)
            depth = 1 / self.made[view.name]["rho"]
            self.errors.append(np.where(truth > 0, np.abs(depth - truth) / np.maximum(truth, 1e-9), np.inf))
            self.drawn.append(~moving & (rng.random(truth.shape) < SHARE))
            self.surface += int((self.drawn[-1] & (truth > 0)).sum())

    def load(self, step: str, name: str) -> dict[str, np.ndarray]:
        """As of the workspace."""
        return self.made[name]

    def own(self) -> list[np.ndarray]:
        keys = ("rho", "gx", "gy", "agreement", "support")
        return [own_features(*(self.made[view.name][key] for key in keys)) for view in self.views]

    def believe(self, own: list[np.ndarray], weights: np.ndarray) -> None:
        for view, features in zip(self.views, own):
            made, picture = self.made[view.name], read_image(self.workspace.images / view.name)
            made["probability"] = logistic(features, weights)
            made["belief"] = belief(made["probability"], cv2.cvtColor(picture, cv2.COLOR_RGB2GRAY))

    def seen(self) -> list[np.ndarray]:
        found = []
        for number, view in enumerate(self.views):
            made = self.made[view.name]
            depth = see(self.plan, number, made)
            views = depth.same, depth.through, depth.before
            found.append(seen_features(made["probability"], made["belief"], *views))
        return found

    def flat(self, maps: list[np.ndarray]) -> np.ndarray:
        return np.concatenate([part[drawn] for part, drawn in zip(maps, self.drawn)])


def fitted(features: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Weights of the largest likelihood (Newton's method), the last of 1."""
    rows = np.c_[features, np.ones(len(features))]
    weights = np.zeros(rows.shape[1])
    for _ in range(50):
        found = 1 / (1 + np.exp(-np.clip(rows @ weights, -30, 30)))
        slope = rows.T @ (found - right)
        curve = (rows * (found * (1 - found))[:, None]).T @ rows + 1e-3 * np.eye(len(weights))
        step = np.linalg.solve(curve, slope)
        weights -= step
        if np.abs(step).max() < 1e-6:
            break
    return weights


def fit(scenes: list[KnownScene]) -> tuple[np.ndarray, np.ndarray]:
    right = np.concatenate([scene.flat(scene.errors) < RIGHT for scene in scenes])
    own = [scene.own() for scene in scenes]
    own_weights = fitted(np.concatenate([scene.flat(part) for scene, part in zip(scenes, own)]), right)
    for scene, part in zip(scenes, own):
        scene.believe(part, own_weights)
    seen_weights = fitted(np.concatenate([scene.flat(scene.seen()) for scene in scenes]), right)
    return own_weights, seen_weights


def show(scene: KnownScene, seen_weights: np.ndarray) -> None:
    stated, errors = logistic(scene.flat(scene.seen()), seen_weights), scene.flat(scene.errors)
    bins = np.linspace(0, 1, 11)
    parts = [(stated >= low) & (stated < high) for low, high in itertools.pairwise(bins)]
    row = " ".join(f"{stated[own].mean():.2f}:{np.mean(errors[own] < RIGHT):.2f}" for own in parts if own.sum() > 50)
    print(f"{scene.folder.name}: stated and right {row}")
    for least in STATED:
        own = stated >= least
        print(
            f"  from {least}: {np.sum(errors[own] < 0.01) / scene.surface:6.1%} of the surface within 1 %, "
            f"{np.mean(errors[own] > 0.03):6.1%} of these depths further off than 3 %"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fit", type=Path, nargs="+", required=True, metavar="SCENE")
    parser.add_argument("--test", type=Path, nargs="*", default=[], metavar="SCENE")
    args = parser.parse_args()
    scenes = [KnownScene(folder) for folder in args.fit]
    own_weights, seen_weights = fit(scenes)
    for name, weights in (("OWN_WEIGHTS", own_weights), ("SEEN_WEIGHTS", seen_weights)):
        print(f"{name} = np.array([{', '.join(f'{weight:.2f}' for weight in weights)}])")
    for folder in args.test:
        scene = KnownScene(folder)
        scene.believe(scene.own(), own_weights)
        scenes.append(scene)
    for scene in scenes:
        show(scene, seen_weights)


if __name__ == "__main__":
    main()
