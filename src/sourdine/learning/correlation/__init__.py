"""Noise of training that is correlated over the steps."""
