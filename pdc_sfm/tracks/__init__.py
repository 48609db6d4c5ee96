"""The matches of a list become keypoints and tracks, and the two hloc files that hold them."""
