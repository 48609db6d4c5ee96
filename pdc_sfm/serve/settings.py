"""What a server takes on, and what it refuses."""

from __future__ import annotations

from dataclasses import dataclass

from pdc_sfm.engine.cache import parse_bytes
from pdc_sfm.settings import require


@dataclass(frozen=True)
class ServeSettings:
    """Limits of a server. Nothing of it but `additions` changes an answer."""

    queue: int = 32  # requests that wait or are uploaded at a time; more are told to come back (503, Retry-After)
    workers: int = 1  # requests worked on at a time; one uses all cores by itself
    upload: str = "32MB"  # the largest request
    pixels: int = 50_000_000  # of the largest image, told by its header before it is decoded
    upload_seconds: float = 30.0  # in which a request must have arrived
    answer_seconds: float = 120.0  # after which one who waits is told where the answer will be (504)
    additions: bool = False  # POST /images adds photographs to the map, for whoever may ask; off: 403
    history: int = 1000  # finished requests that are remembered
    reload_seconds: float = 5.0  # how often the map's files are looked at: one made anew is taken up; 0: never

    def __post_init__(self) -> None:
        require(self.queue >= 1, f"serve.queue={self.queue} must be at least 1")
        require(1 <= self.workers <= 64, f"serve.workers={self.workers} must be between 1 and 64")
        require(parse_bytes(self.upload) > 0, f"serve.upload={self.upload} must be positive")
        require(self.pixels >= 1, f"serve.pixels={self.pixels} must be positive")
        require(self.upload_seconds > 0 and self.answer_seconds > 0, "serve.upload_seconds and answer_seconds: above 0")
        require(self.history >= 1, f"serve.history={self.history} must be at least 1")
        require(self.reload_seconds >= 0, f"serve.reload_seconds={self.reload_seconds} must not be negative")
