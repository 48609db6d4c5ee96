"""Pairs made from photographs: warps, light, moving objects. Training and evaluation make theirs with it."""
