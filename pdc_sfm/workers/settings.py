"""Number, resources and place of workers."""

from __future__ import annotations

from dataclasses import dataclass

from pdc_sfm.device import AUTO
from pdc_sfm.settings import require


@dataclass(frozen=True)
class RaySettings:
    """Workers of `engine=ray`. They do not change the result, and a run may continue with other values."""

    # auto or HOST:PORT joins a cluster; null: one starts on this machine and ends with the run
    address: str | None = None
    workers: int | None = None  # null: as many as there are GPUs, or cores if no GPUs are used
    cores: int = 1  # of each worker
    gpus: float | None = None  # of each worker; null: 1 with device=cuda, and with device=auto if any machine has a GPU
    block: int = 32  # pairs or images sent to a worker at a time, which are lost with it

    def __post_init__(self) -> None:
        require(self.workers is None or self.workers >= 1, f"ray.workers={self.workers} must be at least 1")
        require(self.cores >= 1, f"ray.cores={self.cores} must be at least 1")
        require(self.gpus is None or self.gpus >= 0, f"ray.gpus={self.gpus} must not be negative")
        require(self.block >= 1, f"ray.block={self.block} must be at least 1")
        outside = self.address is not None and self.address.startswith("ray://")
        require(not outside, f"ray.address={self.address}: run the command on a machine of the cluster, with auto")

    def gpus_of_worker(self, device: str) -> float | None:
        """GPUs of each worker for a device; None: as the cluster has them. A worker sees only its own: they have no numbers."""
        require(
            ":" not in device, f"device={device} with engine=ray: write device=cuda, each worker has a GPU of its own"
        )
        if self.gpus is not None:
            return self.gpus
        return None if device == AUTO else float(device == "cuda")
