import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sourdine.core.random.selection import pick, pick_weights
from sourdine.testing import ScriptedBits, SeededBits
from tests.statistics import ALARM, fit

WORD = 1 << 64
LOGS = [-0.3, -math.inf, 700.0, 698.5, 699.9, -math.inf, 696.0]


def law(logs: list[float]) -> dict[int, float]:
    weights = [math.exp(each - max(logs)) for each in logs]
    return {i: weight / sum(weights) for i, weight in enumerate(weights) if weight > 0}


@pytest.mark.parametrize("logs", [[5.0], [0.0, 0.0], [1.0, 2.0, 3.0], LOGS])
def test_picks_follow_the_law(logs: list[float]) -> None:
    assert fit(pick(np.array([logs]), np.zeros(100_000, np.int64), SeededBits(7)), law(logs)) > ALARM


def test_a_law_ten_percent_off_is_refused() -> None:
    drawn = pick(np.array([LOGS]), np.zeros(100_000, np.int64), SeededBits(8))
    assert fit(drawn, law([each * 1.1 for each in LOGS])) < ALARM


def test_what_weighs_nothing_is_never_picked() -> None:
    logs = np.full(9, -np.inf)
    logs[5] = -1e6
    assert pick(logs[None], np.zeros(1000, np.int64), SeededBits(1)).tolist() == [5] * 1000
    assert pick(logs[None], np.zeros(1, np.int64), ScriptedBits([0] * 8)) == 5


@pytest.mark.parametrize("drop", [100.0, 744.0, 2000.0])
def test_no_weight_is_too_small_to_be_picked(drop: float) -> None:
    """Enough zeros bring up what no float could hold; one more bit brings down the other."""
    words = math.ceil(drop / math.log(2) / 64) + 1
    logs = np.array([0.0, -drop])
    assert pick(logs[None], np.zeros(1, np.int64), ScriptedBits([0] * words)) == 1
    assert pick(logs[None], np.zeros(1, np.int64), ScriptedBits([0] * (words - 2) + [WORD - 1])) == 0


@given(st.floats(-60, 60), st.integers(-40_000, 40_000))
def test_a_coin_is_exact_next_to_its_share(difference: float, offset: int) -> None:
    """The lighter side is taken by all words below its share, and no others."""
    mpmath.mp.prec = 300
    logs = np.array([0.0, difference])
    lighter = float(np.minimum(0.0, difference) - np.logaddexp(0.0, difference))
    share = mpmath.exp(mpmath.mpf(lighter))
    word = min(max(int(share * WORD) + offset, 0), WORD - 1)
    bits = ScriptedBits([word, 1 << 63])
    chosen = int(pick(logs[None], np.zeros(1, np.int64), bits)[0])
    drawn = mpmath.mpf(word) / WORD
    if bits.left == 0:
        drawn += mpmath.mpf(1 << 63) / mpmath.mpf(WORD) ** 2
    light = 1 if difference < 0 else 0
    assert chosen == (light if drawn < share else 1 - light)


def test_small_weights_keep_their_ratio_beside_a_large_one() -> None:
    """A cumulative sum of floats would lose them; here a script leads to them, and then they are fair."""
    logs = np.array([0.0, -40.0, -41.0, -42.0])
    heavy = int(mpmath.exp(float(np.logaddexp(-41.0, -42.0) - np.logaddexp.reduce(logs))) * WORD) - 1
    drawn = [
        int(pick(logs[None], np.zeros(1, np.int64), ScriptedBits([heavy // 2], seed=i))[0])
        for i in range(4000)
    ]
    share = math.exp(-1) / (1 + math.exp(-1))
    assert fit(np.array(drawn), {2: 1 - share, 3: share}) > ALARM


WEIGHTS = [0.3, 0.0, 5.0, 1e-300, 2.5, 0.0, 0.1]


@pytest.mark.parametrize("weights", [[5.0], [1e-200, 1e-200], [1.0, 2.0, 3.0], WEIGHTS])
def test_weights_are_picked_by_their_shares(weights: list[float]) -> None:
    drawn = pick_weights(np.array([weights]), np.zeros(100_000, np.int64), SeededBits(7))
    shares = {i: weight / sum(weights) for i, weight in enumerate(weights) if weight > 1e-250}
    assert fit(drawn, shares) > ALARM


def test_weights_ten_percent_off_are_refused() -> None:
    drawn = pick_weights(np.array([WEIGHTS]), np.zeros(100_000, np.int64), SeededBits(8))
    wrong = [each ** (1.1 if each else 1) for each in WEIGHTS]
    assert fit(drawn, {i: w / sum(wrong) for i, w in enumerate(wrong) if w > 1e-250}) < ALARM


def test_rows_of_weights_do_not_feel_each_other() -> None:
    rows = np.zeros((9, 9))
    rows[np.arange(9), np.arange(9)] = np.geomspace(1e-300, 1e300, 9)
    which = np.tile(np.arange(9), 100)
    assert np.array_equal(pick_weights(rows, which, SeededBits(1)), which)


@pytest.mark.parametrize("small", [2.0**-70, 1e-300])
def test_no_float_is_too_small_to_be_picked(small: float) -> None:
    words = math.ceil(-math.log2(small) / 64) + 1
    weights = np.array([[1.0, small]])
    assert pick_weights(weights, np.zeros(1, np.int64), ScriptedBits([0] * words)) == 1
    assert pick_weights(weights, np.zeros(1, np.int64), ScriptedBits([0] * (words - 2) + [WORD - 1])) == 0


@given(st.floats(1e-18, 1e18), st.integers(-40_000, 40_000))
def test_a_coin_for_a_share_is_exact_next_to_it(weight: float, offset: int) -> None:
    share = Fraction(float(np.minimum(1.0, weight) / (1.0 + weight)))
    word = min(max(int(share * WORD) + offset, 0), WORD - 1)
    bits = ScriptedBits([word, 1 << 63])
    chosen = int(pick_weights(np.array([[1.0, weight]]), np.zeros(1, np.int64), bits)[0])
    drawn = Fraction(word, WORD) + (Fraction(1 << 63, WORD**2) if bits.left == 0 else 0)
    light = 1 if weight < 1 else 0
    assert chosen == (light if drawn < share else 1 - light)
