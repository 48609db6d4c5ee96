"""hloc's aggregation rule as plain dictionaries: the reference of tests and of the benchmark."""

from __future__ import annotations

from collections import defaultdict

import numpy as np


def aggregate_by_dictionary(raw, max_error, cell_size, max_keypoints):
    """Keypoints {image: (points, scores)} and matches {pair: {(id0, id1, score)}} of {pair: RawMatches}."""
    votes = defaultdict(dict)  # image -> cell -> bin -> sum
    for (name0, name1), matches in raw.items():
        for name, points in ((name0, matches.keypoints0), (name1, matches.keypoints1)):
            for cell, box, score in zip(
                centers(points, max(cell_size, max_error)), centers(points, int(max_error)), matches.scores
            ):
                bins = votes[name].setdefault(cell, {})
                bins[box] = bins.get(box, np.float32(0)) + score
    keypoints = {}
    for name, cells in votes.items():
        best = [max(bins.items(), key=lambda item: item[1]) for bins in cells.values()]
        best = sorted(best, key=lambda item: -item[1])[:max_keypoints]
        keypoints[name] = np.array([point for point, _ in best]), np.array([score for _, score in best])
    matches = {pair: assign(m, *(keypoints[name][0] for name in pair), max_error) for pair, m in raw.items()}
    return keypoints, matches


def centers(points, size):
    return [tuple(point) for point in np.round(np.round((points + np.float32(0.5)) / size) * size - 0.5, 2)]


def assign(matches, keypoints0, keypoints1, max_error):
    """Nearest keypoints by a dictionary of squares, then the best match of each keypoint, from both sides."""
    ids = [nearest(p, k, max_error) for p, k in ((matches.keypoints0, keypoints0), (matches.keypoints1, keypoints1))]
    best = [{}, {}]
    for index, (id0, id1) in enumerate(zip(*ids)):
        if id0 >= 0 and id1 >= 0:
            for side, own in enumerate((id0, id1)):
                if own not in best[side] or matches.scores[index] > matches.scores[best[side][own]]:
                    best[side][own] = index
    kept = set(best[0].values()) & set(best[1].values())
    return {(ids[0][i], ids[1][i], float(matches.scores[i])) for i in kept}


def nearest(points, keypoints, distance):
    squares = defaultdict(list)
    for index, (x, y) in enumerate(keypoints.tolist()):
        squares[int(x // distance), int(y // distance)].append((index, x, y))
    found = []
    for x, y in points.tolist():
        column, row = int(x // distance), int(y // distance)
        best, best_squared = -1, distance**2
        for key in ((column + dx, row + dy) for dx in (-1, 0, 1) for dy in (-1, 0, 1)):
            for index, kx, ky in squares.get(key, ()):
                squared = (x - kx) ** 2 + (y - ky) ** 2
                if squared < best_squared or (squared == best_squared and (best < 0 or index < best)):
                    best, best_squared = index, squared
        found.append(best)
    return found
