"""Turns the matches of a list into keypoints and tracks, and writes the two hloc files."""
