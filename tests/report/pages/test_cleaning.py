import numpy as np
import pyarrow as pa
import pytest

from sourdine.local.cleaner import Cleaner, CleanTable, Method
from sourdine.report.pages.anonymity import cleaning_page, done_table, found_table
from sourdine.testing import SeededBits

COLUMNS = {
    "age": {"type": "integer", "lower": 0, "upper": 120},
    "sex": {"type": "category", "keys": ["f", "<m>"], "missing": "f"},
}


def cleaned(rows: int = 2000, **more: object) -> CleanTable:
    place = np.arange(rows)
    table = pa.table({"age": place % 100, "sex": np.where(place % 4 == 0, "f", "<m>")})
    return Cleaner(COLUMNS, each=4, **more).clean(table, bits=SeededBits(1))  # type: ignore[arg-type]


def test_the_page_says_what_it_costs_and_what_was_done() -> None:
    text = cleaning_page("people.csv", cleaned(rows=2000)).html()
    assert "ε = 7: 1 record of 2 columns at ε = 7 a record" in text
    assert "seeded" in text
    assert "drawn anew" in text
    assert "bounded Laplace" in text
    assert "stays missing, or seems so" in text
    assert "&lt;m&gt;" in text


def test_a_weak_promise_is_called_so() -> None:
    loud = Cleaner(COLUMNS, each=4, rows=3, unit="patient")
    page = cleaning_page("x", loud.clean(pa.table({"age": [1], "sex": ["f"]}))).html()
    assert "up to 3 records of 2 columns" in page
    assert "weak promise: the table may tell much about one patient" in page
    assert "protects nobody" not in page


def test_tables_hold_what_was_corrected() -> None:
    made = cleaned()
    assert [row[0] for row in done_table(made).rows] == ["age", "sex"]
    rows = {row[1]: row for row in found_table(made).rows}
    _, _, plain, value, low, high = rows["share of f"]
    assert float(low) <= 0.25 <= float(high)  # type: ignore[arg-type]
    assert abs(float(value) - 0.25) < abs(float(plain) - 0.25) + 0.05  # type: ignore[arg-type]
    assert float(rows["mean"][4]) <= 49.5 <= float(rows["mean"][5])  # type: ignore[arg-type]


@pytest.mark.parametrize("rows", [0, 1])
@pytest.mark.parametrize("method", Method)
def test_a_table_of_next_to_nobody_has_a_page_too(rows: int, method: Method) -> None:
    assert "cleaned" in cleaning_page("x", cleaned(rows, method=method)).html()
