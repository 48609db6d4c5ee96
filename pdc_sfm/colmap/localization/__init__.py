"""Poses: of queries in a model, and between two images."""
