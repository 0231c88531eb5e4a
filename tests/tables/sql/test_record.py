"""What NULL means for one record: a value that is not there, and nothing that anything equals."""

import pyarrow as pa
import pytest

import sourdine as sd
from sourdine.core.errors import InvalidParameter
from sourdine.tables.release import _carry_out
from sourdine.testing import SeededBits
from tests.tables.sql.test_rows import COLUMNS, ask


@pytest.mark.parametrize(
    ("value", "mean"),
    [
        ("CASE WHEN age < 18 THEN NULL WHEN age > 60 THEN 0 ELSE pay END", 50.0),
        ("CASE WHEN age < 18 THEN NULL ELSE pay END", 100.0),
        ("IF(age < 18, NULL, pay)", 100.0),
        ("CASE WHEN age > 60 THEN pay WHEN age >= 18 THEN NULL ELSE pay END", 1900 / 3),
    ],
)
def test_then_null_leaves_records_out(value: str, mean: float) -> None:
    """Half of the people are 10 and have 900, a quarter is 40, a quarter 70, and these have 100."""
    rows = 4000
    ages, pays = [10, 10, 40, 70] * rows, [900, 900, 100, 100] * rows
    table = sd.Table(
        pa.table({"age": ages, "pay": pays, "sex": ["f"] * 4 * rows, "region": ["n"] * 4 * rows}),
        unit="person",
        columns=COLUMNS,
        size=4 * rows,
    )
    plan = table.plan(table.sql(f"SELECT AVG({value}) FROM t"), epsilon=1000, quality=False)
    (answer,) = _carry_out(plan, table.source, bits=SeededBits(1)).values

    assert answer.estimate.value[0] == pytest.approx(mean, abs=1.0)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("sex IN ('f', NULL)", "Leave it out of the list"),
        ("sex NOT IN ('f', NULL)", "NOT IN holds for no record"),
        ("sex = NULL", "Write IS NULL"),
        ("NULL <> age", "Write IS NULL"),
        ("CASE WHEN age > 5 THEN NULL END = 'a'", "always missing"),
    ],
)
def test_what_is_said_of_null_is_told_with_a_caret(words: str, why: str) -> None:
    with pytest.raises(InvalidParameter, match=why) as refused:
        ask(f"SELECT COUNT(*) FROM t WHERE {words}")
    assert "^" in str(refused.value)
