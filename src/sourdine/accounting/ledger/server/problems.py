"""What went wrong with a ledger on a server, in one sentence, and what is known about the money."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sourdine.accounting.ledger.address import Address
from sourdine.accounting.ledger.problems import announce, backup
from sourdine.core.errors import LedgerError
from sourdine.core.format import either

if TYPE_CHECKING:
    import psycopg

LOCKED = "55P03"
CANCELED = "57014"
_CHECK = "23514"
_PASSING = {LOCKED, "40001", "40P01", "53300", "23505"}
"""A lock that others hold, a conflict, too many connections, a number that SQL of others has just used."""
_GONE = {"57P01", "57P02", "57P03", "25P03", "57P05"}  # shut down, crashed, starting, idle for too long
_RIGHTS = {"42501", "25006"}  # not allowed, or read only
_MISSING = {"3F000", "42P01", "42883"}
DIVISION = "22012"
_ROOM = {"53100", "53200"}


class Unreachable(LedgerError):
    """A server does not answer."""

    def __init__(self, message: str, *, passing: bool) -> None:
        super().__init__(message)
        self.passing = passing


class Unconfirmed(LedgerError):
    """A commit that the disk or a standby has not confirmed: it is made, and a failover may lose it."""

    def __init__(self, address: Address, words: str) -> None:
        super().__init__(
            f"The server of the ledger {address} could not confirm that a synchronous standby has what was "
            f"committed ({words}). Nothing may be released on it. Look at the standby, or at "
            "synchronous_standby_names."
        )
        self._address = address

    def announce(self) -> None:
        """Tell what is waited for."""
        announce(
            f"The ledger {self._address} waits for a synchronous standby of its server, which does not "
            "confirm."
        )


class Held(LedgerError):
    """Others keep what a charge waits for."""

    def __init__(self, address: Address, holders: "Sequence[tuple[str, int]]") -> None:
        named = ", ".join(f"the role '{role}' in its session {session}" for role, session in holders)
        self._words = f"The ledger {address} is kept busy by {named or 'others'}."
        super().__init__(
            f"{self._words} Nothing was spent. Try again, or let its owner end the session with "
            "pg_terminate_backend."
        )

    def announce(self) -> None:
        """Tell who is waited for."""
        announce(self._words)


def announce_silence(address: Address) -> None:
    """Tell that a server is waited for."""
    announce(f"The server of the ledger {address} does not answer.")


def is_lost(problem: Exception) -> bool:
    """Whether the connection is gone, so that it is not known what became of the last statement."""
    import psycopg

    if isinstance(problem, Unreachable):
        return problem.passing
    state = getattr(problem, "sqlstate", None)
    if state is not None:
        return state in _GONE or state.startswith("08")
    return isinstance(problem, psycopg.OperationalError | psycopg.InterfaceError)


def is_passing(problem: Exception) -> bool:
    """Whether to try again may help."""
    return (
        is_lost(problem) or isinstance(problem, Unconfirmed) or getattr(problem, "sqlstate", None) in _PASSING
    )


def unreachable(address: Address, problem: "psycopg.OperationalError", password: str) -> Unreachable:
    """The error for a server that lets nobody in; its words, unless they hold the password."""
    words = " ".join(str(problem).split())
    reason = "" if password and password in words else f" ({words})"
    refused = any(text in words for text in ("authentication", "no pg_hba", "does not exist", "no password"))
    return Unreachable(
        f"The server of the ledger {address} cannot be reached{reason}. Nothing was spent. "
        + ("Check the user, the password and the database." if refused else "Check the address."),
        passing=not refused and "translate host name" not in words,
    )


def missing(address: Address) -> LedgerError:
    """The error for a schema that is not there, or not to be seen."""
    make = either("Ledger.create", "`sourdine ledger create`")
    return LedgerError(
        f"There is no ledger at {address}, or this role may not see it. Nothing was spent. "
        f"Check the database and the name after '#'. A first one is made with {make}."
    )


def no_schema(address: Address) -> LedgerError:
    """The error for a role that may make no ledger in a database."""
    return LedgerError(
        f"This role may not make a ledger at {address}. Nothing was made. Ask the owner of the database to "
        "make it, or for the right to do so (GRANT CREATE ON DATABASE)."
    )


def explain(act: str, address: Address, problem: Exception) -> LedgerError:
    """The error for a problem met before anything was committed."""
    state = getattr(problem, "sqlstate", None) or ""
    words = " ".join(str(problem).split())
    if "a backup takes no lines" in words:
        return backup(address)
    if state in _MISSING:
        return missing(address)
    if state in _RIGHTS:
        done = "read" if act == "read" else "written"
        return LedgerError(
            f"The ledger {address} cannot be {done} by this role, or here. Nothing was spent. "
            f"Ask its owner for the right ({either('Ledger.grant', '`sourdine ledger grant`')})."
        )
    if state in _ROOM:
        return LedgerError(f"There is no room left on the server of {address}. Nothing was spent. Make room.")
    if state == _CHECK:
        return refused(address, words.partition(" CONTEXT:")[0])
    if state in _PASSING:
        return LedgerError(f"Others kept the ledger {address} busy. Nothing was spent. Try again.")
    return LedgerError(f"Could not {act} the ledger {address} ({words}). Nothing was spent.")


class Recorded(LedgerError):
    """A charge is in the ledger, and there is no receipt for it yet."""


def recorded(address: Address, number: int, problem: Exception) -> Recorded:
    """The error for a charge that was written, and not confirmed to be on the disk."""
    words = " ".join(str(problem).split())
    return Recorded(
        f"The server failed to confirm a charge ({words}), and line {number} of the ledger {address} holds "
        "it. It counts as spent, and there is no receipt for it. Release nothing; the same charge again, by "
        "this program, takes that line."
    )


def unknown(address: Address) -> LedgerError:
    """The error for a charge whose connection was lost, and which cannot be looked up."""
    return LedgerError(
        f"The server of the ledger {address} was lost while a charge was written, and does not answer, so it "
        "is not known whether the charge is spent. Release nothing. Once it answers, the same charge again, "
        f"by this program, takes its line if it is there; {either('history()', '`sourdine ledger history`')} "
        "shows it."
    )


def standby(address: Address) -> LedgerError:
    """The error for a charge to a server that only follows another."""
    return LedgerError(
        f"The server of the ledger {address} is a standby, which only follows another server. "
        "Nothing was spent. Charge the primary."
    )


def unreplicated(address: Address) -> LedgerError:
    """The error for a charge that is in the ledger of the primary, and perhaps in no other."""
    return LedgerError(
        f"A charge to the ledger {address} was written, and is not known to be replicated: no synchronous "
        "standby has confirmed it. It counts as spent, and there is no receipt for it. Release nothing; once "
        "the standby answers, the same charge again, by this program, takes its line."
    )


def old_form(address: Address) -> LedgerError:
    """The error for a charge to a ledger whose database does not derive totals."""
    return LedgerError(
        f"The ledger {address} is of form 1, whose database takes totals as they are written. Nothing was "
        f"spent. Its owner brings it up once: {either('Ledger.upgrade()', '`sourdine ledger upgrade`')}."
    )


def refused(address: Address, words: str) -> LedgerError:
    """The error for a line that the database has not derived from the one before."""
    return LedgerError(
        f"The database of the ledger {address} refused a line ({words}). Nothing was spent. Check the clock "
        "of this machine."
    )
