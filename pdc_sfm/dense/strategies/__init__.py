"""The strategies for one pair (Sec. 3.7), one file each, by the name that `dense.method` takes.

A strategy is a function of an `Estimator` and of the directions of one pair, (reference, query) and perhaps the way back;
it gives a `DenseEstimate` for each. Every file of this folder is named after the strategy it registers; one from elsewhere
counts from when its module is imported.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pdc_sfm.errors import SettingsError

if TYPE_CHECKING:
    from pdc_sfm.dense.estimate import DenseEstimate
    from pdc_sfm.dense.estimator import EncodedView, Estimator
    from pdc_sfm.dense.strategies.auto import Triage

    Directions = Sequence[tuple[EncodedView, EncodedView]]  # of one pair: (reference, query), and perhaps the way back
    Estimate = Callable[[Estimator, Directions], list[DenseEstimate]]
    Sort = Callable[[Estimator, Sequence[tuple[EncodedView, EncodedView]]], Triage]


@dataclass(frozen=True)
class Strategy:
    """How a pair is estimated, and what of its images that takes."""

    estimate: Estimate
    is_one_pass: bool = (
        False  # and no more: pairs share a batch, and their images are not needed after they are encoded
    )
    needs_views: bool = False  # of each image, which an encoded image then has room for
    turns: bool = False  # it finds turned images itself
    triage: Sort | None = None  # it says of several pairs at once which one pass will do for


_registered: dict[str, Strategy] = {}


def register(
    name: str,
    *,
    is_one_pass: bool = False,
    needs_views: bool = False,
    turns: bool = False,
    triage: Sort | None = None,
) -> Callable[[Estimate], Estimate]:
    """Make a function the strategy of `dense.method=NAME`."""

    def add(estimate: Estimate) -> Estimate:
        _registered[name] = Strategy(estimate, is_one_pass, needs_views, turns, triage)
        return estimate

    return add


def strategy_names() -> list[str]:
    """What `dense.method` can be."""
    return list(dict.fromkeys((*(module.name for module in pkgutil.iter_modules(__path__)), *_registered)))


def find_strategy(name: str) -> Strategy:
    """The strategy of a name; its file is loaded when it is first asked for."""
    if name not in _registered:
        if name not in strategy_names():
            raise SettingsError(f"method={name} is not possible: choose from {', '.join(strategy_names())}")
        importlib.import_module(f"{__name__}.{name}")
    return _registered[name]
