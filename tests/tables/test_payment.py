"""Every function that takes a plan and a table passes one door, and every charge of tables is one call."""

import ast
import re
import threading
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sourdine
from sourdine.accounting.ledger import Ledger
from sourdine.core.distance import Neighbours
from sourdine.core.errors import InvalidParameter, SourdineError
from sourdine.frames import PrivacyUnit
from sourdine.tables import BoundsPlan, Query, Table, find_bounds
from sourdine.tables.bounds import open_column, release_bounds
from sourdine.tables.payment import read_again, silence
from sourdine.tables.quality_release import QualityPlan, release_quality
from sourdine.tables.quantiles import quantiles
from sourdine.tables.release import _carry_out, check_release, check_source, release
from sourdine.tables.series import TableSeries
from sourdine.tables.synthetic import synthesis
from sourdine.tables.synthetic.synthesis import evaluate_table
from sourdine.testing import SeededBits

ROOT = Path(sourdine.__file__).parent
_PLANS = re.compile(r"\b(Release|Series|Synthetic|Bounds|Quality)Plan\b")
_TABLES = re.compile(r"\b(Source|DeclaredTable|Table)\b")
_OWN_PLAN, _OWN_TABLE = {"TableSeries", "PeriodReader"}, {"Table"}

AT_THE_DOOR = {
    "tables/bounds.py release_bounds",
    "tables/quality_release.py release_quality",
    "tables/release.py _carry_out",
    "tables/release.py check_release",
    "tables/release.py check_source",
    "tables/release.py release",
    "tables/series/series.py publish",
    "tables/synthetic/synthesis.py evaluate_table",
    "tables/synthetic/synthesis.py carry_out",
    "tables/synthetic/synthesis.py check_source",
    "tables/synthetic/synthesis.py codes_by_part",
    "tables/synthetic/synthesis.py synthesize",
    "tables/table.py release",
}
BEHIND_IT = {
    "tables/bounds.py _bounds_of": "called by release_bounds alone",
    "tables/release.py _answers": "called by _carry_out alone",
    "tables/release.py computing": "reads nothing",
    "tables/release.py exact_of": "called by _answers, and by audits of made-up tables",
    "tables/series/series.py _choose": "called by publish alone",
    "tables/series/series.py _close_period": "called by publish alone",
    "tables/series/series.py _draw": "called by publish alone",
    "tables/series/series.py _in_period": "called by publish alone",
}


def takers() -> Iterator[str]:
    """Every function with a plan and a table among its parameters."""
    for path in sorted(ROOT.rglob("*.py")):
        name = path.relative_to(ROOT).as_posix()
        owners: list[tuple[ast.AST, str]] = [(ast.parse(path.read_text()), "")]
        while owners:
            node, owner = owners.pop()
            for each in ast.iter_child_nodes(node):
                owners.append((each, each.name if isinstance(each, ast.ClassDef) else owner))
                if isinstance(each, ast.FunctionDef):
                    given = [*each.args.posonlyargs, *each.args.args, *each.args.kwonlyargs]
                    kinds = " ".join(ast.unparse(arg.annotation) for arg in given if arg.annotation)
                    plan = owner in _OWN_PLAN or _PLANS.search(kinds)
                    if plan and (owner in _OWN_TABLE or _TABLES.search(kinds)):
                        yield f"{name} {each.name}"


def test_every_function_that_takes_a_plan_and_a_table_is_listed() -> None:
    assert set(takers()) == AT_THE_DOOR | set(BEHIND_IT)


def columns(upper: int = 10) -> dict[str, Any]:
    return {
        "x": {"type": "integer", "lower": 0, "upper": upper},
        "sex": {"type": "category", "keys": ["f", "m"]},
        "day": {"type": "date", "first": "2024-01-01", "last": "2024-12-31"},
    }


ROWS = pa.table(
    {
        "x": [5] * 60,
        "sex": ["f", "m"] * 30,
        "day": [date(2024, 1, 1 + i % 7) for i in range(60)],
        "who": list(range(60)),
    }
)
PERSON = PrivacyUnit("person")


def table_of(upper: int = 10, unit: PrivacyUnit = PERSON, **others: Any) -> Table:
    return Table(ROWS, unit=unit, columns=columns(upper), **others)


PEOPLE = table_of()
OTHERS: dict[str, Table] = {
    "wider bounds": table_of(100_000),
    "another unit": table_of(unit=PrivacyUnit("person", column="who")),
    "other neighbours": table_of(neighbours=Neighbours.REPLACE),
    "another name of the unit": table_of(unit=PrivacyUnit("household")),
}
SERIES = {"period": "week", "first": "2024-01-01", "periods": 4, "arrived": "day"}


def ledger_of(folder: Path, unit: str = "person", delta: float | None = 1e-6, **others: Any) -> Ledger:
    return Ledger.create(folder / f"{unit}.ledger", epsilon=50, delta=delta, unit=unit, **others)


def _plan() -> Any:
    return PEOPLE.plan(Query("q", {"sum": "x"}, by="sex"), epsilon=1)


def _synthetic() -> Any:
    return PEOPLE.synthetic_plan(epsilon=1, delta=1e-6, leave_out=["day"])


