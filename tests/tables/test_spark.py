"""The same specification on Spark and elsewhere: the same values, bit by bit, from the same seed."""

import logging
import math
import random
import threading
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from sourdine.accounting.ledger import Ledger, PureBudget, Terms
from sourdine.core.distance import Neighbours
from sourdine.core.errors import InvalidParameter, SourdineError
from sourdine.frames import PrivacyUnit
from sourdine.frames import rank_counts as levels_module
from sourdine.frames.engines.spark import InSpark
from sourdine.tables import Table
from sourdine.tables.release import _carry_out
from sourdine.tables.statistics.quantiles import TreeCounts
from sourdine.testing import SeededBits
from tests.frames.every_engine import ENGINES

pytestmark = pytest.mark.filterwarnings("ignore")  # PySpark warns of the pandas that is installed

ODD = 'the `x` \\ "q" é.${user}'
TOWNS = ["it's", "a\\b", "é`x`", 'say "hi"', "${x}", "A", "a", "007"]
COLUMNS: dict[str, Any] = {
    "pay": {"type": "real", "lower": 0.0, "upper": 100.0},
    "big": {"type": "integer", "lower": 2**47, "upper": 2**47 + 2**31 - 1},
    ODD: {"type": "integer", "lower": -5, "upper": 5, "missing": 0},
    "town": {"type": "category", "keys": TOWNS, "missing": "a"},
    "well": {"type": "flag"},
    "price": {"type": "real", "lower": 0.0, "upper": 50.0, "granularity": 0.5},
    "code": {"type": "category", "keys": [1, 2, 2**53 + 1]},
}
QUERIES: list[dict[str, Any]] = [
    {
        "name": "grouped",
        "ask": ["count", {"mean": "pay"}, {"sum": ODD}, {"variance": "price"}],
        "by": ["town", "well"],
    },
    {
        "name": "whole",
        "ask": [
            "count",
            "units",
            {"deviation": "big"},
            {"sum": "big"},
            {"proportion": "pay", "at_least": 30},
            {"proportion": "town", "of": ["it's", "007"]},
            {"histogram": "pay", "edges": [0, 10, 50, 100]},
            {"histogram": "price", "edges": [0, 7, 20, 50]},
            {"contingency": ["town", "well"]},
        ],
    },
    {"name": "some", "ask": [{"mean": "big"}], "by": ["code"], "where": {"well": True, "town": TOWNS[:5]}},
    {
        "name": "quantiles",
        "ask": [{"quantiles": "pay", "levels": [0.25, 0.9], "method": "tree"}],
        "by": ["town"],
    },
    {"name": "gaps", "ask": [{"quantiles": "pay", "levels": [0.2, 0.7], "method": "tree"}], "by": ["code"]},
    {
        "name": "far",
        "ask": [{"quantiles": "big", "levels": [0.1, 0.5], "method": "tree"}],
        "where": {"pay": {"at_least": 5, "below": 90}},
    },
    {"name": "joint", "ask": [{"quantiles": "price", "levels": [0.5], "method": "joint"}], "by": ["well"]},
]


def rows(size: int, units: int) -> pa.Table:
    chance = random.Random(1)
    pays = [None, math.nan, math.inf, -math.inf, 1e300, -5.0, 0.05, 0.15, 2.5]
    prices = [None, Decimal("1.25"), Decimal("99.99"), Decimal("-7.5"), Decimal("20.75")]

    def drawn(*items: Any) -> list[Any]:
        return [chance.choice(items) for _ in range(size)]

    return pa.table(
        {
            "pay": pa.array(
                drawn(*pays, *(chance.uniform(0, 100) for _ in range(30))), pa.float64(), from_pandas=False
            ),
            "big": pa.array(
                drawn(2**53 + 1, 2**62, -3, None, 2**47 + 5, *range(2**47, 2**47 + 9)), pa.int64()
            ),
            ODD: pa.array([chance.randrange(-9, 9) for _ in range(size)], pa.int32()),
            "town": pa.array(drawn(*TOWNS, None, "other", "it's ")),
            "well": pa.array(drawn(True, False, None)),
            "price": pa.array(drawn(*prices), pa.decimal128(10, 2)),
            "code": pa.array(drawn(1, 2, 3, 2**53 + 1, 2**53), pa.int64()),
            "who": pa.array([i % units for i in range(size)], pa.int64()),
        }
    )


def answered(table: object, unit: PrivacyUnit, queries: list[dict[str, Any]] = QUERIES) -> list[Any]:
    held = Table(table, unit=unit, columns=COLUMNS)
    made = _carry_out(held.plan(*queries, epsilon=20), held.source, bits=SeededBits(3))
    return [
        (each.query, each.statistic, each.keys, *(part.tolist() for part in vars(each.estimate).values()))
        for each in made.values.each
    ]


@pytest.mark.slow
def test_the_values_are_those_of_every_other_engine(spark: Any, tmp_path: Path) -> None:
    table, person = rows(300, 300), PrivacyUnit(name="person")
    found = answered(spark.createDataFrame(table), person)
    assert len(found) == sum(len(query["ask"]) for query in QUERIES)
    for engine in sorted(set(ENGINES) - {"json", "ndjson"}):  # JSON has no NaN
        assert repr(answered(ENGINES[engine](table, tmp_path), person)) == repr(found), engine


@pytest.mark.slow
def test_units_with_one_row_have_the_values_of_records_elsewhere(spark: Any) -> None:
    table, unit = rows(300, 300), PrivacyUnit(name="person", column="who", max_groups=3)
    assert repr(answered(spark.createDataFrame(table), unit)) == repr(answered(table, unit))


