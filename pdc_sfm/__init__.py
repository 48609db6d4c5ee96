"""Probabilistic dense matching (PDC-Net+) for structure-from-motion and visual localisation."""

__version__ = "0.1.0"
