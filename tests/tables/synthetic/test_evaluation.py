import numpy as np
import pytest

from sourdine.core.errors import InvalidParameter
from sourdine.tables.synthetic.synthesis import evaluate_table, three_way, two_way
from tests.tables.synthetic.case import table


@pytest.mark.slow
def test_a_table_is_like_itself_and_unlike_another() -> None:
    real, other = table(500), table(500, seed=9)
    plan = real.synthetic_plan(epsilon=1, delta=1e-6)
    same = evaluate_table(plan, real.source, real.source)
    assert (same.two_way, same.three_way, len(same.pairs)) == (0, 0, 10)
    near = evaluate_table(plan, real.source, other.source, label="works")
    assert 0 < near.two_way < 0.3
    assert near.three_way > near.two_way
    assert near.propensity == pytest.approx(0.5, abs=0.15)
    assert near.prediction is not None
    assert near.prediction[0] > 0.9
    assert "NOT PRIVATE" in str(near.plain()["notice"])


def test_what_cannot_be_compared_is_told() -> None:
    real = table(100)
    plan = real.synthetic_plan(epsilon=1, delta=1e-6)
    with pytest.raises(InvalidParameter, match="no column 'height'"):
        evaluate_table(plan, real.source, real.source, label="height")


def test_distances_by_hand() -> None:
    one = [np.array([0, 0, 1, 1], np.uint8), np.array([0, 1, 0, 1], np.uint8), np.zeros(4, np.uint8)]
    other = [np.array([0, 0, 1, 1], np.uint8), np.array([0, 0, 1, 1], np.uint8), np.zeros(4, np.uint8)]
    assert two_way(one, other, "abc", [2, 2, 1]) == {("a", "b"): 0.5, ("a", "c"): 0.0, ("b", "c"): 0.0}
    assert three_way(one, other, [2, 2, 1]) == 0.5
