"""Aligns small image patches to a fraction of a pixel (Lucas and Kanade, inverse compositional)."""

from __future__ import annotations

import numpy as np

HALF = 5  # a patch is 11 x 11 samples
ITERATIONS = 10  # at most: three times the steps to the farthest place that is believed (photometric.FARTHEST)
DONE = 0.02  # samples: a step below this is the last
LONGEST_STEP = 1.0  # samples: farther away, the slope here says nothing of the picture
NOISE = 4.0  # gray values by which patches of the same surface differ
CONTRAST_NOISE = 0.2  # and of their contrast
FAINTEST = 1.0  # gray values of contrast: below, nothing is alike
INDEPENDENT = 0.25  # share of samples that tell something new: neighbors are alike

GRID = np.stack(np.meshgrid(*[np.arange(-HALF, HALF + 1)] * 2), -1).reshape(-1, 2).astype(np.float32)  # (S, 2), x y
WINDOW = np.exp(-0.5 * (GRID**2).sum(1) / (0.6 * HALF) ** 2)
WINDOW = (WINDOW / WINDOW.sum()).astype(np.float32)


def sample(image: np.ndarray, places: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """Patches (n, S) of a gray image about places (n, 2), COLMAP coordinates; steps (n, 2, 2) are pixels a sample.

    `steps[:, 0]` is one sample to the right, `steps[:, 1]` one sample down.
    """
    at = places[:, None].astype(np.float32) - 0.5 + GRID @ steps.astype(np.float32)  # (n, S, 2)
    height, width = image.shape
    x, y = (np.clip(at[..., axis], 0, size - 1.001) for axis, size in enumerate((width, height)))
    left, top = x.astype(np.int32), y.astype(np.int32)
    x, y, corner, flat = x - left, y - top, top * width + left, image.reshape(-1)
    upper = flat[corner] * (1 - x) + flat[corner + 1] * x
    lower = flat[corner + width] * (1 - x) + flat[corner + width + 1] * x
    return upper * (1 - y) + lower * y


def align_patches(
    image: np.ndarray, places: np.ndarray, steps: np.ndarray, templates: np.ndarray, sigma: float = 1.0
) -> tuple[np.ndarray, np.ndarray]:
    """Move places (n, 2) until the image looks like the templates (n, S) there. Returns new places, correlations (n,).

    Brightness and contrast are free. Places are known beforehand to `sigma` pixels: where a patch has no texture, or
    an edge only, they stay where they are, or on their place along the edge.
    """
    template, contrast = _centerd(templates)
    slopes = _slopes(template)  # (n, S, 2)
    trust = INDEPENDENT * len(GRID) / (NOISE**2 + (CONTRAST_NOISE * contrast) ** 2)  # (n,)
    prior = steps @ steps.transpose(0, 2, 1) / sigma**2  # of a move in samples
    normal = np.einsum("nsa,nsb,s->nab", slopes, slopes, WINDOW) * trust[:, None, None] + prior
    inverse = np.linalg.inv(normal)
    moves = np.zeros((len(places), 2))  # in samples
    correlation = np.zeros(len(places))
    active = np.arange(len(places))
    for _ in range(ITERATIONS):
        here = places[active] + np.einsum("na,nab->nb", moves[active], steps[active])
        found, spread = _centerd(sample(image, here, steps[active]))
        gain = contrast[active] / np.maximum(spread, FAINTEST)
        common = np.einsum("ns,ns,s->n", found, template[active], WINDOW)
        correlation[active] = common / np.maximum(spread * contrast[active], FAINTEST**2)
        wrong = found * gain[:, None] - template[active]
        pull = np.einsum("nsa,ns,s->na", slopes[active], wrong, WINDOW) * trust[active, None]
        pull += np.einsum("nab,nb->na", prior[active], moves[active])
        step = -np.einsum("nab,nb->na", inverse[active], pull).clip(-LONGEST_STEP, LONGEST_STEP)
        moves[active] += step
        active = active[np.abs(step).max(1, initial=0) > DONE]
        if not len(active):
            break
    return places + np.einsum("na,nab->nb", moves, steps), correlation


def _centerd(patches: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Patches (n, S) without their weighted mean, and their weighted deviation (n,)."""
    centerd = patches - (patches @ WINDOW)[:, None]
    return centerd, np.sqrt(centerd**2 @ WINDOW)


def _slopes(patches: np.ndarray) -> np.ndarray:
    """Derivatives (n, S, 2) by x and y, without their weighted mean (a change of brightness is no motion)."""
    side = 2 * HALF + 1
    down, right = np.gradient(patches.reshape(-1, side, side), axis=(1, 2))
    slopes = np.stack((right, down), -1).reshape(len(patches), -1, 2)
    return slopes - np.einsum("nsa,s->na", slopes, WINDOW)[:, None]
