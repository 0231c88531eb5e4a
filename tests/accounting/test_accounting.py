import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sourdine.accounting
from sourdine.accounting import (
    PLD,
    Accountant,
    Approximate,
    Pure,
    Renyi,
    ZeroConcentrated,
    fixed_size,
    known,
    known_at,
    poisson,
)
from sourdine.core.distance import Distance, Neighbours
from sourdine.core.distributions import GaussianLaw
from sourdine.core.errors import InvalidParameter, UnsupportedLoss
from sourdine.core.loss import PrivacyLoss
from sourdine.mechanisms import Exponential, Gaussian, KaryResponse, Laplace

ACCOUNTANTS: list[Accountant[Any]] = [Pure(), ZeroConcentrated(), Renyi(), Approximate(), PLD()]
ADD_REMOVE, REPLACE = Neighbours.ADD_REMOVE, Neighbours.REPLACE


def order(name: str) -> tuple[int, str]:
    return (0 if name.isupper() else 1 if name[0].isupper() else 2, name)


def test_everything_named_is_there_and_in_order() -> None:
    names = sourdine.accounting.__all__
    assert names == sorted(names, key=order)
    assert len(names) == len(set(names))
    for name in names:
        assert getattr(sourdine.accounting, name) is not None


def small_losses() -> list[PrivacyLoss]:
    return [
        PrivacyLoss.pure(Fraction(1, 7)),
        PrivacyLoss.pure(Fraction(1, 3)),
        Laplace(scale=4).loss(Distance.l1(1)),
        KaryResponse(epsilon=Fraction(1, 2), categories=5).loss(Distance.hamming(neighbours=ADD_REMOVE)),
    ]


@pytest.mark.parametrize("accountant", ACCOUNTANTS, ids=lambda a: type(a).__name__)
@settings(max_examples=2)
@given(st.permutations(range(4)), st.sampled_from([1e-3, 1e-7]))
def test_the_order_of_composition_does_not_matter(
    accountant: Accountant[Any], places: list[int], delta: float
) -> None:
    losses = small_losses()

    def total(chosen: list[PrivacyLoss]) -> float:
        cost = accountant.lift(chosen[0])
        for loss in chosen[1:]:
            cost = accountant.join(cost, accountant.lift(loss))
        return accountant.epsilon(cost, delta).upper

    assert total([losses[i] for i in places]) == pytest.approx(total(losses), rel=1e-6)


@pytest.mark.parametrize("accountant", ACCOUNTANTS, ids=lambda a: type(a).__name__)
@pytest.mark.parametrize("count", [1, 2, 7, 12])
def test_repeating_equals_joining(accountant: Accountant[Any], count: int) -> None:
    one = accountant.lift(small_losses()[1])
    joined = one
    for _ in range(count - 1):
        joined = accountant.join(joined, one)
    repeated = accountant.repeat(one, count)
    for delta in (1e-3, 1e-9):
        assert accountant.epsilon(repeated, delta).upper == pytest.approx(
            accountant.epsilon(joined, delta).upper, rel=1e-9
        )


@pytest.mark.parametrize("accountant", ACCOUNTANTS, ids=lambda a: type(a).__name__)
def test_unlike_relations_do_not_join(accountant: Accountant[Any]) -> None:
    first, second = (accountant.lift(PrivacyLoss.pure(1, neighbours=n)) for n in (ADD_REMOVE, REPLACE))
    with pytest.raises(UnsupportedLoss, match="add-remove neighbours and the other for replace"):
        accountant.join(first, second)


@pytest.mark.parametrize("accountant", ACCOUNTANTS, ids=lambda a: type(a).__name__)
@pytest.mark.parametrize("delta", [-1e-9, 1, math.nan, "small"])
def test_a_bad_delta_is_refused(accountant: Accountant[Any], delta: float) -> None:
    with pytest.raises(InvalidParameter, match="'delta'"):
        accountant.epsilon(accountant.lift(PrivacyLoss.pure(1)), delta)


@pytest.mark.parametrize("accountant", ACCOUNTANTS, ids=lambda a: type(a).__name__)
@pytest.mark.parametrize("count", [0, -1, 2.5])
def test_a_bad_count_is_refused(accountant: Accountant[Any], count: int) -> None:
    with pytest.raises(InvalidParameter, match="'count'"):
        accountant.repeat(accountant.lift(PrivacyLoss.pure(1)), count)


@pytest.mark.parametrize("accountant", ACCOUNTANTS, ids=lambda a: type(a).__name__)
def test_epsilon_falls_with_delta_and_grows_with_the_count(accountant: Accountant[Any]) -> None:
    one = accountant.lift(PrivacyLoss.pure(Fraction(1, 4)))
    deltas = [1e-2, 1e-4, 1e-8, 1e-12]
    by_delta = [accountant.epsilon(accountant.repeat(one, 20), delta).upper for delta in deltas]
    assert all(a <= b * (1 + 1e-6) for a, b in pairwise(by_delta))
    by_count = [accountant.epsilon(accountant.repeat(one, n), 1e-6).upper for n in (1, 2, 5, 30, 200)]
    assert by_count == sorted(by_count)


