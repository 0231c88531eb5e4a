"""What all tests share: properties without a deadline; one Spark, one PostgreSQL and one Chromium."""

import functools
import os
import shutil
import warnings
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import typer.main
import typer.testing
from _pytest.doctest import DoctestModule
from hypothesis import settings

from benchmarks.servers import Server
from sourdine.core.display import picture
from sourdine.frames import quality as mock
from sourdine.frames import source as opening
from sourdine.frames.engines.duckdb import closed_connection, spilling_connection
from tests.browser import Chromium, started, watched

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

# how long an example takes hangs on what else the machine does: it says nothing about the code
# and a change is judged by the same examples each time; the slow tests look for new ones, and for more
settings.register_profile("sourdine", deadline=None, derandomize=True, max_examples=60)
settings.register_profile("explore", deadline=None)
settings.load_profile("sourdine")


@pytest.hookimpl(wrapper=True)
def pytest_collect_file() -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Examples are in src: looking for them in the tests too would take a second of each process."""
    found = yield
    return [each for each in found if not isinstance(each, DoctestModule)]


@pytest.fixture(scope="session", autouse=True)
def one_command_line() -> Iterator[None]:
    """The tree of commands is built once, and not for each of a thousand calls."""
    patch = pytest.MonkeyPatch()
    patch.setattr(typer.testing, "_get_command", functools.cache(typer.main.get_command))
    yield
    patch.undo()


@pytest.fixture(scope="session", autouse=True)
def one_engine() -> Iterator[None]:
    """DuckDB is opened once for all frames: a cursor sees no other's, and opening takes its time."""
    one = functools.cache(lambda process: closed_connection())
    patch = pytest.MonkeyPatch()

    def connection(paths: Sequence[Path | str] = (), directories: Sequence[str] = ()) -> Any:
        if paths or directories:
            return closed_connection(paths, directories)
        return one(os.getpid()).cursor()  # a fork opens its own

    patch.setattr(opening, "closed_connection", connection)
    made_up = functools.cache(lambda process: spilling_connection())
    patch.setattr(mock, "spilling_connection", lambda: made_up(os.getpid()).cursor())
    yield
    patch.undo()


@pytest.fixture(scope="session", autouse=True)
def small_pictures() -> Iterator[None]:
    """Pictures with a sixteenth of the pixels: the same is on them, and packing takes most of the time."""
    patch = pytest.MonkeyPatch()
    assert picture.__kwdefaults__ is not None
    patch.setitem(picture.__kwdefaults__, "scale", 0.5)
    yield
    patch.undo()


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """A session of Spark that nobody else can reach; without Java or PySpark its tests are skipped.

    Starting it takes long: all tests of it are slow.
    """
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java, which is not installed")
    sql = pytest.importorskip("pyspark.sql", reason="PySpark is not installed")
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": "1",
        "spark.default.parallelism": "1",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.codegen.wholeStage": "false",  # compiling takes longer than such small tables do
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",  # nor does it pay here
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        builder = sql.SparkSession.builder.master("local[2]")
        for name, value in settings.items():
            builder = builder.config(name, value)
        session = builder.getOrCreate()
        session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """A PostgreSQL of these tests alone, started at the first that asks for it."""
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    running = Server.start()
    yield running
    running.remove()


@pytest.fixture(scope="session")
def chromium() -> Iterator[Chromium]:
    """The system's Chromium, one for all tests of a process."""
    with started() as running:
        yield running


@pytest.fixture
def browser(chromium: Chromium) -> Iterator["Browser"]:
    """The browser for one test; its contexts are people who share nothing."""
    with chromium.awake() as awake:
        yield awake


@pytest.fixture
def page(chromium: Chromium) -> Iterator["Page"]:
    """A page for one test alone. Further tabs of the same person: `page.context.new_page()`."""
    with chromium.awake() as awake, watched(awake) as tab:
        yield tab
