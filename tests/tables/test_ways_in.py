"""The same records give the same exact numbers, before noise, whichever way a table comes in."""

import datetime as dt
import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest

from sourdine.frames import PrivacyUnit, Schema, open_source, ranks
from sourdine.frames.quality import quality_counts, record_codes
from sourdine.frames.rank_counts import NumberLadder
from sourdine.tables import Privacy, Query, ReleasePlan
from sourdine.testing import SeededBits
from tests.tables.exact import exact_numbers

NAN, INF = math.nan, math.inf


@dataclass(frozen=True)
class Folder:
    """Where files are written, each under a name of its own."""

    path: Path
    names: list[str] = field(default_factory=list)

    def file(self, ending: str) -> Path:
        self.names.append(ending)
        return self.path / f"{len(self.names)}.{ending}"

    @cached_property
    def connection(self) -> duckdb.DuckDBPyConnection:
        return duckdb.connect()


def _polars_parquet(table: pa.Table, folder: Folder) -> Path:
    path = folder.file("parquet")
    pl.DataFrame(pl.from_arrow(table)).write_parquet(path, row_group_size=7)
    return path


def _arrow_parquet(table: pa.Table, folder: Folder, **options: Any) -> Path:
    path = folder.file("parquet")
    pq.write_table(table, path, **options)
    return path


def _duckdb_parquet(table: pa.Table, folder: Folder) -> Path:
    path = folder.file("parquet")
    folder.connection.from_arrow(table).write_parquet(str(path))
    return path


def _pandas_parquet(table: pa.Table, folder: Folder) -> Path:
    path = folder.file("parquet")
    table.to_pandas(types_mapper=pd.ArrowDtype).to_parquet(path)
    return path


def _folder_parquet(table: pa.Table, folder: Folder) -> Path:
    path = folder.file("folder")
    path.mkdir()
    for start in range(0, max(table.num_rows, 1), 5):
        pq.write_table(table.slice(start, 5), path / f"part-{start:03}.parquet")
    return path


def _csv(table: pa.Table, folder: Folder) -> Path:
    path = folder.file("csv")
    pl.DataFrame(pl.from_arrow(table)).write_csv(path)
    return path


def _stored(table: pa.Table, folder: Folder) -> duckdb.DuckDBPyRelation:
    name = f"t{len(folder.names)}"
    folder.names.append(name)
    folder.connection.register("lent", table)
    folder.connection.execute(f"CREATE TABLE {name} AS SELECT * FROM lent")
    return folder.connection.table(name)


def _read(path: Path, folder: Folder) -> duckdb.DuckDBPyRelation:
    return folder.connection.read_parquet(str(path))


Way = Callable[[pa.Table, Folder], object]
WAYS: dict[str, Way] = {
    "arrow": lambda table, folder: table,
    "polars": lambda table, folder: pl.from_arrow(table),
    "lazy": lambda table, folder: pl.scan_parquet(_polars_parquet(table, folder)),
    "pandas": lambda table, folder: table.to_pandas(integer_object_nulls=True),
    "pandas of arrow": lambda table, folder: table.to_pandas(types_mapper=pd.ArrowDtype),
    "parquet by Polars": _polars_parquet,
    "parquet by PyArrow": _arrow_parquet,
    "parquet of many row groups": lambda table, folder: _arrow_parquet(table, folder, row_group_size=4),
    "parquet without dictionaries": lambda table, folder: _arrow_parquet(
        table, folder, use_dictionary=False, row_group_size=9
    ),
    "parquet by pandas": _pandas_parquet,
    "parquet by DuckDB": _duckdb_parquet,
    "folder of parquet": _folder_parquet,
    "csv": _csv,
    "relation of parquet by Polars": lambda table, folder: _read(_polars_parquet(table, folder), folder),
    "relation of parquet by PyArrow": lambda table, folder: _read(
        _arrow_parquet(table, folder, row_group_size=4), folder
    ),
    "relation of parquet of one row group": lambda table, folder: _read(
        _arrow_parquet(table, folder), folder
    ),
    "relation of arrow": lambda table, folder: folder.connection.from_arrow(table),
    "relation of a table": _stored,
}

