"""The statement that goes with a release: what was paid, for whom, by which mechanisms, for which files."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from fractions import Fraction
from pathlib import Path

from sourdine.accounting.certificate.files import digest
from sourdine.accounting.ledger import Entry, Ledger, Terms
from sourdine.accounting.ledger.ledger import opened
from sourdine.accounting.ledger.terms import declared_digest
from sourdine.accounting.spend import Spend, foreign_names
from sourdine.core.display import Viewable
from sourdine.core.distance import Neighbours
from sourdine.core.errors import LedgerError, SourdineError, UnknownName
from sourdine.core.format import plain, shorten_up
from sourdine.core.serialization import added, decoded, encoded, unambiguous
from sourdine.core.text import tame

_FORMAT = 1
_MOST_LINES = 1 << 62
_FOREIGN = "not_of_this_package"
_SELECTION = "from_reserve"  # the name of the selection delta in files


@dataclass(frozen=True, kw_only=True)
class Certificate(Viewable):
    """A machine-readable statement that goes with a release.

    It says what was paid, from which ledger, for which unit and neighbours, by which mechanisms, and whether
    the noise came from secure bits. It holds no value and nothing about the data.

    The ledger vouches for the payment: when, how much, for which mechanisms, by which version. It vouches for
    `secure` and, by their digest, for the declarations as far as they were recorded with the charge, before
    any noise was drawn; `verify` names what was not. It never saw the noise, the data or the values.

    `selection_delta` is the part of delta that choosing keys took; it is counted in `delta`. `foreign`
    names the mechanisms that are not of this package: what they lose is the word of their authors.

    `digests` are those (SHA-256) of the files that were published with it, by name, and `sizes` their bytes:
    they tie the numbers to the certificate. Where it is `complete`, they are all the files that there are,
    and whatever else lies beside it was put there later. The ledger does not vouch for them, so they are
    worth as much as the signature, or the way by which the certificate came.
    """

    software: str
    ledger: str
    number: int
    fingerprint: str
    time: datetime
    unit: str
    neighbours: str
    currency: str
    price: Fraction
    left: Fraction
    epsilon: float
    delta: float | None
    secure: bool
    declared: Mapping[str, str] = field(default_factory=dict)
    digests: Mapping[str, str] = field(default_factory=dict)
    spends: tuple[Spend, ...]
    selection_delta: Fraction = added(Fraction(0), name=_SELECTION)
    sizes: Mapping[str, int] = added({})
    complete: bool = added(False)

    def __repr__(self) -> str:
        delta = "" if self.delta is None else f", delta {plain(self.delta)}"
        seeded = "" if self.secure else ", seeded: protects nobody"
        return tame(
            f"<Certificate of epsilon {shorten_up(self.epsilon)}{delta} for each {self.unit}, "
            f"line {self.number} of ledger {self.ledger[:8]}{seeded}>"
        )

    @property
    def foreign(self) -> tuple[str, ...]:
        """The names of what is not of this package."""
        return foreign_names(self.spends)

    def to_json(self) -> str:
        """The certificate as text."""
        foreign = {_FOREIGN: list(self.foreign)} if self.foreign else {}
        return json.dumps({"format": _FORMAT} | encoded(self) | foreign, indent=2)

    @classmethod
    def from_json(cls, text: str) -> "Certificate":
        """A certificate read back."""
        try:
            fields = dict(json.loads(text, object_pairs_hook=unambiguous))
            foreign = fields.pop(_FOREIGN, [])
            if fields.pop("format") != _FORMAT or "declared" not in fields:
                raise ValueError("unknown format")
            certificate = decoded(cls, fields, strict=True)
            if foreign != list(certificate.foreign):
                raise ValueError("other names than those of the spends")
            if any(
                certificate.sizes.get(name, -1) < 0 for name in certificate.digests if certificate.complete
            ):
                raise ValueError("files without a size")
            Neighbours(certificate.neighbours)
            if not 1 <= certificate.number <= _MOST_LINES:
                raise ValueError("no line")
            if min(certificate.price, certificate.left, certificate.selection_delta) < 0:
                raise ValueError("no amounts")
        except UnknownName as problem:
            raise LedgerError(f"The certificate cannot be read. {problem}") from problem
        except (SourdineError, KeyError, TypeError, ValueError, ArithmeticError, RecursionError) as problem:
            message = "The certificate cannot be read. It is cut short or was changed. Ask for it again."
            raise LedgerError(message) from problem
        return certificate

    def with_digests(self, files: Iterable[Path], *, complete: bool = False) -> "Certificate":
        """The same, tied to files that are published with it; `complete` if there are no others."""
        listed = list(files)
        return replace(
            self,
            digests={path.name: digest(path) for path in listed},
            sizes={path.name: path.stat().st_size for path in listed},
            complete=complete,
        )

    def verify(self, ledger: Ledger | Path | str) -> tuple[str, ...]:
        """Raise unless the ledger holds this very payment, untouched; the names of what it cannot confirm."""
        with opened(ledger) as payer:
            if self.ledger != payer.terms.identity:
                raise LedgerError("The certificate belongs to another ledger. Check the path of the ledger.")
            return self.compare(payer.confirm(self.number), payer.terms)

    def compare(self, entry: Entry | None, terms: Terms) -> tuple[str, ...]:
        """Raise unless this is what a line of a ledger says; the names of what was not recorded there."""
        if entry is None or entry.fingerprint != self.fingerprint:
            raise LedgerError(
                f"The ledger has no line {self.number} with this fingerprint. The payment cannot be "
                "confirmed, so treat the release as unpaid."
            )
        if entry.rule is not None:
            raise LedgerError(
                f"Line {self.number} of the ledger is no charge: it says what is allowed. "
                "Treat the release as unpaid."
            )
        stated: dict[str, tuple[object, object]] = {
            "spends": (
                [spend.to_json() for spend in self.spends],
                [spend.to_json() for spend in entry.spends],
            ),
            "unit": (self.unit, terms.unit),
            "neighbours": (self.neighbours, terms.neighbours.value),
            "price": (self.price, entry.price),
            "left": (self.left, terms.budget.limit - entry.total),
            "currency": (self.currency, terms.budget.symbol),
            "delta": (self.delta, terms.delta),
            _SELECTION: (self.selection_delta, entry.delta),
            "time": (self.time, entry.time),
            "software": (self.software, entry.software),
            "secure": (self.secure, entry.secure and self.secure),  # to admit a weakness later is no fraud
            "declared": (declared_digest(self.declared), entry.declared_digest),
        }
        recorded = {"software": entry.software, "secure": entry.secure, "declared": entry.declared_digest}
        unconfirmed = tuple(name for name, value in recorded.items() if value is None)
        differ = [name for name, (a, b) in stated.items() if a != b and name not in unconfirmed]
        if not self.epsilon >= terms.budget.epsilon(entry.price, terms.rest, entry.shares) * (1 - 1e-9):
            differ.append("epsilon")
        if differ:
            raise LedgerError(
                f"The certificate and line {self.number} of the ledger differ in {', '.join(differ)}. "
                "Do not rely on it."
            )
        return unconfirmed
