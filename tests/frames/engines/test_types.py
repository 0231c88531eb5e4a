"""Every type is read as its values in a file of text are, on every engine, or refused before the charge."""

import itertools
import math
import os
import random
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Context, Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import sourdine as sd
from sourdine.core.errors import InvalidParameter
from sourdine.frames import (
    BernsteinSums,
    Integer,
    PrivacyUnit,
    Real,
    Schema,
    Source,
    Text,
    open_source,
    totals,
)
from sourdine.frames.cells import fit
from sourdine.frames.contributions import raw_text
from sourdine.frames.engines.dialect import DUCKDB
from sourdine.frames.engines.spark import SPARK, _kind
from sourdine.frames.engines.types import (
    NO,
    NUMERAL,
    READ,
    SPACES,
    YES,
    Family,
    Use,
    base_name,
    family,
    whole_in,
)
from sourdine.frames.joins import Join, open_joined
from sourdine.testing import SeededBits
from tests.documents import ROOT
from tests.frames.every_engine import ENGINES
from tests.narrow import some

DECLARED: dict[str, dict[str, Any]] = {
    "integer": {"type": "integer", "lower": -3, "upper": 300},
    "real": {"type": "real", "lower": -3.0, "upper": 300.0, "granularity": 0.25},
    "whole keys": {"type": "category", "keys": [0, 1, 2, 7, -(2**63), 2**63 - 1, 2**53 + 1]},
    "flag": {"type": "flag"},
    "text": {"type": "text"},
}
TEXT_KEYS: dict[Family, list[str]] = {
    Family.BOOLEAN: ["true", "false"],
    Family.WHOLE: ["0", "1", "7", "-3", str(2**63 - 1)],
    Family.UUID: ["00000000-0000-0000-0000-0000000000ab"],
    Family.DATE: ["2024-02-29", "1969-12-31", "0999-01-01"],
    Family.TEXT: ["a", "é", "true", "7", " 7"],
}
USES = {
    "integer": Use.NUMBER,
    "real": Use.NUMBER,
    "whole keys": Use.WHOLE_KEY,
    "text keys": Use.TEXT_KEY,
    "flag": Use.FLAG,
    "text": Use.TEXT,
}
_WHOLE = ["0", "1", "2", "7", "100"]
_TEXTS = [
    "a",
    "é",
    "A",
    "true",
    "FALSE",
    "Yes",
    "n",
    " t ",
    "on",
    "7",
    " 7",
    "7.0",
    "2.5",
    "1e2",
    "0x10",
    "1_0",
]
_NEVER = ["2024-02-29", "00:00:00"]

# For each type some of what it holds, as SQL takes it; a type that is not here fails the first test.
VALUES: dict[str, list[str]] = {
    "BOOLEAN": ["true", "false"],
    "TINYINT": ["-3", "-128", *_WHOLE],
    "SMALLINT": ["-3", "-32768", "301", *_WHOLE],
    "INTEGER": ["-3", "2147483647", *_WHOLE],
    "BIGINT": ["-3", str(-(2**63)), str(2**63 - 1), str(2**53 + 1), *_WHOLE],
    "HUGEINT": ["-3", str(-(2**127)), str(2**127 - 1), str(2**63 - 1), str(2**63), *_WHOLE],
    "UTINYINT": ["255", *_WHOLE],
    "USMALLINT": ["65535", *_WHOLE],
    "UINTEGER": [str(2**32 - 1), *_WHOLE],
    "UBIGINT": [str(2**64 - 1), str(2**63 - 1), str(2**53 + 1), *_WHOLE],
    "UHUGEINT": [str(2**128 - 1), str(2**63 - 1), *_WHOLE],
    "DECIMAL": ["2.5", "-0.125", "1.000", "299.875", "12345678901234.125", *_WHOLE],
    "FLOAT": ["2.5", "-0.125", "-0.0", "nan", "inf", "-inf", "1e30", *_WHOLE],
    "DOUBLE": ["2.5", "-0.125", "-0.0", "nan", "inf", "-inf", "1e300", "5e-324", str(2**53), *_WHOLE],
    "VARCHAR": _TEXTS,
    "ENUM": _TEXTS,
    "UUID": ["00000000-0000-0000-0000-0000000000AB", "ffffffff-ffff-ffff-ffff-ffffffffffff"],
    "DATE": ["2024-02-29", "1969-12-31", "0999-01-01"],
    "NULL": [],
    "BLOB": ["a", "b"],
    "BIT": ["101", "0101"],
    "TIME": ["12:00:00", "12:00:00.5"],
    "TIME_NS": ["12:00:00", "12:00:00.000000001"],
    "TIMESTAMP": ["2024-02-29", "2024-02-29 12:00:00"],
    "TIMESTAMP_S": ["2024-02-29", "2024-02-29 12:00:00"],
    "TIMESTAMP_MS": ["2024-02-29", "2024-02-29 12:00:00.5"],
    "TIMESTAMP_NS": ["2024-02-29", "2024-02-29 12:00:00.000000001"],
    "TIMESTAMP WITH TIME ZONE": ["2024-02-29 00:00:00+00", "2024-02-29 12:00:00+05"],
    "TIMESTAMPTZ_NS": ["2024-02-29 00:00:00+00", "2024-02-29 12:00:00+05"],
    "TIME WITH TIME ZONE": ["12:00:00+00", "12:00:00+05"],
    "INTERVAL": ["1 day", "24 hours"],
    "BIGNUM": ["1", "2"],
    "JSON": ['"a"', "7"],
    "GEOMETRY": ["POINT (0 0)"],
}
WRITTEN = {
    "DECIMAL": "DECIMAL(18,3)",
    "ENUM": f"ENUM({', '.join(map(DUCKDB.constant, _TEXTS))})",
    "NULL": '"NULL"',
}
COMPOSED = {
    "LIST": "['secret']",
    "ARRAY": "['secret']::VARCHAR[1]",
    "STRUCT": "{'a': 'secret'}",
    "TUPLE": "('secret', 1)",
    "MAP": "MAP {'a': 'secret'}",
    "UNION": "union_value(a := 'secret')",
    "VARIANT": "'secret'::VARIANT",
    "TYPE": "get_type(1)",
}


