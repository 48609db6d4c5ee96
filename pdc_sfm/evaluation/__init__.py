"""Accuracy of matches, confidence and poses: datasets with ground truth, measures, and the runs that combine them."""
