from fractions import Fraction
from itertools import pairwise

import pytest

from sourdine.core.errors import InvalidParameter
from sourdine.local.utility import epsilon_range


def test_a_range_has_round_numbers_and_its_own_ends() -> None:
    assert epsilon_range("0.03", 7) == tuple(
        map(Fraction, ("0.03", "0.05", "0.1", "0.2", "0.5", "1", "2", "5", "7"))
    )
    assert epsilon_range(0.1, 1) == tuple(map(Fraction, ("0.1", "0.2", "0.5", "1")))
    assert epsilon_range(1, 3) == tuple(map(Fraction, ("1", "1.32", "1.73", "2.28", "3")))


def test_points_are_even_by_ratio() -> None:
    made = [float(each) for each in epsilon_range("0.01", 10, 7)]
    ratios = [high / low for low, high in pairwise(made)]
    assert ratios == pytest.approx([10**0.5] * 6, rel=0.01)


@pytest.mark.parametrize("ends", [(2, 1), (1, 1), (0, 1)])
def test_a_range_goes_up(ends: tuple[int, int]) -> None:
    with pytest.raises(InvalidParameter):
        epsilon_range(*ends)
