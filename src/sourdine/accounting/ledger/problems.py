"""What went wrong with a ledger's file, in one sentence, and what is known about the money."""

import sqlite3
import warnings
from pathlib import Path

from sourdine.accounting.ledger.address import Place
from sourdine.core.errors import LedgerError, LedgerWait
from sourdine.core.format import either

FAILURES = (sqlite3.Error, UnicodeDecodeError)
"""What SQLite may raise: its message may quote what is damaged, which need not be text."""


def announce(words: str) -> None:
    """Tell people, once, what a ledger waits for."""
    warnings.warn(words, LedgerWait, stacklevel=3)


def is_busy(problem: Exception) -> bool:
    """Whether another process, or another connection, has the file for the moment."""
    code = getattr(problem, "sqlite_errorcode", 0) & 0xFF
    return code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def explain(act: str, path: Place, problem: Exception) -> LedgerError:
    """The error for a problem met before anything was committed."""
    text = str(problem).lower()
    if "a backup takes no lines" in text:
        return backup(path)
    code = getattr(problem, "sqlite_errorcode", 0)
    if code == sqlite3.SQLITE_READONLY_ROLLBACK:
        return LedgerError(
            f"A charge to the ledger {path} was cut off, and its file must be put in order before it can be "
            "read. Nothing was spent. Look at it once with the right to write it and its folder."
        )
    if any(words in text for words in ("not a database", "malformed", "corrupt", "decode")):
        return LedgerError(
            f"The file {path} is damaged or is not a ledger. Nothing was spent. Check the path; if it is the "
            "ledger, keep it, and see in a backup what was spent."
        )
    if "full" in text or "no space" in text:
        return LedgerError(f"There is no room left on the disk of {path}. Nothing was spent. Make room.")
    if "readonly" in text or "read-only" in text or "permission" in text or "unable to open" in text:
        done = "read" if act == "read" else "written"
        return LedgerError(
            f"The ledger {path} cannot be {done} here. Nothing was spent. "
            "Check the rights on it and on its folder."
        )
    if "no such file" in text and act == "write":
        return LedgerError(f"The folder of {path} does not exist. Nothing was spent. Make it first.")
    if "locked" in text or "busy" in text:
        return LedgerError(f"Other processes kept the ledger {path} busy. Nothing was spent. Try again.")
    return LedgerError(f"Could not {act} the ledger {path} ({problem}). Nothing was spent.")


def backup(path: Place) -> LedgerError:
    """The error for a charge to a copy."""
    return LedgerError(
        f"The {'file' if isinstance(path, Path) else 'ledger'} {path} is a backup, and a backup pays for "
        "nothing. Nothing was spent. Charge the ledger itself."
    )


def charged_meanwhile(path: Place) -> LedgerError:
    """The error for a ledger that went on while it was copied."""
    return LedgerError(
        f"The ledger {path} was charged while it was copied, or moved by somebody else. It stays as it is, "
        "and the copy was removed. Try again."
    )


def newer(path: Place, version: int) -> LedgerError:
    """The error for a form that came later."""
    return LedgerError(
        f"The ledger {path} was made by a newer Sourdine (format {version}). "
        "This version might misread it. Upgrade Sourdine."
    )


def damaged(path: Place) -> LedgerError:
    """The error for lines that do not form a chain."""
    return LedgerError(
        f"The ledger {path} was changed outside Sourdine, or damaged. Its totals cannot be trusted. "
        "Keep it, and see in a backup what was spent."
    )


def shortened(path: Place, number: int, last: int) -> LedgerError:
    """The error for a file that ends before a line which was there."""
    return LedgerError(
        f"The ledger {path} ends at line {number}, or was written anew, and line {last} was there before: an "
        "older copy was put in its place, or charges were lost. They still count. "
        "Nothing was spent now. Put the newest file back, or make a new ledger with what is left."
    )


def recorded(path: Place, number: int, problem: Exception) -> LedgerError:
    """The error for a commit that failed and is in the file nevertheless."""
    return LedgerError(
        f"The disk failed while a charge was written ({problem}), and line {number} of the ledger {path} "
        "holds it. It counts as spent, and there is no receipt for it. Release nothing, and check the disk."
    )


def unknown(path: Place, number: int, problem: Exception) -> LedgerError:
    """The error for a commit that failed and cannot be looked up."""
    return LedgerError(
        f"The disk failed while a charge was written ({problem}), and the ledger {path} cannot be read now, "
        f"so it is not known whether the charge is spent. Release nothing. Once the disk works, "
        f"{either('its history()', '`sourdine ledger history`')} shows it as line {number}, or not at all."
    )
