"""What every private capability returns: values, their intervals, what they cost and the proof of payment."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

from sourdine.accounting.ledger import Entry, Ledger, Receipt, Terms
from sourdine.accounting.ledger.ledger import opened
from sourdine.accounting.ledger.terms import declared_digest
from sourdine.accounting.spend import Spend, foreign_names
from sourdine.core.codec import added, decoded, encoded
from sourdine.core.errors import LedgerError, SourdineError, UnknownName
from sourdine.core.format import plain, shorten_up
from sourdine.core.terminal import tame
from sourdine.core.view import Viewable

_FORMAT = 1
_FOREIGN = "not_of_this_package"
_SELECTION = "from_reserve"  # the name of the selection delta in files


def digest(path: Path) -> str:
    """The SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


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

    `digests` are those (SHA-256) of the files that were published with it, by name: they tie the numbers to
    the certificate. The ledger does not vouch for them, so they are worth as much as the way by which the
    certificate came.
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
            fields = dict(json.loads(text))
            foreign = fields.pop(_FOREIGN, [])
            if fields.pop("format") != _FORMAT or "declared" not in fields:
                raise ValueError("unknown format")
            certificate = decoded(cls, fields, strict=True)
            if foreign != list(certificate.foreign):
                raise ValueError("other names than those of the spends")
            if min(certificate.price, certificate.left, certificate.selection_delta) < 0:
                raise ValueError("no amounts")
        except UnknownName as problem:
            raise LedgerError(f"The certificate cannot be read. {problem}") from problem
        except (SourdineError, KeyError, TypeError, ValueError, ArithmeticError, RecursionError) as problem:
            message = "The certificate cannot be read. It is cut short or was changed. Ask for it again."
            raise LedgerError(message) from problem
        return certificate

    def with_digests(self, files: Iterable[Path]) -> "Certificate":
        """The same, tied to files that are published with it."""
        return replace(self, digests={path.name: digest(path) for path in files})

    def verify(self, ledger: Ledger | Path | str) -> tuple[str, ...]:
        """Raise unless the ledger holds this very payment, untouched; the names of what it cannot confirm."""
        with opened(ledger) as payer:
            if self.ledger != payer.terms.identity:
                raise LedgerError("The certificate belongs to another ledger. Check the path of the ledger.")
            return self._compare(payer.confirm(self.number), payer.terms)

    def _compare(self, entry: Entry | None, terms: Terms) -> tuple[str, ...]:
        if entry is None or entry.fingerprint != self.fingerprint:
            raise LedgerError(
                f"The ledger has no line {self.number} with this fingerprint. The payment cannot be "
                "confirmed, so treat the release as unpaid."
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
        if not self.epsilon >= terms.budget.epsilon(entry.price, terms.rest) * (1 - 1e-9):
            differ.append("epsilon")
        if differ:
            raise LedgerError(
                f"The certificate and line {self.number} of the ledger differ in {', '.join(differ)}. "
                "Do not rely on it."
            )
        return unconfirmed


@dataclass(frozen=True, kw_only=True)
class Release(Viewable):
    """A private result. Read `values` with `intervals`; hand out the certificate with both.

    `notes` say what was chosen by declarations, and why, and what is not known, such as an interval.
    `declarations` are what was declared with the charge, whole: the ledger keeps their digest.
    """

    values: Any
    intervals: Any
    spends: tuple[Spend, ...]
    receipt: Receipt | None
    confidence: float = 0.95
    secure: bool = True
    notes: tuple[str, ...] = ()
    declarations: Mapping[str, str] | None = None

    def certificate(
        self, ledger: Ledger | Path | str, declared: Mapping[str, str] | None = None
    ) -> Certificate:
        """The statement of what this release cost, tied to the ledger that paid.

        It states the release's declarations, or others that are given, which must be those of the charge.
        """
        if self.receipt is None:
            raise LedgerError(
                "This release was not paid from a ledger, so there is nothing to certify. "
                "Pass ledger= next time."
            )
        with opened(ledger) as payer:
            terms = payer.terms
            if self.receipt.ledger != terms.identity:
                raise LedgerError("Another ledger paid for this release. Pass the one that gave the receipt.")
            entry = payer.entry(self.receipt.number)
        stated = declared if declared is not None else self.declarations
        if stated is None and entry is not None:
            stated = entry.declared or {}
            if entry.declared_digest not in (None, declared_digest(stated)):
                raise LedgerError(
                    "The release does not say what was declared with its charge, and the ledger keeps only a "
                    "digest of that. Pass the same texts again, as declared=."
                )
        certificate = Certificate(
            ledger=self.receipt.ledger,
            number=self.receipt.number,
            fingerprint=self.receipt.fingerprint,
            time=self.receipt.time,
            unit=terms.unit,
            neighbours=terms.neighbours.value,
            currency=self.receipt.currency,
            price=self.receipt.price,
            left=self.receipt.left,
            epsilon=terms.budget.epsilon(self.receipt.price, terms.rest),
            delta=terms.delta,
            selection_delta=self.receipt.delta,
            spends=self.spends,
            secure=self.secure and (entry is None or entry.secure is not False),
            declared=dict(stated or {}),
            software=(entry.software if entry is not None else None) or "",
        )
        certificate._compare(entry, terms)
        return certificate
