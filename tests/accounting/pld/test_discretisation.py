"""The law above is above and the law below is below: their profiles, at every epsilon, and after products."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sourdine.accounting.pld.discretisation import SHIFT, below
from sourdine.accounting.subsampling.poisson import PoissonAdd, PoissonRemove
from sourdine.core.composed import above
from sourdine.core.distributions import (
    AtomLaw,
    DiscreteGaussianLaw,
    GaussianLaw,
    GeometricLaw,
    LossDistribution,
    RhoLaw,
    pure_law,
)

LAWS: list[LossDistribution] = [
    GaussianLaw(0.7),
    PoissonRemove(GaussianLaw(1.0), 0.01),
    PoissonAdd(GaussianLaw(1.0), 0.01),
    PoissonRemove(GeometricLaw(3, 2.0), 0.3),
    GeometricLaw(5, 3.3),
    DiscreteGaussianLaw(2, 5.0),
    RhoLaw(0.1),
    pure_law(0.8),
    AtomLaw.between([0.5, 0.3, 0.2], [0.2, 0.3, 0.5]),
    AtomLaw.between([0.5, 0.4, 0.1], [0.3, 0.7, 0.0]),
]


def points(law: LossDistribution, count: int) -> np.ndarray:
    low = law.lowest if math.isfinite(law.lowest) else -12.0
    high = law.highest if math.isfinite(law.highest) else 12.0
    return np.linspace(low - 0.013, high + 0.017, count)


def profile(losses: np.ndarray, masses: np.ndarray, infinite: float, epsilon: float) -> float:
    gain = np.where(losses > epsilon, -np.expm1(np.minimum(epsilon - losses, 0)), 0.0)
    return float(masses @ gain) + infinite


@pytest.mark.parametrize("law", LAWS, ids=lambda law: type(law).__name__)
@pytest.mark.parametrize("count", [7, 40, 400])
def test_the_two_laws_bracket_the_profile(law: LossDistribution, count: int) -> None:
    losses = points(law, count)
    masses, infinite = above(law, losses)
    lighter = below(law, losses)
    assert np.all(masses >= 0)
    assert np.all(lighter >= 0)
    for epsilon in np.linspace(losses[0] - 0.5, losses[-1] + 0.5, 61):
        truth = float(law.profile(epsilon))
        assert profile(losses, masses, infinite, epsilon) >= truth - 1e-15
        assert profile(losses - SHIFT, lighter, 0.0, epsilon) <= truth + 1e-15


@pytest.mark.parametrize("law", [*LAWS[:4], RhoLaw(0.1)], ids=lambda law: type(law).__name__)
def test_the_gap_shrinks_with_the_square_of_the_step(law: LossDistribution) -> None:
    """Away from atoms: four times as many points, at most a tenth of the gap."""
    gaps = []
    for count in (300, 1200):
        losses = points(law, count)
        masses, infinite = above(law, losses)
        lighter = below(law, losses)
        at = np.linspace(max(losses[0], -1), min(losses[-1], 1), 23)
        high = [profile(losses, masses, infinite, e) for e in at]
        low = [profile(losses, lighter, 0.0, e) for e in at]
        gaps.append(max(np.array(high) - np.array(low)))
    atoms = isinstance(law, PoissonRemove) and isinstance(law.base, GeometricLaw)
    assert gaps[1] < gaps[0] / (2.5 if atoms else 10)


@settings(max_examples=60)
@given(
    st.lists(st.floats(0.01, 1), min_size=2, max_size=6),
    st.lists(st.floats(0.01, 1), min_size=6, max_size=6),
    st.integers(5, 60),
    st.floats(-1, 3),
)
def test_products_of_random_laws_stay_bracketed(
    p: list[float], q: list[float], count: int, epsilon: float
) -> None:
    """Two uses of a law on up to six outcomes, by enumeration, against two uses on the points."""
    one = np.array(p) / sum(p)
    other = np.array(q[: len(p)]) / sum(q[: len(p)])
    law = AtomLaw.between(one, other)
    truth = np.maximum(np.outer(one, one) - math.exp(epsilon) * np.outer(other, other), 0).sum()
    losses = points(law, count)
    masses, infinite = above(law, losses)
    lighter = below(law, losses)
    sums = np.add.outer(losses, losses).ravel()
    high = profile(sums, np.outer(masses, masses).ravel(), 1 - (1 - infinite) ** 2, epsilon)
    low = profile(sums - 2 * SHIFT, np.outer(lighter, lighter).ravel(), 0.0, epsilon)
    assert low - 1e-12 <= truth <= high + 1e-12


def test_a_low_atom_in_the_outermost_bin_is_not_rounded_up() -> None:
    """The atom at -5 stands in the bin of the point -1, whose neighbour has less to lend than two ask for."""
    losses, weights = np.array([-5.0, -0.05, 1.4]), np.array([1.0, 0.62, 0.3])
    q = weights / weights.sum()
    p = q * np.exp(losses)
    law = AtomLaw(losses, p, q, 1 - float(p.sum()))
    points = np.arange(-6.0, 4.0)
    masses = below(law, points)
    for epsilon in np.concatenate([points, losses]):
        truth = float(np.maximum(p - math.exp(epsilon) * q, 0).sum())
        assert profile(points - SHIFT, masses, 0.0, epsilon) <= truth + 1e-15