@pytest.mark.slow
def test_units_of_which_nothing_is_cut_have_the_values_of_elsewhere(spark: Any) -> None:
    table, unit = rows(300, 40), PrivacyUnit(name="person", column="who", max_rows=300, max_groups=10**4)
    assert repr(answered(spark.createDataFrame(table), unit)) == repr(answered(table, unit))


@pytest.mark.slow
def test_few_rows_a_question_make_no_difference(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bins that are cut only when they are looked at give the same quantiles."""
    asked = [query for query in QUERIES if query["name"] in ("quantiles", "far")]
    table = rows(300, 300)
    monkeypatch.setattr(levels_module, "MOST_ROWS", 200)
    found = answered(spark.createDataFrame(table), PrivacyUnit(name="person"), asked)
    assert repr(found) == repr(answered(table, PrivacyUnit(name="person"), asked))


RAISING = {  # at one record, which the error quotes
    "raised": "IF(id = 3, raise_error('731731'), id)",
    "text": "CAST(IF(id = 3, '731731x', '1') AS INT)",
    "overflow": "CAST(IF(id = 3, 731731731731, id) AS INT)",
    "sum": "IF(id = 3, 9223372036854731731L, id) + 200000L",
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", RAISING)
@pytest.mark.parametrize("form", ["sql", "columns"])
def test_no_log_of_pyspark_quotes_a_record(
    spark: Any, kind: str, form: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """Afterwards the session logs errors of others as before, as its own kind of error."""
    functions = pytest.importorskip("pyspark.sql.functions")
    errors = pytest.importorskip("pyspark.errors")
    frame = spark.sql(f"SELECT {RAISING[kind]} AS x FROM range(5)")
    if form == "columns":
        frame = spark.range(5).select(functions.expr(RAISING[kind]).alias("x"))
    columns = {"x": {"type": "integer", "lower": 0, "upper": 9}}
    table = Table(frame, unit="person", columns=columns)
    plan = table.plan({"name": "n", "ask": ["count", {"sum": "x"}]}, epsilon=1)
    with pytest.raises(SourdineError, match="could not be read to its end") as caught:
        _carry_out(plan, table.source, bits=SeededBits(3))
    assert "731731" not in str(caught.value) + "".join(capfd.readouterr())
    with pytest.raises(errors.PySparkException, match="731731"):
        frame.collect()


class Listening(logging.Handler):
    """What is logged, by logger."""

    def __init__(self) -> None:
        super().__init__()
        self.heard: list[tuple[str, str]] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.heard.append((record.name, record.getMessage().partition("]")[0]))


@pytest.mark.slow
def test_pyspark_logs_errors_of_others_as_before(spark: Any) -> None:
    """In both of its loggers, and while another thread is at a question of ours."""
    errors, loggers = pytest.importorskip("pyspark.errors"), pytest.importorskip("pyspark.logger")
    records = spark.range(5)
    engine, listening = InSpark(records, ["id"]), Listening()
    frames = [spark.sql("SELECT CAST('731731x' AS INT)"), records.select(records["id"] / 0)]
    waiting, done = threading.Event(), threading.Event()

    def ask() -> None:
        with engine._lending("SELECT 1", {}):
            waiting.set()
            done.wait(60)

    other = threading.Thread(target=ask)
    other.start()
    waiting.wait(60)
    known = [logging.getLogger(f"{kind}QueryContextLogger") for kind in ("SQL", "DataFrame")]
    assert all(isinstance(each, loggers.PySparkLogger) for each in known)
    try:
        for logger, frame in zip(known, frames, strict=True):
            logger.addHandler(listening)
            with pytest.raises(errors.PySparkException):
                frame.collect()
    finally:
        done.set()
        other.join()
        for logger in known:
            logger.removeHandler(listening)
    assert listening.heard == [
        ("SQLQueryContextLogger", "[CAST_INVALID_INPUT"),
        ("DataFrameQueryContextLogger", "[DIVIDE_BY_ZERO"),
    ]


@pytest.mark.slow
def test_an_error_on_the_cluster_is_told_without_its_words(
    spark: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """The charge stands; what a cluster cannot count is refused by the plan and not taken by auto."""
    frame = spark.sql("SELECT IF(id = 3, raise_error('secret'), id) AS x FROM range(5)")
    columns = {"x": {"type": "integer", "lower": 0, "upper": 2**30}}
    table = Table(frame, unit="person", columns=columns)
    terms = Terms(budget=PureBudget(limit=Fraction(9)), unit="person", neighbours=Neighbours.ADD_REMOVE)
    with Ledger.create(tmp_path / "budget.db", terms) as ledger:
        plan = table.plan({"name": "n", "ask": [{"mean": "x"}]}, epsilon=1)
        with pytest.raises(SourdineError, match="could not be read to its end") as caught:
            table.release(plan, ledger)
        assert "secret" not in str(caught.value) + "".join(capfd.readouterr())
        assert len(ledger.history()) == 1
    left = table.plan({"name": "n", "ask": [{"quantiles": "x", "levels": [0.5]}]}, epsilon=1)
    assert isinstance(left.lines[0].measurement, TreeCounts)
    assert "only counted" in left.notes[0]
    with pytest.raises(InvalidParameter, match="stay on its cluster"):
        table.plan({"name": "n", "ask": [{"quantiles": "x", "levels": [0.5], "method": "joint"}]}, epsilon=1)
