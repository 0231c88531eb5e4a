"""A ledger as functions are given it: open, or as the path of its file, or none."""

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import overload

from sourdine.accounting.ledger.ledger import Ledger
from sourdine.core.errors import InvalidParameter


@overload
def opened(ledger: Ledger | Path | str) -> AbstractContextManager[Ledger]: ...
@overload
def opened(ledger: Ledger | Path | str | None) -> AbstractContextManager[Ledger | None]: ...
def opened(ledger: Ledger | Path | str | None) -> AbstractContextManager[Ledger | None]:
    """The ledger, for a while: one that is opened here is closed after, and one that was open stays so."""
    if ledger is None or isinstance(ledger, Ledger):
        return nullcontext(ledger)
    if isinstance(ledger, str | Path):
        return Ledger.open(ledger)
    raise InvalidParameter(
        "A ledger is given as such, or as the path of its file. "
        "Make one with Ledger.create or 'sourdine ledger create'."
    )
