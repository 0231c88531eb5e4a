"""Private quantiles, one file a method."""

from sourdine.tables.quantiles.choice import METHODS
from sourdine.tables.quantiles.estimate import quantiles
from sourdine.tables.quantiles.inverse import InverseSensitivity
from sourdine.tables.quantiles.joint import JointExponential
from sourdine.tables.quantiles.method import QuantileMethod
from sourdine.tables.quantiles.naive import NaiveLaplace
from sourdine.tables.quantiles.recursive import RecursiveQuantiles
from sourdine.tables.quantiles.threshold import ThresholdHistogram

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
