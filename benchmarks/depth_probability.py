"""Fit the probability of `densify`'s depths to scenes whose depth is known, and see how true it is of others.

    pdc-sfm scene --output outputs/town5 seed=5 width=400 height=300 database=12 day_queries=0 night_queries=0
    pdc-sfm scene --output outputs/room72 --kind room seed=72 width=400 height=300 images=10
    python benchmarks/depth_probability.py --fit outputs/town5 --test outputs/room72 --output outputs/probability.json

A scene without a map gets one of its true cameras and of points of its true depth, in SCENE/sfm, and a cloud in SCENE/dense.
Printed are the weights of pdc_sfm/fusion/probability.py, written those of probability_network.py, and of each scene is said
how many of the depths of a stated probability are right. Without --output nothing is fitted: the built-in weights are tested.
"""

from __future__ import annotations

import argparse
import itertools
import json
from pathlib import Path

import cv2
import numpy as np
import torch
from truth_map import write_truth_map

from pdc_sfm.colmap.io.models import load_model
from pdc_sfm.colmap.io.posed_views import posed_views
from pdc_sfm.fusion import densify
from pdc_sfm.fusion.checks import see
from pdc_sfm.fusion.depth import GEOMETRIC, DensePlan
from pdc_sfm.fusion.partners import choose_partners
from pdc_sfm.fusion.probability import OWN_WEIGHTS, RIGHT, belief, logistic, own_features
from pdc_sfm.fusion.probability_network import ProbabilityNetwork, final_features, probability_network, signs
from pdc_sfm.fusion.settings import DensifySettings
from pdc_sfm.fusion.workspace import DENSE, Workspace
from pdc_sfm.images import read_image
from pdc_sfm.scenes.layouts.plain import read_depth

DRAWN = 200_000  # pixels of each scene, by chance: a large one counts no more than a small one
HIDDEN, STEPS, BATCH, RATE = (24, 12), 4000, 2048, 3e-3  # of the network, and of Adam, whose rate falls to nothing
STATED = (0.0, 0.3, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9)


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
        share = DRAWN / sum(made["rho"].size for made in self.made.values())
        self.truth, self.drawn, self.surface = [], [], 0
        for view in self.views:
            truth, moving = read_depth(folder / "depth" / view.name)
            self.truth.append(truth)
            self.drawn.append(~moving & (rng.random(truth.shape) < share))
            self.surface += int((self.drawn[-1] & (truth > 0)).sum())

    def load(self, step: str, name: str) -> dict[str, np.ndarray]:
        """As of the workspace."""
        return self.made[name]

    def own(self) -> tuple[np.ndarray, np.ndarray]:
        """Features (N, 4) that an image knows alone of the drawn pixels, and which depths are right."""
        features, right = [], []
        for view, truth, drawn in zip(self.views, self.truth, self.drawn):
            made = self.made[view.name]
            features.append(_own(made)[drawn])
            right.append(_error(made["rho"], truth)[drawn] < RIGHT)
        return np.concatenate(features), np.concatenate(right)

    def believe(self, weights: np.ndarray) -> None:
        """Give all images other beliefs."""
        for view in self.views:
            made = self.made[view.name]
            made["probability"] = logistic(_own(made), weights)
            made["belief"] = belief(made["probability"], self._gray(view.name))

    def seen(self) -> tuple[np.ndarray, np.ndarray]:
        """Features (N, F) of the drawn pixels that two images agree on, and their errors with what partners say."""
        features, errors = [], []
        for number, view in enumerate(self.views):
            made = self.made[view.name]
            found = see(self.plan, number, made)
            drawn = self.drawn[number] & (found.count >= DensifySettings().seen)
            all_of_it = final_features(made, vars(found), self._gray(view.name), view.intrinsics[0, 0])
            features.append(all_of_it[drawn])
            errors.append(_error(found.rho, self.truth[number])[drawn])
        return np.concatenate(features), np.concatenate(errors)

    def _gray(self, name: str) -> np.ndarray:
        return cv2.cvtColor(read_image(self.workspace.images / name), cv2.COLOR_RGB2GRAY).astype(np.float32)


