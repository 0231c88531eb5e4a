import asyncio
import gc
import os
import shutil
import signal
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from sourdine.core.errors import InvalidParameter, SourdineError
from sourdine.frames import Schema, Source, open_source
from sourdine.frames.engines import duckdb as closed
from sourdine.frames.engines.duckdb import VIEW, InDuckDB

SCHEMA = Schema.read({"x": {"type": "integer", "lower": 0, "upper": 1_000_000}})
ROWS = 2_000


def _csv(frame: pd.DataFrame, folder: Path) -> object:
    frame.to_csv(folder / "rows.csv", index=False)
    return folder / "rows.csv"


def _zipped(frame: pd.DataFrame, folder: Path) -> object:
    frame.to_csv(folder / "rows.csv.gz", index=False)
    return folder / "rows.csv.gz"


def _parquet(frame: pd.DataFrame, folder: Path) -> object:
    frame.to_parquet(folder / "rows.parquet")
    return folder / "rows.parquet"


def _relation(frame: pd.DataFrame, folder: Path) -> object:
    return duckdb.connect().from_df(frame)


WAYS: dict[str, Callable[[pd.DataFrame, Path], object]] = {
    "csv": _csv,
    "compressed": _zipped,
    "parquet": _parquet,
    "pandas": lambda frame, folder: frame,
    "polars": lambda frame, folder: pl.from_pandas(frame),
    "lazy": lambda frame, folder: pl.from_pandas(frame).lazy(),
    "arrow": lambda frame, folder: pa.Table.from_pandas(frame),
    "duckdb": _relation,
}


def _source(way: str, folder: Path, first: int = 0) -> Source:
    frame = pd.DataFrame({"x": np.arange(first, first + ROWS)})
    return open_source(WAYS[way](frame, folder), SCHEMA)


def _count(source: Source, below: int) -> int:
    """Count the records below a number that comes in a small table, always of the same name."""
    side = {"beside": {"most": np.array([below])}}
    answer = source.columns(
        f"SELECT count(*) AS n FROM {source.name}, beside WHERE CAST(x AS BIGINT) < most", side
    )
    return int(answer["n"][0])


def _kept(source: Source, below: int) -> int:
    kept = source.keep(f"SELECT x FROM {source.name} WHERE CAST(x AS BIGINT) < {below}")
    return int(source.ask(f"SELECT count(*) FROM {kept.name}")[0][0])


@pytest.mark.parametrize("way", WAYS)
def test_each_thread_has_the_answer_to_its_question(way: str, tmp_path: Path) -> None:
    source = _source(way, tmp_path)
    asked = [number * 7 % ROWS for number in range(30)]
    with ThreadPoolExecutor(3) as threads:
        counted = list(threads.map(lambda below: _count(source, below), asked))
        kept = list(threads.map(lambda below: _kept(source, below), asked[:10]))
    assert counted == asked
    assert kept == asked[:10]


@pytest.mark.parametrize("way", ["csv", "pandas"])
def test_each_coroutine_has_the_answer_to_its_question(way: str, tmp_path: Path) -> None:
    source = _source(way, tmp_path)

    async def ask() -> list[int]:
        return await asyncio.gather(*(asyncio.to_thread(_count, source, below) for below in range(20)))

    assert asyncio.run(ask()) == list(range(20))


def test_relations_of_one_connection_do_not_swap_answers() -> None:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE small AS SELECT range AS x FROM range(10)")
    connection.execute("CREATE TABLE large AS SELECT range AS x FROM range(1000)")
    sources = [open_source(connection.table(name), SCHEMA) for name in ("small", "large")] * 20
    with ThreadPoolExecutor(3) as threads:
        counts = threads.map(lambda each: each.ask(f"SELECT count(*) FROM {each.name}")[0][0], sources)
    assert list(counts) == [10, 1000] * 20


def test_a_connection_that_failed_is_not_used_again(tmp_path: Path) -> None:
    source = _source("pandas", tmp_path)
    engine = source.engine
    assert isinstance(engine, InDuckDB)
    assert engine.connections is not None
    with pytest.raises(ValueError, match="stop"), engine.connections.question() as connection:
        raise ValueError("stop")
    with pytest.raises(duckdb.ConnectionException):
        connection.execute("SELECT 1")
    assert _count(source, 5) == 5


def test_small_tables_do_not_stay(tmp_path: Path) -> None:
    source = _source("pandas", tmp_path)
    assert _count(source, 5) == 5
    with pytest.raises(duckdb.CatalogException):
        source.ask("SELECT * FROM beside")


def test_kept_answers_go_when_nothing_needs_them(tmp_path: Path) -> None:
    source = _source("pandas", tmp_path)
    assert _kept(source, 5) == 5
    gc.collect()
    assert source.ask("SELECT count(*) FROM duckdb_tables()") == [(0,)]


