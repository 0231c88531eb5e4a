"""Central and local mechanisms, one file each."""

from sourdine.mechanisms.bounded_laplace import BoundedLaplace
from sourdine.mechanisms.bounded_staircase import BoundedStaircase
from sourdine.mechanisms.crossing import Crossing
from sourdine.mechanisms.exponential import Exponential
from sourdine.mechanisms.finite_pair import FinitePair
from sourdine.mechanisms.gaussian import Gaussian
from sourdine.mechanisms.geometric import Geometric
from sourdine.mechanisms.key_threshold import KeyNoise, KeyThreshold
from sourdine.mechanisms.laplace import Laplace
from sourdine.mechanisms.permute_and_flip import PermuteAndFlip
from sourdine.mechanisms.response import BinaryResponse, Channel, KaryResponse, Response, TwoCoins, Warner
from sourdine.mechanisms.selection import Selection
from sourdine.mechanisms.sparse_vector import SparseVector
from sourdine.mechanisms.staircase import Staircase
from sourdine.mechanisms.survey import OneCoin
from sourdine.mechanisms.threshold import AboveThreshold
from sourdine.mechanisms.top_k import TopK
from sourdine.mechanisms.truncated_geometric import TruncatedGeometric

__all__ = [
    "AboveThreshold",
    "BinaryResponse",
    "BoundedLaplace",
    "BoundedStaircase",
    "Channel",
    "Crossing",
    "Exponential",
    "FinitePair",
    "Gaussian",
    "Geometric",
    "KaryResponse",
    "KeyNoise",
    "KeyThreshold",
    "Laplace",
    "OneCoin",
    "PermuteAndFlip",
    "Response",
    "Selection",
    "SparseVector",
    "Staircase",
    "TopK",
    "TruncatedGeometric",
    "TwoCoins",
    "Warner",
]
