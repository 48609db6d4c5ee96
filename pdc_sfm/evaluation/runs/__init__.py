"""Benchmarks: match pairs with ground truth, apply the measures, and print tables."""
