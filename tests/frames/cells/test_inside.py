"""Records within their bounds are computed as any other, whichever way they go."""

from collections.abc import Iterator
from datetime import date, datetime
from typing import Any

import duckdb
import pytest

from sourdine.frames import Integer, Real, Schema, Source, open_source
from sourdine.frames.cells import CellsInside, TableCells, all_true, certain
from sourdine.frames.engines.dialect import DUCKDB
from sourdine.frames.expressions import NumberKind, read_expression
from sourdine.frames.expressions.functions import regrid
from sourdine.frames.schema import span

COLUMNS: dict[str, Any] = {
    "pay": {"type": "real", "lower": -10.0, "upper": 100.0, "granularity": 0.01},
    "visits": {"type": "integer", "lower": 1, "upper": 20},
    "aged": {"type": "integer", "lower": 0, "upper": 100, "missing": 7},
    "start": {"type": "date", "first": date(2023, 1, 1), "last": date(2023, 12, 31)},
    "seen": {"type": "datetime", "first": datetime(1969, 7, 1), "last": datetime(2024, 12, 31, 23, 59, 59)},
    "sex": {"type": "category", "keys": ["f", "m"]},
}
FORMS: list[Any] = [
    {"divide": ["pay", 12]},
    {"multiply": ["pay", "visits"]},
    {"divide": ["pay", "visits"]},
    {"divide": ["pay", {"nullif": [{"subtract": ["visits", 10]}, 0]}]},
    {
        "case": [[{"at_least": ["aged", 65]}, 0], [{"in": "sex", "keys": ["f"]}, "pay"]],
        "else": {"add": ["pay", 1]},
    },
    {"case": [[{"less": ["aged", 30]}, "pay"]]},
    {"coalesce": ["pay", "visits", 3]},
    {"least": ["pay", "visits"]},
    {"sqrt": {"abs": "pay"}},
    {"days": ["start", "seen"]},
    {"seconds": ["start", "seen"]},
    {"month": "seen"},
    {"week": "seen"},
    {"day": "start"},
    {"hour_number": "seen"},
    {"less": ["pay", "visits"]},
    {"any": [{"less": ["pay", 3]}, {"missing": "visits"}]},
]
PAYS = "-1e300, -10.005, -10, -0.005, 0, 0.125, 0.135, 99.999, 100, 100.01, 'inf', '-inf', 'nan', NULL"
VISITS = "-2147483648, 0, 1, 7, 10, 20, 21, NULL"
STARTS = "DATE '2022-12-31', DATE '2023-01-01', DATE '2023-12-31', DATE '2024-01-01', 'infinity', NULL"
SEEN = (
    "TIMESTAMP '1969-06-30 23:59:59.999999', TIMESTAMP '1969-07-01', TIMESTAMP '1969-12-31 23:59:59.5', "
    "TIMESTAMP '2024-12-31 23:59:59.999999', TIMESTAMP '2025-01-01', '-infinity', NULL"
)


@pytest.fixture(scope="module")
def odd() -> Iterator[Source]:
    """Every combination of cells within, at, beyond and without bounds."""
    with duckdb.connect() as connection:
        cells = {"pay": (PAYS, "DOUBLE"), "visits": (VISITS, "INTEGER"), "aged": ("3, 70, NULL", "BIGINT")}
        cells |= {
            "start": (STARTS, "DATE"),
            "seen": (SEEN, "TIMESTAMP"),
            "sex": ("'f', 'x', NULL", "VARCHAR"),
        }
        tables = (
            f"(SELECT unnest([{values}]::{kind}[]) AS {name})" for name, (values, kind) in cells.items()
        )
        yield open_source(connection.sql(f"SELECT * FROM {', '.join(tables)}"), Schema.read(COLUMNS))


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_the_quick_way_gives_what_the_general_way_gives(odd: Source, form: Any) -> None:
    tree = read_expression(form)
    schema = odd.schema.with_derived({"derived": tree})
    source = odd.computing(schema)
    quick, general = source.cells.value(tree), tree.sql(source.cells, schema.kinds)
    assert quick != general
    ((rows, differ, present),) = source.ask(
        f"SELECT count(*), count(*) FILTER (WHERE ({quick}) IS DISTINCT FROM ({general})), count({general}) "
        f"FROM {source.view}"
    )
    assert (rows > 10_000, differ, present > 100) == (True, 0, True)


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_places_of_derived_numbers_are_those_of_the_general_way(odd: Source, form: Any) -> None:
    tree = read_expression(form)
    source = odd.computing(odd.schema.with_derived({"derived": tree}))
    column, kind = source.schema.columns["derived"], tree.kind(source.schema.kinds)
    if isinstance(column, Integer | Real) and isinstance(kind, NumberKind):
        steps = regrid(tree.sql(source.cells, source.schema.kinds), kind, column.step, source.dialect, "")
        ((differ,),) = source.ask(
            f"SELECT count(*) FILTER (WHERE {source.place_of('derived')} <> coalesce({steps} - "
            f"({span(column)[0]}), -1)) FROM {source.view}"
        )
        assert differ == 0


def test_what_is_never_missing_is_known_as_such() -> None:
    schema = Schema.read(COLUMNS)
    cells = TableCells(schema, {"pay": "DOUBLE", "visits": "INTEGER", "sex": "VARCHAR"}, DUCKDB)
    inside = CellsInside(schema, cells.types, cells)
    present = [{"multiply": ["pay", "visits"]}, {"case": [[{"less": ["pay", 3]}, 1]], "else": "visits"}]
    missing = [
        {"nullif": ["pay", 0]},
        {"case": [[{"less": ["pay", 3]}, "visits"]]},
        {"equal": ["sex", {"text": "f"}]},
    ]
    assert [inside.lacks(read_expression(form)) for form in present] == [False, False]
    assert [inside.lacks(read_expression(form)) for form in missing] == [True, True, True]


def _from(sign: str, at: str) -> dict[str, Any]:
    return {sign: ["seen", {"datetime": at}]}


ENDS = (
    "1969-06-30T00:00:00",
    "1969-07-01T00:00:00",
    "1969-12-31T23:59:59",
    "2024-12-31T23:59:59",
    "2030-01-01",
)
SIGNS = ("less", "at_most", "greater", "at_least", "equal", "not_equal")


@pytest.mark.parametrize("end", ENDS)
def test_a_range_of_times_is_told_of_the_column_itself(odd: Source, end: str) -> None:
    alone = [_from(sign, end) for sign in SIGNS]
    both = [{word: [_from("at_least", end), {"less": ["pay", 3]}]} for word in ("all", "any")]
    for form in (*alone, *both, {"not": _from("less", end)}):
        tree = read_expression(form)
        quick, general = all_true(certain(tree, odd.cells)), tree.sql(odd.cells, odd.schema.kinds)
        ((differ,),) = odd.ask(
            f"SELECT count(*) FILTER (WHERE ({quick}) <> (({general}) IS TRUE)) FROM {odd.view}"
        )
        assert differ == 0, form
