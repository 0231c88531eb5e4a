import gc
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import duckdb
import pytest

from sourdine.frames import Schema, open_source
from sourdine.frames.engines.duckdb import closed_connection, spilling_connection

SCHEMA = Schema.read({"age": {"type": "integer", "lower": 0, "upper": 120}})


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    for name in ("own", "other"):
        duckdb.connect().execute(f"COPY (SELECT 30 AS age) TO '{tmp_path / name}.parquet'")
    return tmp_path / "own.parquet", tmp_path / "other.parquet"


def test_nothing_but_what_is_declared_is_reached(files: tuple[Path, Path], tmp_path: Path) -> None:
    own, other = files
    (tmp_path / "other.csv").write_text("age\n30\n")
    held = closed_connection([own])
    assert held.execute(f"SELECT age FROM '{own}'").fetchall() == [(30,)]
    for question in (
        f"SELECT age FROM '{other}'",
        f"SELECT * FROM read_csv('{tmp_path / 'other.csv'}')",
        f"SELECT * FROM read_text('{other}')",
        f"SELECT * FROM glob('{tmp_path}/*')",
        f"COPY (SELECT 1) TO '{tmp_path / 'out.csv'}'",
        f"ATTACH '{tmp_path / 'out.db'}'",
        "SELECT * FROM 'https://localhost/table.parquet'",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET enable_external_access = true",
        f"SET allowed_paths = ['{other}']",
        "SET autoinstall_known_extensions = true",
        "SELECT * FROM files",  # a variable of the program
    ):
        with pytest.raises(duckdb.Error):
            held.execute(question).fetchall()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other.csv", "other.parquet", "own.parquet"]


def test_it_spills_where_nobody_else_looks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    held = spilling_connection()
    ((place,),) = held.execute("SELECT current_setting('temp_directory')").fetchall()
    held.execute("SET memory_limit = '40MB'; SET threads = 1; SET preserve_insertion_order = false")
    held.execute("CREATE TABLE t AS SELECT range AS a, hash(range)::VARCHAR AS b FROM range(1500000)")
    assert any(Path(place).iterdir())
    parent = Path(place).parent
    assert parent.parent == Path(tempfile.gettempdir())
    assert parent.stat().st_mode & 0o777 == 0o700
    assert parent.stat().st_uid == os.getuid()
    held.close()
    del held
    gc.collect()
    assert not Path(place).exists()
    assert list(tmp_path.iterdir()) == []


NOTEBOOK = (  # as DuckDB tells one, without the package that would draw its progress
    "import sys, types\n"
    "shell = types.SimpleNamespace(config={'IPKernelApp': {}})\n"
    "sys.modules['IPython'] = types.SimpleNamespace(get_ipython=lambda: shell)\n"
)


@pytest.mark.parametrize("place", ["", NOTEBOOK])
def test_nothing_is_written_between_the_lines_of_whoever_asks(place: str) -> None:
    script = place + (
        "from sourdine.frames.engines.duckdb import closed_connection\n"
        "print(closed_connection().execute(\"SELECT current_setting('enable_progress_bar')\").fetchall())\n"
    )
    told = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert told.stdout == "[(False,)]\n"


def test_what_is_spilled_is_gone_when_the_program_ends(tmp_path: Path) -> None:
    script = (
        "import atexit, os\n"
        "from sourdine.frames.engines.duckdb import spilling_connection\n"
        "held = spilling_connection()\n"
        "held.execute(\"SET memory_limit = '40MB'; SET threads = 1; SET preserve_insertion_order = false\")\n"
        "held.execute('CREATE TABLE t AS SELECT range AS a, hash(range)::VARCHAR AS b FROM range(2000000)')\n"
        "if not (child := os.fork()):\n"
        "    atexit._run_exitfuncs()  # the end of a fork removes nothing of ours\n"
        "    os._exit(0)\n"
        "os.waitpid(child, 0)\n"
        "print(sum(len(files) for _, _, files in os.walk(os.environ['TMPDIR'])))\n"
        "raise RuntimeError\n"
    )
    told = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script],
        capture_output=True,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
        check=False,
    )
    assert told.returncode == 1
    assert int(told.stdout) > 0
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_program_spilled_is_removed_by_the_next(tmp_path: Path) -> None:
    kill = (
        "import os, signal\n"
        "from sourdine.frames.engines.duckdb import spilling_connection\n"
        "held = spilling_connection()\n"
        "((place,),) = held.execute(\"SELECT current_setting('temp_directory')\").fetchall()\n"
        "os.mkdir(place)\n"
        "open(os.path.join(place, 'records'), 'w').write('secret')\n"
    )
    look = (
        "import os\n"
        "from sourdine.frames.engines.duckdb import spilling_connection\n"
        "held = spilling_connection()\n"
        "print(sorted(os.listdir(os.environ['TMPDIR'])))\n"
    )
    (tmp_path / "sourdine-spill-new").mkdir()  # whose owner has not locked it yet
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "lock").touch()
    (tmp_path / "sourdine-spill-link").symlink_to(tmp_path / "elsewhere")

    def start(script: str) -> str:
        words = [sys.executable, "-c", script]
        settings = {**os.environ, "TMPDIR": str(tmp_path)}
        return subprocess.run(words, capture_output=True, text=True, env=settings, check=False).stdout

    start(f"{kill}os.kill(os.getpid(), signal.SIGKILL)\n")
    (left,) = [path for path in tmp_path.glob("sourdine-spill-*") if path.name[15:] not in ("new", "link")]
    assert len(list(left.rglob("records"))) == 1
    assert left.name not in start(look)
    assert not left.exists()
    with_child = f"{kill}import subprocess, sys\nsubprocess.run([sys.executable, '-c', {look!r}])\n"
    assert start(with_child).count("sourdine-spill-") == 4  # one that lives is left alone
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "elsewhere",
        "sourdine-spill-link",
        "sourdine-spill-new",
    ]
    assert (tmp_path / "elsewhere" / "lock").exists()


@pytest.mark.parametrize(
    "name", ["plain.parquet", "of [2024]*?.parquet", "it's ü.parquet", "region=north/part.parquet"]
)
def test_declared_files_are_read_whatever_they_are_called(
    name: str, files: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "in" / name
    place.parent.mkdir(parents=True)
    files[0].rename(place)
    (tmp_path / "link.parquet").symlink_to(place)
    monkeypatch.chdir(place.parent)
    for path in (
        place,
        Path(place.name),
        Path("..") / place.parent.name / place.name,
        tmp_path / "link.parquet",
        tmp_path / "in",
    ):
        source = open_source(path, SCHEMA)
        assert source.ask(f"SELECT count(*), sum(age) FROM {source.name}") == [(1, 30)]


def test_text_in_several_files_is_read(tmp_path: Path) -> None:
    for k in range(3):
        (tmp_path / f"{k}.csv").write_text("age\n30\n")
    source = open_source(tmp_path, SCHEMA)
    assert source.ask(f"SELECT count(*) FROM {source.name}") == [(3,)]
    with pytest.raises(duckdb.Error):
        source.ask(f"SELECT * FROM '{tmp_path / '0.csv'}'")


def test_settings_of_somebody_elses_connection_stay(tmp_path: Path) -> None:
    own = duckdb.connect()
    every = "SELECT name, value FROM duckdb_settings() ORDER BY name"
    before = own.execute(every).fetchall()
    source = open_source(own.sql("SELECT 30 AS age"), SCHEMA)
    assert source.ask(f"SELECT count(*) FROM {source.name}") == [(1,)]
    assert own.execute(every).fetchall() == before
