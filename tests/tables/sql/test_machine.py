"""Random questions in SQL are answered as DuckDB answers them, or refused before a charge."""

from collections import Counter

import pytest

from tests.tables.sql.machine import ask_many

_QUICK, _TOGETHER = 300, 5
_MANY = 10_000


@pytest.mark.parametrize("first", range(0, _QUICK, _TOGETHER))
def test_random_questions_are_answered_as_duckdb_answers_them(first: int) -> None:
    assert ask_many(first, first + _TOGETHER).wrong == []


@pytest.mark.slow
def test_many_random_questions_of_every_form() -> None:
    """Prints what is answered of each form, and the commonest reasons of refusal."""
    tally = ask_many(_QUICK, _QUICK + _MANY)
    print(tally.report())
    assert tally.wrong == []
    assert tally.outcomes["refused"] <= 0.1 * _MANY
    assert Counter(tally.answered).most_common()[-1][1] >= 200
