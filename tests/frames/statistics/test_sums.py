"""Bernstein sums: the identities they rest on, and how little one unit weighs."""

from fractions import Fraction
from math import comb

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sourdine.core.errors import InvalidParameter
from sourdine.frames import BernsteinSums, PlainSum
from tests.narrow import some

VALUES = st.integers(1, 2**31).flatmap(
    lambda width: st.tuples(st.just(width), st.lists(st.integers(0, width), max_size=30))
)


def bernstein(values: list[int], width: int, degree: int) -> list[int]:
    """The definition, record by record."""
    return [
        sum(comb(degree, k) * value**k * (width - value) ** (degree - k) for value in values)
        for k in range(degree + 1)
    ]


def powers(values: list[int], absent: int, degree: int) -> list[int]:
    """What an engine would sum where absent values stand as -1."""
    held = [*values, *[-1] * absent]
    sums = [len(values), sum(held), sum(value**2 for value in held)][: degree + 1]
    return [*sums, len(held)] if degree else sums


@given(VALUES, st.integers(0, 2), st.integers(0, 3))
def test_the_sums_are_those_of_the_polynomials(
    drawn: tuple[int, list[int]], degree: int, absent: int
) -> None:
    width, values = drawn
    statistic = BernsteinSums(value="x", width=width, degree=degree)
    found = statistic.from_powers(powers(values, absent, degree))
    assert len(statistic.powers("x")) == len(powers(values, absent, degree))
    assert list(found) == bernstein(values, width, degree)
    assert all(part >= 0 for part in found)
    assert sum(found) == len(values) * statistic.reach
    if degree:
        total = Fraction(sum(k * part for k, part in enumerate(found)), degree * width ** (degree - 1))
        assert total == sum(values)


def capped(statistic: BernsteinSums | PlainSum, sums: list[int]) -> list[int]:
    columns = [f"CAST({number} AS HUGEINT)" for number in sums]
    (row,) = some(duckdb.sql(f"SELECT {', '.join(statistic.capped(columns))}")).fetchall()
    return [int(number) for number in row]


@settings(max_examples=60)
@given(VALUES, st.integers(0, 2), st.integers(1, 40), st.integers(0, 3))
def test_a_unit_weighs_at_most_what_its_records_may(
    drawn: tuple[int, list[int]], degree: int, most: int, absent: int
) -> None:
    width, values = drawn
    statistic = BernsteinSums(value="x", width=width, degree=degree, max_rows=most)
    exact = bernstein(values, width, degree)
    found = capped(statistic, powers(values, absent, degree))
    assert all(part >= 0 for part in found)
    assert sum(found) <= most * statistic.reach
    share = Fraction(min(most, len(values)), max(len(values), 1))
    assert all(share * part - 1 < scaled <= share * part for part, scaled in zip(exact, found, strict=True))


@settings(max_examples=60)
@given(st.lists(st.integers(-(2**48), 2**48), max_size=30), st.integers(1, 40))
def test_a_plain_sum_shrinks_towards_zero(values: list[int], most: int) -> None:
    reach = max(map(abs, values), default=1)
    (found,) = capped(PlainSum(value="", reach=reach, max_rows=most), [len(values), sum(values)])
    share = Fraction(min(most, len(values)), max(len(values), 1)) * sum(values)
    assert abs(found) <= abs(share)
    assert abs(found - share) < 1
    assert abs(found) <= most * reach


def test_the_largest_unit_there_can_be_fits_in_the_engine() -> None:
    rows, most, width = 1 << 40, 1 << 20, (1 << 31) + 1
    statistic = BernsteinSums(value="x", width=width, degree=2, max_rows=most)
    assert capped(statistic, [rows, rows * width, rows * width**2, rows]) == [0, 0, most * width**2]
    assert capped(statistic, [rows, 0, 0, rows]) == [most * width**2, 0, 0]
    assert capped(PlainSum(value="", reach=1 << 48, max_rows=most), [rows, -rows << 48]) == [-most << 48]


@pytest.mark.parametrize(("field", "value"), [("degree", 3), ("degree", -1), ("width", 0)])
def test_a_bad_statistic_is_refused(field: str, value: int) -> None:
    with pytest.raises(InvalidParameter, match=f"The '{field}' of BernsteinSums must"):
        BernsteinSums(**{field: value})  # type: ignore[arg-type]
