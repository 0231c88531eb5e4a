import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sourdine.core.text import as_written, csv_text, inert

LETTERS = st.one_of(
    st.sampled_from("=+-@'\t\r\n\0 ,;\"1.e\uff1d\uff20a"), st.characters(exclude_categories=["Cs"])
)


FORMULAS = [
    "=1+1",
    "+1+1",
    "-1+1",
    "@SUM(A1)",
    "＝1",
    "＋1",
    "－1",
    "＠A1",
    "-",
    "+",
    "'=1",
    "-1e5x",
    "--1",
    "+١",
]


@pytest.mark.parametrize(
    "text", [*FORMULAS, "\t=1", "\r=1", "\n=1", "\0=1", " =1", "- none -", "=cmd|'/c calc'!A1"]
)
def test_what_begins_like_a_formula_is_text(text: str) -> None:
    assert inert(text) == f"'{text}"


@pytest.mark.parametrize(
    "cell", ["", "north", "a=1", "-3.2", "+5", "-1e-5", "3,5", "'tis", -3.2, 7, True, None]
)
def test_other_cells_stay(cell: object) -> None:
    assert inert(cell) is cell


@given(st.text(LETTERS, max_size=12))
def test_every_text_is_safe_and_comes_back(text: str) -> None:
    made = inert(text)
    assert as_written(made) == text
    ((_, read),) = csv.reader(io.StringIO(csv_text([["a", made]]), newline=""))
    assert as_written(read) == text
    try:
        float(made.replace(",", "."))
    except ValueError:
        assert not made.lstrip(" \0\ufeff").startswith(("=", "+", "-", "@", "\t", "\r", "\n"))


@given(st.text(LETTERS, max_size=12), st.text(LETTERS, max_size=12))
def test_no_two_texts_become_one(one: str, two: str) -> None:
    assert (inert(one) == inert(two)) == (one == two)
