"""Training on sensitive data: clipped gradients, noise, samplers tied to their accounting."""

from sourdine.learning.clipping import Automatic, Clipping, Flat, PerLayer
from sourdine.learning.engine import Engine

__all__ = ["Automatic", "Clipping", "Engine", "Flat", "PerLayer"]