CONNECTION = duckdb.connect()
NOTHING = pa.table({"row": [0, 1], "x": pa.nulls(2)})


def relation_of(name: str) -> duckdb.DuckDBPyRelation:
    """A table with all values of a type and a missing one."""
    connection = CONNECTION
    if name in COMPOSED:
        return connection.sql(f"SELECT 0 AS row, {COMPOSED[name]} AS x")
    if name == "NULL":
        return connection.from_arrow(NOTHING)
    kind = WRITTEN.get(name, name)
    rows = [f"({i}, {DUCKDB.constant(value)}::{kind})" for i, value in enumerate(VALUES[name])]
    return connection.sql(f"SELECT * FROM (VALUES {', '.join([*rows, '(99, NULL)'])}) AS held(row, x)")


def file_of(relation: duckdb.DuckDBPyRelation, folder: Path) -> Path:
    """The same values in a file of text."""
    texts = some(relation.query("held", "SELECT row, CAST(x AS VARCHAR) FROM held")).fetchall()
    return text_file(texts, folder)


def text_file(texts: Sequence[tuple[int, str | None]], folder: Path) -> Path:
    lines = [f'{row},"{text}"' if text is not None else f"{row}," for row, text in texts]
    path = folder / "rows.csv"
    path.write_text("\n".join(["row,x", *lines, ""]), encoding="utf-8")
    return path


def declared(use: str, held: Family) -> dict[str, Any]:
    if use != "text keys":
        return DECLARED[use]
    return {"type": "category", "keys": TEXT_KEYS.get(held, ["2024-02-29"])}


def readings(table: object, column: dict[str, Any]) -> list[Any]:
    """What each record counts as, in the order of its number."""
    (found,) = read(open_source(table, Schema.read({"x": column}), ["row"]))
    return found


def read(source: Source) -> list[list[Any]]:
    """What each record counts as in each declared column."""
    dialect, values = source.dialect, []
    for name, column in source.schema.columns.items():
        if isinstance(column, Text):
            raw = raw_text(source, name)
            values.append(f"CASE WHEN {fit(raw, dialect)} THEN {raw} END")
        elif isinstance(column, Integer | Real):
            values.append(source.place_of(name))
        else:
            grouped = source.grouping(name)
            values.append(grouped.known(grouped.raw))
    order = dialect.double(dialect.quoted("row"), source.types["row"])
    rows = source.ask(f"SELECT {', '.join(values)} FROM {source.view} ORDER BY {order}")
    return [list(column) for column in zip(*rows, strict=True)]


def known_types() -> list[str]:
    found = some(duckdb.sql("SELECT DISTINCT logical_type, type_name FROM duckdb_types()")).fetchall()
    kinds = {"JSON" if name == "JSON" else kind for kind, name in found}
    if base_name(str(CONNECTION.from_arrow(NOTHING).types[1])) != "NULL":
        kinds.discard("NULL")  # before version 2, no column of a relation had that type
    return sorted(kinds)


def test_every_type_of_the_engine_is_in_the_table() -> None:
    for name in known_types():
        assert family(name) is not None, name
        relation = relation_of(name)  # and the tests below have values of it
        assert base_name(str(relation.types[1])) == name
    assert set(READ) == set(Family)


