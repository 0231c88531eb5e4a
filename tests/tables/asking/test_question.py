"""The builder: it makes the queries that a specification would, and refuses on the line that is wrong."""

from collections.abc import Callable
from datetime import date

import numpy as np
import pyarrow as pa
import pytest

import sourdine as sd
from sourdine.core.errors import InvalidParameter
from sourdine.tables import Query
from sourdine.tables.builder import case
from sourdine.tables.statistics import Count, Quantiles, Regression, Units

PEOPLE = sd.Table(
    pa.table(
        {
            "id": [1, 2],
            "age": [20, 30],
            "salary": [1.0, 2.0],
            "sex": ["f", "m"],
            "region": ["n", "s"],
            "seen": [date(2024, 1, 5), date(2024, 2, 5)],
            "well": [True, False],
            "town": ["a", "b"],
        }
    ),
    unit=sd.PrivacyUnit("person", column="id", max_rows=2, max_groups=2),
    columns={
        "age": {"type": "integer", "lower": 0, "upper": 120},
        "salary": {"type": "real", "lower": 0.0, "upper": 100_000.0},
        "sex": {"type": "category", "keys": ["f", "m"]},
        "region": {"type": "category", "keys": ["n", "s"]},
        "seen": {"type": "date", "first": date(2024, 1, 1), "last": date(2024, 3, 31)},
        "well": {"type": "flag"},
        "town": {"type": "text"},
    },
)
C = PEOPLE.c


def test_a_question_is_the_query_of_a_specification() -> None:
    asked = PEOPLE.ask("pay").where(C.age >= 18).by(C.region, C.seen.month()).get(Count(), C.salary.mean())
    block = {
        "name": "pay",
        "ask": ["count", {"mean": "salary"}],
        "by": ["region", {"month": "seen"}],
        "where": {"age": {"at_least": 18}},
    }
    assert asked.query == Query.read(block)
    (sql,) = [
        PEOPLE.sql(
            "SELECT region, DATE_TRUNC('month', seen), COUNT(*), AVG(salary) FROM people WHERE age >= 18 "
            "GROUP BY region, DATE_TRUNC('month', seen)",
            name="pay",
        )
    ]
    assert sql.query == asked.query


def test_a_gap_groups_by_what_it_compares() -> None:
    query = PEOPLE.ask("gap").get(C.salary.mean().difference(C.sex, "m", "f")).query
    assert query.by == ("sex",)
    assert [each.label for each in query.compare] == ["mean of salary, m less f"]


def test_statistics_take_columns() -> None:
    assert PEOPLE.ask("slope").by(C.region).get(Regression(C.salary, on=C.age)).query.ask == (
        Regression("salary", on="age"),
    )
    assert PEOPLE.ask("q").get(C.salary.regression(C.age)).query.ask == (Regression("salary", on="age"),)


def test_spend_per_user_asks_for_both() -> None:
    query = PEOPLE.ask("q").by(C.seen.week()).get(C.salary.sum().per(Units())).query
    assert [each.label for each in query.ask] == ["sum of salary", "units"]
    assert [each.label for each in query.compare] == ["sum of salary per units"]


def test_expressions_are_named_by_their_text() -> None:
    query = (
        PEOPLE.ask("q").by(case((C.age < 18, "young"), otherwise="grown")).get((C.salary / 12).mean()).query
    )
    assert query.ask[0].label == "mean of salary / 12"
    assert query.by == ("CASE WHEN age < 18 THEN 'young' ELSE 'grown' END",)
    assert set(query.derived) == {"salary / 12", *query.by}


def test_conditions_are_joined_by_signs_and_not_by_words() -> None:
    held = (C.age >= 18) & ~C.region.is_in("n") | C.well
    assert held.tree.text == "((age >= 18) AND (NOT (region IN ('n')))) OR well"
    with pytest.raises(InvalidParameter, match="&"):
        bool(C.age >= 18)


