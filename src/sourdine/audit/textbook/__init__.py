"""Each mechanism of the package as a textbook draws it: the law that its own answers are compared with."""

from collections.abc import Callable
from typing import Any

from numpy.typing import ArrayLike, NDArray

from sourdine.audit.textbook import central, quantiles, reports
from sourdine.audit.textbook.dice import Dice, dice_of
from sourdine.core.mechanism import Mechanism
from sourdine.core.random.bits import Bits
from sourdine.learning.noise.noisy_gradient import NoisyGradient
from sourdine.learning.selecting.best_of_runs import BestOfRuns
from sourdine.local import (
    GRR,
    OLH,
    OUE,
    SUE,
    BoundedLaplaceOracle,
    BoundedStaircaseOracle,
    Duchi,
    HadamardResponse,
    Hybrid,
    Piecewise,
    ProjectiveGeometry,
    SquareWave,
    SubsetSelection,
)
from sourdine.local.rappor import BasicOneTimeRappor, BasicRappor, OneTimeRappor, Rappor
from sourdine.local.words import WordTree
from sourdine.mechanisms import (
    AboveThreshold,
    BoundedLaplace,
    BoundedStaircase,
    CorrelatedGaussian,
    CorrelatedLaplace,
    Exponential,
    FinitePair,
    Gaussian,
    Geometric,
    KaryResponse,
    Laplace,
    PartitionThreshold,
    PermuteAndFlip,
    RoundedGaussian,
    SparseVector,
    Staircase,
    TopK,
    TruncatedGeometric,
    TwoCoins,
    Warner,
)
from sourdine.tables.quantiles import (
    InverseSensitivity,
    JointExponential,
    NaiveLaplace,
    RecursiveQuantiles,
    ThresholdHistogram,
)

__all__ = ["draw", "known"]

_WAYS: dict[type[Mechanism], Callable[[Any, ArrayLike, int, Dice], NDArray[Any]]] = {
    AboveThreshold: central.draw_above,
    BestOfRuns: central.draw_best_of_runs,
    BasicOneTimeRappor: reports.draw_basic_rappor,
    BasicRappor: reports.draw_basic_rappor,
    BoundedLaplace: central.draw_bounded_laplace,
    BoundedLaplaceOracle: reports.draw_resolved,
    BoundedStaircase: central.draw_bounded_staircase,
    BoundedStaircaseOracle: reports.draw_resolved,
    CorrelatedGaussian: central.draw_correlated,
    CorrelatedLaplace: central.draw_correlated,
    Duchi: reports.draw_duchi,
    Exponential: central.draw_exponential,
    FinitePair: central.draw_pair,
    Gaussian: central.draw_gaussian,
    RoundedGaussian: central.draw_rounded_gaussian,
    Geometric: central.draw_geometric,
    HadamardResponse: reports.draw_coded,
    Hybrid: reports.draw_resolved,
    InverseSensitivity: quantiles.draw_inverse,
    JointExponential: quantiles.draw_joint,
    GRR: central.draw_response,
    KaryResponse: central.draw_response,
    PartitionThreshold: central.draw_keys,
    Laplace: central.draw_laplace,
    OLH: reports.draw_coded,
    NaiveLaplace: quantiles.draw_naive,
    NoisyGradient: central.draw_noisy_gradient,
    OneTimeRappor: reports.draw_rappor,
    OUE: reports.draw_unary,
    PermuteAndFlip: central.draw_flip,
    Piecewise: reports.draw_resolved,
    ProjectiveGeometry: reports.draw_coded,
    Rappor: reports.draw_rappor,
    RecursiveQuantiles: quantiles.draw_recursive,
    SparseVector: central.draw_sparse,
    SquareWave: reports.draw_resolved,
    Staircase: central.draw_staircase,
    SubsetSelection: reports.draw_subset,
    SUE: reports.draw_unary,
    ThresholdHistogram: quantiles.draw_histogram,
    TopK: central.draw_top,
    TruncatedGeometric: central.draw_truncated,
    TwoCoins: central.draw_two_coins,
    Warner: central.draw_warner,
    WordTree: reports.draw_words,
}


def known(mechanism: Mechanism) -> bool:
    """Whether there is a textbook's way to draw this mechanism's answers."""
    return type(mechanism) in _WAYS


def draw(mechanism: Mechanism, value: ArrayLike, count: int, bits: Bits) -> NDArray[Any]:
    """So many independent answers of a known mechanism for one input: not private, and not exact."""
    return _WAYS[type(mechanism)](mechanism, value, count, dice_of(bits))