@pytest.mark.parametrize("name", known_types())
def test_what_is_accepted_is_read_as_in_a_file_of_text(name: str, tmp_path: Path) -> None:
    relation, held = relation_of(name), family(name)
    assert held is not None
    accepted = [use for use, meant in USES.items() if meant in READ[held]]
    path = file_of(relation, tmp_path) if accepted else None
    for use in accepted:
        column = declared(use, held)
        found = readings(relation, column)
        assert found == readings(path, column), use
        if held is not Family.NOTHING:
            assert len(set(found)) > 1, use  # something was read


@pytest.mark.parametrize("name", known_types())
def test_what_is_not_accepted_is_refused_in_one_sentence(name: str) -> None:
    relation, held = relation_of(name), family(name)
    assert held is not None
    for use, meant in USES.items():
        if meant in READ[held]:
            continue
        with pytest.raises(InvalidParameter) as caught:
            open_source(relation, Schema.read({"x": declared(use, held)}))
        check_words(str(caught.value), f"'x' is declared to hold {meant.value}, and the table holds {name}. ")
    if Use.UNIT not in READ[held]:
        with pytest.raises(InvalidParameter) as caught:
            open_source(relation, Schema(columns={}), ["x"])
        check_words(str(caught.value), f"'x' cannot tell units apart: the table holds {name}, ")
    if Use.JOIN not in READ[held] and Use.UNIT in READ[held]:
        public = pa.table({"x": ["a"], "y": ["b"]})
        join = Join(name="more", table=public, on=(("x", "x"),), columns=("y",))
        schema = Schema.read({"y": {"type": "category", "keys": ["b"]}})
        with pytest.raises(InvalidParameter, match=f"keys of a join, and the table holds {name}. "):
            open_joined(relation, schema, [join])
        turned = Join(name="more", table=relation, on=(("x", "x"),), columns=())
        with pytest.raises(InvalidParameter, match=f"keys of a join, and the table holds {name}. "):
            open_joined(public, Schema(columns={}), [turned])


def check_words(said: str, start: str) -> None:
    """One sentence of what is wrong and one of what to do, and nothing of what the table holds."""
    assert start in said
    assert re.fullmatch(r"The column [^.]*\. [A-Z][^.]*\.", said), said
    assert "secret" not in said


def test_an_unknown_type_is_refused_and_not_told() -> None:
    from sourdine.frames.type_check import check_key, check_type, check_unit

    column = Schema.read({"x": DECLARED["flag"]}).columns["x"]
    for check in (lambda: check_type("x", column, "secret"), lambda: check_unit("x", "secret")):
        with pytest.raises(InvalidParameter, match="a type that is not known here") as caught:
            check()
        assert "secret" not in str(caught.value)
    with pytest.raises(InvalidParameter, match="a type that is not known here"):
        check_key("x", "secret(1)")


def test_a_timestamp_against_dates_is_refused_before_the_charge() -> None:
    """It counted nobody at all, where every record had one of the keys."""
    day = {"day": {"type": "category", "keys": ["2024-02-29", "2024-03-01"]}}
    times = [datetime(2024, 2, 29)] * 1000
    frames = {
        "pandas": pd.DataFrame({"day": times}),
        "polars": pl.DataFrame({"day": times}),
        "arrow": pa.table({"day": times}),
        "duckdb": duckdb.connect().from_arrow(pa.table({"day": times})),
    }
    for frame in frames.values():  # a table that cannot be made is never paid for
        with pytest.raises(InvalidParameter, match=r"holds TIMESTAMP\w*\. Declare it with type = .datetime"):
            sd.Table(frame, unit="person", columns=day)
    for frame in (
        pa.table({"day": [d.date() for d in times]}),
        pd.DataFrame({"day": [d.date() for d in times]}),
    ):
        source = open_source(frame, Schema.read(day))
        found = totals(
            source,
            by=[source.grouping("day")],
            statistics=[BernsteinSums()],
            unit=PrivacyUnit(),
            bits=SeededBits(1),
        )
        assert found.numbers[0] == ((1000,), (0,))


WORDS = [
    None,
    "yes",
    "No",
    "TRUE",
    "f",
    "Y",
    "n",
    " true\t",
    "1",
    "0",
    "1.0",
    "2",
    "on",
    "",
    "maybe",
    "tru",
    "é",
]
TRUTH = [None, True, False, True, False, True, False, True, True, False, True, *[None] * 6]


@pytest.mark.parametrize("engine", ENGINES)
def test_words_are_flags_on_every_engine(engine: str, tmp_path: Path) -> None:
    table = pa.table({"row": list(range(len(WORDS))), "x": WORDS})
    if engine == "csv":
        table = pa.table({"row": table["row"], "x": [word or None for word in WORDS]})
    assert readings(ENGINES[engine](table, tmp_path), DECLARED["flag"]) == TRUTH


