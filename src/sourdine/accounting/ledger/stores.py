"""The store for a place: a file, or a server."""

from sourdine.accounting.ledger.address import Address, Place, place_of
from sourdine.accounting.ledger.file.store import FileStore
from sourdine.accounting.ledger.server.store import ServerStore

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
