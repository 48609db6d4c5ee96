"""Benchmarks: pairs with a known truth are matched, judged by the measures, and told in tables."""
