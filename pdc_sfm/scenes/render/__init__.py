"""From a mesh and its light to a picture with depth."""