def _series(folder: Path, book: Ledger) -> TableSeries:
    plan = PEOPLE.series_plan(Query("q", {"sum": "x"}), series=SERIES, epsilon=1)
    return TableSeries.start(plan, folder / "series", book)


Call = Callable[[Any, Path, Ledger], object]
CALLS: dict[str, Call] = {
    "tables/quality_release.py release_quality": lambda table, folder, book: release_quality(
        QualityPlan(plan=_plan(), epsilon=1), table, book
    ),
    "tables/release.py check_release": lambda table, folder, book: check_release(_plan(), table),
    "tables/release.py check_source": lambda table, folder, book: check_source(_plan(), table),
    "tables/release.py release": lambda table, folder, book: release(_plan(), table, book, purpose="x"),
    "tables/release.py _carry_out": lambda table, folder, book: _carry_out(_plan(), table),
    "tables/series/series.py publish": lambda table, folder, book: _series(folder, book).publish(table, 1),
    "tables/synthetic/synthesis.py evaluate_table": lambda table, folder, book: evaluate_table(
        _synthetic(), table, PEOPLE.source
    ),
    "tables/synthetic/synthesis.py carry_out": lambda table, folder, book: synthesis.carry_out(
        _synthetic(), table
    ),
    "tables/synthetic/synthesis.py check_source": lambda table, folder, book: synthesis.check_source(
        _synthetic(), table
    ),
    "tables/synthetic/synthesis.py codes_by_part": lambda table, folder, book: synthesis.codes_by_part(
        _synthetic(), table, SeededBits(1)
    ),
    "tables/synthetic/synthesis.py synthesize": lambda table, folder, book: synthesis.synthesize(
        _synthetic(), table, book
    ),
}


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("name", CALLS)
def test_a_table_with_other_declarations_is_refused_unread(name: str, other: str, tmp_path: Path) -> None:
    with ledger_of(tmp_path) as book:
        before = len(list(book.history())) + ("publish" in name)  # a series is paid when it starts
        with pytest.raises(InvalidParameter, match=r"The plan's distances|made for another table"):
            CALLS[name](OTHERS[other], tmp_path, book)
        assert len(list(book.history())) == before
    CALLS["tables/release.py check_source"](PEOPLE, tmp_path, book)


def test_a_table_releases_plans_of_its_own_alone(tmp_path: Path) -> None:
    with ledger_of(tmp_path) as book:
        for other in OTHERS.values():
            with pytest.raises(InvalidParameter, match=r"The plan's distances|made for another table"):
                other.release(_plan(), book)
        assert not list(book.history())


def test_a_search_for_bounds_takes_the_column_as_it_opens_it(tmp_path: Path) -> None:
    plan = BoundsPlan(column="x", epsilon=1)
    with ledger_of(tmp_path, unit="record") as book:
        with pytest.raises(InvalidParameter, match="other declarations"):
            release_bounds(plan, PEOPLE.source, book)
        assert not list(book.history())
        release_bounds(plan, open_column(ROWS, plan), book, bits=SeededBits(1))


def test_a_series_published_from_wider_bounds_moved_further_than_was_paid(tmp_path: Path) -> None:
    """One person with 100,000 in a series paid for 0..10 moved its row ten thousand times as far."""
    with ledger_of(tmp_path) as book, _series(tmp_path, book) as series:
        with pytest.raises(InvalidParameter, match="other declarations"):
            series.publish(table_of(100_000).source, 1, early=True)
        assert series.status().closed == 0
        series.publish(PEOPLE, 1, early=True, bits=SeededBits(1))
        assert series.status().closed == 1


def _charges(folder: Path, book: Ledger) -> None:
    """One charge of every flow."""
    bits = SeededBits(1)
    PEOPLE.release(_plan(), book, bits=bits)
    release_quality(QualityPlan(plan=_plan(), epsilon=1), PEOPLE, book, bits=bits)
    synthesis.synthesize(_synthetic(), PEOPLE, book, bits=bits)
    find_bounds(ROWS, "x", unit="person", epsilon=1, ledger=book, bits=bits)
    quantiles([1, 2, 3], levels=[0.5], bounds=(0, 10), epsilon=1, ledger=book, bits=bits)
    _series(folder, book)


def test_every_charge_of_tables_notes_what_was_declared(tmp_path: Path) -> None:
    with ledger_of(tmp_path) as book:
        _charges(tmp_path, book)
        lines = list(book.history())
    assert len(lines) == 6
    assert all(line.declared_digest for line in lines)


def test_charges_of_tables_are_made_in_one_place() -> None:
    found = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "tables").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "charge"
    }
    assert found == {"tables/payment.py"}


