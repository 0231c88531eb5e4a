from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from sourdine.core.errors import InvalidParameter
from sourdine.local.cleaner import Method
from sourdine.local.cleaner.numbers import NumberCells
from sourdine.local.cleaner.specification import CleaningSpecification, parsed

COLUMNS = {"age": {"type": "integer", "lower": 0, "upper": 120}, "ill": {"type": "flag"}}


def read(**blocks: Any) -> CleaningSpecification:
    return CleaningSpecification.read({"columns": COLUMNS, **blocks})


def test_the_block_says_how_to_clean() -> None:
    held = read(
        clean={
            "each": 0.1,
            "rows": 2,
            "unit": "visit",
            "method": "staircase",
            "share": 0.5,
            "keep_order": True,
            "columns": {"age": {"method": "unbiased"}, "ill": {"epsilon": 1}},
        }
    )
    cleaner = held.cleaner()
    assert cleaner.total == 2 * (Fraction(1, 10) + 1)
    assert (cleaner.unit, cleaner.share) == ("visit", Fraction(1, 2))
    age = cleaner.cells[0]
    assert isinstance(age, NumberCells)
    assert age.kind is Method.UNBIASED
    assert held.clean.keep_order


def test_what_is_said_beside_the_file_counts_more() -> None:
    held = read(clean={"each": 1, "rows": 2})
    made = held.cleaner(epsilon=Fraction(6), own={"ill": Fraction(2)}, rows=1, unit="person")
    assert {cells.name: cells.epsilon for cells in made.cells} == {"age": 4, "ill": 2}
    staircase = held.cleaner(method=Method.STAIRCASE).cells[0]
    assert isinstance(staircase, NumberCells)
    assert staircase.kind is Method.STAIRCASE


def test_the_file_of_a_release_serves_as_well() -> None:
    held = read(
        table={"source": "x.csv", "encoding": "latin-1"},
        privacy={"unit": "patient", "column": "id", "epsilon": 1},
        queries=[],
    )
    assert (held.text.encoding, held.unit) == ("latin-1", "patient")
    with pytest.raises(InvalidParameter, match="several records"):
        held.cleaner(each=Fraction(1))
    assert (
        5 < held.cleaner(each=Fraction(1), rows=3).total < 6
    )  # of three records, ages that keep missing ones


@pytest.mark.parametrize(
    ("held", "message"),
    [
        ({}, "declares no columns"),
        ({"columns": 3}, "declares no columns"),
        ({"columns": COLUMNS, "cleaning": {}}, "'cleaning' is unknown"),
        ({"columns": COLUMNS, "clean": {"epsilon": 0}}, "clean.epsilon"),
        ({"columns": COLUMNS, "clean": {"method": "gauss"}}, "clean.method"),
        ({"columns": COLUMNS, "clean": {"rows": 0}}, "clean.rows"),
        ({"columns": COLUMNS, "clean": {"columns": {"age": {"delta": 1}}}}, "clean.columns.age.delta"),
        ({"columns": {"age": {"type": "integer", "lower": 0}}}, "columns.age.upper"),
    ],
)
def test_mistakes_are_named(held: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidParameter, match=message):
        CleaningSpecification.read(held)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InvalidParameter, match="sourdine init"):
        parsed(tmp_path / "none.toml")
    (tmp_path / "bad.toml").write_text("= 3")
    with pytest.raises(InvalidParameter, match="not valid TOML"):
        parsed(tmp_path / "bad.toml")