def _own(made: dict[str, np.ndarray]) -> np.ndarray:
    return own_features(*(made[key] for key in ("rho", "gx", "gy", "agreement", "support")))


def _error(rho: np.ndarray, truth: np.ndarray) -> np.ndarray:
    return np.where(truth > 0, np.abs(1 / rho - truth) / np.maximum(truth, 1e-9), np.inf)


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


class Monotone(torch.nn.Module):
    """A network whose answer grows with features of sign 1 and falls with those of sign -1.

    Weights behind the first layer are positive, and so are those of signed features in it, times their sign.
    """

    def __init__(self, signs: np.ndarray):
        super().__init__()
        self.signs = torch.tensor(signs, dtype=torch.float32)
        widths = (len(signs), *HIDDEN, 1)
        self.linear = torch.nn.ModuleList(torch.nn.Linear(*sides) for sides in itertools.pairwise(widths))

    def weights(self) -> list[torch.Tensor]:
        """As they are used, (out, in)."""
        first, *others = (layer.weight for layer in self.linear)
        return [torch.where(self.signs == 0, first, self.signs * first.abs()), *(weight.abs() for weight in others)]

    def forward(self, values: torch.Tensor) -> torch.Tensor:
        for number, (weight, layer) in enumerate(zip(self.weights(), self.linear)):
            values = torch.nn.functional.linear(values if number == 0 else torch.tanh(values), weight, layer.bias)
        return values[:, 0]


def fitted_network(features: np.ndarray, right: np.ndarray) -> ProbabilityNetwork:
    """The network of the largest likelihood, about."""
    torch.manual_seed(0)
    mean, deviation = features.mean(0), features.std(0) + 1e-6
    network = Monotone(signs())
    rows, wanted = torch.tensor((features - mean) / deviation), torch.tensor(right.astype(np.float32))
    optimizer = torch.optim.Adam(network.parameters(), RATE)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS)
    for _ in range(STEPS):
        own = torch.randint(0, len(rows), (BATCH,))
        loss = torch.nn.functional.binary_cross_entropy_with_logits(network(rows[own]), wanted[own])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    layers = zip(network.weights(), network.linear)
    return ProbabilityNetwork(
        mean, deviation, tuple((weight.detach().numpy().T, layer.bias.detach().numpy()) for weight, layer in layers)
    )


def fit(scenes: list[KnownScene]) -> tuple[np.ndarray, ProbabilityNetwork]:
    """Weights of what an image knows alone, then the network."""
    features, right = (np.concatenate(parts) for parts in zip(*(scene.own() for scene in scenes)))
    own_weights = fitted(features, right)
    for scene in scenes:
        scene.believe(own_weights)
    features, errors = (np.concatenate(parts) for parts in zip(*(scene.seen() for scene in scenes)))
    return own_weights, fitted_network(features, errors < RIGHT)


def show(scene: KnownScene, network: ProbabilityNetwork) -> None:
    """How true the probability is, and what is found from some of it on (of all surface, whoever sees it)."""
    features, errors = scene.seen()
    stated = network(features)
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
    parser.add_argument("--fit", type=Path, nargs="*", default=[], metavar="SCENE")
    parser.add_argument("--test", type=Path, nargs="*", default=[], metavar="SCENE")
    parser.add_argument("--output", type=Path, help="of the network's weights")
    args = parser.parse_args()
    scenes = [KnownScene(folder) for folder in args.fit]
    own_weights, network = fit(scenes) if args.output else (OWN_WEIGHTS, probability_network())
    if args.output:
        args.output.write_text(json.dumps(network.to_dict()) + "\n", encoding="utf-8")
        print(f"OWN_WEIGHTS = np.array([{', '.join(f'{weight:.2f}' for weight in own_weights)}])")
    for scene in [*scenes, *map(KnownScene, args.test)]:
        scene.believe(own_weights)
        show(scene, network)


if __name__ == "__main__":
    main()
