import math

import pytest

from sourdine.accounting import PLD, poisson, shuffled_attack, shuffled_epoch
from sourdine.core.distance import Neighbours
from sourdine.core.distributions import GaussianLaw
from sourdine.core.errors import InvalidParameter, UnsupportedLoss
from sourdine.core.loss import PrivacyLoss

BATCHES, DELTA = 938, 1e-5  # 60,000 examples in batches of 64


def epochs(mu: float, relation: Neighbours, count: int) -> float:
    loss = shuffled_epoch(PrivacyLoss.symmetric(GaussianLaw(mu), neighbours=relation))
    return PLD().epsilon(PLD().repeat(PLD().lift(loss), count), DELTA).upper


def test_fifteen_epochs_pay_fifteen_times() -> None:
    assert epochs(1.0, Neighbours.ZERO_OUT, 15) == pytest.approx(23.3, abs=0.05)
    assert epochs(2.0, Neighbours.REPLACE, 15) == pytest.approx(62.2, abs=0.05)


def test_poisson_would_understate_one_epoch() -> None:
    """The attack reaches 2.93, where Poisson sampling would claim 0.155; the bound is 4.38."""
    loss = poisson(PrivacyLoss.symmetric(GaussianLaw(1.0), neighbours=Neighbours.ADD_REMOVE), 64 / 60000)
    claimed = PLD().epsilon(PLD().repeat(PLD().lift(loss), BATCHES), DELTA).upper
    assert claimed == pytest.approx(0.155, abs=1e-3)
    assert claimed < shuffled_attack(1.0, BATCHES, DELTA) < epochs(1.0, Neighbours.ZERO_OUT, 1)


def test_with_one_batch_the_attack_is_the_bound() -> None:
    """Nothing is shuffled: one Gaussian, told apart by a threshold."""
    for noise in (0.7, 2.0):
        assert shuffled_attack(noise, 1, DELTA) == pytest.approx(
            epochs(1 / noise, Neighbours.ZERO_OUT, 1), abs=2e-3
        )


def test_more_noise_and_more_batches_hide_more() -> None:
    by_noise = [shuffled_attack(noise, 100, DELTA) for noise in (0.5, 1.0, 2.0, 8.0)]
    by_batches = [shuffled_attack(1.0, batches, DELTA) for batches in (1, 10, 1000)]
    assert by_noise == sorted(by_noise, reverse=True)
    assert by_batches == sorted(by_batches, reverse=True)


def test_adding_a_unit_would_move_the_others() -> None:
    with pytest.raises(UnsupportedLoss, match="keep their size"):
        shuffled_epoch(PrivacyLoss.pure(1))


@pytest.mark.parametrize("bad", [(0, 10, 1e-5), (1, 0, 1e-5), (1, 10, -1), (math.nan, 10, 0)])
def test_a_bad_attack_is_refused(bad: tuple[float, int, float]) -> None:
    with pytest.raises(InvalidParameter, match="of shuffled_attack"):
        shuffled_attack(*bad)