@pytest.mark.parametrize(
    "held",
    [
        pl.DataFrame({"x": ["yes", "no"]}, schema={"x": pl.Categorical}),
        pl.DataFrame({"x": ["yes", "no"]}, schema={"x": pl.Enum(["yes", "no"])}),
        pd.DataFrame({"x": pd.Categorical(["yes", "no"])}),
        pd.DataFrame({"x": pd.Categorical(pd.Series(["yes", "no"], dtype=object))}),
        pd.DataFrame({"x": pd.Series(["yes", "no"], dtype=pd.StringDtype("pyarrow"))}),
        pd.DataFrame({"x": pd.Series(["yes", "no"], dtype=pd.ArrowDtype(pa.large_string()))}),
        pa.table({"x": pa.array(["yes", "no"]).dictionary_encode()}),
        pa.table({"x": pa.array(["yes", "no"], pa.string_view())}),
        pa.table({"x": pa.array([1.0, 0.0])}),
        pa.table({"x": pa.array([1, 0], pa.decimal128(5, 2))}),
        pa.table({"x": pa.array([1, 0], pa.decimal128(38, 38 - 1))}),
        pa.table({"x": pa.array([1, 0], pa.uint8())}),
        pd.DataFrame({"x": pd.Categorical([1, 0])}),
        pd.DataFrame({"x": pd.Categorical([True, False])}),
        pd.DataFrame({"x": pd.Series([1, 0], dtype="Float32")}),
        pd.DataFrame({"x": pd.Series([True, Decimal("0.0")], dtype=object)}),
    ],
)
def test_flags_come_in_many_types(held: Any) -> None:
    source = open_source(held, Schema.read({"x": DECLARED["flag"]}))
    by = source.grouping("x")
    assert sorted(source.ask(f"SELECT {by.known(by.raw)} FROM {source.name}")) == [(False,), (True,)]


MOMENT = datetime(2024, 3, 10, 7, 30, tzinfo=UTC)
ZONED = pa.table({"x": pa.array([MOMENT], pa.timestamp("us", "Asia/Tokyo"))})


@pytest.mark.parametrize(
    "table",
    [
        ZONED,
        pl.from_arrow(ZONED),
        ZONED.to_pandas(),
        ZONED.to_pandas(types_mapper=pd.ArrowDtype),
        pd.DataFrame({"x": pd.Categorical(ZONED.to_pandas()["x"])}),
        pa.table({"x": pa.array([MOMENT], pa.timestamp("ns", "UTC"))}),
    ],
)
@pytest.mark.parametrize("kind", ["text", "text keys", "integer", "flag"])
def test_times_with_a_zone_are_no_keys(table: Any, kind: str) -> None:
    with pytest.raises(
        InvalidParameter, match=r"Declare it with type = .datetime., its first, its last and its zone"
    ):
        open_source(table, Schema.read({"x": declared(kind, Family.ZONED)}))


@pytest.fixture
def zone(request: pytest.FixtureRequest) -> Iterator[str]:
    """The whole process in another time zone."""
    before = os.environ.get("TZ")
    os.environ["TZ"] = request.param
    time.tzset()
    yield request.param
    if before is None:
        del os.environ["TZ"]
    else:
        os.environ["TZ"] = before
    time.tzset()


def of_units(table: object) -> list[Any]:
    """How many units have each site, where one site counts of each, with a known secret."""
    schema = Schema.read({"site": {"type": "category", "keys": ["n", "s", "e", "w"]}})
    source = open_source(table, schema, ["who"])
    by = [source.grouping("site")]
    unit = PrivacyUnit(column="who", max_rows=1, max_groups=1)
    return [
        totals(source, by=by, statistics=[BernsteinSums()], unit=unit, bits=SeededBits(seed)).numbers
        for seed in range(5)
    ]


def moments(zone_of: str | None) -> pa.Table:
    """Units told by times, around the hours that a change of clocks makes equal."""
    times = [datetime(2024, 11, 3, hour, minute, tzinfo=UTC) for hour in range(4, 9) for minute in (0, 30)]
    rows = [(each, site) for each in times for site in "nsew"]
    kind = pa.timestamp("us", zone_of)
    who = pa.array([each if zone_of else each.replace(tzinfo=None) for each, _ in rows], kind)
    return pa.table({"who": who, "site": [site for _, site in rows]})


@pytest.mark.parametrize(
    "zone",
    ["America/New_York", *(pytest.param(zone, marks=pytest.mark.slow) for zone in ("Asia/Kolkata", "UTC"))],
    indirect=True,
)
def test_the_zone_of_the_process_changes_nothing(zone: str, tmp_path: Path) -> None:
    """Units told by an instant are the same ones, and count in the same groups, as if told by UTC's clock."""
    plain = moments(None)
    expected = of_units(plain)
    assert len({str(each) for each in expected}) > 1  # the secret decides
    zoned = moments("Asia/Tokyo")
    connection = duckdb.connect()
    connection.execute(f"SET TimeZone = '{zone}'")
    path = tmp_path / "rows.parquet"
    connection.from_arrow(zoned).write_parquet(str(path))
    for table in (
        zoned,
        moments(zone),
        pl.from_arrow(zoned),
        zoned.to_pandas(),
        connection.from_arrow(zoned),
        path,
    ):
        assert of_units(table) == expected
    days = pa.table({"row": [0, 1], "x": [date(2024, 2, 29), date(1969, 12, 31)]})
    for engine in ENGINES:
        found = readings(ENGINES[engine](days, tmp_path), declared("text keys", Family.DATE))
        assert found == ["2024-02-29", "1969-12-31"], engine


