import math
from fractions import Fraction

import numpy as np
import pytest

from sourdine.accounting import PLD, known, parallel, together
from sourdine.accounting.joint import Worst, worst
from sourdine.core.distance import Distance, Neighbours
from sourdine.core.distributions import AtomLaw, GaussianLaw, pure_law
from sourdine.core.errors import UnsupportedLoss
from sourdine.core.loss import PrivacyLoss
from sourdine.mechanisms import Gaussian, Laplace
from tests.accounting.profiles import hockey_stick, least_epsilon, responses_delta
from tests.errors import refusal_of

REPLACE, ADD_REMOVE, ZERO_OUT = Neighbours.REPLACE, Neighbours.ADD_REMOVE, Neighbours.ZERO_OUT
EPSILONS = np.linspace(-2, 3, 41)


@pytest.mark.parametrize("relation", [ADD_REMOVE, ZERO_OUT])
def test_the_worst_part_counts(relation: Neighbours) -> None:
    parts = [
        Laplace(scale=2).loss(Distance.l1(1, neighbours=relation)),
        Laplace(scale=3).loss(Distance.l1(1, neighbours=relation)),
    ]
    both = parallel(parts)
    assert both.epsilon == Fraction(1, 2)
    assert both.rho == Fraction(1, 8)
    assert both.neighbours is relation
    assert both.profile(EPSILONS) == pytest.approx(parts[0].profile(EPSILONS), abs=1e-15)


def test_laws_that_cross() -> None:
    """Pure noise is worse at small epsilons, Gaussian noise at large ones."""
    parts = [PrivacyLoss.pure(1), PrivacyLoss.symmetric(GaussianLaw(0.9), neighbours=ADD_REMOVE)]
    both = parallel(parts)
    larger = np.maximum(parts[0].profile(EPSILONS), parts[1].profile(EPSILONS))
    assert both.profile(EPSILONS) == pytest.approx(larger, abs=1e-15)
    above = both.remove.survival(EPSILONS)
    assert above.p - np.exp(EPSILONS) * above.q == pytest.approx(larger, abs=1e-12)
    assert np.all(np.diff(above.p) <= 1e-12)
    assert np.all(np.diff(above.q) <= 1e-12)
    below = both.remove.cumulative(EPSILONS)
    assert above.p + below.p == pytest.approx(1, abs=1e-12)
    assert math.isinf(both.epsilon)


def test_the_worst_law_composes_no_lower_than_any_part() -> None:
    parts = [PrivacyLoss.pure(1), PrivacyLoss.symmetric(GaussianLaw(0.9), neighbours=ADD_REMOVE)]
    accountant = PLD()

    def epsilon(loss: PrivacyLoss) -> float:
        return accountant.epsilon(accountant.repeat(accountant.lift(loss), 5), 1e-6).upper

    assert epsilon(parallel(parts)) >= max(epsilon(part) for part in parts) - 1e-3


def test_what_tells_everything_stays() -> None:
    law = parallel([known(1, 1e-3), PrivacyLoss.pure(3)]).remove
    assert law.infinite == pytest.approx(1e-3)
    assert law.survival(5.0).p == pytest.approx(1e-3)
    assert (law.lowest, law.highest) == (-3.0, 3.0)


def test_a_replaced_unit_touches_two_parts() -> None:
    parts = [PrivacyLoss.pure(epsilon, neighbours=REPLACE) for epsilon in (0.5, 1.0, 0.25)]
    both = parallel(parts)
    assert both.epsilon == Fraction(3, 2)
    for epsilon in (0.0, 0.3, 0.6, 1.2, 1.49):
        true = max(responses_delta(pair, epsilon) for pair in ([1.0, 0.5], [1.0, 0.25], [0.5, 0.25]))
        assert float(both.profile(epsilon)) == pytest.approx(true, abs=1e-4)
        assert float(both.profile(epsilon)) >= true - 1e-12


def test_a_replaced_unit_by_enumeration() -> None:
    """Two counts with noise; a unit moves from one part to the other, or stays."""
    y = np.arange(-60, 61)
    law = lambda at, scale: np.exp(-np.abs(y - at) / scale) / np.exp(-np.abs(y) / scale).sum()
    near = [np.outer(law(0, 2.0), law(1, 3.0)), np.outer(law(1, 2.0), law(0, 3.0))]
    replaced = [Laplace(scale=k).loss(Distance.l1(1, neighbours=REPLACE)) for k in (2, 3)]
    claimed = parallel(replaced)
    for epsilon in (0.0, 0.2, 0.5, 0.8):
        true = hockey_stick(near[0].ravel(), near[1].ravel(), epsilon)
        assert true - 1e-12 <= float(claimed.profile(epsilon)) <= true + 1e-3


