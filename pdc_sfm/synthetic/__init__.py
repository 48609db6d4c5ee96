"""Synthetic pairs of photographs: warps, light, moving objects. Used by training and evaluation."""
