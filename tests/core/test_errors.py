"""Errors carry what is wrong as attributes, across processes too."""

import pickle
from fractions import Fraction

import pytest

from sourdine import BudgetExceeded, InvalidParameter
from sourdine.core import check


def test_a_refused_parameter_is_described_by_attributes() -> None:
    with pytest.raises(InvalidParameter) as caught:
        check.integer("Laplace", "scale", 300, 1, 256)
    error = caught.value
    assert (error.owner, error.name, error.got) == ("Laplace", "scale", 300)
    assert error.expected == "lie between 1 and 256"
    assert error.available == ()
    assert error.hint is None


def test_errors_come_back_whole_from_another_process() -> None:
    refused = check.fail("Laplace", "scale", "be above 0", -1, "Give a scale above 0.")
    over = BudgetExceeded("Too much.", amount=Fraction(2), left=Fraction(1))
    for error in (refused, over):
        again = pickle.loads(pickle.dumps(error))
        assert (type(again), str(again), vars(again)) == (type(error), str(error), vars(error))
