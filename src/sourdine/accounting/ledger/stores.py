"""The store for a place: a file, or a server."""

from typing import Any

from sourdine.accounting.ledger.address import Address, Place, place_of
from sourdine.accounting.ledger.file.store import FileStore
from sourdine.accounting.ledger.server.store import ServerStore
from sourdine.accounting.ledger.store import Store


def create_store(given: Place | str, terms: str) -> Store[Any]:
    """A new store with its terms; an existing one is never touched."""
    place = place_of(given)
    if isinstance(place, Address):
        return ServerStore.create(place, terms)
    return FileStore.create(place, terms)


def open_store(given: Place | str) -> Store[Any]:
    """The store at a place; whether there is one is found out at its first use."""
    place = place_of(given)
    return ServerStore(place) if isinstance(place, Address) else FileStore(place)
