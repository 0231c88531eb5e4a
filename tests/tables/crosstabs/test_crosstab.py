"""Crosstabs: every group in its cell, sums that add up, rows sorted, and what does not fit refused."""

from collections.abc import Sequence
from dataclasses import replace
from math import erfc

import numpy as np
import pyarrow as pa
import pytest

import sourdine as sd
from sourdine import statistics as st
from sourdine.core.errors import InvalidParameter
from sourdine.frames.keys import Keys
from sourdine.tables import Answer, TableRelease
from sourdine.tables.answers import ALL
from sourdine.tables.crosstab import CrosstabSums, crosstab_of
from sourdine.tables.intervals import GroupEstimate
from sourdine.tables.release import _carry_out
from sourdine.tables.shown_rows import RowOrder, Show
from sourdine.testing import SeededBits

REGIONS = ["north", "south", "east"]
rng = np.random.default_rng(5)
SIZE = 900
HELD = {
    "region": rng.choice(REGIONS, SIZE, p=[0.2, 0.5, 0.3]).tolist(),
    "sex": rng.choice(["f", "m"], SIZE).tolist(),
    "well": rng.choice([True, False], SIZE).tolist(),
    "pay": rng.uniform(0, 100, SIZE).round(2).tolist(),
}
PEOPLE = sd.Table(
    pa.table(HELD),
    unit="person",
    size=SIZE,
    columns={
        "region": {"type": "category", "keys": REGIONS},
        "sex": {"type": "category", "keys": ["f", "m"]},
        "well": {"type": "flag"},
        "pay": {"type": "real", "lower": 0.0, "upper": 100.0},
    },
)


@pytest.fixture(scope="module")
def release() -> TableRelease:
    plan = PEOPLE.plan(
        [
            sd.Query("counts", [st.Count()], by=["region", "sex"]),
            sd.Query("pay", [st.Mean("pay")], by=["sex", "region"]),
            sd.Query("whole", [st.Contingency(["region", "sex"], consistent=True)]),
            sd.Query("sums", [st.Contingency(["region", "sex", "well"])]),
            sd.Query("some", [st.Contingency(["region", "well"], consistent=True, margins=["region"])]),
            sd.Query("levels", [st.Quantiles("pay", [0.25, 0.75])], by=["region"]),
        ],
        epsilon=1000,
    )
    return _carry_out(plan, PEOPLE.source, bits=SeededBits(3))


def truth(*wanted: tuple[str, object]) -> int:
    rows = zip(*(HELD[name] for name, _ in wanted), strict=True)
    return sum(all(key in (ALL, cell) for (_, key), cell in zip(wanted, row, strict=True)) for row in rows)


@pytest.mark.parametrize(
    ("query", "sums"),
    [("counts", CrosstabSums.CELLS), ("whole", CrosstabSums.MEASURED), ("sums", CrosstabSums.CELLS)],
)
def test_every_cell_is_the_count_of_its_group_and_sums_add_up(
    release: TableRelease, query: str, sums: CrosstabSums
) -> None:
    table = release.crosstab("region", "sex", query=query)
    assert (table.row_keys, table.column_keys) == ((*REGIONS, ALL), ("f", "m", ALL))
    assert table.sums is sums
    for row in table.row_keys:
        for column in table.column_keys:
            value, lower, upper = table.at(row, column)
            assert lower <= truth(("region", row), ("sex", column)) <= upper
            assert lower <= value <= upper
    cells = table.estimate.value
    assert np.array_equal(cells[:-1].sum(axis=0), cells[-1])
    assert np.array_equal(cells[:, :-1].sum(axis=1), cells[:, -1])


def test_sides_may_be_exchanged_and_further_columns_fixed(release: TableRelease) -> None:
    one, other = (release.crosstab(*sides, query="pay") for sides in (("region", "sex"), ("sex", "region")))
    assert np.array_equal(one.estimate.value, other.estimate.value.T)
    well = release.crosstab("region", "sex", query="sums", fixed={"well": True})
    assert well.at("north", "f")[0] == truth(("region", "north"), ("sex", "f"), ("well", True))
    assert well.title == "People by region and sex, well True"
    with pytest.raises(InvalidParameter, match="Say which"):
        release.crosstab("region", "sex", query="sums", fixed={"well": "perhaps"})
    with pytest.raises(InvalidParameter, match="not be fixed"):
        release.crosstab("region", "sex", query="sums", fixed={"sex": "f"})
    with pytest.raises(InvalidParameter, match="no column 'age'"):
        release.crosstab("region", "sex", query="counts", fixed={"age": 3})


def test_values_that_do_not_add_up_have_no_sums(release: TableRelease) -> None:
    table = release.crosstab("region", "sex", query="pay")
    assert table.sums is CrosstabSums.NONE
    assert ALL not in (*table.row_keys, *table.column_keys)
    assert "no sums" in " ".join(table.notes)


