"""Datasets of the paper, in the layouts in which they are distributed."""
