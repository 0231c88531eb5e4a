"""Connections of DuckDB that reach nothing but declared files, and spill where nobody else looks.

Sorting and grouping what does not fit into memory, an engine writes records to the disk. By itself it does so
in a folder `.tmp` of wherever the program was started, readable for all. Here it is a folder of the process
among the system's temporary ones (`TMPDIR` says which), for its owner alone, removed when the program ends.
A program that is killed leaves it, and the next one removes it: the lock in it is free then.

No question leads anywhere else: other files, addresses, databases, extensions and variables of the program
are out of reach, and the settings cannot be changed back. A connection that somebody hands in is theirs, and
none of its settings are touched.
"""

import atexit
import contextlib
import itertools
import os
import shutil
import stat
import sys
import tempfile
import weakref
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from sourdine.frames.engines.dialect import DUCKDB

if sys.platform != "win32":
    import fcntl

if TYPE_CHECKING:
    import duckdb

_ALONE = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
}
_TRUSTING = "statistics_propagation,filter_pushdown"
"""Optimizers that answer by the least and the greatest value which a file states of a column.

Polars and PyArrow leave NaN out of both, though the engine sorts it above every number: a comparison would be
decided for NaN by what other records hold. NaN is NULL before anything is asked of it (`Dialect.present`);
without these two optimizers there is nothing to decide by either.
"""
_PREFIX, _LOCK = "sourdine-spill-", "lock"
_places = itertools.count()


def closed_connection(
    paths: Sequence[Path | str] = (), directories: Sequence[str] = ()
) -> "duckdb.DuckDBPyConnection":
    """A new connection that can read and write these files, those in these directories, and no others."""
    connection = spilling_connection()
    for name, listed in (("allowed_paths", paths), ("allowed_directories", directories)):
        texts = ", ".join(DUCKDB.literal(str(each)) for each in listed)
        connection.execute(f"SET {name} = [{texts}]::VARCHAR[]")
    # those of one connection alone would not hold on the cursors that questions are asked on
    connection.execute("SET GLOBAL enable_external_file_cache = false")  # what is read is not kept
    connection.execute(f"SET disabled_optimizers = '{_TRUSTING}'")
    connection.execute("SET GLOBAL pandas_analyze_sample = 0")  # else types are guessed from what is held
    connection.execute(
        "SET GLOBAL python_enable_replacements = false"
    )  # no name is a variable of the program
    connection.execute("SET GLOBAL enable_external_access = false")
    connection.execute("SET lock_configuration = true")
    return connection


def spilling_connection() -> "duckdb.DuckDBPyConnection":
    """A new connection that spills in private and installs nothing, for relations that people are given."""
    import duckdb

    place = spills_in(os.getpid()) / str(next(_places))
    connection = duckdb.connect(config={**_ALONE, "temp_directory": str(place)})
    # where Python is asked line by line it is on; a notebook that cannot draw it refuses, and has it off
    with contextlib.suppress(duckdb.InvalidInputException):
        connection.execute("SET enable_progress_bar = false")
    weakref.finalize(connection, _forget, place).atexit = False
    return connection


def spills_in(process: int) -> Path:
    """Return the folder of a process, made again if somebody tidied up."""
    folder = _spilling(process)
    if not folder.is_dir():
        _spilling.cache_clear()
        folder = _spilling(process)
    return folder


@cache
def _spilling(process: int) -> Path:
    """The folder of a process; a fork has its own. What an engine makes in it nobody else can reach."""
    _tidy(Path(tempfile.gettempdir()))
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX))  # of mode 700
    atexit.register(_remove, process, folder)
    os.close(os.open(folder / _LOCK, os.O_CREAT | os.O_WRONLY, 0o600))
    _locked(folder)  # until the process ends, however it does
    return folder


def _tidy(place: Path) -> None:
    """Remove what our own processes left that were killed."""
    if sys.platform == "win32":
        return
    for folder in place.glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):
            status = folder.lstat()
            if stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid():
                handle = _locked(folder)
                if handle is not None:
                    shutil.rmtree(folder, ignore_errors=True)
                    os.close(handle)


def _locked(folder: Path) -> int | None:
    """The lock of a folder, held as long as it is open; None if somebody holds it, or there is none yet."""
    if sys.platform == "win32":
        return None
    handle = None
    try:
        handle = os.open(folder / _LOCK, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        if handle is not None:
            os.close(handle)
        return None
    return handle


def _forget(place: Path) -> None:
    """Remove what a connection had, if nothing is in it: a relation may live on."""
    with contextlib.suppress(OSError):
        place.rmdir()


def _remove(process: int, folder: Path) -> None:
    """Remove the folder at the end of the process that made it, not of its forks."""
    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)