def _in_fork(question: Callable[[], object]) -> str:
    """Ask in a forked process; what hangs there is killed."""
    reader, writer = os.pipe()
    process = os.fork()
    if process == 0:
        signal.alarm(20)
        try:
            text = repr(question())
        except Exception as problem:
            text = f"{type(problem).__name__}: {problem}"
        os.write(writer, text.encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as answer:
        text = answer.read()
    os.waitpid(process, 0)
    return text


@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning", "ignore:.*fork.*:RuntimeWarning")
@pytest.mark.parametrize("way", WAYS)
def test_a_fork_asks_by_itself(way: str, tmp_path: Path) -> None:
    source = _source(way, tmp_path)
    assert _count(source, 9) == 9

    def question() -> int:
        source.engine.connect()
        return _count(source, 7)

    answer = _in_fork(question)
    if way in ("duckdb", "lazy"):
        assert answer.startswith("InvalidParameter: ")
        assert "forked" in answer
    else:
        assert answer == "7"
    assert _count(source, 8) == 8


def test_a_table_outlives_its_spilling_folder(tmp_path: Path) -> None:
    source = _source("csv", tmp_path)
    assert _count(source, 9) == 9
    shutil.rmtree(closed.spills_in(os.getpid()))
    source.engine.connect()
    assert _count(source, 9) == 9
    assert closed.spills_in(os.getpid()).is_dir()


@pytest.mark.parametrize("way", ["csv", "compressed", "parquet"])
def test_a_file_that_is_written_again_is_opened_again(way: str, tmp_path: Path) -> None:
    source = _source(way, tmp_path)
    assert _count(source, 9) == 9
    digest = source.engine.digest()
    WAYS[way](pd.DataFrame({"x": np.arange(5)}), tmp_path)
    assert source.engine.digest() != digest
    source.engine.connect()
    assert _count(source, 9) == 5
    WAYS[way](pd.DataFrame({"y": np.arange(5)}), tmp_path)
    with pytest.raises(InvalidParameter):
        source.engine.connect()


def test_a_parquet_file_of_another_type_is_not_taken_for_the_same(tmp_path: Path) -> None:
    source = _source("parquet", tmp_path)
    WAYS["parquet"](pd.DataFrame({"x": ["1", "2"]}), tmp_path)
    with pytest.raises(InvalidParameter, match="columns and types"):
        source.engine.connect()


@pytest.mark.parametrize("way", ["csv", "parquet"])
def test_a_file_that_is_gone_is_missed_before_a_charge(way: str, tmp_path: Path) -> None:
    source = _source(way, tmp_path)
    next(tmp_path.iterdir()).unlink()
    with pytest.raises(InvalidParameter, match="where they were"):
        source.engine.connect()


def test_what_cannot_be_looked_at_is_looked_at_again(tmp_path: Path) -> None:
    source = _source("csv", tmp_path)
    (tmp_path / "rows.csv").rename(tmp_path / "away")
    with pytest.raises(OSError, match="rows"):
        _count(source, 9)
    (tmp_path / "away").rename(tmp_path / "rows.csv")
    source.engine.connect()
    assert _count(source, 9) == 9


def test_a_closed_database_is_missed_before_a_charge(tmp_path: Path) -> None:
    source = _source("pandas", tmp_path)
    assert isinstance(source.engine, InDuckDB)
    assert source.engine.connection is not None
    source.engine.connection.close()
    with pytest.raises(SourdineError, match="must be open"):
        source.engine.connect()


def test_every_connection_has_the_settings_of_the_first(tmp_path: Path) -> None:
    """A setting of one connection alone left the others to guess types of pandas objects by their values."""
    source = _source("pandas", tmp_path)
    question = "SELECT name, value FROM duckdb_settings() WHERE name NOT LIKE '%director%' ORDER BY name"
    asked, first = source.engine.ask(question), closed.closed_connection().execute(question).fetchall()
    assert asked == first
    assert ("pandas_analyze_sample", "0") in asked


@pytest.mark.parametrize("held", [[], [None, None], [1, 2], [1, "1", None], [b"a", "a"], [1.5, True]])
def test_types_of_objects_do_not_depend_on_what_is_held(held: list[object]) -> None:
    """With an object more or less, others were read as another type, or the question failed once paid."""
    frame = pd.DataFrame(
        {"x": pd.Series([3] * len(held), dtype="int64"), "who": pd.Series(held, dtype=object)}
    )
    source = open_source(frame, SCHEMA, ["who"])
    (described,) = [row for row in source.engine.ask(f"DESCRIBE {VIEW}") if row[0] == "who"]
    assert described[1] == source.types["who"] == "VARCHAR"
