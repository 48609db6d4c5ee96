"""Runs work in this process or in Ray workers, with the same calls and the same results."""

from pdc_sfm.workers.pool import Engine, LocalPool, Pool, open_pool
from pdc_sfm.workers.settings import RaySettings
from pdc_sfm.workers.shares import Block, Shares

__all__ = ["Block", "Engine", "LocalPool", "Pool", "RaySettings", "Shares", "open_pool"]
