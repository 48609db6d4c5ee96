"""COLMAP: features and matches become poses and points. This room alone knows pycolmap, and it knows no torch."""
