"""Pairs with ground truth: the datasets of the paper in their own layouts, known cameras, homographies, lists."""
