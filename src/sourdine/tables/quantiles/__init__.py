"""Private quantiles, one file a method."""

from sourdine.tables.quantiles.api import quantiles
from sourdine.tables.quantiles.choice import METHODS
from sourdine.tables.quantiles.histogram import ThresholdHistogram
from sourdine.tables.quantiles.inverse import InverseSensitivity
from sourdine.tables.quantiles.joint import JointExponential
from sourdine.tables.quantiles.method import QuantileMethod
from sourdine.tables.quantiles.naive import NaiveLaplace
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
