"""Which rows are shown: by noisy values alone, the same rows of every answer with the same keys."""

import numpy as np
import pytest

from sourdine.core.errors import InvalidParameter
from sourdine.frames.keys import Keys
from sourdine.tables import Answer
from sourdine.tables.intervals import GroupEstimate
from sourdine.tables.shown_rows import EVERYTHING, RowFilter, RowOrder, Show


def answer(label: str, values: list[float]) -> Answer:
    held = np.array(values)
    return Answer(
        query="q",
        statistic=label,
        kind="count",
        columns=("region", "year"),
        keys=Keys.product([["n", "s"], [2024, 2025]]),
        estimate=GroupEstimate(held, held - 1, held + 1),
        measure="people",
    )


COUNT, MEAN = answer("count", [5, 3, 5, 9]), answer("mean of pay", [1, 2, 3, 4])


def rows(show: Show) -> list[tuple[object, ...]]:
    counts, means = show.apply([COUNT, MEAN])
    assert list(counts.keys) == list(means.keys)
    both = dict(zip(COUNT.keys, zip(COUNT.estimate.value, MEAN.estimate.value, strict=True), strict=True))
    for key, one, two in zip(counts.keys, counts.estimate.value, means.estimate.value, strict=True):
        assert both[key] == (one, two)
    return list(counts.keys)


def test_everything_is_shown_unless_something_is_said() -> None:
    assert EVERYTHING.apply([COUNT]) == [COUNT]
    assert not EVERYTHING
    assert rows(Show(limit=9)) == list(COUNT.keys)


def test_rows_are_filtered_by_values_and_keys() -> None:
    assert rows(Show(having=(RowFilter(of="count", sign=">", value=4),))) == [
        ("n", 2024),
        ("s", 2024),
        ("s", 2025),
    ]
    assert rows(Show(having=(RowFilter(of="region", sign="<>", value="n"),))) == [("s", 2024), ("s", 2025)]
    assert rows(Show(having=(RowFilter(of="year", sign="=", value=2025),))) == [("n", 2025), ("s", 2025)]


def test_rows_are_sorted_and_ties_stay_as_they_were() -> None:
    assert rows(Show(order=(RowOrder(of="count", descending=True),), limit=3)) == [
        ("s", 2025),
        ("n", 2024),
        ("s", 2024),
    ]
    by_year = Show(order=(RowOrder(of="year", descending=True), RowOrder(of="mean of pay")))
    assert rows(by_year) == [("n", 2025), ("s", 2025), ("n", 2024), ("s", 2024)]


def test_what_is_not_there_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="no 'age'"):
        rows(Show(order=(RowOrder(of="age"),)))
