"""The first stages of the cascade, on codes of the 256-pixel branch: pooled features, then flow and its confidence."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from pdc_sfm.network import LevelOutput, PDCNet
from pdc_sfm.network.mixture import p_r
from pdc_sfm.network.warp import pixel_grid
from pdc_sfm.retrieval.codes import CoarseCodes
from pdc_sfm.retrieval.settings import RetrievalSettings

QUERIES_AT_ONCE = 16  # for the memory: their products with a part of 128 images, 64 cells each, take 32 MB
PASSES = 1  # of the 256-pixel branch: more of them rank the same images first, and take twice as long
FRACTIONS = 100  # expected matches are stored as integers, in hundredths


def pooled(codes: CoarseCodes) -> Tensor:
    """The coarsest features averaged over 2x2 cells, of unit length: (N, 64, C)."""
    maps = F.avg_pool2d(codes.code.features[4].float(), 2)
    return F.normalize(maps, dim=1).flatten(2).transpose(1, 2)


def similarities(queries: Tensor, database: Tensor) -> np.ndarray:
    """How well the cells of each query find themselves in each database image, (Q, N).

    The mean over a query's cells of the cosine with the most similar cell: (Q, 64, C), (N, 64, C) -> (Q, N).
    """
    number, cells, channels = database.shape
    columns = database.reshape(-1, channels).T  # (C, N * 64)
    rows = []
    for some in queries.split(QUERIES_AT_ONCE):
        products = some.reshape(-1, channels) @ columns
        rows.append(products.view(len(some), -1, number, cells).amax(-1).mean(1))
    return torch.cat(rows).numpy()


class CoarsePairs(NamedTuple):
    """Some pairs of a query with a database image, and the codes of these images."""

    codes: CoarseCodes
    rows: list[int]  # of the queries
    columns: list[int]  # of `codes`


def score_coarse(network: PDCNet, queries: CoarseCodes, pairs: CoarsePairs, settings: RetrievalSettings) -> list[int]:
    """The expected matches of pairs in the 256-pixel branch, in hundredths."""
    reference = queries.take(pairs.rows, settings.device)
    other = pairs.codes.take(pairs.columns, settings.device)
    with torch.inference_mode():
        output = network.decode(reference, other, last_level=3, passes=PASSES)[-1]
        return (FRACTIONS * expected_matches(output, settings.low_radius)).round().int().tolist()


def expected_matches(output: LevelOutput, radius: float) -> Tensor:
    """How many cells of each reference are expected within R of their true place on the query, sum of P_R: (B,).

    A sum needs no threshold: at this resolution few cells are sure, and how sure they are differs between networks.
    """
    height, width = output.flow.shape[-2:]
    stride = output.reference_size[1] / width
    corners = (pixel_grid(height, width, like=output.flow) + 0.5) * stride + output.flow  # (B, 2, h, w), corner at 0
    inside = (corners >= 0).all(1) & (corners[:, 0] <= output.query_size[1]) & (corners[:, 1] <= output.query_size[0])
    return (p_r(output.log_var, output.logits, radius)[:, 0] * inside).sum((1, 2))
