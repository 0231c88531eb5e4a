"""What a newcomer types: the examples as they are written, other things that should work, and mistakes.

Every mistake is told in a sentence that can be followed where it was made: in Python or in a file.
"""

import decimal
import os
import re
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import sourdine as sd
from sourdine import statistics as st
from sourdine.core.format import in_files
from sourdine.frames import Schema
from sourdine.frames.expressions import Among, ColumnValue
from sourdine.tables import Answer

COLUMNS: dict[str, Any] = {
    "sex": {"type": "category", "keys": ["f", "m"]},
    "salary": {"type": "integer", "lower": 0, "upper": 100_000},
}
PAY = sd.Query("pay", [st.Count(), st.Mean("salary")], by="sex")
PYTHON = re.compile(r"\w=|Count\(\)|\{\"|Ledger\.|\w\(\"")
FILE = re.compile(r"\w = |\[columns|\[\[|--\w|sourdine \w+ \w+|\{ \w")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path) -> Iterator[None]:
    """A folder with people.csv, in which everything is typed."""
    before = Path.cwd()
    os.chdir(tmp_path)
    rows = "".join(f"{i},{'fm'[i % 2]},{20_000 + i}\n" for i in range(200))
    Path("people.csv").write_text(f"id,sex,salary\n{rows}", encoding="utf-8")
    yield
    os.chdir(before)


def table(**changed: Any) -> sd.Table:
    return sd.Table("people.csv", **({"unit": "person", "columns": COLUMNS} | changed))


def test_tables() -> None:
    ledger = sd.Ledger.create("people.ledger", epsilon=3, unit="person")
    people = sd.Table("people.csv", unit=sd.PrivacyUnit("person", column="id"), columns=COLUMNS)
    plan = people.plan(sd.Query("pay", [st.Count(), st.Mean("salary")], by="sex"), epsilon=1)
    release = people.release(plan, ledger)
    value, lower, upper = release["pay", "mean of salary"].at("f")
    assert lower <= value <= upper
    assert len(release.to_polars()) == len(release.to_pandas()) == release.to_arrow().num_rows == 4
    assert release.chart("pay").title == "pay"


def test_quantiles() -> None:
    ledger = sd.Ledger.create("people.ledger", epsilon=3, unit="person")
    x = np.linspace(0, 1e5, 300)
    found = sd.quantiles(x, levels=[0.1, 0.5, 0.9], bounds=(0, 1e5), epsilon=1, ledger=ledger)
    assert "number" in str(found)
    assert len(found.values) == 3
    assert found.spends[0].distance.neighbours is sd.Neighbours.ADD_REMOVE  # those of the ledger
    alone = sd.quantiles(x, levels=[0.5], bounds=(0, 1e5), epsilon=1)
    assert alone.spends[0].distance.neighbours is sd.Neighbours.REPLACE


def test_training_budget() -> None:
    spent = sd.dpsgd_epsilon(noise_multiplier=1, sampling_rate=64 / 60_000, steps=140, delta=1e-5)
    assert 0 < spent.upper < 1


def test_local() -> None:
    oracle = sd.local.choose(epsilon=1, categories=10).oracle
    reports = oracle.sample(np.arange(10).repeat(5))
    assert len(oracle.estimate(oracle.tally(reports)).value) == 10


def test_frames_of_any_library_and_paths() -> None:
    frame = pd.read_csv("people.csv")
    for source in (Path("people.csv"), frame, pl.from_pandas(frame)):
        assert sd.Table(source, unit="person", columns=COLUMNS).schema == table().schema


def test_numbers_of_numpy_and_texts_of_choices() -> None:
    bounds = {"type": "integer", "lower": np.int64(0), "upper": np.int32(9)}
    assert table(columns={"salary": bounds}).schema.columns["salary"].lower == 0  # type: ignore[union-attr]
    assert table(size=np.int64(3000)).size == 3000
    assert table(neighbours="replace").neighbours is sd.Neighbours.REPLACE