@pytest.mark.parametrize("accountant", ACCOUNTANTS, ids=lambda a: type(a).__name__)
@pytest.mark.parametrize("epsilon", [0.2, 1.0, 3.0])
def test_delta_and_epsilon_are_inverse(accountant: Accountant[Any], epsilon: float) -> None:
    cost = accountant.repeat(accountant.lift(PrivacyLoss.pure(Fraction(1, 3))), 12)
    delta = accountant.delta(cost, epsilon).upper
    assert 0 < delta <= 1
    if not isinstance(accountant, Pure) and delta < 1:
        assert accountant.epsilon(cost, delta).upper == pytest.approx(epsilon, abs=2e-3)


def losses_to_compare() -> Iterator[tuple[PrivacyLoss, int]]:
    yield PrivacyLoss.pure(Fraction(1, 2)), 30
    yield Laplace(scale=3).loss(Distance.l1(2, coordinates=1)), 10
    yield Gaussian(sigma=5).loss(Distance.l2(1)), 40
    yield Gaussian(sigma=5).loss(Distance.l2(3)), 7  # known by its rho only
    yield Exponential(epsilon=Fraction(1, 2), sensitivity=1, candidates=9).loss(Distance.linf(1)), 20
    yield PrivacyLoss.symmetric(GaussianLaw(0.7), neighbours=ADD_REMOVE), 3
    yield poisson(PrivacyLoss.symmetric(GaussianLaw(0.8), neighbours=ADD_REMOVE), Fraction(1, 50)), 500
    yield poisson(Gaussian(sigma=2).loss(Distance.l2(1)), Fraction(1, 20)), 100
    yield poisson(Laplace(scale=1).loss(Distance.l1(1)), Fraction(1, 20)), 200
    yield fixed_size(PrivacyLoss.symmetric(GaussianLaw(0.6), neighbours=REPLACE), 5, size=100), 100
    yield fixed_size(Laplace(scale=2).loss(Distance.l1(1, neighbours=REPLACE)), 1, size=10), 50


@pytest.mark.parametrize("case", range(11))
@pytest.mark.parametrize("delta", [1e-7])
def test_privacy_loss_distributions_are_never_above_the_others(case: int, delta: float) -> None:
    loss, count = list(losses_to_compare())[case]
    sharp = PLD().epsilon(PLD().repeat(PLD().lift(loss), count), delta)
    others: list[Accountant[Any]] = [Renyi(), Approximate()]
    others += [Pure()] if math.isfinite(loss.epsilon) else []
    others += [ZeroConcentrated()] if math.isfinite(loss.rho) else []
    for accountant in others:
        if isinstance(accountant, Approximate) and not math.isfinite(loss.epsilon):
            cost = accountant.lift(known_at(loss, delta / count / 10))
        else:
            cost = accountant.lift(loss)
        upper = accountant.epsilon(accountant.repeat(cost, count), delta).upper
        assert sharp.upper <= upper * (1 + 1e-6) + 1e-3
        assert sharp.lower <= upper


def test_renyi_is_close_to_the_truth_for_many_small_losses() -> None:
    loss = poisson(PrivacyLoss.symmetric(GaussianLaw(1.0), neighbours=ADD_REMOVE), Fraction(1, 100))
    renyi = Renyi().epsilon(Renyi().repeat(Renyi().lift(loss), 2000), 1e-6).upper
    sharp = PLD().epsilon(PLD().repeat(PLD().lift(loss), 2000), 1e-6)
    assert sharp.upper < renyi < 1.4 * sharp.lower


@pytest.mark.parametrize("accountant", [Renyi(), ZeroConcentrated()], ids=lambda a: type(a).__name__)
def test_moments_need_a_delta(accountant: Accountant[Any]) -> None:
    cost = accountant.lift(Gaussian(sigma=2).loss(Distance.l2(1)))
    with pytest.raises(InvalidParameter, match=r"'delta' .* must be above 0\. .* A common choice is 1e-6"):
        accountant.epsilon(cost, 0.0)


@pytest.mark.parametrize("accountant", ACCOUNTANTS, ids=lambda a: type(a).__name__)
def test_costs_are_not_changed_by_joining(accountant: Accountant[Any]) -> None:
    one = accountant.lift(PrivacyLoss.pure(Fraction(1, 3)))
    before = accountant.epsilon(one, 1e-6)
    accountant.join(one, accountant.repeat(one, 5))
    assert accountant.epsilon(one, 1e-6) == before


def test_a_mechanism_known_by_one_point_composes_alike_by_both_accountants() -> None:
    loss = known(Fraction(1, 5), 1e-8)
    sharp = PLD().epsilon(PLD().repeat(PLD().lift(loss), 25), 1e-5)
    plain = Approximate().epsilon(Approximate().repeat(Approximate().lift(loss), 25), 1e-5)
    assert np.isclose(sharp.upper, plain.upper, atol=2e-3)
