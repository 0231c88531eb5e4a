"""Gradients of each example, clipped, summed and made noisy."""
