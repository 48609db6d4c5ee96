"""What each stage of retrieval finds by itself: descriptor, pooled cells, 256-pixel branch, beside a color histogram.

    python benchmarks/stages.py
    python benchmarks/stages.py --stages "256 branch" --walks 1       a minute of a core, and the slowest of them

On `places/gardenspoint` (a walk by day and by night; image k of one shows what image k of another shows) the share of queries
with the right image, or one beside it, among the first 1, 5 and 10. On `indoor/kitchen` (true cameras) the share of queries whose
first image shows more than half of what they show, and how much the first and the first five show of it on average: from the
poses, for surfaces 1 to 3 metres away, as depths are not known there.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
import torch
from data import DATA, needed

from pdc_sfm.images import list_images, read_image
from pdc_sfm.network import PDCNet
from pdc_sfm.retrieval.coarse import CoarsePairs, pooled, score_coarse, similarities
from pdc_sfm.retrieval.codes import CoarseCodes, Encoder
from pdc_sfm.retrieval.settings import RetrievalSettings
from pdc_sfm.retrieval.vocabulary import Vocabulary
from pdc_sfm.weights import load_network

Ranking = Callable[[CoarseCodes, CoarseCodes], np.ndarray]  # queries, database -> similarities (Q, N)
DEPTHS = (1.0, 1.5, 2.0, 3.0)  # metres, of a kitchen
BINS = 8  # of a channel of the histogram


def by_descriptor(queries: CoarseCodes, database: CoarseCodes) -> np.ndarray:
    maps = [codes.code.features[4].numpy() for codes in (queries, database)]
    vocabulary = Vocabulary.learn(maps[1])
    return vocabulary.describe(maps[0]) @ vocabulary.describe(maps[1]).T


def by_cells(queries: CoarseCodes, database: CoarseCodes) -> np.ndarray:
    return similarities(pooled(queries), pooled(database))


def by_branch(network: PDCNet) -> Ranking:
    def rank(queries: CoarseCodes, database: CoarseCodes) -> np.ndarray:
        columns = list(range(len(database)))
        settings = RetrievalSettings(device="cpu")
        pairs = (CoarsePairs(database, [row] * len(columns), columns) for row in range(len(queries)))
        return np.array([score_coarse(network, queries, some, settings) for some in pairs])

    return rank


def by_color(images: Path) -> Ranking:
    def describe(codes: CoarseCodes) -> np.ndarray:
        rows = []
        for name in codes.names:
            small = cv2.resize(read_image(images / name), (64, 64), interpolation=cv2.INTER_AREA).reshape(-1, 3)
            counts = np.histogramdd(small // (256 // BINS), BINS, [(0, BINS)] * 3)[0].ravel()
            rows.append(np.sqrt(counts / counts.sum()))
        return np.stack(rows)

    return lambda queries, database: describe(queries) @ describe(database).T


def overlap(query: np.ndarray, image: np.ndarray, camera: dict) -> float:
    """The share of a query (3, 4) that another pose shows, mean over depths."""
    (focal, _, cx, cy), width, height = camera["params"], camera["width"], camera["height"]
    x, y = np.meshgrid(np.linspace(0, width, 18)[1:-1], np.linspace(0, height, 14)[1:-1])
    rays = np.stack([(x.ravel() - cx) / focal, (y.ravel() - cy) / focal, np.ones(x.size)], 1)
    shares = []
    for depth in DEPTHS:
        there = ((rays * depth - query[:, 3]) @ query[:, :3]) @ image[:, :3].T + image[:, 3]
        u, v = (there[:, :2] / there[:, 2:] * focal + (cx, cy)).T
        shares.append(np.mean((there[:, 2] > 0) & (u > 0) & (u < width) & (v > 0) & (v < height)))
    return float(np.mean(shares))


STAGES = ("color", "descriptor", "cells", "256 branch")
WALKS = (("night_right", "day_right"), ("night_right", "day_left"), ("day_left", "day_right"))  # queries, database


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stages", nargs="+", choices=STAGES, default=STAGES)
    parser.add_argument("--walks", type=int, choices=(1, 2, 3), default=3, help="so many of the walk's three columns")
    args = parser.parse_args()
    torch.set_num_threads(1)
    places, kitchen = needed(DATA / "places/gardenspoint"), needed(DATA / "indoor/kitchen")
    network = load_network(None, "cpu")

    def encode(images: Path, names: list[str]) -> CoarseCodes:
        codes = Encoder(network, images).encode(names)
        assert codes is not None
        return codes

    walks = {name: encode(places, [f"{name}/{file}" for file in list_images(places / name)])
             for name in ("day_left", "day_right", "night_right")}  # fmt: skip
    truth = json.loads((kitchen / "cameras.json").read_text())
    poses = {n: np.c_[c["R_cam_from_world"], c["t_cam_from_world"]] for n, c in truth["images"].items()}
    queries, database = (encode(kitchen / "images", [n for n in sorted(poses) if n.startswith("db/") == known])
                         for known in (False, True))  # fmt: skip
    shown = np.array([[overlap(poses[q], poses[d], truth["camera"]) for d in database.names] for q in queries.names])
    titles = ("night -> day", "night -> day, left", "left -> right")[: args.walks]
    print(f"{'stage':<12} {' '.join(f'{title:>20}' for title in titles)}   kitchen: > half  first  five   ms a pair")
    ranks = dict(zip(STAGES, (None, by_descriptor, by_cells, by_branch(network))))
    for title in args.stages:
        rank, start, pairs = ranks[title], time.process_time(), len(queries) * len(database)
        line = f"{title:<12}"
        for here, there in WALKS[: args.walks]:
            pairs += len(walks[here]) * len(walks[there])
            found = np.argsort(-(rank or by_color(places))(walks[here], walks[there]), axis=1)
            near = np.abs(found - np.arange(len(found))[:, None]) <= 1
            line += f" {' '.join(f'{near[:, :k].any(1).mean():6.2f}' for k in (1, 5, 10)):>20}"
        order = np.argsort(-(rank or by_color(kitchen / "images"))(queries, database), axis=1)
        of_order = np.take_along_axis(shown, order, 1)
        print(
            f"{line} {(of_order[:, 0] > 0.5).mean():>18.2f} {of_order[:, 0].mean():>6.2f} {of_order[:, :5].mean():>5.2f}"
            f" {1e3 * (time.process_time() - start) / pairs:>11.3f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
