import numpy as np
import pytest

from sourdine.core.errors import InvalidParameter
from sourdine.local import GRR, Estimate


def estimate(size: int) -> Estimate:
    value = np.linspace(0, 0.5, size)
    return Estimate(value, np.full(size, 0.01), value - 0.1, value + 0.1, 1000)


def test_the_largest_of_many_are_shown() -> None:
    told = str(estimate(100))
    assert told.startswith("Estimate of 100 values from 1,000 reports")
    assert "The 20 largest of 100 values." in told
    assert told.splitlines()[4].split() == ["99", "0.5", "0.4", "0.6"]
    assert "largest" not in str(estimate(3))
    assert estimate(3)._repr_html_().count("<tr>") == 4


def test_a_line_says_the_first_values() -> None:
    assert repr(estimate(2)) == "<Estimate 0 (-0.1 to 0.1), 0.5 (0.4 to 0.6) from 1,000 reports>"
    assert "… 100 values" in repr(estimate(100))


def test_it_draws_itself_under_the_labels_of_categories() -> None:
    rows = estimate(2).chart(["yes", "no"]).chart["datasets"]["rows"]  # type: ignore[index]
    assert [row["group"] for row in rows] == ["yes", "no"]
    assert len(estimate(100).chart().chart["datasets"]["rows"]) == 40  # type: ignore[index]
    with pytest.raises(InvalidParameter, match=r"3 labels for 2 values\. Give one each"):
        estimate(2).chart(["a", "b", "c"])


def test_an_estimate_of_an_oracle_shows_itself() -> None:
    oracle = GRR(epsilon=1, categories=3)
    found = oracle.estimate(oracle.tally(oracle.sample(np.array([0, 1, 2, 2]))))
    assert "from 4 reports" in found._repr_html_()
