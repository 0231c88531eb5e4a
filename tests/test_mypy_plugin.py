"""What mypy knows of constructors with the plugin.

`make check` proves it: an `ignore` without use is an error there, and so is a type other than the asserted.
"""

import dataclasses
from decimal import Decimal
from fractions import Fraction
from typing import assert_type

import pytest

from sourdine.core.errors import InvalidParameter
from sourdine.core.grid import Interval
from sourdine.local import SquareWave
from sourdine.mechanisms import Laplace


@pytest.mark.parametrize("scale", [2, 2.0, Decimal(2), Fraction(2)])
def test_a_parameter_takes_any_number_and_its_field_is_exact(scale: float | Decimal | Fraction) -> None:
    for made in (Laplace(scale=scale), dataclasses.replace(Laplace(scale=1), scale=scale)):
        assert_type(made.scale, Fraction)
        assert type(made.scale) is Fraction
        assert made.scale == 2


def test_an_inherited_parameter_is_as_wide() -> None:
    assert SquareWave(epsilon=1.0, lower=0, upper=Decimal(1)).upper == 1


def test_text_is_refused() -> None:
    with pytest.raises(InvalidParameter):
        Laplace(scale="2")  # type: ignore[arg-type]


def test_a_class_that_validates_nothing_takes_fractions_alone() -> None:
    taken = Interval(lower=0.5, upper=Fraction(1), cells=1)  # type: ignore[arg-type]
    assert str(taken.lower) == "0.5"  # not 1/2