# The same values through every engine; `None` is missing everywhere.
ALIKE: dict[str, tuple[list[Any], pa.DataType]] = {
    "bool": ([True, False, None], pa.bool_()),
    "int64": ([0, 1, 7, -3, 2**53 + 1, 2**63 - 1], pa.int64()),
    "int8": ([0, 1, None, 7, -3], pa.int8()),
    "uint64": ([0, 1, 7, 2**64 - 1], pa.uint64()),
    "float64": ([0.0, 1.0, 2.5, 7.0, None, -0.125, 1e300], pa.float64()),
    "float32": ([0.0, 1.0, 2.5, 7.0, None], pa.float32()),
    "decimal": (
        [Decimal("0.00"), Decimal("1.00"), Decimal("2.50"), None, Decimal("7.00")],
        pa.decimal128(20, 2),
    ),
    "date": ([date(2024, 2, 29), None, date(1969, 12, 31)], pa.date32()),
    "string": ([*_TEXTS, None], pa.string()),
    "large": ([*_TEXTS, None], pa.large_string()),
    "codes": (["true", "7", None, "7.0"], pa.dictionary(pa.int8(), pa.string())),
}


_ROWS = max(len(values) for values, _ in ALIKE.values())
TOGETHER = pa.table(
    {
        "row": list(range(_ROWS)),
        **{
            name: pa.array([values[i % len(values)] for i in range(_ROWS)], made)
            for name, (values, made) in ALIKE.items()
        },
    }
)


LIKE = {
    name: family(str(kind)) or Family.OTHER
    for name, kind in zip(TOGETHER.column_names, CONNECTION.from_arrow(TOGETHER).types, strict=True)
}
Expected = Mapping[tuple[str, str], list[Any]]


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> Expected:
    """What every use of every column gives from a file of text."""
    path = tmp_path_factory.mktemp("types") / "rows.csv"
    lines = [",".join(map(quoted_text, row.values())) for row in TOGETHER.to_pylist()]
    path.write_text("\n".join([",".join(TOGETHER.column_names), *lines, ""]), encoding="utf-8")
    found = {}
    for use in USES:
        schema = Schema.read({name: declared(use, LIKE[name]) for name in ALIKE})
        for name, column in zip(ALIKE, read(open_source(path, schema, ["row"])), strict=True):
            found[use, name] = column
    return found


def quoted_text(cell: Any) -> str:
    return "" if cell is None else f'"{str(cell).lower() if isinstance(cell, bool) else cell}"'


def check_alike(frame: object, names: Sequence[str], expected: Expected) -> int:
    """Every use of every column that can hold it gives what is expected; how many there are."""
    types, many = open_source(frame, Schema(columns={}), names).types, 0
    for use, meant in USES.items():
        columns = {
            name: declared(use, LIKE[name])
            for name in names
            if meant in READ[family(types[name]) or Family.OTHER]
        }
        found = read(open_source(frame, Schema.read(columns), ["row"]))
        for name, column in zip(columns, found, strict=True):
            assert column == expected[use, name], (name, use)
        many += len(columns)
    return many


@pytest.mark.parametrize("engine", sorted({*ENGINES} - {"csv"}))
def test_every_engine_reads_a_value_as_its_text_is_read(
    engine: str, expected: Expected, tmp_path: Path
) -> None:
    assert check_alike(ENGINES[engine](TOGETHER, tmp_path), list(ALIKE), expected) > 40


def test_a_missing_category_does_not_change_the_type() -> None:
    """As they are, whole numbers with one missing would come as floats, which are no texts."""
    for items in ([5, 7], [5, 7, None]):
        source = open_source(pd.DataFrame({"x": pd.Categorical(items)}), Schema.read({"x": DECLARED["text"]}))
        assert source.types["x"] == "BIGINT"
    mixed = pd.DataFrame({"x": pd.Categorical([1, "a", None, True, "\ud800"]), "row": range(5)})
    assert readings(mixed, {"type": "category", "keys": ["1", "a"]}) == ["1", "a", None, "1", None]


class Unruly(date):
    def __str__(self) -> str:
        raise RuntimeError("told")


