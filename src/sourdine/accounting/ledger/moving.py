"""The store for a place, a file or a server; and a ledger moved from one place to another, with every line
and its chain: at no moment can two of them be charged.

The lines are copied into a backup, which knows by which move it was made. Then the ledger becomes a backup
itself, if it was not charged meanwhile, and at last the copy becomes the ledger. A move that was cut off in
between is finished by asking for it again.
"""

import secrets
from collections.abc import Iterator
from pathlib import Path

from sourdine.accounting.ledger.address import Address, Place, place_of
from sourdine.accounting.ledger.chain import START, LedgerLine, Mark, mark_of
from sourdine.accounting.ledger.file import database
from sourdine.accounting.ledger.file.store import FileStore
from sourdine.accounting.ledger.server import tables
from sourdine.accounting.ledger.server.store import ServerStore
from sourdine.core.errors import LedgerError

_FROM, _TO = "from:", "to:"
AnyStore = FileStore | ServerStore


def create_store(path: Place | str, terms: str) -> AnyStore:
    """A new store with its terms; an existing one is never touched."""
    place = place_of(path)
    if isinstance(place, Address):
        return ServerStore.create(place, terms)
    return FileStore.create(place, terms)


def open_store(path: Place | str) -> AnyStore:
    """The store at a place; whether there is one is found out at its first use."""
    place = place_of(path)
    return ServerStore(place) if isinstance(place, Address) else FileStore(place)


def move(source: Place | str, target: Place | str) -> Place:
    """Move a ledger to a new place; what stays at the old one is a backup."""
    before, place = open_store(source), place_of(target)
    try:
        before.terms()  # which recognises it
        if before.is_backup:
            _finish(before, place)
            return place
        token = secrets.token_hex(16)
        end = _copy(before, place, token)
        try:
            before.retire(end, _TO + token)
        except BaseException:
            if not _is_needed(before, token):
                _remove(place, _FROM + token)
            raise
        _activate(place, token)
    finally:
        before.close()
    return place


def _copy(before: AnyStore, place: Place, token: str) -> Mark:
    """The lines as they are now in a backup at the new place; the end of what was copied."""
    end = START

    def lines() -> Iterator[LedgerLine]:
        nonlocal end
        for line in before.lines():
            end = mark_of(line)
            yield line

    if isinstance(place, Address):
        tables.create(place, before.terms(), lines(), kind=tables.BACKUP, move=_FROM + token)
    else:
        database.create(place, before.terms(), lines(), backup=True, move=_FROM + token)
    return end


def _finish(before: AnyStore, place: Place) -> None:
    """Finish a move that was cut off: both sides must know of it."""
    token = before.move().removeprefix(_TO)
    if not token or not before.move().startswith(_TO):
        raise LedgerError(
            f"{before.path} is a backup, and a backup does not become a ledger: later charges may be missing "
            "from it. Nothing was moved. Name the ledger itself."
        )
    after = open_store(place)
    try:
        after.terms()
        known = after.is_backup and after.move() == _FROM + token
    finally:
        after.close()
    if not known:
        raise LedgerError(
            f"The ledger that was at {before.path} has been moved already, and {place} is not where to, or "
            "goes on there. Nothing was moved."
        )
    _activate(place, token)


def _activate(place: Place, token: str) -> None:
    after = open_store(place)
    try:
        after.activate(_FROM + token)
    finally:
        after.close()


def _is_needed(before: AnyStore, token: str) -> bool:
    """Whether the ledger was given up for this move, as far as can be seen: then the copy is all there is."""
    try:
        before.close()  # a new connection sees how it stands
        return before.move() == _TO + token
    except LedgerError:
        return True


def _remove(place: Place, move_name: str) -> None:
    """Remove a copy that must not become a ledger."""
    if isinstance(place, Path):
        place.unlink()
    else:
        tables.remove_copy(place, move_name)
