"""Mechanisms: noise on numbers, choices and answers, one file for each or for a family of them."""

from typing import TYPE_CHECKING

from sourdine.core.lazy import late

if TYPE_CHECKING:
    from sourdine.mechanisms.bounded import IntervalNoise
    from sourdine.mechanisms.bounded_laplace import BoundedLaplace
    from sourdine.mechanisms.bounded_staircase import BoundedStaircase
    from sourdine.mechanisms.correlated import (
        CorrelatedGaussian,
        CorrelatedLaplace,
        CorrelatedNoise,
        NoiseCorrelation,
    )
    from sourdine.mechanisms.finite_pair import FinitePair
    from sourdine.mechanisms.gaussian import Gaussian
    from sourdine.mechanisms.geometric import Geometric
    from sourdine.mechanisms.laplace import Laplace
    from sourdine.mechanisms.partition_selection import KeyNoise, PartitionThreshold
    from sourdine.mechanisms.randomized_response import (
        BinaryResponse,
        Channel,
        KaryResponse,
        OneCoin,
        Response,
        TwoCoins,
        Warner,
    )
    from sourdine.mechanisms.rounded_gaussian import RoundedGaussian
    from sourdine.mechanisms.selection import Exponential, PermuteAndFlip, Selection
    from sourdine.mechanisms.sparse_vector import AboveThreshold, Crossing, SparseVector
    from sourdine.mechanisms.staircase import Staircase
    from sourdine.mechanisms.top_k import TopK
    from sourdine.mechanisms.truncated_geometric import TruncatedGeometric

_HOMES = {
    "bounded": ("IntervalNoise",),
    "bounded_laplace": ("BoundedLaplace",),
    "bounded_staircase": ("BoundedStaircase",),
    "correlated": (
        "CorrelatedGaussian",
        "CorrelatedLaplace",
        "CorrelatedNoise",
        "NoiseCorrelation",
    ),
    "finite_pair": ("FinitePair",),
    "gaussian": ("Gaussian",),
    "geometric": ("Geometric",),
    "laplace": ("Laplace",),
    "partition_selection": (
        "KeyNoise",
        "PartitionThreshold",
    ),
    "randomized_response": (
        "BinaryResponse",
        "Channel",
        "KaryResponse",
        "OneCoin",
        "Response",
        "TwoCoins",
        "Warner",
    ),
    "rounded_gaussian": ("RoundedGaussian",),
    "selection": (
        "Exponential",
        "PermuteAndFlip",
        "Selection",
    ),
    "sparse_vector": (
        "AboveThreshold",
        "Crossing",
        "SparseVector",
    ),
    "staircase": ("Staircase",),
    "top_k": ("TopK",),
    "truncated_geometric": ("TruncatedGeometric",),
}
__getattr__ = late(__name__, _HOMES)

__all__ = [
    "AboveThreshold",
    "BinaryResponse",
    "BoundedLaplace",
    "BoundedStaircase",
    "Channel",
    "CorrelatedGaussian",
    "CorrelatedLaplace",
    "CorrelatedNoise",
    "Crossing",
    "Exponential",
    "FinitePair",
    "Gaussian",
    "Geometric",
    "IntervalNoise",
    "KaryResponse",
    "KeyNoise",
    "Laplace",
    "NoiseCorrelation",
    "OneCoin",
    "PartitionThreshold",
    "PermuteAndFlip",
    "Response",
    "RoundedGaussian",
    "Selection",
    "SparseVector",
    "Staircase",
    "TopK",
    "TruncatedGeometric",
    "TwoCoins",
    "Warner",
]
