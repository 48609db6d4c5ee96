"""Scenes as folders: plain, or as Aachen Day-Night has them."""
