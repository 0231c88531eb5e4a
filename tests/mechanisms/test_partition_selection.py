import math
from dataclasses import replace
from fractions import Fraction
from itertools import combinations

import mpmath
import numpy as np
import pytest

from sourdine.accounting import group_distance
from sourdine.core.distance import Distance, Neighbours
from sourdine.core.errors import InvalidParameter
from sourdine.core.loss import PrivacyLoss
from sourdine.mechanisms import KeyNoise, PartitionThreshold
from sourdine.testing import SeededBits
from tests.choice_laws import key_threshold as law_of
from tests.errors import refusal_of

ONE = Distance.linf(1)
EPSILONS = np.linspace(0, 3, 7)
LAPLACE = PartitionThreshold(noise=KeyNoise.LAPLACE, scale=Fraction(2), threshold=7, keys=2)
GAUSSIAN = PartitionThreshold(noise=KeyNoise.GAUSSIAN, scale=Fraction(3, 2), threshold=4, keys=2)


def true_delta(noise: KeyNoise, scale: Fraction, threshold: int, keys: int) -> mpmath.mpf:
    """That one of so many keys with a count of 1 reaches the threshold, from its masses."""
    with mpmath.workdps(40):
        size = mpmath.mpf(scale.numerator) / scale.denominator
        power = 1 if noise is KeyNoise.LAPLACE else 2
        if power == 1 and scale > 50:  # summed as a series, since there would be many
            tail = mpmath.exp(-(threshold - 1) / size) / (1 + mpmath.exp(-1 / size))
            return 1 - (1 - tail) ** keys
        mass = [mpmath.exp(-((k / size) ** power) / power) for k in range(int(40 * size) + threshold)]
        p = mpmath.fsum(mass[threshold - 1 :]) / (2 * mpmath.fsum(mass) - 1)
        return 1 - (1 - p) ** keys


@pytest.mark.parametrize("keys", [1, 3, 50])
@pytest.mark.parametrize("delta", [1e-10, 1e-6, 0.05])
@pytest.mark.parametrize("cost", [{"epsilon": 1.0}, {"epsilon": 0.05}, {"rho": 0.01}, {"rho": 2.0}])
def test_the_threshold_is_the_least_for_its_delta(keys: int, delta: float, cost: dict[str, float]) -> None:
    made = PartitionThreshold.within(delta=delta, keys=keys, **cost)  # type: ignore[arg-type]
    loss = made.loss(ONE)
    true = true_delta(made.noise, made.scale, made.threshold, keys)
    assert true <= loss.delta <= min(delta, true * (1 + 2e-3))
    assert true_delta(made.noise, made.scale, made.threshold - 1, keys) > delta * (1 - 2e-3)
    if "epsilon" in cost:
        assert loss.epsilon == Fraction(cost["epsilon"])
    else:
        assert cost["rho"] * (1 - 1e-12) <= loss.rho <= Fraction(cost["rho"])


def test_a_minimum_raises_the_threshold_and_never_lowers_it() -> None:
    least = PartitionThreshold.within(epsilon=1, delta=1e-6)
    assert PartitionThreshold.within(epsilon=1, delta=1e-6, minimum=5) == least
    raised = PartitionThreshold.within(epsilon=1, delta=1e-6, minimum=50)
    assert (raised.threshold, raised.scale) == (50, least.scale)
    assert raised.loss(ONE).delta < least.loss(ONE).delta


@pytest.mark.parametrize("cost", [{"epsilon": 1}, {"rho": Fraction(1, 8)}])
def test_replacement_doubles_the_noise_and_leaves_delta(cost: dict[str, Fraction]) -> None:
    swap = Distance.linf(1, neighbours=Neighbours.REPLACE)
    made = PartitionThreshold.within(delta=1e-6, keys=2, neighbours=Neighbours.REPLACE, **cost)  # type: ignore[arg-type]
    once, twice = made.loss(ONE), made.loss(swap)
    assert (twice.epsilon, twice.rho, twice.delta) == (2 * once.epsilon, 2 * once.rho, once.delta)
    assert (twice.epsilon if "epsilon" in cost else twice.rho) <= next(iter(cost.values()))


def excess(p: dict[int, float], q: dict[int, float], epsilon: float) -> float:
    return sum(max(0.0, mass - math.exp(epsilon) * q.get(code, 0.0)) for code, mass in p.items())


def assert_covered(loss: PrivacyLoss, pairs: list[tuple[dict[int, float], dict[int, float]]]) -> None:
    remove, add = loss.remove.profile(EPSILONS) + 1e-12, loss.add.profile(EPSILONS) + 1e-12
    for p, q in pairs:
        assert np.all([excess(p, q, epsilon) for epsilon in EPSILONS] <= remove)
        assert np.all([excess(q, p, epsilon) for epsilon in EPSILONS] <= add)


@pytest.mark.parametrize("mechanism", [LAPLACE, GAUSSIAN])
def test_the_loss_covers_every_small_table(mechanism: PartitionThreshold) -> None:
    """A unit joins any two of three keys that others hold, or nobody does."""
    loss = mechanism.loss(ONE)
    counts = (0, 1, mechanism.threshold - 1)
    pairs = []
    for others in np.array(np.meshgrid(counts, counts, counts)).reshape(3, -1).T:
        for joined in [*combinations(range(3), 1), *combinations(range(3), 2)]:
            with_unit = others.copy()
            with_unit[list(joined)] += 1
            pairs.append((law_of(mechanism, with_unit), law_of(mechanism, others)))
    assert_covered(loss, pairs)


