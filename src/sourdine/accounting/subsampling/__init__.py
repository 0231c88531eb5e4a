"""Amplification by sampling: Poisson batches, truncated ones, batches of a fixed size, random allocation."""
