"""Counters as Prometheus reads them."""

from __future__ import annotations

import threading
from collections import Counter
from typing import Any

BUCKETS = (0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0)  # seconds


class Metrics:
    """What the server did since it began. Threads may share it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._responses: Counter[tuple[str, int]] = Counter()
        self._outcomes: Counter[tuple[str, str]] = Counter()
        self._buckets: Counter[tuple[str, float]] = Counter()
        self._sums: Counter[str] = Counter()
        self._counts: Counter[str] = Counter()

    def responded(self, path: str, status: int) -> None:
        with self._lock:
            self._responses[path, status] += 1

    def finished(self, kind: str, answer: dict[str, Any] | None, seconds: float) -> None:
        """A request was worked on."""
        outcome = "failed" if answer is None else "answered" if answer.get("localized", True) else "not localized"
        with self._lock:
            self._outcomes[kind, outcome] += 1
            self._counts[kind] += 1
            self._sums[kind] += seconds  # type: ignore[assignment]
            for limit in BUCKETS:
                self._buckets[kind, limit] += seconds <= limit

    def text(self, gauges: dict[str, tuple[str, float]]) -> str:
        """All of them, and gauges: name -> (help, value)."""
        with self._lock:
            lines = _metric("pdc_sfm_responses_total", "counter", "HTTP responses by path and status")
            lines += [
                f'pdc_sfm_responses_total{{path="{path}",status="{status}"}} {count}'
                for (path, status), count in sorted(self._responses.items())
            ]
            lines += _metric("pdc_sfm_requests_total", "counter", "requests worked on, by kind and outcome")
            lines += [
                f'pdc_sfm_requests_total{{kind="{kind}",outcome="{outcome}"}} {count}'
                for (kind, outcome), count in sorted(self._outcomes.items())
            ]
            lines += _metric("pdc_sfm_request_seconds", "histogram", "seconds of work, without waiting")
            for kind in sorted(self._counts):
                lines += [
                    f'pdc_sfm_request_seconds_bucket{{kind="{kind}",le="{limit:g}"}} {self._buckets[kind, limit]}'
                    for limit in BUCKETS
                ]
                lines.append(f'pdc_sfm_request_seconds_bucket{{kind="{kind}",le="+Inf"}} {self._counts[kind]}')
                lines.append(f'pdc_sfm_request_seconds_sum{{kind="{kind}"}} {float(self._sums[kind]):.6f}')
                lines.append(f'pdc_sfm_request_seconds_count{{kind="{kind}"}} {self._counts[kind]}')
        for name, (said, value) in gauges.items():
            lines += [*_metric(f"pdc_sfm_{name}", "gauge", said), f"pdc_sfm_{name} {value:g}"]
        return "\n".join(lines) + "\n"


def _metric(name: str, kind: str, said: str) -> list[str]:
    return [f"# HELP {name} {said}", f"# TYPE {name} {kind}"]
