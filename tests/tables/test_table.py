"""One clear sentence for each mistake, before anything is paid."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from sourdine.accounting.ledger import Ledger, PureBudget, Terms
from sourdine.core.distance import Neighbours
from sourdine.core.errors import InvalidParameter
from sourdine.frames import PrivacyUnit
from sourdine.tables import Table
from sourdine.tables.release import _carry_out

ROWS = pa.table({"age": [31, 54], "sex": ["f", "m"]})
COLUMNS: dict[str, Any] = {
    "age": {"type": "integer", "lower": 0, "upper": 120},
    "sex": {"type": "category", "keys": ["f", "m"]},
}


def test_a_table_that_does_not_fit_its_declaration_is_refused(tmp_path: Path) -> None:
    (tmp_path / "broken.parquet").write_bytes(b"?")
    cases: list[tuple[Any, dict[str, Any], PrivacyUnit | str, str]] = [
        (ROWS, {"height": COLUMNS["age"]}, "person", "none is called 'height'"),
        (ROWS, {"age": {**COLUMNS["age"], "lower": 200}}, "person", "lower must be below upper"),
        (ROWS, {"age": {"type": "integer"}}, "person", "'columns.age.lower' is missing"),
        (ROWS, COLUMNS, PrivacyUnit(name="person", column="who"), "none is called 'who'"),
        (tmp_path / "none.csv", COLUMNS, "person", "does not exist"),
        (tmp_path / "broken.parquet", COLUMNS, "person", "cannot be read as parquet"),
        (ROWS, {"age": COLUMNS["sex"]}, "person", "'age' is declared to hold text"),
        (ROWS, COLUMNS, "", "The 'name' of PrivacyUnit must"),
    ]
    for rows, columns, unit, sentence in cases:
        with pytest.raises(InvalidParameter) as caught:
            Table(rows, unit=unit, columns=columns)
        assert sentence in str(caught.value)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ({"ask": ["max"]}, "asks for the max, which is the value of one record"),
        ({"ask": [{"min": "age"}]}, "asks for the min, which is the value of one record"),
        ({"ask": [{"median": "age"}]}, 'Write it as Quantiles("age", levels=[0.5])'),
        ({"ask": ["mode"]}, "asks for 'mode', which is unknown. Ask for one of count, units, sum"),
        ({"ask": []}, "'queries.q.ask' is wrong"),
        ({"ask": ["count", "count"]}, "the same thing is asked twice"),
        ({"ask": [{"mean": "sex"}]}, "needs numbers, and the column 'sex'"),
        ({"ask": [{"mean": "height"}]}, "the column 'height' is not declared. Declared are 'age', 'sex'"),
        ({"ask": [{"mean": "agge"}]}, "not declared. Did you mean 'age'?"),
        ({"ask": ["count"], "by": "sexe"}, "not declared. Did you mean 'sex'?"),
        ({"ask": ["mean"]}, 'of no column. Write it like Mean("pay")'),
        ({"ask": [{"count": "age"}]}, "Write Count() alone"),
        ({"ask": [{"avg": "age"}]}, 'It is called mean: write Mean("pay")'),
        ({"ask": [{"std": "age"}]}, 'It is called deviation: write StdDev("pay")'),
        ({"ask": ["distinct"]}, "It is called units: write Units()"),
        ({"ask": [3]}, 'Write it like Count() or Mean("pay")'),
        ({"ask": [{"kind": "mode"}]}, "asks for 'mode', which is unknown"),
        ({"ask": ["count"], "by": 3}, "'queries.q.by' is wrong: it must be a list"),
        ({"ask": [{"proportion": "sex"}]}, "does not say which keys of the column 'sex'"),
        ({"ask": [{"proportion": "age"}]}, "which numbers of the column 'age' it is about. State at_least"),
        ({"ask": ["count"], "by": ["age"], "where": {"age": {"below": 0}}}, "can never be true"),
        ({"ask": ["count"], "by": ["sex", "sex"]}, "by must not repeat a column"),
        ({"ask": [{"contingency": ["sex"]}]}, "at least 2"),
        ({"ask": [{"contingency": ["sex", "town"]}]}, "the column 'town' is not declared"),
        ({"ask": [{"histogram": "age", "edges": [0, 0.2, 0.3]}]}, "a bin narrower than the column's grid"),
        ({"ask": [{"histogram": "age", "edges": [5, 1]}]}, "edges must rise"),
        ({"ask": [{"histogram": "age", "edges": [0, 10**400]}]}, "up to 1e100 in size"),
        ({"ask": [{"quantiles": "age", "levels": [0, 0.5]}]}, "strictly between 0 and 1"),
        ({"ask": [{"quantiles": "age", "levels": [0.5, 0.5]}]}, "levels must rise"),
        ({"ask": [{"proportion": "sex", "of": ["x"]}]}, "the key 'x', which the column"),
        ({"ask": [{"proportion": "sex", "at_least": 1}]}, "does not fit its type"),
        ({"ask": ["count"], "where": {"height": ["x"]}}, "the column 'height' is not declared"),
        ({"ask": ["count"], "where": {"age": {"at_least": 5, "below": 5}}}, "at_least must be below"),
        ({"ask": ["count"], "where": 3}, "it must be a table"),
        ({"ask": ["count"], "weight": 0}, "'queries.q.weight' is wrong"),
        ({"ask": ["count"], "wait": 1}, "'queries.q.wait' is unknown"),
        ({"ask": ["count"], "name": ""}, "'queries.name' is wrong: it must not be empty"),
        ({"by": ["sex"]}, "'queries.q.ask' is missing"),
    ],
)
def test_a_bad_query_is_refused_by_name(query: dict[str, Any], sentence: str) -> None:
    table = Table(ROWS, unit="person", columns=COLUMNS)
    with pytest.raises(InvalidParameter) as caught:
        table.plan({"name": "q", **query}, epsilon=1)
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("terms", "sentence"),
    [
        ({"epsilon": 0}, "The 'epsilon' of Privacy must"),
        ({"epsilon": float("inf")}, "The 'epsilon' of Privacy must"),
        ({"epsilon": 1, "delta": 0}, "The 'delta' of Privacy must"),
        ({"epsilon": 1, "delta": 1}, "The 'delta' of Privacy must"),
        ({"epsilon": 1, "confidence": 1}, "The 'confidence' of a plan must"),
    ],
)
def test_a_bad_guarantee_is_refused(terms: dict[str, Any], sentence: str) -> None:
    table = Table(ROWS, unit="person", columns=COLUMNS)
    with pytest.raises(InvalidParameter, match=sentence):
        table.plan({"name": "q", "ask": ["count"]}, **terms)


def test_keys_that_would_be_read_as_something_else_are_refused() -> None:
    columns = {
        "sex": {"type": "category", "keys": ["f", "all"]},
        "quantile": {"type": "flag"},
        "age": COLUMNS["age"],
    }
    rows = pa.table({"sex": ["f"], "quantile": [True], "age": [3]})
    table = Table(rows, unit="person", columns=columns)
    with pytest.raises(InvalidParameter, match="'sex' in 'q' has the key 'all', which names the margins"):
        table.plan({"name": "q", "ask": [{"contingency": ["sex", "quantile"]}]}, epsilon=1)
    asked = {"name": "q", "ask": [{"quantiles": "age", "levels": [0.5]}], "by": ["quantile"]}
    with pytest.raises(InvalidParameter, match="groups by 'quantile' twice"):
        table.plan(asked, epsilon=1)


def test_a_unit_that_is_called_like_a_column_needs_it() -> None:
    rows = pa.table({"person": [1, 1], "sex": ["f", "f"]})
    columns = {"sex": COLUMNS["sex"]}
    with pytest.raises(InvalidParameter, match="yet every record would count as another person"):
        Table(rows, unit="person", columns=columns)
    Table(rows, unit=PrivacyUnit("person", column="person", max_rows=2), columns=columns)


def test_a_question_in_sql_shows_what_it_asks() -> None:
    table = Table(ROWS, unit="person", columns=COLUMNS)
    assert repr(table.sql("SELECT sex, COUNT(*), AVG(age) FROM people GROUP BY sex")) == (
        "<Question 'sql': count, mean of age by sex; nothing is read or spent>"
    )


def test_two_queries_need_two_names() -> None:
    table = Table(ROWS, unit="person", columns=COLUMNS)
    with pytest.raises(InvalidParameter, match="Two queries are called 'q'"):
        table.plan({"name": "q", "ask": ["count"]}, {"name": "q", "ask": ["units"]}, epsilon=1)
    with pytest.raises(InvalidParameter, match=r"as in people\.sql\(.*name="):
        table.plan([table.sql("SELECT COUNT(*) FROM people")] * 2, epsilon=1)
    with pytest.raises(InvalidParameter, match="hold at least one query"):
        table.plan(epsilon=1)


@pytest.mark.parametrize(("query", "words"), [("count", r"Got a str\. .*people\.sql"), ([3], "Got a int")])
def test_what_is_no_query_is_told(query: Any, words: str) -> None:
    table = Table(ROWS, unit="person", columns=COLUMNS)
    with pytest.raises(InvalidParameter, match=f"A query is written like .*{words}"):
        table.plan(query, epsilon=1)


def test_one_key_one_column_and_one_level_need_no_list() -> None:
    table = Table(ROWS, unit="person", columns=COLUMNS)
    short = {"name": "q", "ask": {"quantiles": "age", "levels": 0.5}, "by": "sex", "where": {"sex": "f"}}
    long = {
        "name": "q",
        "ask": [{"quantiles": "age", "levels": [0.5]}],
        "by": ["sex"],
        "where": {"sex": ["f"]},
    }
    assert table.plan(short, epsilon=1) == table.plan(long, epsilon=1)


@pytest.mark.parametrize("of", [{}, {"of": True}, {"of": "true"}, {"of": ["Yes"]}])
def test_the_proportion_of_a_flag_is_of_those_for_which_it_is_true(of: dict[str, Any]) -> None:
    smokers = pa.table({"smoker": [True] * 300 + [False] * 100})
    table = Table(smokers, unit="person", columns={"smoker": {"type": "flag"}})
    plan = table.plan({"name": "q", "ask": [{"proportion": "smoker", **of}]}, epsilon=1000)
    assert _carry_out(plan, table.source).values.each[0].at()[0] == pytest.approx(0.75, abs=0.01)
    where = table.plan({"name": "q", "ask": ["count"], "where": {"smoker": "false"}}, epsilon=1000)
    assert _carry_out(where, table.source).values["q"].at()[0] == pytest.approx(100, abs=1)


def test_a_file_is_read_in_the_encoding_that_is_stated(tmp_path: Path) -> None:
    place = tmp_path / "people.csv"
    place.write_bytes(("sex\n" + "é\n" * 40 + "m\n" * 60).encode("utf-16"))
    columns = {"sex": {"type": "category", "keys": ["é", "m"]}}
    table = Table(place, unit="person", columns=columns, text={"encoding": "utf-16"})
    plan = table.plan({"name": "q", "ask": ["count"], "by": "sex"}, epsilon=1000)
    assert _carry_out(plan, table.source).values["q"].at("é")[0] == pytest.approx(40, abs=1)


def test_without_a_purpose_the_ledger_notes_the_names_of_the_queries(tmp_path: Path) -> None:
    table = Table(ROWS, unit="person", columns=COLUMNS)
    names = ("by sex", "and\nagain " + "x" * 180)
    plan = table.plan(*({"name": name, "ask": ["count"], "by": ["sex"]} for name in names), epsilon=1)
    terms = Terms(budget=PureBudget(limit=2), unit="person", neighbours=Neighbours.ADD_REMOVE)
    with Ledger.create(tmp_path / "people.ledger", terms) as ledger:
        table.release(plan, ledger)
        table.release(plan, ledger, purpose="yearly")
        first, second = (entry.purpose for entry in ledger.history())
    assert first.startswith("tables: by sex, and again xxx")
    assert len(first) == 200
    assert second == "yearly"
