"""Synthetic tables of Adult: how close they come, how well a model learns from them, and what they take."""
