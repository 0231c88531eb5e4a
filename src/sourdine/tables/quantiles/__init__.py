"""Private quantiles, one file a method."""

from sourdine.tables.quantiles.api import METHODS, quantiles
from sourdine.tables.quantiles.histogram import NaiveLaplace, ThresholdHistogram
from sourdine.tables.quantiles.inverse import InverseSensitivity
from sourdine.tables.quantiles.joint import JointExponential
from sourdine.tables.quantiles.method import QuantileMethod
from sourdine.tables.quantiles.recursive import RecursiveQuantiles

__all__ = [
    "METHODS",
    "InverseSensitivity",
    "JointExponential",
    "NaiveLaplace",
    "QuantileMethod",
    "RecursiveQuantiles",
    "ThresholdHistogram",
    "quantiles",
]