COLUMNS: dict[str, Any] = {
    "w": {"type": "real", "lower": 0.0, "upper": 3.0, "granularity": 1.0},
    "v": {"type": "real", "lower": -1.0, "upper": 1.0, "granularity": 0.5, "missing": 0.5},
    "n": {"type": "integer", "lower": 0, "upper": 9},
    "k": {"type": "category", "keys": ["a", "b", "é"], "missing": "b"},
    "f": {"type": "flag"},
    "d": {"type": "date", "first": "2024-01-01", "last": "2024-12-31", "period": "month"},
    "c": {"type": "category", "keys": [1, 2, 3]},
}
SCHEMA = Schema.read(COLUMNS)
FLOATS = [0.0, -0.0, 1.0, 2.0, 2.5, 3.0, 9.0, -4.0, 1e308, -1e308, 5e-324, NAN, NAN, INF, -INF, None]
CELLS: dict[str, list[Any]] = {
    "w": FLOATS,
    "v": FLOATS,
    "n": [0, 3, 9, 12, -5, (1 << 62), None],
    "k": ["a", "b", "é", "A", "a ", "zz", None],
    "f": [True, False, None],
    "d": [dt.date(2024, 1, 1), dt.date(2024, 12, 31), dt.date(2023, 12, 31), dt.date(1, 1, 1), None],
    "c": [1.0, 2.0, 3.0, 2.5, -0.0, NAN, INF, None],
    "who": [0.0, -0.0, 1.0, 2.0, 3.0, 1e300, NAN, INF, -INF, None],
}


def table_of(columns: dict[str, list[Any]], single: bool = False) -> pa.Table:
    kinds = {"n": pa.int64(), "k": pa.string(), "f": pa.bool_(), "d": pa.date32()}
    real = pa.float32() if single else pa.float64()
    return pa.table({name: pa.array(cells, kinds.get(name, real)) for name, cells in columns.items()})


def _random_table(dice: random.Random) -> pa.Table:
    """Records of which some stretches hold one value and NaN alone: a row group of those has such bounds."""
    single, rows = dice.random() < 0.3, dice.choice([0, 1, 4, 12, 40])
    columns: dict[str, list[Any]] = {name: [] for name in CELLS}
    while len(columns["w"]) < rows:
        stretch = dice.choice([1, 4, 7])
        for name, cells in CELLS.items():
            few = dice.choice([cells, cells[:4], [dice.choice(cells)], [dice.choice(cells), NAN]])
            known = [cell for cell in few if cell == cell or name in ("w", "v", "c", "who")]
            columns[name] += dice.choices(known, k=stretch)
    if single:
        far = 1e38
        for name in ("w", "v", "c", "who"):
            columns[name] = [
                math.copysign(far, cell) if cell is not None and far < abs(cell) < INF else cell
                for cell in columns[name]
            ]
    return table_of(columns, single)


_WHERE: tuple[list[Any], ...] = (
    [],
    [{"column": "w", "at_least": 1}],
    [{"column": "v", "below": 0.5}],
    [{"column": "c", "keys": [1, 2]}],
    [{"any": [{"greater": ["w", 1]}, {"less": ["v", 0]}]}],
    [{"not": {"missing": "w"}}],
    [{"missing": "w"}],
    [{"not": {"at_most": ["w", 2]}}],
)
QUERIES: tuple[dict[str, Any], ...] = (
    {"ask": [{"sum": "w"}]},
    {"ask": [{"mean": "v"}], "by": ["k"]},
    {"ask": ["count"], "by": ["c"]},
    {"ask": [{"histogram": "w", "edges": [0, 1, 2, 3]}]},
    {"ask": [{"quantiles": "w", "levels": [0.5], "method": "tree"}]},
    {"ask": ["count"], "by": ["d", "f"]},
)


