"""Photometric refinement of a model."""
