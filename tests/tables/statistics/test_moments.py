"""What moments can be at all, whatever the table holds: answers and intervals are cut to it."""

import pytest

from sourdine.frames import Schema
from sourdine.tables import Mean, Proportion, StdDev, Variance
from sourdine.tables.statistics import Statistic

SCHEMA = Schema.read({"age": {"type": "integer", "lower": 20, "upper": 84}})


@pytest.mark.parametrize(
    ("asked", "span"),
    [
        (Mean("age"), (20, 84)),
        (Variance("age"), (0, 32**2)),
        (StdDev("age"), (0, 32)),
        (Proportion("age", at_least=50), (0, 1)),
    ],
)
def test_a_moment_lies_between_what_its_bounds_allow(asked: Statistic, span: tuple[float, float]) -> None:
    assert asked.span(SCHEMA) == span
