"""One pair of images, one strategy: direct, homography, multi-scale -> a `DenseEstimate`."""
