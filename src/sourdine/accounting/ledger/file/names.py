"""One file, one name: what SQLite keeps beside a file lies beside the name it was opened by.

A charge that is cut off leaves a journal there. Whoever opens the file by another name misses it, takes a
half-written file for whole, and what is charged then is undone when the first name finds its journal again.
So links are followed to the file itself, and a file with a second name is refused.
"""

import os
import stat
from pathlib import Path

from sourdine.core.errors import LedgerError

Identity = tuple[int, int]
BESIDE = ("-journal", "-wal", "-shm")
"""What SQLite may put beside a file."""


def resolve(path: Path) -> Path:
    """The file's own name, whatever links lead to it, and wherever the program goes later."""
    return Path(os.path.realpath(path))


def identify(path: Path) -> Identity:
    """Which file a name leads to; a second name that shows in the file itself is refused."""
    status = path.stat()
    if stat.S_ISDIR(status.st_mode):
        raise LedgerError(f"{path} is a folder, and a ledger is one file. Nothing was spent. Name the file.")
    if status.st_nlink > 1:
        raise LedgerError(
            f"The ledger {path} has a second name on this disk (a hard link). A charge that is cut off under "
            "one would be missed under the other. Nothing was spent. Remove the other name."
        )
    return status.st_dev, status.st_ino


def refuse_mounted(path: Path) -> None:
    """Refuse a file that is mounted by itself, as by `docker run -v a.ledger:/x/a.ledger`."""
    if _mount(path) != _mount(path.parent):
        raise LedgerError(
            f"The ledger {path} is mounted here as a single file, so it has a second name elsewhere, and a "
            "charge that is cut off under one would be missed under the other. Nothing was spent. "
            f"Mount the folder that holds it, such as `-v /data/ledgers:{path.parent}`."
        )


def _mount(path: Path) -> int:
    """The number of the mount a path lies in; its disk where that is not told.

    A handle that is only a place (O_PATH) may be closed: of a real one, SQLite's locks would go with it.
    """
    place = getattr(os, "O_PATH", None)
    if place is not None:
        try:
            handle = os.open(path, place | os.O_CLOEXEC)
            try:
                text = Path(f"/proc/self/fdinfo/{handle}").read_text(encoding="ascii")
                return int(text.split("mnt_id:")[1].split()[0])
            finally:
                os.close(handle)
        except (OSError, IndexError, ValueError):
            pass
    return path.stat().st_dev
