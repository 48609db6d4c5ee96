"""COLMAP's own types, for rooms that pass them on and call none of COLMAP."""

from pycolmap import Camera, Reconstruction, Rigid3d

__all__ = ["Camera", "Reconstruction", "Rigid3d"]
