"""Noise of gradients: drawn, priced, and added."""
