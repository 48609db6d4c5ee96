"""Keypoint detectors whose points dense matches can be snapped to."""