@pytest.mark.parametrize("mechanism", [LAPLACE, GAUSSIAN])
def test_the_loss_covers_replacement(mechanism: PartitionThreshold) -> None:
    """One unit leaves two of four keys, and another joins two."""
    loss = mechanism.loss(Distance.linf(1, neighbours=Neighbours.REPLACE))
    for others in ([0, 0, 0, 0], [5, 0, 5, 0], [6, 6, 6, 6], [0, 3, 6, 0]):
        before, after = np.array(others), np.array(others)
        before[:2] += 1
        after[2:] += 1
        assert_covered(loss, [(law_of(mechanism, before), law_of(mechanism, after))])


@pytest.mark.parametrize("mechanism", [LAPLACE, GAUSSIAN])
def test_the_loss_covers_a_group_of_units_with_one_key_each(mechanism: PartitionThreshold) -> None:
    single = replace(mechanism, keys=1)
    loss = single.loss(group_distance(ONE, 2))
    for joined in ([2, 0], [1, 1]):
        for others in (np.zeros(2, int), np.array([3, 5]), np.array([6, 0])):
            assert_covered(loss, [(law_of(single, others + joined), law_of(single, others))])


@pytest.mark.parametrize("mechanism", [LAPLACE, GAUSSIAN])
def test_the_loss_covers_a_group(mechanism: PartitionThreshold) -> None:
    """Three units, each in two keys: all in the same, or each in its own."""
    loss = mechanism.loss(group_distance(ONE, 3))
    for joined in ([3, 3, 0, 0, 0, 0], [1, 1, 1, 1, 1, 1], [3, 1, 1, 1, 0, 0]):
        for others in (np.zeros(6, int), np.array([6, 0, 2, 0, 5, 0])):
            assert_covered(loss, [(law_of(mechanism, others + joined), law_of(mechanism, others))])


def test_a_delta_for_one_key_only_would_not_cover_several() -> None:
    claimed = replace(LAPLACE, keys=1).loss(ONE).delta
    shown = 1 - law_of(LAPLACE, [1, 1])[0]
    assert claimed < shown == pytest.approx(LAPLACE.loss(ONE).delta, rel=1e-12)


@pytest.mark.parametrize("mechanism", [LAPLACE, GAUSSIAN])
def test_a_key_of_nobody_is_never_shown_and_a_large_one_always(mechanism: PartitionThreshold) -> None:
    counts = np.array([0, -3, -(2**63), 10**6, 2**63 - 1])
    shown = mechanism.sample(np.broadcast_to(counts, (1000, 5)), SeededBits(1))
    assert shown.dtype == np.bool_
    assert shown.all(axis=0).tolist() == [False, False, False, True, True]
    assert not shown[:, :3].any()


@pytest.mark.parametrize("counts", [[1.5], ["many"], [math.nan]])
def test_counts_that_are_not_whole_are_refused_by_their_kind(counts: list[object]) -> None:
    with pytest.raises(InvalidParameter, match="integers"):
        LAPLACE.sample(counts)  # type: ignore[arg-type]


def test_no_keys_at_all() -> None:
    assert LAPLACE.sample(np.zeros(0, np.int64)).shape == (0,)


@pytest.mark.parametrize("mechanism", [LAPLACE, GAUSSIAN])
def test_the_error_is_how_far_a_count_must_lie_from_the_threshold(mechanism: PartitionThreshold) -> None:
    beyond = int(mechanism.error(0.95))
    above, below = mechanism.threshold + beyond, mechanism.threshold - beyond - 1
    assert law_of(mechanism, [above])[1] >= 0.95
    assert law_of(mechanism, [max(below, 1)])[0] >= 0.95 or below < 1


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"delta": 1e-6}, "epsilon"),
        ({"delta": 1e-6, "epsilon": 1, "rho": 1}, "epsilon"),
        ({"delta": 0, "epsilon": 1}, "delta"),
        ({"delta": 1, "epsilon": 1}, "delta"),
        ({"delta": 1e-6, "epsilon": 0}, "epsilon"),
        ({"delta": 1e-6, "rho": -1}, "rho"),
        ({"delta": 1e-6, "epsilon": 1, "keys": 0}, "keys"),
        ({"delta": 1e-6, "epsilon": 1, "minimum": 0}, "minimum"),
        ({"delta": 1e-6, "epsilon": 1, "neighbours": "replace"}, "neighbours"),
        ({"delta": 1e-6, "epsilon": 2.0**-60}, "scale"),
    ],
)
def test_what_is_declared_wrongly_is_named(given: dict[str, object], named: str) -> None:
    with refusal_of(named):
        PartitionThreshold.within(**given)  # type: ignore[arg-type]


def test_a_distance_below_one_costs_nothing() -> None:
    loss = LAPLACE.loss(Distance.linf(Fraction(1, 2)))
    assert (loss.epsilon, loss.delta) == (0, 0)