@pytest.mark.parametrize(
    "epsilon", [0.1, "0.1", "1/10", Fraction(1, 10), decimal.Decimal("0.1"), np.float64(0.1)]
)
def test_a_tenth_is_a_tenth(epsilon: Any) -> None:
    assert table().plan(PAY, epsilon=epsilon).privacy.epsilon == Fraction(1, 10)


def test_numbers_of_numpy_are_written_in_lists_too() -> None:
    columns = COLUMNS | {
        "id": {"type": "category", "keys": [np.int64(1), np.int64(2)], "missing": np.int64(1)}
    }
    people = table(columns=columns)
    query = sd.Query("few", [st.Count(), st.Proportion("id", of=[np.int64(2)])], where={"id": np.int64(2)})  # type: ignore[list-item]
    assert query.where == (Among(ColumnValue("id"), (2,)),)
    assert people.plan(query, epsilon=1).schema.keys("id") == (1, 2)
    assert st.Quantiles("salary", np.array([0.5])).levels == (0.5,)  # type: ignore[arg-type]
    assert Schema.read({"id": {"type": "category", "keys": range(3)}}).keys("id") == (0, 1, 2)


def test_a_private_result_is_one_line() -> None:
    some = sd.quantiles(np.arange(1000.0), levels=[0.5], bounds=(0, 1000), epsilon=1)
    assert re.fullmatch(r"<Release of \[[\d.]+\], not paid>", repr(some))


def test_ten_tenths_fit_in_one() -> None:
    ledger, people = sd.Ledger.create("a.ledger", epsilon=1), table()
    plan = people.plan(sd.Query("all", st.Count()), epsilon=0.1)
    for _ in range(10):
        ledger.charge(*plan.spends, purpose="a tenth")
    assert ledger.status().left == 0


def test_answers_can_be_walked_and_asked_by_a_tuple() -> None:
    people = table()
    release = people.release(people.plan(PAY, epsilon=1), sd.Ledger.create("a.ledger", epsilon=1))
    assert len(release) == 2
    assert all(isinstance(each, Answer) for each in release)
    assert release["pay", "count"].at(("f",)) == release["pay", "count"].at("f")


def test_a_specification_is_loaded_by_a_text_too() -> None:
    with pytest.raises(sd.InvalidParameter, match=r"nope\.toml does not exist"):
        sd.Specification.load("nope.toml")


def plan_of(*asked: Any, **changed: Any) -> Callable[[], object]:
    return lambda: table().plan(sd.Query("a", asked, **changed), epsilon=1)


def column(**fields: Any) -> Callable[[], object]:
    return lambda: Schema.read({"salary": fields})


# each in Python, and the same declarations as a file would give them
BOTH: list[tuple[Callable[[], object], str]] = [
    (column(type="int", lower=0, upper=9), "'columns.salary' is wrong"),
    (column(type="integer", lower=0), "'columns.salary.upper' is missing"),
    (column(type="integer", lower="0", upper=9), "must be a whole number"),
    (column(type="category"), "'columns.salary.keys' is missing"),
    (column(type="category", keys="fm"), "it must be a list"),
    (column(type="text", missing="other"), "needs a name for the others"),
    (lambda: Schema.read({"salary": (0, 9)}), "block of fields"),
    (lambda: Schema.read(["salary"]), "must be declared by their names"),  # type: ignore[arg-type]
    (plan_of(st.Mean("sex")), "needs numbers"),
    (plan_of(st.Count(), by={"month": "salary"}), "needs a date or a time"),
    (plan_of(st.Mean("salry")), "Did you mean 'salary'"),
    (plan_of(st.Mean("height")), "Declared are 'sex', 'salary'. Take one of them, or declare it, as in"),
    (plan_of("count", where={"column": ["sex"]}), "names of columns first: where"),
    (plan_of("median"), "asks for the median"),
    (plan_of({"max": "salary"}), "the value of one record"),
    (plan_of("avg"), "It is called mean"),
    (plan_of("mean"), "of no column"),
    (plan_of({"count": "salary"}), "of a column"),
    (plan_of(3), "no statistic"),
    (plan_of("count", where="sex = 1"), "where' is wrong"),
    (lambda: st.Quantiles("salary", [50]), "strictly between 0 and 1"),
    (lambda: st.Histogram("salary", [1, 0]), "edges must rise"),
    (lambda: table(columns={"sx": COLUMNS["sex"]}), "none is called 'sx'"),
    (lambda: table(text={"header": False}), "come together"),
    (lambda: table(text={"encoding": 3}), "encoding' is wrong"),
    (lambda: table(joins={"a": {"on": 3}}), "is wrong"),
    (lambda: table().release(table().plan(PAY, epsilon=1), None), "must be paid for"),  # type: ignore[arg-type]
    (lambda: sd.Ledger.open("nope.ledger"), "There is no ledger"),
]


