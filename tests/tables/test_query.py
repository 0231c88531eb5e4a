"""A query written in Python is that of the same block in a specification."""

from collections.abc import Callable

import pytest

from sourdine.core.errors import InvalidParameter
from sourdine.tables import Query, statistics


def test_a_query_can_be_written_in_python() -> None:
    asked = (statistics.Count(), statistics.Mean("pay"), statistics.Quantiles("pay", 0.5), "units")
    made = Query("pay", asked, by="sex", where={"pay": {"at_least": 1}})
    ask = ["count", {"mean": "pay"}, {"quantiles": "pay", "levels": [0.5]}, "units"]
    block = {"name": "pay", "ask": ask, "by": ["sex"], "where": {"pay": {"at_least": 1}}}
    assert made == Query.read(block)
    assert Query("all", statistics.Histogram("pay", [0, 1, 2])).ask[0].label == "histogram of pay"
    assert Query("all", statistics.Top("town", 3)).ask[0].label == "top 3 of town"


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: statistics.Mean(3), "'Mean.column' is wrong"),  # type: ignore[arg-type]
        (lambda: statistics.Quantiles("pay", [2]), "strictly between 0 and 1"),
        (lambda: statistics.Histogram("pay", [1]), "'Histogram.edges' is wrong"),
        (lambda: Query("pay", []), "'queries.pay.ask' is wrong"),
        (lambda: Query("pay", 3), "no statistic"),  # type: ignore[arg-type]
    ],
)
def test_mistakes_in_python_are_one_sentence(make: Callable[[], object], told: str) -> None:
    with pytest.raises(InvalidParameter) as caught:
        make()
    assert told in str(caught.value)