def test_equal_parts_are_two_when_there_are_two() -> None:
    one = PrivacyLoss.pure(Fraction(1, 2), neighbours=REPLACE)
    assert parallel([one]) is not None
    assert parallel([one]).epsilon == Fraction(1, 2)
    assert parallel([one, one]).epsilon == 1
    assert parallel([one, one]).profile(0.7) == pytest.approx(responses_delta([0.5, 0.5], 0.7), abs=1e-4)


def test_crossing_may_cost_less_than_changing_inside() -> None:
    """A clipped sum moves by 2 inside a part, and by 1 when a unit only leaves it."""
    inside = [Laplace(scale=k).loss(Distance.l1(2, neighbours=REPLACE)) for k in (4, 8)]
    across = [Laplace(scale=k).loss(Distance.l1(1)) for k in (4, 8)]
    assert parallel(inside).epsilon == Fraction(3, 4)
    assert parallel(inside, across).epsilon == Fraction(1, 2)
    assert parallel(inside, across).neighbours is REPLACE
    for epsilon in (0.0, 0.2, 0.4):
        assert parallel(inside).profile(epsilon) >= parallel(inside, across).profile(epsilon)
        assert parallel(inside, across).profile(epsilon) >= inside[0].profile(epsilon)


def test_many_different_parts() -> None:
    parts = [Gaussian(sigma=k).loss(Distance.l2(1, neighbours=REPLACE)) for k in range(2, 14)]
    both = parallel(parts)
    assert both.rho == Fraction(1, 8) + Fraction(1, 18)
    assert both.profile(1.0) >= max(float(part.profile(1.0)) for part in parts)


def test_the_worst_of_one_is_itself() -> None:
    law = GaussianLaw(1.0)
    assert worst([law, GaussianLaw(1.0), law]) is law
    assert isinstance(worst([law, pure_law(1.0)]), Worst)
    assert isinstance(worst([AtomLaw.between([0.4, 0.6], [0.6, 0.4])]), AtomLaw)


def test_bad_parts_are_refused() -> None:
    one, other = PrivacyLoss.pure(1), PrivacyLoss.pure(1, neighbours=REPLACE)
    with refusal_of("parts", "parallel"):
        parallel([])
    with pytest.raises(UnsupportedLoss, match="add-remove neighbours and the other for replace"):
        parallel([one, other])
    with refusal_of("crossing", "parallel"):
        parallel([one, one], [one, one])
    with refusal_of("crossing", "parallel"):
        parallel([other, other], [one])
    with refusal_of("crossing", "parallel"):
        parallel([other, other], [one, other])


@pytest.mark.parametrize("relation", [REPLACE, ADD_REMOVE])
def test_a_replaced_unit_may_be_seen_in_either_order(relation: Neighbours) -> None:
    """Two mechanisms see the same two records the other way round; only replacement allows that."""
    p, q = np.array([0.17, 0.74, 0.09]), np.array([0.01, 0.56, 0.43])
    loss = PrivacyLoss(remove=AtomLaw.between(p, q), add=AtomLaw.between(q, p), neighbours=relation)

    def epsilon_of(one: np.ndarray, other: np.ndarray) -> float:
        return least_epsilon(lambda e: hockey_stick(one, other, e), 0.03, 20)

    mixed = epsilon_of(np.outer(p, q), np.outer(q, p))
    ordered = max(epsilon_of(np.outer(a, a), np.outer(b, b)) for a, b in ((p, q), (q, p)))
    accountant = PLD()
    cost = accountant.repeat(accountant.lift(loss), 2)
    found = accountant.epsilon(cost, 0.03).upper
    block = accountant.epsilon(accountant.lift(together([(loss, 2)])), 0.03).upper
    assert mixed > ordered + 0.5
    if relation is REPLACE:
        assert min(found, block) >= mixed
    else:
        assert found == pytest.approx(ordered, abs=2e-3)
        assert block == pytest.approx(ordered, abs=2e-3)
