"""Georeferencing: aligning a map with known positions, control points or distances."""
