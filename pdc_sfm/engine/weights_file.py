"""The weights of a run, identified so that workers on any machine find them."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from pathlib import Path

from pdc_sfm.errors import CheckpointError


@dataclass(frozen=True)
class WeightsFile:
    """A weights file and what is in it."""

    path: str | None  # none: the built-in model
    fingerprint: str

    @classmethod
    def of(cls, weights: str | None) -> WeightsFile:
        """Of a setting: none, the built-in model's name, or a path."""
        from pdc_sfm.weights import sha256, weights_path
        from pdc_sfm.weights.checkpoint import built_in_path

        path = weights_path(weights)
        own = weights is None or path == built_in_path()
        return cls(None if own else str(Path(path).absolute()), sha256(path)[:16])

    def here(self) -> str | None:
        """The setting for this machine; an error if the file holds something else here."""
        if self != WeightsFile.of(self.path):
            name = self.path or "the built-in model"
            raise CheckpointError(f"{name} is another one on {platform.node()}: all machines need the same weights")
        return self.path
