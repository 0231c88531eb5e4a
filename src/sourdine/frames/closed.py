"""Connections of DuckDB that reach nothing but declared files, and spill where nobody else looks.

Sorting and grouping what does not fit into memory, an engine writes records to the disk. By itself it does so
in a folder `.tmp` of wherever the program was started, readable for all. Here it is a folder of the process
among the system's temporary ones (`TMPDIR` says which), for its owner alone, removed when the program ends.

No question leads anywhere else: other files, addresses, databases, extensions and variables of the program
are out of reach, and the settings cannot be changed back. A connection that somebody hands in is theirs, and
none of its settings are touched.
"""

import atexit
import contextlib
import itertools
import os
import shutil
import tempfile
import weakref
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from sourdine.frames.dialect import DUCKDB

if TYPE_CHECKING:
    import duckdb

_ALONE = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
}
_places = itertools.count()


def closed_connection(
    paths: Sequence[Path | str] = (), directories: Sequence[str] = ()
) -> "duckdb.DuckDBPyConnection":
    """A new connection that can read and write these files, those in these directories, and no others."""
    connection = spilling_connection()
    for name, listed in (("allowed_paths", paths), ("allowed_directories", directories)):
        held = ", ".join(DUCKDB.literal(str(each)) for each in listed)
        connection.execute(f"SET {name} = [{held}]::VARCHAR[]")
    connection.execute("SET enable_external_file_cache = false")  # what is read is not kept
    connection.execute("SET pandas_analyze_sample = 0")  # else types are guessed from what is held
    connection.execute("SET python_enable_replacements = false")  # no name is a variable of the program
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
    return connection


def spilling_connection() -> "duckdb.DuckDBPyConnection":
    """A new connection that spills in private and installs nothing, for relations that people are given."""
    import duckdb

    folder = _spilling(os.getpid())
    if not folder.is_dir():  # somebody tidied up
        _spilling.cache_clear()
        folder = _spilling(os.getpid())
    place = folder / str(next(_places))
    connection = duckdb.connect(config={**_ALONE, "temp_directory": str(place)})
    weakref.finalize(connection, _forget, place).atexit = False
    return connection


@cache
def _spilling(process: int) -> Path:
    """The folder of a process; a fork has its own. What an engine makes in it nobody else can reach."""
    folder = Path(tempfile.mkdtemp(prefix="sourdine-spill-"))  # of mode 700
    atexit.register(_remove, process, folder)
    return folder


def _forget(place: Path) -> None:
    """Remove what a connection had, if nothing is in it: a relation may live on."""
    with contextlib.suppress(OSError):
        place.rmdir()


def _remove(process: int, folder: Path) -> None:
    """Remove the folder at the end of the process that made it, not of its forks."""
    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)
