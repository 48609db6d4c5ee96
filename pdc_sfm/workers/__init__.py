"""Who does the work: this process, or workers on Ray. The same calls, the same results."""

from pdc_sfm.workers.pool import Engine, LocalPool, Pool, open_pool
from pdc_sfm.workers.settings import RaySettings
from pdc_sfm.workers.shares import Block, Shares

__all__ = ["Block", "Engine", "LocalPool", "Pool", "RaySettings", "Shares", "open_pool"]