def _exact(table: object, query: dict[str, Any], unit: PrivacyUnit, *, near: bool = True) -> object:
    """All that noise would be added to: answers, quality, cells of a synthetic table, rungs of bounds.

    The last two are read of records, which on a cluster are not `near`.
    """
    others = () if unit.column is None else (unit.column,)
    source = open_source(table, SCHEMA, others)
    plan = ReleasePlan(
        schema=SCHEMA,
        queries=(Query.read({"name": "q", **query}),),
        privacy=Privacy(epsilon=Fraction(1)),
        unit=unit,
        quality=False,
    )
    numbers = exact_numbers(plan, source)
    quality = quality_counts(source, tuple(COLUMNS), unit=unit, bits=SeededBits(1))
    if not near:
        return numbers, quality
    keys = [source.grouping(name) for name in ("k", "c", "f", "n")]
    codes = record_codes(source, keys, unit=unit, bits=SeededBits(1))
    rung = NumberLadder(-2, 3).place(source, "w")
    (found,) = ranks(source, by=(), value=rung, unit=unit, bits=SeededBits(1)).values()
    rungs = found.values_between(0, found.size).tolist()
    return numbers, quality, sorted(zip(*(each.tolist() for each in codes), strict=True)), rungs


UNITS = (PrivacyUnit(), PrivacyUnit("person", column="who", max_rows=2, max_groups=2))


def _differences(tables: int, seed: int, path: Path) -> list[str]:
    dice, wrong = random.Random(seed), []
    for number in range(tables):
        table = _random_table(dice)
        query = {**dice.choice(QUERIES), "where": dice.choice(_WHERE)}
        unit = UNITS[number % 2]
        folder = Folder(path / str(number))
        folder.path.mkdir()
        wanted = _exact(table, query, unit)
        for way, given in WAYS.items():
            if way == "csv" and unit.column is not None:  # a unit is its text there: 0 and -0 are two
                continue
            if _exact(given(table, folder), query, unit) != wanted:
                wrong.append(f"table {number}, {query}, {unit.column}: {way}")
    return wrong


