"""What a ledger has paid for, and what of it nobody has: a release cut off after its charge stays paid.

A ledger is the only witness that outlives the server, whatever ended it. So before something is paid for, it
is looked for there under its purpose, and paid for again only if somebody says so.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from sourdine.accounting.certificate import Certificate
from sourdine.accounting.ledger import Ledger
from sourdine.accounting.ledger.numbers import readable
from sourdine.core.errors import InvalidParameter, SourdineError
from sourdine.core.outbox import CERTIFICATE

_KEPT = 8  # ledgers whose lines are remembered
_LINES: dict[str, tuple[object, tuple["LedgerPayment", ...]]] = {}


@dataclass(frozen=True)
class LedgerPayment:
    """A line of a ledger that paid for something."""

    number: int
    purpose: str
    price: str
    when: str
    fingerprint: str

    @property
    def words(self) -> str:
        """What was paid when, as the beginning of a sentence."""
        return f"Line {self.number} of the ledger paid {self.price} for this on {self.when}"


def payments_for(ledger: Ledger, purpose: str) -> list[LedgerPayment]:
    """The lines of a ledger with a purpose, the newest last."""
    status = ledger.status()
    stand, found = _LINES.get(status.ledger, (None, ()))
    if stand != (status.blocks, status.spent):
        found = tuple(
            LedgerPayment(
                number=entry.number,
                purpose=entry.purpose,
                price=f"{status.currency} {readable(entry.price)}",
                when=f"{entry.time:%Y-%m-%d %H:%M} UTC",
                fingerprint=entry.fingerprint,
            )
            for entry in ledger.history()
            if entry.rule is None
        )
        while len(_LINES) >= _KEPT:
            _LINES.pop(next(iter(_LINES)))
        _LINES[status.ledger] = (status.blocks, status.spent), found
    return [each for each in found if each.purpose == purpose]


def without_release(payments: Iterable[LedgerPayment], folders: Iterable[Path]) -> list[LedgerPayment]:
    """The payments of which none of some folders holds the release."""
    there = {_fingerprint(place / CERTIFICATE) for place in folders}
    return [each for each in payments if each.fingerprint not in there]


def check_again(payments: Iterable[LedgerPayment], confirmed: object, what: str) -> None:
    """Refuse to pay for something again, unless somebody has confirmed the newest line that paid for it."""
    newest = max((each.number for each in payments), default=None)
    if newest is not None and str(confirmed) != str(newest):
        raise InvalidParameter(
            f"Line {newest} of the ledger paid for {what} already, and what is paid stays paid. Confirm that "
            "it is to be paid for once more. Nothing was paid now."
        )


def _fingerprint(place: Path) -> str | None:
    try:
        status = place.stat()
    except OSError:
        return None
    return _read_fingerprint(place, status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=256)
def _read_fingerprint(place: Path, changed: int, size: int) -> str | None:
    try:
        return Certificate.from_json(place.read_text(encoding="utf-8")).fingerprint
    except (OSError, UnicodeError, SourdineError):
        return None
