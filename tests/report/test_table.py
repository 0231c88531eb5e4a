import csv
import io
import math

import pytest

from sourdine.accounting import Bracket
from sourdine.core.errors import InvalidParameter
from sourdine.report import TextTable
from sourdine.report.view import show


def table() -> TextTable:
    return TextTable(
        name="costs",
        title="Costs",
        columns=("run", "steps", "ε"),
        rows=(("a, or b", 14_070, Bracket(0.61084, 0.61144)), ("c", None, 1 / 3)),
    )


def test_cells_are_shortened_for_people() -> None:
    assert table().shown() == (("a, or b", "14,070", "0.6108 to 0.6115"), ("c", "–", "0.3333"))
    assert show(Bracket(0.0, 0.99999)) == "at most 1"
    assert show(math.inf) == "∞"


def test_columns_of_numbers_are_known() -> None:
    assert table().numbers == ("steps", "ε")


def test_csv_keeps_every_digit_and_both_ends() -> None:
    rows = list(csv.DictReader(io.StringIO(table().csv())))
    assert list(rows[0]) == ["run", "steps", "ε lower", "ε upper"]
    assert rows[0] == {"run": "a, or b", "steps": "14070", "ε lower": "0.61084", "ε upper": "0.61144"}
    assert float(rows[1]["ε lower"]) == float(rows[1]["ε upper"]) == 1 / 3
    assert rows[1]["steps"] == ""


def test_a_row_of_another_length_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="Every row of the table 'short' must have 2 cells"):
        TextTable(name="short", title="", columns=("a", "b"), rows=((1,),))


def test_numbers_that_are_written_as_text_stand_to_the_right_on_pages() -> None:
    table = TextTable(
        name="t",
        title="t",
        columns=("who", "share", "score", "count", "mixed"),
        rows=(("a", "12.5 %", "0.78 ± 0.16", 3, "1 of 2"), ("b", "–", "1.00", 4, "7")),
    )
    assert table.numbers == ("count",)
    assert table.right == ("share", "score", "count")
