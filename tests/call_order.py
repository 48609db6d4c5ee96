"""Which files of the package a call walks through, in the order in which a function of each is first called."""

from __future__ import annotations

import inspect
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pdc_sfm

ROOT = Path(pdc_sfm.__file__).parent


def call_order(action: Callable[[], object]) -> list[str]:
    """Files below `pdc_sfm/`, also of what other threads call; what imports and settings run does not count."""
    seen: dict[str, None] = {}

    def note(frame, event, _) -> None:
        code = frame.f_code
        if (
            event == "call"
            and code.co_flags & inspect.CO_OPTIMIZED
            and code.co_name != "__post_init__"
            and code.co_filename.startswith(str(ROOT))
        ):
            seen.setdefault(Path(code.co_filename).relative_to(ROOT).as_posix())

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        action()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return list(seen)