def test_a_question_stays_as_it_is() -> None:
    first = PEOPLE.ask("q").get(Count())
    second = first.by(C.sex).weight(2).order_by("count", descending=True).limit(1)
    assert first.query.by == ()
    assert (second.query.by, second.query.weight, second.query.show.limit) == (("sex",), 2, 1)


WRONG: dict[str, tuple[Callable[[], object], str]] = {
    "a mean of keys": (lambda: C.sex.mean, "cannot be asked"),
    "a column nobody declared": (lambda: C.salry, "Did you mean 'salary'"),
    "a key nobody declared": (lambda: C.sex == "x", "does not declare"),
    "a sum of keys and numbers": (lambda: C.age + C.sex, "number"),
    "a number as a condition": (lambda: PEOPLE.ask("q").where(C.age), "compares columns"),
    "a text as a condition": (
        lambda: PEOPLE.ask("q").where("age > 1"),  # type: ignore[arg-type]
        "compares columns",
    ),
    "no statistic": (lambda: PEOPLE.ask("q").get(C.age), "Ask for statistics"),
    "nothing": (lambda: PEOPLE.plan(PEOPLE.ask("q"), epsilon=1), "asks for nothing"),
    "to group by a name": (
        lambda: PEOPLE.ask("q").by("sex"),  # type: ignore[arg-type]
        "Group by columns",
    ),
    "a division by what may be 0": (lambda: C.salary / C.age, "NULLIF"),
    "a comparison that is never true": (
        lambda: PEOPLE.ask("q").get(Count()).where(C.age > 130),
        "never|no record",
    ),
    "a date that is none": (lambda: C.seen > "yesterday", "2024-12-31"),
    "a computed column by name": (lambda: Regression(C.salary / 2, on=C.age), "computed"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_refused_where_it_is_written(case: str) -> None:
    make, sentence = WRONG[case]
    with pytest.raises((InvalidParameter, AttributeError), match=sentence):
        make()


def test_an_editor_completes_columns() -> None:
    assert set(PEOPLE.schema.columns) <= set(dir(C))
    assert repr(C.age) == "<AskedNumber age, 0 to 120>"
    assert "by sex" in repr(PEOPLE.ask("q").by(C.sex))


def test_numbers_of_numpy_are_taken() -> None:
    assert (C.age >= np.int64(18)).tree == (C.age >= 18).tree
    assert (C.salary * np.float64(0.5)).tree == (C.salary * 0.5).tree


def test_a_plan_takes_questions_in_every_form() -> None:
    questions = [PEOPLE.ask("a").get(Count()), Query("b", [Count()]), {"name": "c", "ask": ["count"]}]
    plan = PEOPLE.plan(questions, PEOPLE.sql("SELECT COUNT(*) FROM people", name="d"), epsilon=1)
    assert [each.name for each in plan.queries] == ["a", "b", "c", "d"]


def test_levels_may_be_listed_and_mistakes_are_told() -> None:
    wanted = Query("q", [Quantiles("salary", [0.5, 0.95])])
    assert PEOPLE.ask("q").get(C.salary.quantiles(0.5, 0.95)).query == wanted
    assert PEOPLE.ask("q").get(C.salary.quantiles([0.5, 0.95])).query == wanted
    assert PEOPLE.ask("q").get(C.salary.quantiles(np.array([0.5, 0.95]))).query == wanted
    with pytest.raises(InvalidParameter, match="levels must rise"):
        PEOPLE.ask("q").get(C.salary.quantiles(0.95, 0.5))


def test_no_name_of_a_column_is_taken() -> None:
    names = ("items", "keys", "values", "get")
    whole = {"type": "integer", "lower": 1, "upper": 9}
    table = sd.Table(
        pa.table({name: [1] for name in names}), unit="person", columns=dict.fromkeys(names, whole)
    )
    for name in names:
        assert getattr(table.c, name).tree == table.c[name].tree
    assert "items" in table.c
    assert list(table.c) == list(names)