def test_objects_that_are_equal_tell_one_unit() -> None:
    equal: list[list[Any]] = [
        [2, 2.0, Decimal("2.00"), np.int8(2), np.float32(2)],
        [0, 0.0, -0.0, Decimal("-0")],
        [MOMENT, MOMENT.astimezone(), pd.Timestamp(MOMENT).tz_convert("Asia/Tokyo")],
        [b"\xff", bytes([255])],
        [UUID(int=3), UUID(int=3)],
        [date(2024, 2, 29), np.datetime64("2024-02-29")],
    ]
    unequal: list[Any] = [2.5, "b", b"b", True, MOMENT.replace(tzinfo=None), 2**70]
    nobody: list[Any] = [
        None,
        pd.NaT,
        pd.NA,
        math.nan,
        Decimal("sNaN"),
        np.timedelta64(3, "s"),
        Unruly(2024, 1, 1),
    ]
    items = [*itertools.chain(*equal), *unequal, *nobody]
    source = open_source(pd.DataFrame({"who": pd.Series(items, dtype=object)}), Schema(columns={}), ["who"])
    unit = source.unit("who")
    found = source.ask(f"SELECT count({unit}), count(DISTINCT {unit}) FROM {source.name}")
    assert found == [(len(items) - len(nobody), len(equal) + len(unequal))]


ODD_NUMBERS = [
    *(
        "",
        " ",
        "nan",
        "NaN",
        "inf",
        "-inf",
        "Infinity",
        "1e400",
        "-1e400",
        "1e-400",
        "0x10",
        "0b1",
        "1f",
        "1d",
        "1L",
    ),
    *(
        "1,5",
        "1 000",
        "1_000",
        "+-1",
        "-+1",
        "--1",
        "१",
        "１",
        "\u00a01",
        "\u20031",
        "1\u3000",
        "1\u2028",
        "1\u0085",
    ),
    *(
        "9" * 400,
        "0" * 5000 + "1",
        " " * 5000 + "1",
        "0" * 5000 + str(2**53 + 1),
        "9" * 5000,
        "0e99999999999",
    ),
    *(
        "1e99999999999",
        "1e-99999999999",
        "0." + "0" * 500 + "1e501",
        "\x001",
        "1\x00",
        "\x1f1",
        "1\x1f",
        "1\x7f",
    ),
    *(
        str(2**53 + 1),
        f"{2**53 + 1}.0",
        f"+{2**53 + 1}.",
        f"{2**53 + 1}e0",
        str(2**63 - 1),
        str(2**63),
        str(-(2**63)),
    ),
    *(
        str(-(2**63) - 1),
        "123456789012345678e1",
        "1e18",
        "1e19",
        "-0",
        "-0.0",
        "5.",
        ".5",
        ".",
        "e5",
        "1e",
        "1e+",
        "+",
    ),
    *(
        "\t7\n",
        "\x0b7\x0c",
        "true",
        " False ",
        "yes",
        "2.5",
        "2.50000000000000001",
        "4503599627370497.5",
        "1e2",
        "12e-1",
    ),
]


def nearest(text: str) -> float | None:
    """What a text is as a number, by the definition."""
    word = text.strip(SPACES).lower()
    if word in ("true", "false"):
        return float(word == "true")
    found = float(text) if re.fullmatch(NUMERAL, text) else math.nan
    return found if math.isfinite(found) else None


def key(text: str) -> int | None:
    bit = {"true": 1, "false": 0}.get(text.strip(SPACES).lower())
    return whole_in(text) if bit is None else bit


def word(text: str) -> bool | None:
    said = text.strip(SPACES).lower()
    number = nearest(text)
    return True if said in YES or number == 1 else False if said in NO or number == 0 else None


def expected_of(texts: Sequence[str]) -> list[tuple[float | None, int | None, bool | None]]:
    return [(nearest(text), key(text), word(text)) for text in texts]


def finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def test_numbers_in_text_are_what_the_definition_says() -> None:
    """Of all short texts with signs, points, exponents, spaces and what engines add to them."""
    short = ["".join(each) for n in range(5) for each in itertools.product("01.e+-_ xd,'", repeat=n)]
    around = [f"{mark}1" for mark in map(chr, range(1, 300))] + [
        f"1{mark}" for mark in map(chr, range(1, 300))
    ]
    texts = list(dict.fromkeys([*short, *around, *ODD_NUMBERS, *_TEXTS, *filter(None, WORDS)]))
    held = pa.table({"row": list(range(len(texts))), "x": texts})
    parts = ", ".join(read('"x"', "VARCHAR") for read in (DUCKDB.double, DUCKDB.whole, DUCKDB.flag))
    read_back = duckdb.connect().from_arrow(held).query("held", f"SELECT {parts} FROM held ORDER BY row")
    found = [(finite(number), whole, flag) for number, whole, flag in some(read_back).fetchall()]
    wrong = [(text, a, b) for text, a, b in zip(texts, found, expected_of(texts), strict=True) if a != b]
    assert wrong == []


