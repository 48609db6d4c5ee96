"""COLMAP: poses and points from features and matches. The only package that imports pycolmap; it does not import torch."""

from __future__ import annotations

import signal
import threading

import pycolmap  # noqa: F401

# with it glog puts a handler of its own in the place of Python's, which answers SIGTERM with a dump of the stack
if threading.current_thread() is threading.main_thread() and (_before := signal.getsignal(signal.SIGTERM)) is not None:
    signal.signal(signal.SIGTERM, _before)
