import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from sourdine.core import check
from sourdine.core.distance import Distance, Neighbours, Norm
from sourdine.core.errors import InvalidParameter
from tests.errors import refusal_of


@pytest.mark.parametrize(
    ("given", "exact"),
    [
        (2, 2),
        (0.5, Fraction(1, 2)),
        (Decimal("0.1"), Fraction(1, 10)),
        (np.int64(3), 3),
        (np.float32(0.25), Fraction(1, 4)),
    ],
)
def test_numbers_are_taken_exactly(given: object, exact: Fraction) -> None:
    assert check.rational("Laplace", "scale", given) == exact


@pytest.mark.parametrize("bad", [-1, 0, math.nan, math.inf, "2", None, True, 2**41, [1]])
def test_a_bad_parameter_is_named(bad: object) -> None:
    with refusal_of("scale", "Laplace"):
        check.positive("Laplace", "scale", bad, 2**40)


def test_a_long_value_is_cut() -> None:
    with pytest.raises(InvalidParameter) as caught:
        check.integer("Laplace", "scale", 10**500, 0, 5)
    assert len(str(caught.value)) < 160


def test_limits_read_as_people_write_them() -> None:
    assert check.power(2**40) == "2^40"
    assert check.power(1000) == "1,000"
    assert check.power(Fraction(1, 3)) == "1/3"


@pytest.mark.parametrize("bad", [0, 1, -0.5, 2, math.nan, "0.9"])
def test_a_confidence_lies_strictly_between_0_and_1(bad: object) -> None:
    with refusal_of("confidence", "Laplace.error"):
        check.confidence("Laplace.error", bad)


def test_other_checks_refuse_what_only_looks_right() -> None:
    with pytest.raises(InvalidParameter):
        check.boolean("SparseVector", "monotone", 1)
    with pytest.raises(InvalidParameter, match=r"Give Neighbours\('replace'\)"):
        check.member("Distance", "neighbours", "replace", Neighbours)
    with pytest.raises(InvalidParameter, match="be one of add-remove, replace"):
        check.member("Distance", "neighbours", "other", Neighbours)
    with pytest.raises(InvalidParameter):
        check.between("Warner", "truth", 2, Fraction(0), Fraction(1))
    with pytest.raises(InvalidParameter):
        check.integer("Exponential", "candidates", 2.0, 1, 5)


def test_distances_are_exact_and_checked() -> None:
    assert Distance.l2(3).amount == 9
    assert Distance.l2(square=2).amount == 2
    assert Distance.hamming().neighbours is Neighbours.REPLACE
    assert Distance.linf(Fraction(1, 3)).norm is Norm.LINF
    for wrong in (lambda: Distance.l1(-1), Distance.l2, lambda: Distance.l2(1, square=1)):
        with pytest.raises(InvalidParameter):
            wrong()
    with pytest.raises(InvalidParameter):
        Distance.l1(1, coordinates=0)