@pytest.mark.parametrize(("mistake", "told"), BOTH)
def test_a_mistake_is_told_as_it_was_made(mistake: Callable[[], object], told: str) -> None:
    with pytest.raises(sd.SourdineError, match=re.escape(told)) as python:
        mistake()
    with in_files(), pytest.raises(sd.SourdineError, match=re.escape(told)) as file:
        mistake()
    assert not FILE.search(str(python.value)), python.value
    assert not PYTHON.search(str(file.value)), file.value
    assert "\n" not in str(python.value)


@pytest.mark.parametrize(
    ("mistake", "told"),
    [
        (lambda: sd.Table({"a": [1]}, unit="person", columns=COLUMNS), "Make a frame of it first"),
        (lambda: sd.Table(pd.Series([1]), unit="person", columns=COLUMNS), "with to_frame()"),
        (lambda: table(unit=3), 'Write unit="person"'),
        (lambda: table(unit=None), "must be a PrivacyUnit or its name"),
        (lambda: table(size=3000.0), "must be a whole number"),
        (lambda: table(neighbours="swap"), "must be one of add-remove, replace, zero-out"),
        (column(type="integer", bounds=(0, 9)), "Did you mean 'lower and upper'"),
        (column(type="category", keys=np.array(["f"])), "one that is taken from the data tells"),
        (column(type="category", keys=pd.Series(["f"])), "one that is taken from the data tells"),
        (lambda: table().plan([3], epsilon=1), 'Query("people", [Count()], by="sex")'),
        (lambda: table().plan(st.Count(), epsilon=1), 'Query("people", [Count()], by="sex")'),  # type: ignore[arg-type]
        (lambda: table().plan(PAY, epsilon="one"), "Write it like 0.5"),
        (lambda: table().plan(PAY, epsilon=0), "Got 0."),
        (lambda: table().plan(PAY, epsilon=1, confidence=95), "strictly between 0 and 1"),
        (column(type="category", keys={"f", "m"}), "it must be a list"),
        (
            lambda: sd.Query("a", [st.Count()], where={"day": {"below": {1}}}),
            "the name of a column",
        ),
        (lambda: sd.quantiles([1.0], levels=0.5, bounds=(0, 1), epsilon=1), "Write levels=[0.5]"),  # type: ignore[arg-type]
        (
            lambda: sd.dpsgd_epsilon(1, 64, 10, delta=1e-5),
            "'sampling_rate' of dpsgd_epsilon must be at most 1",
        ),
        (lambda: sd.Query("pay", [st.Count]), "Write it like Count()"),  # type: ignore[list-item]
        (lambda: sd.Ledger("people.ledger"), "Ledger.open(path)"),  # type: ignore[arg-type]
        (lambda: sd.Ledger.create("b.ledger", 1), "as in epsilon=3"),  # type: ignore[arg-type]
    ],
)
def test_a_mistake_in_python_is_told_in_a_sentence(mistake: Callable[[], object], told: str) -> None:
    with pytest.raises(sd.InvalidParameter, match=re.escape(told)):
        mistake()


def test_names_of_old_say_what_they_are_called_now() -> None:
    for name, now in sd._RENAMED.items():
        with pytest.raises(AttributeError, match=f"It is sourdine.{re.escape(now)} now"):
            getattr(sd, name)
        found: Any = sd
        for part in now.split("."):
            found = getattr(found, part) if part != "learning" else None  # which needs torch
            if found is None:
                break
        assert name not in sd.__all__
