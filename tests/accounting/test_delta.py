"""A loss with a delta of its own, through every accountant and every change of a loss."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from sourdine.accounting import (
    PLD,
    Accountant,
    Approximate,
    DisjointPart,
    Pure,
    Renyi,
    Spend,
    ZeroConcentrated,
    block_loss,
    calibrate_noise,
    fixed_size,
    group,
    known,
    known_at,
    parallel,
    poisson,
    poisson_group,
    shuffled_epoch,
    together,
    uses_within,
)
from sourdine.accounting.explain import Curve
from sourdine.core.distance import Distance, Neighbours
from sourdine.core.distributions import GaussianLaw, pure_law
from sourdine.core.errors import InvalidParameter, UnsupportedLoss
from sourdine.core.loss import LeakyLaw, PrivacyLoss
from sourdine.mechanisms import Gaussian, KeyNoise, PartitionThreshold
from tests.accounting.profiles import hockey_stick

ACCOUNTANTS = [Pure(), ZeroConcentrated(), Renyi(), PLD(), Approximate()]
names = [type(accountant).__name__ for accountant in ACCOUNTANTS]


def leaky(epsilon: float, delta: float, neighbours: Neighbours = Neighbours.ADD_REMOVE) -> PrivacyLoss:
    law = LeakyLaw(pure_law(epsilon), delta)
    return PrivacyLoss.symmetric(
        law,
        neighbours=neighbours,
        epsilon=Fraction(epsilon),
        rho=Fraction(epsilon) ** 2 / 2,
        delta=Fraction(delta),
    )


@pytest.mark.parametrize("accountant", ACCOUNTANTS, ids=names)
def test_no_accountant_forgets_the_deltas(accountant: Accountant[object]) -> None:
    """Below the chance that something leaks there is no epsilon, and delta never falls below it."""
    cost = accountant.repeat(accountant.lift(leaky(0.125, 1e-3)), 20)
    leaks = 1 - (1 - 1e-3) ** 20
    assert accountant.epsilon(cost, 0.9 * leaks).upper == math.inf
    assert math.isfinite(accountant.epsilon(cost, 0.03).upper)
    for epsilon in (0.5, 2.5, 30.0):
        assert accountant.delta(cost, epsilon).upper >= leaks * (1 - 1e-12)


@pytest.mark.parametrize("accountant", ACCOUNTANTS, ids=names)
def test_every_accountant_covers_the_best_composition_of_pairs(accountant: Accountant[object]) -> None:
    """The exact curve of k leaky responses, summed from the binomial law."""
    epsilon, delta, count = 0.25, 1e-4, 10
    k = np.arange(count + 1)
    up = math.exp(epsilon) / (1 + math.exp(epsilon))
    p = np.array([math.comb(count, int(i)) for i in k]) * up**k * (1 - up) ** (count - k)
    losses = (2 * k - count) * epsilon
    kept = (1 - delta) ** count
    cost = accountant.repeat(accountant.lift(leaky(epsilon, delta)), count)
    for at in (0.5, 1.0, 2.0):
        true = 1 - kept + kept * float(np.maximum(p - math.exp(at) * p * np.exp(-losses), 0).sum())
        assert accountant.delta(cost, at).upper >= true * (1 - 1e-9)
        assert accountant.epsilon(cost, true).upper >= at - 1e-6


def test_pld_knows_the_exact_curve() -> None:
    cost = PLD().repeat(PLD().lift(leaky(0.25, 1e-4)), 10)
    pairs = Approximate().repeat(Approximate().lift(known(0.25, 1e-4)), 10)
    assert PLD().delta(cost, 1.0).upper == pytest.approx(Approximate().delta(pairs, 1.0).upper, rel=1e-3)
    assert PLD().epsilon(cost, 0.05).upper == pytest.approx(
        Approximate().epsilon(pairs, 0.05).upper, abs=2e-3
    )


def test_pld_adds_leaks_to_gaussian_noise() -> None:
    law = LeakyLaw(GaussianLaw(0.5), 1e-5)
    loss = PrivacyLoss.symmetric(law, neighbours=Neighbours.ADD_REMOVE, rho=Fraction(1, 8), delta=1e-5)
    cost = PLD().repeat(PLD().lift(loss), 4)
    kept = (1 - 1e-5) ** 4
    true = 1 - kept + kept * float(GaussianLaw(1.0).profile(2.0))
    assert true in PLD().delta(cost, 2.0)
    assert PLD().epsilon(cost, 3.9e-5).upper == math.inf


def test_pld_without_a_delta_has_no_epsilon_for_a_leak() -> None:
    assert PLD().epsilon(PLD().lift(leaky(1.0, 1e-9)), 0.0).upper == math.inf


def test_rhos_are_added_up_before_their_law_though_one_leaks() -> None:
    keys = PartitionThreshold.within(rho=Fraction(1, 100), delta=1e-7, keys=3).loss(Distance.linf(1))
    other = Gaussian(sigma=10).loss(Distance.l2(square=2, coordinates=2))
    accountants: tuple[Accountant[Any], ...] = (PLD(), ZeroConcentrated())
    found, plain = (
        accountant.epsilon(accountant.join(accountant.lift(keys), accountant.lift(other)), 1e-6).upper
        for accountant in accountants
    )
    assert found <= plain


@pytest.mark.parametrize("accountant", [Pure(), ZeroConcentrated(), Renyi()], ids=["pure", "zcdp", "renyi"])
def test_costs_hold_the_sum_of_the_deltas(accountant: Accountant[object]) -> None:
    parts = [
        accountant.lift(leaky(0.5, 0.25)),
        accountant.lift(leaky(0.5, 0.125)),
        accountant.lift(PrivacyLoss.pure(1)),
    ]
    joined = accountant.join(accountant.join(parts[0], parts[1]), parts[2])
    assert joined.delta == Fraction(3, 8)  # type: ignore[attr-defined]


def test_losses_together_add_their_deltas_and_parts_take_the_worst() -> None:
    one, other = leaky(0.5, 0.25), leaky(0.25, 0.125)
    assert together([(one, 1), (other, 2)]).delta == Fraction(1, 2)
    assert together([(one, 9)]).delta == 1
    assert parallel([one, other]).delta == Fraction(1, 4)
    swapped = [leaky(0.5, delta, Neighbours.REPLACE) for delta in (0.25, 0.125, 0.0625)]
    assert parallel(swapped).delta == Fraction(3, 8)
    crossing = [leaky(0.25, delta) for delta in (0.125, 0.125, 0.25)]
    assert parallel(swapped, crossing).delta == Fraction(3, 8)
    assert shuffled_epoch(swapped[0]).delta == Fraction(1, 4)


def test_the_laws_of_losses_together_hold_what_leaks() -> None:
    loss = together([(leaky(0.5, 0.125), 2), (leaky(0.25, 0.0625), 1)])
    leaks = 1 - (1 - 0.125) ** 2 * (1 - 0.0625)
    assert leaks * (1 - 1e-9) <= float(loss.profile(20.0)) <= 0.3125 * (1 + 1e-9)
    assert float(parallel([leaky(0.5, 0.25), leaky(0.25, 0.125)]).profile(9.0)) == pytest.approx(0.25)


def test_a_plan_of_parts_costs_its_worst_delta() -> None:
    keys = PartitionThreshold(noise=KeyNoise.LAPLACE, scale=Fraction(2), threshold=20)
    strict = PartitionThreshold(noise=KeyNoise.LAPLACE, scale=Fraction(2), threshold=30)
    spends = [
        Spend(mechanism=made, distance=Distance.linf(1), part=DisjointPart("region", key))
        for made, key in ((keys, "north"), (strict, "south"))
    ]
    assert block_loss(spends).delta == keys.leak()


@pytest.mark.parametrize(
    "change",
    [
        lambda loss: group(loss, 2),
        lambda loss: poisson_group(loss, 0.1, 2),
    ],
    ids=["group", "group of a sample"],
)
def test_what_is_not_proven_for_a_leak_is_refused(change: object) -> None:
    with pytest.raises(UnsupportedLoss, match="delta of its own"):
        change(leaky(0.5, 1e-6))  # type: ignore[operator]


@pytest.mark.parametrize("rate", [Fraction(1, 10), Fraction(3, 4)])
def test_a_sample_leaks_as_rarely_as_it_holds_the_unit(rate: Fraction) -> None:
    """Against all outcomes: a response, or with probability delta all that there is to tell."""
    epsilon, delta, q = 0.5, 1 / 64, float(rate)
    likely = 1 / (1 + math.exp(-epsilon))
    kept = 1 - delta
    there = np.array([kept * likely, kept * (1 - likely), delta, 0.0])
    gone = np.array([kept * (1 - likely), kept * likely, 0.0, delta])
    mixed, other = (1 - q) * gone + q * there, (1 - q) * there + q * gone
    drawn = poisson(leaky(epsilon, delta), rate)
    fixed = fixed_size(leaky(epsilon, delta, Neighbours.REPLACE), rate.numerator, rate.denominator)
    assert drawn.delta == fixed.delta == rate * Fraction(delta)
    for loss in (drawn, fixed):
        assert loss.epsilon == pytest.approx(math.log1p(q * math.expm1(epsilon)), rel=1e-14)
    for at in (-0.6, -0.1, 0.0, 0.03, 0.2, float(drawn.epsilon), 1.0):
        assert drawn.remove.profile(at) == pytest.approx(hockey_stick(mixed, gone, at), abs=1e-13)
        assert drawn.add.profile(at) == pytest.approx(hockey_stick(there, other, at), abs=1e-13)
        worse = hockey_stick(mixed, gone, at) if at >= 0 else hockey_stick(there, other, at)
        assert fixed.profile(at) == pytest.approx(worse, abs=1e-13)
    assert drawn.profile(drawn.epsilon) == pytest.approx(q * delta, rel=1e-9)
    assert drawn.profile(3.0) == pytest.approx(q * delta, rel=1e-9)
    cost = PLD().repeat(PLD().lift(drawn), 20)
    assert cost.leaks == 20 * rate * Fraction(delta)


def test_what_changes_nothing_is_not_refused() -> None:
    loss = leaky(0.5, 1e-6)
    assert group(loss, 1) is loss
    assert poisson(loss, 1) is loss


def test_the_point_of_a_leaky_loss() -> None:
    assert known_at(leaky(0.5, 1e-6), 1e-6).profile(0.5) == pytest.approx(1e-6, rel=1e-6)
    with pytest.raises(InvalidParameter, match="infinite loss"):
        known_at(leaky(0.5, 1e-6), 1e-7)
    with pytest.raises(InvalidParameter, match="infinite loss"):
        known_at(leaky(0.5, 1e-6), 0)


def test_the_curve_of_a_leaky_loss_never_reaches_nothing() -> None:
    one = Curve.of_loss(leaky(0.5, 1e-3))
    many = Curve.of_cost(PLD().repeat(PLD().lift(leaky(0.5, 1e-3)), 3))
    assert min(one.remove.min(), one.add.min()) >= 1e-3
    assert many.remove.min() >= 1 - (1 - 1e-3) ** 3
    assert many.remove[-1] == pytest.approx(3e-3, rel=0.01)
    assert one.reach(0) == math.inf


def test_searches_count_the_deltas_or_refuse() -> None:
    spend = Spend(mechanism=PartitionThreshold.within(epsilon=0.25, delta=1e-7), distance=Distance.linf(1))
    leak = spend.one_loss().delta
    assert uses_within([spend], 10, 3.5 * leak, accountant=Pure()) == 3
    assert uses_within([spend], 10, accountant=Pure()) == 0
    assert uses_within([spend], 1, 0.5, accountant=Pure()) == 4
    with pytest.raises(UnsupportedLoss, match=r"PartitionThreshold\.within"):
        calibrate_noise(
            lambda scale: PartitionThreshold(noise=KeyNoise.LAPLACE, scale=scale, threshold=40),
            Distance.linf(1),
            1,
            1e-6,
        )
