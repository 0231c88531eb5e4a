"""Parameters from epsilons: never above what was asked, hardly below, and with the least variance."""

import math
from fractions import Fraction

import pytest

from sourdine.core.errors import InvalidParameter
from sourdine.local.rappor import BasicOneTimeRappor, BasicRappor, OneTimeRappor, Rappor


@pytest.mark.parametrize("epsilon", [0.25, 1, Fraction(5, 3), 4])
@pytest.mark.parametrize("hashes", [1, 2, 4])
def test_both_epsilons_are_met_from_below(epsilon: float, hashes: int) -> None:
    oracle = Rappor.within(epsilon=epsilon, epsilon_infinity=2 * epsilon, hashes=hashes)
    assert 0.999 * epsilon <= oracle.epsilon_one <= epsilon
    assert 2 * 0.999 * epsilon <= oracle.epsilon_infinity <= 2 * epsilon
    once = OneTimeRappor.within(epsilon=epsilon, hashes=hashes)
    assert 0.999 * epsilon <= once.epsilon_one <= epsilon
    assert BasicOneTimeRappor.within(epsilon=epsilon, categories=5).epsilon_one <= epsilon


def test_an_infinite_limit_leaves_the_permanent_response_out() -> None:
    oracle = BasicRappor.within(epsilon=1, epsilon_infinity=math.inf, categories=3)
    assert oracle.f == 0
    assert 0.999 <= oracle.epsilon_one <= 1
    # optimised unary encoding: q = 1/2 and p = 1/(1 + e^epsilon) have the least variance
    assert float(oracle.q) == pytest.approx(0.5, abs=0.01)
    assert float(oracle.p) == pytest.approx(1 / (1 + math.e), abs=0.005)


def test_no_other_p_does_better() -> None:
    best = Rappor.within(epsilon=1, epsilon_infinity=4)
    variance = best.channel.variance(0.0, 1)
    source = Rappor.within(epsilon=1, epsilon_infinity=4).f
    for p in (0.05, 0.2, 0.5, 0.7):
        low, high = p, 1.0
        for _ in range(60):
            q = (low + high) / 2
            one, zero = float(source) / 2 * (p + q), float(source) / 2 * (p + q)
            one, zero = one + (1 - float(source)) * q, zero + (1 - float(source)) * p
            spent = 2 * math.log(one * (1 - zero) / (zero * (1 - one))) if one < 1 else math.inf
            low, high = (q, high) if spent <= 1 else (low, q)
        assert variance <= zero * (1 - zero) / (one - zero) ** 2 * 1.001


@pytest.mark.parametrize(
    ("epsilon", "limit", "said"),
    [
        (0, 2, "'epsilon'"),
        (2, 2, "'epsilon_infinity'"),
        (2, 1, "one-time"),
        (1e-9, 1, "larger"),
        ("1", 2, "'epsilon'"),
    ],
)
def test_what_cannot_be_met_is_refused(epsilon: float, limit: float, said: str) -> None:
    with pytest.raises(InvalidParameter, match=said):
        Rappor.within(epsilon=epsilon, epsilon_infinity=limit)
    with pytest.raises(InvalidParameter, match="larger"):
        OneTimeRappor.within(epsilon=1e-9)