def test_every_way_in_counts_alike(tmp_path: Path) -> None:
    assert not _differences(2, 1, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_every_way_in_counts_alike_on_many_tables(seed: int, tmp_path: Path) -> None:
    assert not _differences(40, 100 + seed, tmp_path)


NEIGHBOURS = {"none": [], "nine": [9.0], "infinite": [INF], "nine and infinite": [9.0, INF], "minus": [-1.0]}
ON_SPARK: dict[str, Callable[[Any, pa.Table, Folder], object]] = {
    "frame": lambda spark, table, folder: spark.createDataFrame(
        [tuple(row.values()) for row in table.to_pylist()], _spark_types(table)
    ),
    "parquet by Polars": lambda spark, table, folder: spark.read.parquet(str(_polars_parquet(table, folder))),
    "parquet by PyArrow": lambda spark, table, folder: spark.read.parquet(
        str(_arrow_parquet(table, folder, row_group_size=4))
    ),
    "folder of parquet": lambda spark, table, folder: spark.read.parquet(str(_folder_parquet(table, folder))),
}


def _spark_types(table: pa.Table) -> str:
    kinds = {"int64": "bigint", "float": "float", "bool": "boolean", "date32[day]": "date"}
    return ", ".join(f"{each.name} {kinds.get(str(each.type), str(each.type))}" for each in table.schema)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # PySpark warns of the pandas that is installed
def test_spark_counts_as_arrow_does(spark: Any, tmp_path: Path) -> None:
    dice, wrong = random.Random(9), []
    for number in range(8):
        table = _random_table(dice)
        query = {**dice.choice(QUERIES), "where": dice.choice(_WHERE)}
        # what is left out of a unit is chosen by how an engine writes its number; here all of it counts
        unit = PrivacyUnit("person", column="who", max_rows=99, max_groups=99) if number % 2 else UNITS[0]
        folder = Folder(tmp_path / str(number))
        folder.path.mkdir()
        wanted = _exact(table, query, unit, near=False)
        for way, given in ON_SPARK.items():
            if _exact(given(spark, table, folder), query, unit, near=False) != wanted:
                wrong.append(f"table {number}, {query}, {unit.column}: {way}")
    assert not wrong


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("way", ON_SPARK)
def test_one_record_does_not_decide_for_nan_on_spark(way: str, spark: Any, tmp_path: Path) -> None:
    folder, sums = Folder(tmp_path), []
    for more in NEIGHBOURS.values():
        columns = {each: [None] for each in CELLS} | {"w": more + ([1.0, 2.0] + [NAN] * 10) * 8}
        size = len(columns["w"])
        table = table_of({each: (cells * size)[:size] for each, cells in columns.items()})
        for query in ({"ask": [{"sum": "w"}]}, {"ask": ["count"], "where": [{"column": "w", "at_least": 3}]}):
            found = _exact(ON_SPARK[way](spark, table, folder), query, PrivacyUnit(), near=False)
            sums.append(found[0][0][0])  # type: ignore[index]
    assert [one - other for one, other in zip(sums, sums[:2] * 5, strict=True)] == [
        0,
        0,
        3,
        1,
        0,
        0,
        3,
        1,
        0,
        0,
    ]


def _ways(quick: tuple[str, ...], others: list[str]) -> list[Any]:
    """Some ways in for every run of the tests, and the others for long ones."""
    return [pytest.param(each, marks=[] if each in quick else [pytest.mark.slow]) for each in others]


@pytest.mark.parametrize("single", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "way",
    _ways(
        ("parquet by Polars", "relation of parquet of one row group"),
        [each for each in WAYS if "parquet" in each or each == "lazy"],
    ),
)
def test_one_record_does_not_decide_for_nan(way: str, single: bool, tmp_path: Path) -> None:
    """A file's least and greatest value leave NaN out: one record of 9 made each NaN count as 3."""
    sums, folder = {}, Folder(tmp_path)
    for name, more in NEIGHBOURS.items():
        columns = {each: [None] for each in CELLS} | {"w": more + ([1.0, 2.0] + [NAN] * 10) * 8}
        size = len(columns["w"])
        table = table_of({each: (cells * size)[:size] for each, cells in columns.items()}, single)
        given = WAYS[way](table, folder)
        sums[name] = _exact(given, {"ask": [{"sum": "w"}]}, PrivacyUnit())[0]  # type: ignore[index]
    assert [sums[name][0][0] - sums["none"][0][0] for name in NEIGHBOURS] == [0, 3, 0, 3, 0]


@pytest.mark.parametrize(
    "way",  # in a file of text a unit is its text
    _ways(("polars", "parquet by PyArrow"), [each for each in WAYS if each != "csv"]),
)
def test_a_unit_of_nan_is_no_unit(way: str, tmp_path: Path) -> None:
    """pandas does not tell NaN from what is missing, so NaN names no unit, whatever the others are."""
    folder = Folder(tmp_path)
    for others in ([1.0, 2.0], [1.0, 1.0], [INF, INF], [NAN, NAN]):
        size = 8
        columns: dict[str, list[float | None]] = {each: [None] * size for each in CELLS}
        columns |= {"w": [1.0] * size, "who": [*others, *[NAN] * (size - 2)]}
        given = WAYS[way](table_of(columns), folder)
        unit = PrivacyUnit("person", column="who")
        numbers = _exact(given, {"ask": ["count"]}, unit)[0]  # type: ignore[index]
        assert numbers == [[len({each for each in others if each == each})]]