@pytest.mark.slow
def test_spark_reads_text_as_the_definition_says(spark: Any) -> None:
    chance = random.Random(4)
    short = ["".join(chance.choices("01.e+-_ xd,", k=chance.randrange(1, 6))) for _ in range(400)]
    texts = list(dict.fromkeys([*short, *ODD_NUMBERS, *_TEXTS, *filter(None, WORDS)]))
    spark.createDataFrame(pa.table({"row": list(range(len(texts))), "x": texts})).createOrReplaceTempView(
        "texts"
    )
    parts = ", ".join(read("x", "VARCHAR") for read in (SPARK.double, SPARK.whole, SPARK.flag))
    for ansi in (True, False):
        spark.conf.set("spark.sql.ansi.enabled", ansi)
        rows = spark.sql(f"SELECT {parts} FROM texts ORDER BY row").collect()
        found = [(finite(number), whole, flag) for number, whole, flag in rows]
        wrong = [(text, a, b) for text, a, b in zip(texts, found, expected_of(texts), strict=True) if a != b]
        assert wrong == []
    spark.conf.unset("spark.sql.ansi.enabled")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_spark_reads_every_type_as_its_text_is_read(spark: Any, expected: Expected) -> None:
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    names = [name for name in ALIKE if name not in ("uint64", "codes", "large")]  # which Spark has not
    frame = spark.createDataFrame(TOGETHER.select(["row", *names]))
    assert check_alike(frame, names, expected) > 30
    before = of_units(spark.createDataFrame(moments("UTC")))
    spark.conf.set("spark.sql.session.timeZone", "Asia/Kolkata")
    assert of_units(spark.createDataFrame(moments("UTC"))) == before
    spark.conf.unset("spark.sql.session.timeZone")


def test_every_type_of_spark_is_in_the_table() -> None:
    kinds = pytest.importorskip("pyspark.sql.types", reason="PySpark is not installed")
    made = {
        "ArrayType": kinds.ArrayType(kinds.StringType()),
        "MapType": kinds.MapType(kinds.StringType(), kinds.StringType()),
        "DecimalType": kinds.DecimalType(20, 3),
        "CharType": kinds.CharType(3),
        "VarcharType": kinds.VarcharType(3),
        "GeometryType": None,
        "GeographyType": None,
    }
    abstract = {"DataType", "AtomicType", "NumericType", "IntegralType", "FractionalType", "AnsiIntervalType"}
    abstract |= {"UserDefinedType", "AnyTimeType", "DatetimeType", "SpatialType", "StructField"}
    for name, kind in vars(kinds).items():
        if not (isinstance(kind, type) and issubclass(kind, kinds.DataType)) or name in abstract:
            continue
        typed = made[name] if name in made else kind()
        if typed is not None:
            assert family(_kind(typed)) is not None, name
    assert _kind(kinds.StringType("UNICODE_CI")) == "VARCHAR"
    assert _kind(kinds.TimestampType()) == "TIMESTAMP WITH TIME ZONE"
    assert _kind(kinds.DecimalType(20, 3)) == "DECIMAL(20,3)"


WIDE = [
    "HUGEINT",
    "UHUGEINT",
    *(f"DECIMAL({w},{s})" for w, s in [(15, 2), (16, 3), (18, 2), (20, 0), (38, 10), (38, 30)]),
]


@pytest.mark.parametrize("kind", WIDE)
def test_numbers_of_many_digits_are_the_nearest_floats(kind: str) -> None:
    chance = random.Random(kind)
    width, _, after = kind.partition("(")[2].rstrip(")").partition(",")
    most = 2**127 - 1 if not width else 10 ** int(width) - 1
    scaled = [chance.randrange(most >> chance.randrange(most.bit_length())) for _ in range(800)]
    sign = 1 if kind[0] == "U" else -1
    exact = Context(prec=60)
    values = [
        Decimal(sign**i * each).scaleb(-int(after or 0), exact)
        for i, each in enumerate([*scaled, most, min(most, 2**53), 0])
    ]
    held = pa.table({"row": list(range(len(values))), "x": [f"{value:f}" for value in values]})
    typed = duckdb.connect().from_arrow(held).query("held", f"SELECT row, CAST(x AS {kind}) AS x FROM held")
    found = some(typed).query(
        "t", f"SELECT {DUCKDB.double('x', kind)}, {DUCKDB.whole('x', kind)} FROM t ORDER BY row"
    )
    for value, (number, whole) in zip(values, some(found).fetchall(), strict=True):
        assert number == float(value)
        assert whole == whole_in(f"{value:f}")


