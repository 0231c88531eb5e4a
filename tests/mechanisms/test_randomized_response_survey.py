import itertools

import numpy as np
import pytest

from sourdine.core.distance import Distance
from sourdine.core.errors import UnsupportedLoss
from sourdine.core.mechanism import Mechanism
from sourdine.mechanisms import OneCoin
from sourdine.testing import SeededBits


def test_a_no_betrays_itself() -> None:
    truth = np.arange(10_000) % 2
    reports = OneCoin().sample(truth, SeededBits(1))
    assert np.all(reports[truth == 1])
    assert 0.45 < reports[truth == 0].mean() < 0.55


def test_it_states_no_loss_and_is_no_mechanism() -> None:
    with pytest.raises(UnsupportedLoss, match=r"betrays itself.*TwoCoins"):
        OneCoin().loss(Distance.hamming())
    assert not isinstance(OneCoin(), Mechanism)


@pytest.mark.parametrize("truths", [[0], [1], [0, 1, 1], [0, 0, 0, 1]])
def test_its_estimate_is_unbiased_all_the_same(truths: list[int]) -> None:
    rows = itertools.product((0, 1), repeat=len(truths))
    estimates = [OneCoin().estimate([t | c for t, c in zip(truths, row, strict=True)]) for row in rows]
    assert np.mean(estimates) == pytest.approx(np.mean(truths))
