"""COLMAP's own types, for packages that pass them on without calling COLMAP."""

from pycolmap import Camera, Reconstruction, Rigid3d

__all__ = ["Camera", "Reconstruction", "Rigid3d"]