def test_only_the_margins_that_were_asked_for_are_there(release: TableRelease) -> None:
    table = release.crosstab("region", "well", query="some")
    assert table.row_keys == tuple(REGIONS)
    assert table.column_keys == (False, True, ALL)
    assert not np.isnan(table.estimate.value).any()


def test_levels_of_quantiles_are_columns(release: TableRelease) -> None:
    table = release.crosstab("region", "quantile")
    assert table.column_keys == (0.25, 0.75)
    assert not table.bounded
    assert table.text(0, 0).interval == ""


def test_rows_are_sorted_by_value_and_sums_stay_last(release: TableRelease) -> None:
    table = release.crosstab("region", "sex", query="counts", sort="value")
    assert table.row_keys == ("south", "east", "north", ALL)
    plain = release.crosstab("region", "sex", query="counts")
    assert [table.at(key, "f") for key in REGIONS] == [plain.at(key, "f") for key in REGIONS]
    with pytest.raises(InvalidParameter, match="sorted"):
        release.crosstab("region", "sex", query="counts", sort="size")  # type: ignore[arg-type]


def test_the_answer_is_named_where_several_fit(release: TableRelease) -> None:
    with pytest.raises(InvalidParameter, match="Several answers"):
        release.crosstab("region", "sex")
    with pytest.raises(InvalidParameter, match="No answer of that name"):
        release.crosstab("region", "sex", query="levels")
    with pytest.raises(InvalidParameter, match="No answer has keys of both"):
        release.crosstab("region", "town")
    with pytest.raises(InvalidParameter, match="two columns"):
        release.crosstab("region", "region")
    with pytest.raises(InvalidParameter, match="no key 'centre'"):
        release.crosstab("region", "sex", query="pay").at("centre", "f")


def counts(keys: Sequence[tuple[str, str]], **changes: object) -> Answer:
    value = np.arange(1.0, len(keys) + 1)
    held: dict[str, object] = {
        "query": "q",
        "statistic": "count",
        "kind": "count",
        "columns": ("region", "sex"),
        "keys": Keys.of(keys, 2),
        "estimate": GroupEstimate(value, value - 3, value + 4),
        "measure": "people",
        "whole": True,
    }
    return Answer(**{**held, **changes})  # type: ignore[arg-type]


def test_sums_allow_for_all_noises_and_only_of_what_is_all_there() -> None:
    table = crosstab_of(counts([("n", "f"), ("n", "m"), ("s", "f"), ("s", "m")]), "region", "sex")
    assert table.at("n", ALL) == (3, np.floor(3 - 3 * 2**0.5), np.ceil(3 + 4 * 2**0.5))
    assert table.at(ALL, ALL) == (10, 10 - 3 * 2, 10 + 4 * 2)
    weak = crosstab_of(replace(counts([("n", "f"), ("n", "m")]), confidence=0.8), "region", "sex")
    assert weak.at("n", ALL) == (3, 3 - 6, 3 + 8)
    holed = crosstab_of(counts([("n", "f"), ("n", "m"), ("s", "f")]), "region", "sex")
    assert holed.sums is CrosstabSums.NONE
    assert np.isnan(holed.at("s", "m")).all()
    assert str(holed.text(1, 1)) == "–"
    chosen = counts([("n", "f"), ("s", "f")], chosen=("region",))
    assert crosstab_of(chosen, "region", "sex").sums is CrosstabSums.NONE
    named = counts([("all", "f"), ("s", "f")])
    assert crosstab_of(named, "region", "sex").sums is CrosstabSums.NONE


def test_rows_of_an_answer_that_is_sorted_keep_their_cells() -> None:
    answer = counts([("n", "f"), ("n", "m"), ("s", "f"), ("s", "m")])
    (turned,) = Show(order=(RowOrder(of="count", descending=True),)).apply([answer])
    one, other = crosstab_of(answer, "region", "sex"), crosstab_of(turned, "region", "sex")
    assert [one.at(r, c) for r in "ns" for c in "fm"] == [other.at(r, c) for r in "ns" for c in "fm"]


def test_an_empty_answer_is_an_empty_crosstab() -> None:
    table = crosstab_of(counts([]), "region", "sex")
    assert (table.row_keys, table.column_keys, table.sums) == ((), (), CrosstabSums.NONE)
    assert "region (0)" in repr(table)
    assert "no sums" in str(table)


@pytest.mark.parametrize("confidence", [0.95, 0.99, 0.999])
def test_roots_of_squares_hold_for_sums_of_laplace_noises(confidence: float) -> None:
    """Two noises leave x with probability (1 + x / 2) exp(-x) by the convolution; many are nearly normal."""
    half = -np.log(1 - confidence)
    x = half * 2**0.5
    assert (1 + x / 2) * np.exp(-x) <= 1 - confidence
    assert erfc(half / 2) <= 1 - confidence  # of a normal law with variance 2
