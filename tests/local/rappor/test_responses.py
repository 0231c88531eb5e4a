"""What reports reveal, against enumeration of all of them."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sourdine.accounting import Spend
from sourdine.core.distance import Neighbours
from sourdine.core.errors import UnsupportedLoss
from sourdine.local.rappor import BasicRappor, OneTimeRappor, Rappor
from sourdine.local.rappor.responses import Coins
from tests.rappor_laws import bit_law, filter_law

HALF, SOURCE = Fraction(1, 2), Coins(Fraction(1, 2), Fraction(1, 2), Fraction(3, 4))
shares = st.fractions(Fraction(1, 50), Fraction(49, 50), max_denominator=50)


def all_reports(truth: tuple[int, ...], coins: Coins, reports: int) -> np.ndarray:
    """The mass of every sequence of reports on these bits, summed over every permanent response."""
    f, p, q = float(coins.f), float(coins.p), float(coins.q)
    held_law = [(1 - f / 2, f / 2) if bit == 0 else (f / 2, 1 - f / 2) for bit in truth]
    total = np.zeros(2 ** (len(truth) * reports))
    for held in itertools.product((0, 1), repeat=len(truth)):
        mass = math.prod(law[bit] for law, bit in zip(held_law, held, strict=True))
        one: np.ndarray = np.ones(1)
        for bit in held * reports:
            chance = q if bit else p
            one = np.kron(one, [1 - chance, chance])
        total += mass * one
    return total


def test_the_published_epsilons() -> None:
    oracle = Rappor(bits=128, hashes=2, cohorts=16, f=0.5, p=0.5, q=0.75)
    assert oracle.epsilon_one == pytest.approx(1.0742858641667274)
    assert round(oracle.epsilon_one, 3) == 1.074
    assert oracle.epsilon_infinity == pytest.approx(4 * math.log(3))
    assert round(oracle.epsilon_infinity, 3) == 4.394
    once = OneTimeRappor(bits=128, hashes=2, cohorts=16, f=0.5)
    assert once.epsilon_one == once.epsilon_infinity == once.epsilon_after(7) == oracle.epsilon_infinity
    basic = BasicRappor(categories=9, f=0.5, p=0.5, q=0.75)
    assert 2 * basic.epsilon_one == pytest.approx(oracle.epsilon_one)


def test_they_are_the_worst_over_all_filters_and_reports() -> None:
    """Every pair of filters of two bits among five, every report: nothing beyond, and it is reached."""
    filters = [set(pair) for pair in itertools.combinations_with_replacement(range(5), 2)]
    for p, q, reports in ((0.5, 0.75, 1), (0.0, 1.0, None)):
        laws = [list(filter_law(truth, 5, 0.5, p, q).values()) for truth in filters]
        worst = max(np.max(np.log(np.divide(a, b))) for a, b in itertools.permutations(laws, 2))
        assert SOURCE.epsilon(2, reports) == pytest.approx(worst)
        assert SOURCE.epsilon(2, reports) >= worst - 1e-15


@settings(max_examples=25)
@given(shares, shares, shares, st.integers(1, 3))
def test_epsilon_after_some_reports_is_that_of_all_sequences(
    f: Fraction, p: Fraction, gap: Fraction, reports: int
) -> None:
    coins = Coins(f, p, p + (1 - p) * gap)
    a, b = (all_reports(truth, coins, reports) for truth in ((1, 1, 0, 0), (0, 0, 1, 1)))
    assert coins.epsilon(2, reports) == pytest.approx(np.max(np.log(a / b)), rel=1e-9)
    assert coins.epsilon(2, 1) <= coins.epsilon(2, reports) <= coins.epsilon(2, None)
    assert coins.epsilon(2, reports) <= reports * coins.epsilon(2, 1) * (1 + 1e-12)


@pytest.mark.parametrize("reports", [1, 2, 3])
def test_the_law_after_some_reports_is_that_of_all_sequences(reports: int) -> None:
    loss = SOURCE.loss_after(2, reports)
    a, b = (all_reports(truth, SOURCE, reports) for truth in ((1, 1, 0, 0), (0, 0, 1, 1)))
    for epsilon in np.linspace(0, 3, 13):
        true = np.maximum(a - math.exp(epsilon) * b, 0).sum()
        assert true - 1e-12 <= float(loss.profile(epsilon)) <= true + 1e-3
    if reports == 1:
        one = SOURCE.loss(2, 1, Neighbours.REPLACE)
        for epsilon in np.linspace(0, 1, 11):
            assert float(one.profile(epsilon)) == pytest.approx(
                np.maximum(a - math.exp(epsilon) * b, 0).sum()
            )


@pytest.mark.parametrize("reports", [1, 2])
@pytest.mark.parametrize("order", [1.01, 2.0, 7.0, 40.0])
def test_rho_bounds_every_divergence(reports: int, order: float) -> None:
    for coins in (SOURCE, Coins(Fraction(1, 9), Fraction(1, 3), Fraction(9, 10)), Coins(HALF)):
        a, b = (all_reports(truth, coins, reports) for truth in ((1, 1, 0, 0), (0, 0, 1, 1)))
        seen = a > 0
        divergence = math.log(np.sum(b[seen] * (a[seen] / b[seen]) ** order)) / (order - 1)
        assert divergence <= order * coins.rho(2, reports) * (1 + 1e-12)


def test_reports_approach_the_limit_and_a_delta_lowers_it() -> None:
    oracle = Rappor(bits=32, hashes=2, cohorts=1, f=0.5, p=0.5, q=0.75)
    series = [oracle.epsilon_after(n) for n in (1, 2, 4, 8, 16, 64, 10**9)]
    assert series == sorted(series)
    assert series[-1] == pytest.approx(oracle.epsilon_infinity)
    for n in (1, 10, 1000):
        assert 0 < oracle.epsilon_after(n, delta=1e-2) <= oracle.epsilon_after(n)


def test_a_lifetime_is_paid_once() -> None:
    oracle = Rappor(bits=32, hashes=2, cohorts=3, f=0.5, p=0.5, q=0.75)
    basic = BasicRappor(categories=7, f=0.5, p=0.5, q=0.75)
    for each in (oracle, basic, oracle.once(), basic.once()):
        spend = each.lifetime_spend
        assert float(spend.loss().epsilon) == each.epsilon_infinity
        assert Spend.from_json(spend.to_json()) == spend
        assert float(each.spend.loss().epsilon) == each.epsilon_one
    with pytest.raises(UnsupportedLoss, match="no permanent response"):
        BasicRappor(categories=7, f=0, p=0.5, q=0.75).lifetime_spend  # noqa: B018


def test_without_a_permanent_response_there_is_no_limit() -> None:
    oracle = Rappor(bits=32, hashes=2, cohorts=1, f=0, p=0.25, q=0.75)
    assert oracle.epsilon_infinity == math.inf
    assert oracle.epsilon_after(10) == pytest.approx(10 * oracle.epsilon_one)
    assert oracle.epsilon_one == pytest.approx(4 * math.log(3))


@given(shares, shares, shares)
def test_bits_are_reported_as_defined(f: Fraction, p: Fraction, q: Fraction) -> None:
    coins = Coins(f, p, q)
    assert float(coins.one) == pytest.approx(bit_law(1, float(f), float(p), float(q))[1])
    assert float(coins.zero) == pytest.approx(bit_law(0, float(f), float(p), float(q))[1])
    assert coins.one == f * (p + q) / 2 + (1 - f) * q
    assert coins.ones_law(True, 1)[1] == pytest.approx(float(coins.one))