@pytest.mark.parametrize("terms", [{"unit": "household"}, {"neighbours": Neighbours.REPLACE}])
def test_a_ledger_of_others_pays_for_nothing(terms: dict[str, Any], tmp_path: Path) -> None:
    with ledger_of(tmp_path, **terms) as book:
        for pay in (
            lambda: PEOPLE.release(_plan(), book),
            lambda: release_quality(QualityPlan(plan=_plan(), epsilon=1), PEOPLE, book),
            lambda: synthesis.synthesize(_synthetic(), PEOPLE, book),
            lambda: find_bounds(ROWS, "x", unit="person", epsilon=1, ledger=book),
            lambda: _series(tmp_path, book),
        ):
            with pytest.raises(InvalidParameter, match=r"Name them alike|costs do not add up"):
                pay()
            (tmp_path / "series").unlink(missing_ok=True)
        assert not list(book.history())


def test_a_ledger_of_pure_epsilon_refuses_noise_that_has_none(tmp_path: Path) -> None:
    plan = PEOPLE.series_plan(Query("q", "count"), series=SERIES, epsilon=1, delta=1e-6)
    with ledger_of(tmp_path, delta=None) as book:
        with pytest.raises(InvalidParameter, match="keeps pure epsilon"):
            TableSeries.start(plan, tmp_path / "series", book)
        assert not list(book.history())


@pytest.mark.parametrize("ledger", [None, 3])
def test_what_nothing_pays_for_is_refused(ledger: Any, tmp_path: Path) -> None:
    plan = PEOPLE.series_plan(Query("q", "count"), series=SERIES, epsilon=1)
    for call in (
        lambda: PEOPLE.release(_plan(), ledger),
        lambda: release_quality(QualityPlan(plan=_plan(), epsilon=1), PEOPLE, ledger),
        lambda: synthesis.synthesize(_synthetic(), PEOPLE, ledger),
        lambda: find_bounds(ROWS, "x", unit="person", epsilon=1, ledger=ledger),
        lambda: TableSeries.start(plan, tmp_path / "series", ledger),
    ):
        with pytest.raises(InvalidParameter, match="must be paid for"):
            call()
    assert not (tmp_path / "series").exists()


class Busy:
    """A relation whose owner's connection is at a question that lasts until it is let go."""

    def __init__(self) -> None:
        self.connection = duckdb.connect()
        self.go, self.there = threading.Event(), threading.Event()
        self.connection.create_function("hold", self._hold, [duckdb.sqltypes.BIGINT], duckdb.sqltypes.BIGINT)
        self.connection.register("lent", ROWS)
        self.connection.execute("CREATE TABLE people AS SELECT * FROM lent")
        self.relation = self.connection.table("people")
        self._thread = threading.Thread(target=lambda: self.connection.execute("SELECT hold(1)").fetchall())

    def _hold(self, number: int) -> int:
        self.there.set()
        self.go.wait(60)
        return number

    def __enter__(self) -> "Busy":
        self._thread.start()
        self.there.wait(60)
        return self

    def __exit__(self, *_: object) -> None:
        self.go.set()
        self._thread.join()
        self.connection.remove_function("hold")


waits_for_its_owner = pytest.mark.skipif(
    not hasattr(duckdb, "ResourceInUseException"), reason="this version of DuckDB waits for the connection"
)


@waits_for_its_owner
@pytest.mark.parametrize("let_go", [True, False])
def test_a_busy_connection_is_tried_again_under_the_same_charge(let_go: bool, tmp_path: Path) -> None:
    busy = Busy()
    table = Table(busy.relation, unit="person", columns=columns())
    plan = table.plan(Query("q", {"sum": "x"}), epsilon=1)
    with ledger_of(tmp_path) as book, busy:
        if let_go:
            threading.Timer(0.02, busy.go.set).start()
            table.release(plan, book, bits=SeededBits(1))
        else:
            with pytest.raises(SourdineError, match=r"^Another thread used .*, so there is no release"):
                table.release(plan, book, bits=SeededBits(1))
        assert len(list(book.history())) == 1


@pytest.mark.parametrize(
    ("problem", "tries"),
    [
        (duckdb.InterruptException("INTERRUPT Error: Interrupted!"), 4),
        (duckdb.ConnectionException("closed"), 4),
        (duckdb.OutOfMemoryException("a row of 731731"), 1),
        (duckdb.ConversionException("731731"), 1),
        (OSError("no room"), 1),
        (KeyboardInterrupt(), 1),
    ],
)
def test_only_failures_that_values_cannot_cause_are_tried_again(problem: BaseException, tries: int) -> None:
    asked = []

    def read() -> None:
        asked.append(1)
        raise problem

    with pytest.raises(type(problem)):
        read_again(PEOPLE.source, read)
    assert len(asked) == tries
    if isinstance(problem, Exception):
        with pytest.raises(SourdineError) as told, silence("there is no release"):
            raise problem
        assert ("could not be read to its end" in str(told.value)) is (tries == 1)
        assert "731731" not in str(told.value)


def test_a_table_that_is_another_by_now_is_not_read_again(tmp_path: Path) -> None:
    path, asked = tmp_path / "rows.parquet", []
    pq.write_table(ROWS, path)
    source = Table(path, unit="person", columns=columns()).source

    def read() -> None:
        asked.append(1)
        pq.write_table(ROWS.slice(0, 50), path)
        raise duckdb.InterruptException("stopped")

    with pytest.raises(duckdb.InterruptException):
        read_again(source, read)
    assert asked == [1]
