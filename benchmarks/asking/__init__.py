"""Intervals of comparisons, weighted sums and regressions: how often they hold the truth, and how wide."""
