"""Correlation matrices of a series, and how often a unit may count in it."""

from typing import TYPE_CHECKING

from sourdine.core.lazy import late

if TYPE_CHECKING:
    from sourdine.mechanisms.correlation.dense import DenseMatrix, least_error
    from sourdine.mechanisms.correlation.matrix import CorrelationMatrix
    from sourdine.mechanisms.correlation.participation import Participation
    from sourdine.mechanisms.correlation.roots import LevelMatrix, PowerMatrix
    from sourdine.mechanisms.correlation.tree import TreeMatrix

_HOMES = {
    "dense": ("DenseMatrix", "least_error"),
    "matrix": ("CorrelationMatrix",),
    "participation": ("Participation",),
    "roots": ("LevelMatrix", "PowerMatrix"),
    "tree": ("TreeMatrix",),
}
__getattr__ = late(__name__, _HOMES)

__all__ = [
    "CorrelationMatrix",
    "DenseMatrix",
    "LevelMatrix",
    "Participation",
    "PowerMatrix",
    "TreeMatrix",
    "least_error",
]