def test_floats_that_are_no_whole_numbers_are_no_keys() -> None:
    values = [2.0, 2.5, 1.4999999, -0.0, 2.0**53, 2.0**63, -(2.0**63), math.nan, math.inf, None]
    for kind in ("DOUBLE", "FLOAT"):
        held = duckdb.connect().execute(f"SELECT CAST(unnest($1) AS {kind})", [values])
        texts = [row[0] for row in held.fetchall()]
        connection = duckdb.connect()
        connection.execute(f"CREATE TABLE t AS SELECT CAST(unnest($1) AS {kind}) AS x", [values])
        found = [row[0] for row in connection.execute(f"SELECT {DUCKDB.whole('x', kind)} FROM t").fetchall()]
        assert found == [None if x is None else whole_in(repr(x)) for x in texts]
        assert found[:2] == [2, None]


def test_an_integer_is_rounded_to_the_nearest(tmp_path: Path) -> None:
    values = [2.7, 2.5, 3.5, -0.6, 0.5]
    table = pa.table({"row": list(range(5)), "x": values})
    for engine in ENGINES:
        assert readings(ENGINES[engine](table, tmp_path), DECLARED["integer"]) == [6, 5, 7, 2, 3], engine


@pytest.mark.parametrize(
    ("keys", "held", "good"),
    [
        (["2024-02-29", "never"], "DATE '2024-02-29'", False),
        (["29.2.2024"], "DATE '2024-02-29'", False),
        (["01", "02"], "1", False),
        (["1", "2"], "1", True),
        (["yes", "no"], "TRUE", False),
        (["00000000-0000-0000-0000-0000000000AB"], "uuid()", False),
    ],
)
def test_keys_that_a_type_never_writes_are_refused(keys: list[str], held: str, good: bool) -> None:
    table = duckdb.sql(f"SELECT {held} AS x")
    column = {"type": "category", "keys": keys}
    if good:
        open_source(table, Schema.read({"x": column}))
        return
    with pytest.raises(InvalidParameter, match="'x' is declared to hold text, and the table holds"):
        open_source(table, Schema.read({"x": column}))
    others = {"type": "category", "keys": [*TEXT_KEYS[Family.DATE], "never"], "missing": "never"}
    open_source(duckdb.sql("SELECT DATE '2024-02-29' AS x"), Schema.read({"x": others}))


def test_dates_that_engines_write_differently_are_missing() -> None:
    days = "SELECT unnest([DATE '0044-03-15 (BC)', DATE '12345-01-01', 'infinity'::DATE, DATE '0001-01-01'])"
    table = duckdb.sql(f"SELECT row_number() OVER () AS row, x FROM ({days} AS x)")
    assert readings(table, DECLARED["text"]) == [None, None, None, "0001-01-01"]


def test_joins_go_by_the_same_table(tmp_path: Path) -> None:
    public = pa.table({"k": ["7", "2.5", "8.0", "1_0"], "y": ["a", "b", "c", "d"]})
    join = Join(name="more", table=public, on=(("x", "k"),), columns=("y",))
    schema = Schema.read({"y": {"type": "category", "keys": ["a", "b", "c", "d"]}})
    for numbers in (
        pa.array([7, 2, 8, 10]),
        pa.array([7.0, 2.5, 8.0, 10.0]),
        pa.array([7, 2, 8, 10], pa.decimal128(9, 2)),
    ):
        source = open_joined(pa.table({"row": [0, 1, 2, 3], "x": numbers}), schema, [join], ["row"])
        grouped = source.grouping("y")
        asked = f'SELECT {grouped.known(grouped.raw)} FROM {source.name} ORDER BY "row"'
        assert [row[0] for row in source.ask(asked)] == ["a", None, "c", None]
    brought = pa.table({"k": ["7"], "y": [datetime(2024, 2, 29)]})
    with pytest.raises(InvalidParameter, match="the table holds TIMESTAMP"):
        open_joined(
            pa.table({"x": ["7"]}),
            schema,
            [Join(name="more", table=brought, on=(("x", "k"),), columns=("y",))],
        )


_COLUMNS = {
    Use.NUMBER: "`integer`, `real`",
    Use.WHOLE_KEY: "keys: whole numbers",
    Use.TEXT_KEY: "keys: texts",
    Use.FLAG: "`flag`",
    Use.TEXT: "`text`",
    Use.JOIN: "key of a join",
    Use.UNIT: "unit",
}


def documented() -> str:
    """The table of types as the documentation shows it."""
    lines = [f"| the table holds | {' | '.join(_COLUMNS.values())} |", "| --- |" + " --- |" * len(_COLUMNS)]
    for held in Family:
        cells = (READ[held].get(use, "–") for use in _COLUMNS)
        lines.append(f"| {', '.join(held.value)} | {' | '.join(cells)} |")
    return "\n".join(lines)


def test_the_documentation_shows_the_table() -> None:
    page = (ROOT / "docs" / "how_to" / "types_of_columns.md").read_text(encoding="utf-8")
    assert documented() in page
    for words in (YES, NO):
        assert ", ".join(f"`{each}`" for each in words) in page
