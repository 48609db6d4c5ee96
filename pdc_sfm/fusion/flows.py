"""The first step: the flows of every image to its partners, each image encoded as rarely as memory allows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from pdc_sfm.dense.estimate import DenseEstimate
from pdc_sfm.engine.cache import CodeCache
from pdc_sfm.engine.order import order_pairs
from pdc_sfm.fusion.depth import FLOW, DensePlan, covered_of
from pdc_sfm.fusion.geometry import Transfer, lookup
from pdc_sfm.fusion.votes import combine, vote
from pdc_sfm.images import read_photograph
from pdc_sfm.progress import progress


class FlowSource(Protocol):
    """What estimates flow, as `pdc_sfm.dense.estimator.Estimator`. Codes have `nbytes`."""

    def encode(self, image: Any, name: str) -> Any: ...

    def estimate(self, reference: Any, query: Any) -> DenseEstimate: ...


def flow_steps(plan: DensePlan, todo: Sequence[int], source: FlowSource, memory: int) -> None:
    """Write what the flows say of the depth of these images."""
    steps = [[number, *plan.partners[number]] for number in _in_order(plan, todo)]
    cache: CodeCache[Any] = CodeCache(steps, memory)
    for step in progress(steps, "flows", "image"):
        codes = [_code(plan, number, source, cache) for number in step]
        _vote(plan, step, codes, source)
        cache.finish_step()


def _code(plan: DensePlan, number: int, source: FlowSource, cache: CodeCache[Any]) -> Any:
    code = cache.get(number)
    if code is None:
        name = plan.views[number].name
        code = source.encode(read_photograph(plan.workspace.images / name), name)
        cache.put(number, code)
    return code


def _vote(plan: DensePlan, step: Sequence[int], codes: Sequence[Any], source: FlowSource) -> None:
    view, votes = plan.views[step[0]], []
    for other, code in zip(step[1:], codes[1:]):
        there = plan.views[other]
        estimate = source.estimate(codes[0], code)
        rho, sigma, weight = vote(estimate, Transfer.between(view, there, view.size, there.size))
        covered = covered_of(plan, other)
        if covered is not None:
            points = estimate.query_points
            weight = np.where(lookup(covered, points[..., 0], points[..., 1]), 0, weight).astype(np.float32)
        votes.append((rho, sigma, weight))
    found = combine(votes)
    plan.workspace.save(FLOW, view.name, rho=found.rho, sigma=found.sigma, probability=found.probability)


def _in_order(plan: DensePlan, todo: Sequence[int]) -> list[int]:
    """Images that share partners one after the other."""
    wanted = set(todo)
    pairs = np.array([(number, other) for number in todo for other in plan.partners[number]], np.int64).reshape(-1, 2)
    ordered = pairs[order_pairs(pairs, 64)]
    return [number for number in dict.fromkeys(ordered[:, 0].tolist()) if number in wanted]
