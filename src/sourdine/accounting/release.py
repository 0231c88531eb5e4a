"""What every private capability returns: values, their intervals, what they cost and the proof of payment."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from fractions import Fraction
from html import escape
from importlib.metadata import version
from typing import Any

from sourdine.accounting.ledger import Ledger, Receipt
from sourdine.accounting.spend import Spend
from sourdine.core.errors import LedgerError

_FORMAT = 1


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """A machine-readable statement that goes with a release.

    It says what was paid, from which ledger, for which unit and neighbours, by which mechanisms, and whether
    the noise came from secure bits. It holds no value and nothing about the data.
    """

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
    spends: tuple[Spend, ...]
    secure: bool
    declared: Mapping[str, str] = field(default_factory=dict)
    software: str = ""

    def to_json(self) -> str:
        """The certificate as text."""
        return json.dumps(
            {
                "format": _FORMAT,
                "software": self.software or f"sourdine {version('sourdine')}",
                "ledger": self.ledger,
                "number": self.number,
                "fingerprint": self.fingerprint,
                "time": self.time.isoformat(),
                "unit": self.unit,
                "neighbours": self.neighbours,
                "currency": self.currency,
                "price": str(self.price),
                "left": str(self.left),
                "epsilon": self.epsilon,
                "delta": self.delta,
                "secure": self.secure,
                "declared": dict(self.declared),
                "spends": [spend.to_json() for spend in self.spends],
            },
            indent=2,
        )

    @classmethod
    def from_json(cls, text: str) -> "Certificate":
        """A certificate read back."""
        try:
            held = json.loads(text)
            if held["format"] != _FORMAT:
                raise ValueError("unknown format")
            return cls(
                ledger=held["ledger"],
                number=int(held["number"]),
                fingerprint=held["fingerprint"],
                time=datetime.fromisoformat(held["time"]),
                unit=held["unit"],
                neighbours=held["neighbours"],
                currency=held["currency"],
                price=Fraction(held["price"]),
                left=Fraction(held["left"]),
                epsilon=float(held["epsilon"]),
                delta=held["delta"],
                spends=tuple(Spend.from_json(spend) for spend in held["spends"]),
                secure=bool(held["secure"]),
                declared=held["declared"],
                software=held["software"],
            )
        except (KeyError, TypeError, ValueError, ArithmeticError, RecursionError) as problem:
            message = "The certificate cannot be read. It is cut short or was changed. Ask for it again."
            raise LedgerError(message) from problem

    def verify(self, ledger: Ledger) -> None:
        """Raise unless the ledger holds this very payment, untouched."""
        if self.ledger != ledger.terms.identity:
            raise LedgerError("The certificate belongs to another ledger. Check the path of the ledger.")
        entry = next((entry for entry in ledger.history() if entry.number == self.number), None)
        if entry is None or entry.fingerprint != self.fingerprint:
            raise LedgerError(
                f"The ledger has no line {self.number} with this fingerprint. The payment cannot be "
                "confirmed, so treat the release as unpaid."
            )
        same = [spend.to_json() for spend in entry.spends] == [spend.to_json() for spend in self.spends]
        terms = ledger.terms
        stated = (
            self.unit,
            self.neighbours,
            self.price,
            self.left,
            self.currency,
            self.delta,
            self.time,
        ) == (
            terms.unit,
            terms.neighbours.value,
            entry.price,
            terms.budget.limit - entry.total,
            terms.budget.symbol,
            terms.delta,
            entry.time,
        )
        priced = self.epsilon >= terms.budget.epsilon(entry.price, terms.delta or 0.0) * (1 - 1e-9)
        if not same or not stated or not priced:
            raise LedgerError(
                f"The certificate states other mechanisms or another price than line {self.number} of "
                "the ledger. It was changed after it was issued."
            )


@dataclass(frozen=True, kw_only=True)
class Release:
    """A private result. Read `values` with `intervals`; hand out the certificate with both."""

    values: Any
    intervals: Any
    spends: tuple[Spend, ...]
    receipt: Receipt | None
    confidence: float = 0.95
    secure: bool = True

    def certificate(self, ledger: Ledger, declared: Mapping[str, str] | None = None) -> Certificate:
        """The statement of what this release cost, tied to the ledger that paid."""
        if self.receipt is None:
            raise LedgerError(
                "This release was not paid from a ledger, so there is nothing to certify. "
                "Pass ledger= next time."
            )
        terms = ledger.terms
        return Certificate(
            ledger=self.receipt.ledger,
            number=self.receipt.number,
            fingerprint=self.receipt.fingerprint,
            time=self.receipt.time,
            unit=terms.unit,
            neighbours=terms.neighbours.value,
            currency=self.receipt.currency,
            price=self.receipt.price,
            left=self.receipt.left,
            epsilon=terms.budget.epsilon(self.receipt.price, terms.delta or 0.0),
            delta=terms.delta,
            spends=self.spends,
            secure=self.secure,
            declared=declared or {},
        )

    def _repr_html_(self) -> str:
        body = self.values._repr_html_() if hasattr(self.values, "_repr_html_") else escape(repr(self.values))
        warning = "" if self.secure else "<p><b>Made with seeded noise: it protects nobody.</b></p>"
        paid = self.receipt._repr_html_() if self.receipt else "<p>Not paid from a ledger.</p>"
        return f"<div>{warning}{body}{paid}</div>"
