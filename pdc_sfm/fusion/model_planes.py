"""The larger planes that the points of the model lie on: grounds, walls, floors, which patches alone seldom hit upon."""

from __future__ import annotations

import numpy as np

MOST = 10  # planes of an image
TRIED = 300  # triples of points for each
WITHIN = 0.01  # of its depth: how far from the plane a point of it may be
LEAST = 12  # points, of which three are on any plane of theirs


def model_planes(points: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """(M, 3) planes n X = 1 of points (N, 3) in a camera's frame, one after the other, the largest first (RANSAC).

    n X is the ratio of a point's depth to that of the plane on its ray: what is off by a hundredth of its depth is near.
    """
    found: list[np.ndarray] = []
    while len(points) >= LEAST and len(found) < MOST:
        triples = points[rng.integers(0, len(points), (TRIED, 3))]
        triples = triples[np.abs(np.linalg.det(triples)) > 1e-9 * np.linalg.norm(triples, axis=2).prod(1)]
        if not len(triples):
            break
        tried = np.linalg.solve(triples, np.ones((len(triples), 3, 1)))[..., 0]
        near = np.abs(points @ tried.T - 1) < WITHIN
        own = near[:, near.sum(0).argmax()]
        if own.sum() < LEAST:
            break
        plane = np.linalg.lstsq(points[own], np.ones(own.sum()), rcond=None)[0]
        found.append(plane)
        points = points[~own & (np.abs(points @ plane - 1) >= WITHIN)]
    return np.array(found).reshape(-1, 3)
