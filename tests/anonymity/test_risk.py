from collections import Counter
from fractions import Fraction
from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest

from sourdine.anonymity import Records, journalist_risk, measure, prosecutor_risk, uniqueness
from sourdine.anonymity.records import number_tuples
from tests.errors import refusal_of

TABLE = pa.table({"age": [1, 1, 1, 2, 2, 3], "sex": list("ffffmm")})


def test_risks_of_whoever_knows_that_somebody_is_in_the_table() -> None:
    risk = prosecutor_risk(Records.read(TABLE, quasi=["age", "sex"]), threshold=Fraction(1, 3))
    # classes of 3, 1, 1, 1: three unique; a third is not above a third
    assert risk.highest == 1.0
    assert risk.average == pytest.approx(4 / 6)
    assert (risk.records_at_risk, risk.share_at_risk) == (3, 0.5)


def test_risks_of_whoever_knows_a_population() -> None:
    population = pa.table({"age": [1] * 10 + [2] * 4 + [3] + [9], "sex": ["f"] * 10 + list("ffmmmf")})
    found = measure(TABLE, quasi=["age", "sex"], population=population)
    # (1,f): 3 among 10; (2,f): 1 among 2; (2,m): 1 among 2; (3,m): 1 among 1
    assert found.journalist is not None
    assert found.journalist.highest == 1.0
    assert found.journalist.average == pytest.approx((3 / 10 + 1 / 2 + 1 / 2 + 1) / 6)
    assert found.journalist.records_at_risk == 3


def test_a_population_that_lacks_somebody_is_no_larger_than_the_table() -> None:
    records = Records.read(TABLE, quasi=["age", "sex"])
    other = Records.read(pa.table({"age": [7], "sex": ["f"]}), quasi=["age", "sex"])
    assert journalist_risk(records, other) == prosecutor_risk(records)


def test_a_threshold_must_be_a_share() -> None:
    with refusal_of("threshold", "Risk"):
        prosecutor_risk(Records.read(TABLE, quasi=["age"]), threshold=1.5)


def test_subsets_are_counted_one_by_one() -> None:
    rng = np.random.default_rng(3)  # made up
    columns = {
        name: rng.integers(0, high, 200).tolist() for name, high in zip("abcd", (3, 40, 7, 90), strict=True)
    }
    found = uniqueness(Records.read(pa.table(columns), quasi=list("abcd")), 3)
    assert len(found) == 4 + 6 + 4
    for each in found:
        counts = Counter(zip(*(columns[name] for name in each.columns), strict=True))
        assert each.classes == len(counts)
        assert each.unique == sum(count == 1 for count in counts.values())
    assert [each.unique for each in found] == sorted((each.unique for each in found), reverse=True)
    subsets = {each.columns for each in found}
    assert subsets == {s for size in (1, 2, 3) for s in combinations("abcd", size)}


def test_tuples_are_numbered_in_order_also_where_one_number_cannot_hold_them() -> None:
    rng = np.random.default_rng(4)  # made up
    columns = [rng.integers(0, 3, 500) * (10**6) for _ in range(6)]
    ids, many = number_tuples(columns, [2 * 10**6 + 1] * 6)
    rows = list(zip(*columns, strict=True))
    places = {row: place for place, row in enumerate(sorted(set(rows)))}
    assert many == len(places)
    assert ids.tolist() == [places[row] for row in rows]
