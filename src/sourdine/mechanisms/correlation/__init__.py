"""Correlation matrices of a series, and how often a unit may count in it."""

from sourdine.mechanisms.correlation.dense import DenseMatrix, least_error
from sourdine.mechanisms.correlation.matrix import CorrelationMatrix
from sourdine.mechanisms.correlation.participation import Participation
from sourdine.mechanisms.correlation.roots import LevelMatrix, PowerMatrix
from sourdine.mechanisms.correlation.tree import TreeMatrix

__all__ = [
    "CorrelationMatrix",
    "DenseMatrix",
    "LevelMatrix",
    "Participation",
    "PowerMatrix",
    "TreeMatrix",
    "least_error",
]
