import itertools
import math

import numpy as np
import pytest

from sourdine.accounting import PLD, poisson, truncated_poisson
from sourdine.accounting.rdp.moments import log_moments
from sourdine.core.distance import Neighbours
from sourdine.core.distributions import GaussianLaw, pure_law
from sourdine.core.errors import InvalidParameter, UnsupportedLoss
from sourdine.core.loss import PrivacyLoss
from tests.accounting.profiles import integrated, normal_mixture

ADD_REMOVE, ZERO_OUT = Neighbours.ADD_REMOVE, Neighbours.ZERO_OUT


def normal(mu: float, neighbours: Neighbours = ZERO_OUT) -> PrivacyLoss:
    return PrivacyLoss.symmetric(GaussianLaw(mu), neighbours=neighbours)


def kept(size: int, rate: float, most: int) -> dict[tuple[int, ...], float]:
    """The chance of every batch, over all that may come and all that may be kept of it."""
    chances: dict[tuple[int, ...], float] = {}
    for came in itertools.product((0, 1), repeat=size):
        units = tuple(np.flatnonzero(came).tolist())
        chance = rate ** len(units) * (1 - rate) ** (size - len(units))
        choices = list(itertools.combinations(units, min(most, len(units))))
        for batch in choices:
            chances[batch] = chances.get(batch, 0.0) + chance / len(choices)
    return chances


def sums(chances: dict[tuple[int, ...], float], gradients: list[float]) -> tuple[list[float], list[float]]:
    weights: dict[float, float] = {}
    for batch, chance in chances.items():
        at = round(sum(gradients[unit] for unit in batch), 9)
        weights[at] = weights.get(at, 0.0) + chance
    return list(weights.values()), list(weights)


@pytest.mark.parametrize(("batch", "most"), [(1, 1), (1, 2), (2, 2), (2, 3), (3, 4)])
@pytest.mark.parametrize("relation", [ZERO_OUT, ADD_REMOVE])
def test_it_covers_every_pull_of_the_others(batch: int, most: int, relation: Neighbours) -> None:
    """Against all batches of four units, whichever way their gradients pull."""
    loss = truncated_poisson(normal(1.0, relation), batch, 4, most)
    rate = batch / 4
    whole = kept(4, rate, most)
    fewer = {tuple(unit + 1 for unit in each): chance for each, chance in kept(3, rate, most).items()}
    for others in itertools.combinations_with_replacement((-1.0, 0.0, 1.0), 3):
        there = normal_mixture(*sums(whole, [1.0, *others]))
        without = sums(whole if relation is ZERO_OUT else fewer, [0.0, *others])
        gone = normal_mixture(*without)
        for epsilon in (-0.4, 0.0, 0.2, 1.0):
            assert integrated(there, gone, epsilon) <= loss.remove.profile(epsilon) + 1e-9
            assert integrated(gone, there, epsilon) <= loss.add.profile(epsilon) + 1e-9


@pytest.mark.parametrize("relation", [ZERO_OUT, ADD_REMOVE])
def test_what_is_known_from_below_is_reached_by_silent_others(relation: Neighbours) -> None:
    loss = truncated_poisson(normal(1.0, relation), 2, 6, 3)
    there = normal_mixture(*sums(kept(6, 1 / 3, 3), [1.0, 0, 0, 0, 0, 0]))
    gone = normal_mixture([1.0], [0.0])
    for epsilon in (0.0, 0.1, 0.5, 1.0):
        assert loss.remove.least.profile(epsilon) <= integrated(there, gone, epsilon) + 1e-12
        assert loss.add.least.profile(epsilon) <= integrated(gone, there, epsilon) + 1e-12
        assert loss.remove.least.profile(epsilon) <= loss.remove.profile(epsilon)


@pytest.mark.parametrize(
    ("most", "upper"), [(64, 5.06), (80, 2.93), (96, 0.668), (104, 0.6123), (112, 0.6115)]
)
@pytest.mark.parametrize("relation", [ZERO_OUT, ADD_REMOVE])
@pytest.mark.slow
def test_the_known_run(most: int, upper: float, relation: Neighbours) -> None:
    loss = truncated_poisson(normal(1.0, relation), 64, 60_000, most)
    found = PLD(width=0.01).epsilon(PLD(width=0.01).repeat(PLD().lift(loss), 14_070), 1e-5)
    assert found.upper <= upper + 0.01
    if most > 100:
        assert 0.605 < found.lower < 0.6115


def test_the_default_maximum_is_nearly_free() -> None:
    loss = truncated_poisson(normal(1.0), 64, 60_000, 104)
    found = PLD().epsilon(PLD().repeat(PLD().lift(loss), 14_070), 1e-5)
    assert 0.6105 < found.lower < 0.6112
    assert found.upper < 0.6124
    assert found.width < 1.5e-3


def test_a_maximum_that_is_never_reached_changes_nothing() -> None:
    free = poisson(normal(1.0), 0.01)
    for epsilon in (0.0, 0.1, 1.0):
        cut = truncated_poisson(normal(1.0), 10, 1000, 1000)
        assert cut.remove.profile(epsilon) == pytest.approx(free.remove.profile(epsilon), rel=1e-9)
    orders = np.array([1.5, 2.0, 10.0])
    assert log_moments(cut.remove, orders) == pytest.approx(log_moments(free.remove, orders), abs=1e-12)


def test_moments_are_means() -> None:
    loss = truncated_poisson(normal(1.0), 10, 100, 12)
    order = 3.0
    x = np.linspace(-15, 20, 40_001)
    step = x[1] - x[0]

    def moment(p: tuple[list[float], list[float]], q: tuple[list[float], list[float]]) -> float:
        above, under = normal_mixture(*p)(x), normal_mixture(*q)(x)
        some = under > 1e-100
        return float((above[some] ** order * under[some] ** (1 - order)).sum() * step)

    pushed, law = 0.1, loss.remove  # the unit is kept less often than it comes, and charged as if it were not
    often = moment(([0.9, 0.1], [0, 1]), ([1], [0]))
    seldom = moment(([1 - pushed, pushed], [0, 2]), ([1 - pushed, pushed], [0, -1]))
    true = math.log((1 - law.chance) * often + law.chance * seldom)  # type: ignore[attr-defined]
    assert log_moments(law, np.array([order]))[0] == pytest.approx(true, rel=1e-6)


def test_what_is_not_known_is_refused() -> None:
    with pytest.raises(UnsupportedLoss, match="this loss is for replacement"):
        truncated_poisson(normal(1.0, Neighbours.REPLACE), 1, 10, 2)
    with pytest.raises(UnsupportedLoss, match="continuous Gaussian noise only"):
        truncated_poisson(PrivacyLoss.symmetric(pure_law(1.0), neighbours=ZERO_OUT), 1, 10, 2)
    for batch, of, most in ((0, 10, 2), (3, 2, 3), (3, 10, 2), (3, 10, 11)):
        with pytest.raises(InvalidParameter, match="of truncated_poisson must"):
            truncated_poisson(normal(1.0), batch, of, most)
