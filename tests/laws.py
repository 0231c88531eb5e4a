"""The true law of every mechanism's answer, written down a second time.

Each function gives the probability of every coded answer (see Example.code) from the definition of the
mechanism alone, by floats or enumeration, without the code under test. The contract compares samples with
these. A mechanism without an entry fails the contract.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import ndtr

from sourdine import learning, local, mechanisms
from sourdine.core.mechanism import Mechanism
from sourdine.local import words
from sourdine.tables import quantiles
from tests import (
    bit_laws,
    choice_laws,
    code_laws,
    gradient_laws,
    numeric_laws,
    quantile_laws,
    rappor_laws,
    series_laws,
    word_laws,
)

Law = dict[int, float]


def normalised(codes: np.ndarray, weights: np.ndarray) -> Law:
    total: Law = {}
    for code, weight in zip(codes.tolist(), (weights / weights.sum()).tolist(), strict=True):
        total[code] = total.get(code, 0.0) + weight
    return total


def around(value: Any, granularity: Any, log_weight: Callable[[np.ndarray], np.ndarray], reach: int) -> Law:
    """Noise with a weight by size in grid steps; a vector is coded by its sum."""
    units = np.rint(np.atleast_1d(np.asarray(value, float)) / float(granularity or 1)).astype(np.int64)
    k = np.arange(-reach, reach + 1)
    one = np.exp(log_weight(np.abs(k)))
    law = one / one.sum()
    for _ in units[1:]:
        law = np.convolve(law, one / one.sum())
    shift = int(units.sum()) - reach * len(units)
    return normalised(np.arange(len(law)) + shift, law)


def laplace(m: Any, value: Any) -> Law:
    scale = float(m.scale / (m.granularity or 1))
    return around(value, m.granularity, lambda k: -k / scale, int(45 * scale) + 2)


def gaussian(m: Any, value: Any) -> Law:
    sigma = float(m.sigma / (m.granularity or 1))
    return around(value, m.granularity, lambda k: -(k**2) / (2 * sigma**2), int(12 * sigma) + 2)


def rounded_gaussian(m: Any, value: Any) -> Law:
    sigma = float(m.sigma / (m.granularity or 1))
    mass = lambda k: np.log(ndtr((0.5 - k) / sigma) - ndtr((-0.5 - k) / sigma))
    return around(value, m.granularity, mass, int(12 * sigma))


def best_of_runs(m: Any, value: Any) -> Law:
    """The largest of a geometric number of answers: E[F^K] = F/(m - (m - 1) F), for the law F of one."""
    one = rounded_gaussian(m.settings[0][0].mechanism, value)
    below = np.minimum(np.cumsum(list(one.values())), 1.0)
    largest = below / (float(m.mean) - (float(m.mean) - 1) * below)
    return normalised(np.array(list(one)), np.diff(largest, prepend=0.0))


def geometric(m: Any, value: Any) -> Law:
    scale = float(m.scale)
    law = around(value, 1, lambda k: -k / scale, int(45 * scale) + 2)
    codes = np.clip(np.array(list(law)), m.lower, m.upper)
    return normalised(codes, np.array(list(law.values())))


def staircase(m: Any, value: Any) -> Law:
    step = m.granularity
    period = int(m.sensitivity) if step is None else int(m.sensitivity / step) + 1
    reach = int(period * (40 / float(m.epsilon) + 2))
    return around(value, step, lambda k: -float(m.epsilon) * ((k + period - m.inner) // period), reach)


def inside(place: int, last: int, log_weight: Callable[[np.ndarray], np.ndarray]) -> Law:
    """A weight by distance, renormalised on the places 0 .. last."""
    y = np.arange(last + 1)
    return normalised(y, np.exp(log_weight(np.abs(y - place))))


def truncated_geometric(m: Any, value: Any) -> Law:
    law = inside(int(value) - m.lower, m.upper - m.lower, lambda k: -k / float(m.scale))
    return {code + m.lower: mass for code, mass in law.items()}


def bounded_laplace(m: Any, value: Any) -> Law:
    step = (m.upper - m.lower) / m.cells
    law = inside(
        int((value - float(m.lower)) / float(step) + 0.5), m.cells, lambda k: -k * float(step / m.scale)
    )
    return {code + round(m.lower / step): mass for code, mass in law.items()}


def bounded_staircase(m: Any, value: Any) -> Law:
    step = (m.upper - m.lower) / m.cells
    steps = lambda k: -float(m.drop) * ((k + m.period - m.inner) // m.period)
    law = inside(int((value - float(m.lower)) / float(step) + 0.5), m.cells, steps)
    return {code + round(m.lower / step): mass for code, mass in law.items()}


LAWS: dict[type, Callable[[Any, Any], Law]] = {
    local.BoundedLaplaceOracle: numeric_laws.bounded_laplace,
    local.BoundedStaircaseOracle: numeric_laws.bounded_staircase,
    local.Duchi: numeric_laws.duchi,
    local.Hybrid: numeric_laws.hybrid,
    local.Piecewise: numeric_laws.piecewise,
    local.SquareWave: numeric_laws.square_wave,
    learning.BestOfRuns: best_of_runs,
    learning.NoisyGradient: gradient_laws.noisy_gradient,
    local.HadamardResponse: code_laws.hadamard_response,
    local.GRR: choice_laws.kary_response,
    local.OLH: code_laws.local_hashing,
    local.OUE: bit_laws.optimal_unary,
    local.ProjectiveGeometry: code_laws.projective_geometry,
    local.SubsetSelection: bit_laws.subset_selection,
    local.SUE: bit_laws.symmetric_unary,
    mechanisms.AboveThreshold: choice_laws.above_threshold,
    mechanisms.CorrelatedGaussian: series_laws.correlated,
    mechanisms.CorrelatedLaplace: series_laws.correlated,
    mechanisms.Exponential: choice_laws.exponential,
    mechanisms.FinitePair: choice_laws.finite_pair,
    mechanisms.KaryResponse: choice_laws.kary_response,
    mechanisms.PartitionThreshold: choice_laws.key_threshold,
    mechanisms.PermuteAndFlip: choice_laws.permute_and_flip,
    mechanisms.SparseVector: choice_laws.sparse_vector,
    mechanisms.TopK: choice_laws.top_k,
    mechanisms.TwoCoins: choice_laws.two_coins,
    mechanisms.Warner: choice_laws.warner,
    mechanisms.BoundedLaplace: bounded_laplace,
    mechanisms.BoundedStaircase: bounded_staircase,
    mechanisms.Laplace: laplace,
    mechanisms.Staircase: staircase,
    mechanisms.TruncatedGeometric: truncated_geometric,
    mechanisms.Gaussian: gaussian,
    mechanisms.RoundedGaussian: rounded_gaussian,
    mechanisms.Geometric: geometric,
    quantiles.InverseSensitivity: quantile_laws.inverse,
    quantiles.JointExponential: quantile_laws.joint,
    quantiles.NaiveLaplace: quantile_laws.naive,
    quantiles.RecursiveQuantiles: quantile_laws.recursive,
    quantiles.ThresholdHistogram: quantile_laws.threshold,
    **rappor_laws.LAWS,
    words.WordTree: word_laws.supports,
}

NOISE: dict[type, str | None] = {
    local.BoundedLaplaceOracle: "epsilon",
    local.BoundedStaircaseOracle: "epsilon",
    local.Duchi: "epsilon",
    local.Hybrid: "epsilon",
    local.Piecewise: "epsilon",
    local.SquareWave: "epsilon",
    learning.BestOfRuns: None,
    learning.NoisyGradient: "sigma",
    local.HadamardResponse: "epsilon",
    local.GRR: "epsilon",
    local.OLH: "epsilon",
    local.OUE: "epsilon",
    local.ProjectiveGeometry: "epsilon",
    local.SubsetSelection: "epsilon",
    local.SUE: "epsilon",
    mechanisms.AboveThreshold: "epsilon",
    mechanisms.CorrelatedGaussian: "sigma",
    mechanisms.CorrelatedLaplace: "scale",
    mechanisms.Exponential: "epsilon",
    mechanisms.FinitePair: None,
    mechanisms.KaryResponse: "epsilon",
    mechanisms.PartitionThreshold: "scale",
    mechanisms.PermuteAndFlip: "epsilon",
    mechanisms.SparseVector: "epsilon",
    mechanisms.TopK: "epsilon",
    mechanisms.TwoCoins: None,
    mechanisms.Warner: "truth",
    mechanisms.BoundedLaplace: "scale",
    mechanisms.BoundedStaircase: "drop",
    mechanisms.Gaussian: "sigma",
    mechanisms.RoundedGaussian: "sigma",
    mechanisms.Geometric: "scale",
    mechanisms.Laplace: "scale",
    mechanisms.Staircase: "epsilon",
    mechanisms.TruncatedGeometric: "scale",
    quantiles.InverseSensitivity: "epsilon",
    quantiles.JointExponential: "epsilon",
    quantiles.NaiveLaplace: "epsilon",
    quantiles.RecursiveQuantiles: "epsilon",
    quantiles.ThresholdHistogram: "epsilon",
    **rappor_laws.NOISE,
    words.WordTree: "epsilon",
}
"""The parameter of each mechanism that the contract puts 10 % off, to see the law test refuse it; None when
it has no parameter, and its own test refuses a wrong law."""


def law_of(mechanism: Mechanism, value: Any) -> Law:
    """The true law of the answers of a mechanism for one input."""
    kind = type(mechanism)
    assert kind in LAWS, (
        f"write the law of {kind.__name__} by its definition in tests/laws.py, or in the file of its family "
        "(tests/bit_laws.py, code_laws.py, choice_laws.py, ...), and its line in LAWS of tests/laws.py"
    )
    return LAWS[kind](mechanism, value)


def noise_of(mechanism: Mechanism) -> str | None:
    """The parameter of a mechanism to put off, if it has one."""
    kind = type(mechanism)
    assert kind in NOISE, (
        f"name the parameter of {kind.__name__} that its noise hangs on, or None, in NOISE of tests/laws.py"
    )
    return NOISE[kind]
