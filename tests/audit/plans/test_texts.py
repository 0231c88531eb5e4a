"""Questions in SQL count the records that their text counts, and it shows where one is read wrongly."""

from pathlib import Path

import pytest

from sourdine.audit.plans.engines import Workplace
from sourdine.tables.sql import read_sql
from tests.faults.cases import SQL
from tests.faults.texts import misread

TEXTS = SQL.texts()
MORE = {
    "missing": "SELECT site, COUNT(*) FROM people WHERE age IS NULL OR NOT well GROUP BY site",
    "between": "SELECT COUNT(*) FROM people WHERE age BETWEEN 0 AND 19 AND pay <> 0",
    "case": "SELECT CASE WHEN age > 5 THEN 'old' ELSE 'young' END AS k, COUNT(*) FROM people GROUP BY k",
    "not in": "SELECT COUNT(*) FROM people WHERE site NOT IN ('n')",
    "mean": "SELECT AVG(age) FROM people",
}


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_questions_count_what_they_say(seed: int, tmp_path: Path) -> None:
    plan = SQL.plan()
    assert misread({**TEXTS, **MORE}, plan.schema, plan.unit, Workplace(tmp_path), seed) == {}


def test_a_question_that_is_read_wrongly_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = SQL.plan()
    asked = {"grown": "SELECT COUNT(*) FROM people WHERE age >= 20"}
    monkeypatch.setattr(
        "tests.faults.texts.read_sql",
        lambda text, *rest: read_sql(text.replace(">= 20", ">= 19"), *rest),
    )
    assert list(misread(asked, plan.schema, plan.unit, Workplace(tmp_path))) == ["grown"]
