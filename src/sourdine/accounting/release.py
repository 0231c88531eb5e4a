"""What every private capability returns: values, their intervals, what they cost and the proof of payment."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sourdine.accounting.ledger import Ledger, Receipt
from sourdine.accounting.ledger.ledger import opened
from sourdine.accounting.ledger.terms import declared_digest
from sourdine.accounting.spend import Spend
from sourdine.core.display import Viewable
from sourdine.core.errors import LedgerError

if TYPE_CHECKING:
    from sourdine.accounting.certificate import Certificate


def part_of_block(spends: Sequence[Spend], block: Sequence[Spend]) -> tuple[Spend, ...]:
    """The whole block that was paid, where these spends are a part of it; else the spends themselves."""
    left = list(block)
    for spend in spends:
        if spend not in left:
            return tuple(spends)
        left.remove(spend)
    return tuple(block)


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

    def __repr__(self) -> str:
        shown = np.array2string(
            np.asarray(self.values), precision=6, separator=", ", threshold=8, edgeitems=4
        )
        paid = "not paid" if self.receipt is None else f"paid by line {self.receipt.number} of its ledger"
        seeded = "" if self.secure else ", seeded: protects nobody"
        return f"<Release of {' '.join(shown.split())}, {paid}{seeded}>"

    def certificate(
        self, ledger: Ledger | Path | str, declared: Mapping[str, str] | None = None
    ) -> "Certificate":
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
        from sourdine.accounting.certificate import Certificate  # and with it what signs and verifies

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
            epsilon=terms.budget.epsilon(self.receipt.price, terms.rest, self.receipt.shares),
            delta=terms.delta,
            selection_delta=self.receipt.delta,
            spends=self.spends if entry is None else part_of_block(self.spends, entry.spends),
            secure=self.secure and (entry is None or entry.secure is not False),
            declared=dict(stated or {}),
            software=(entry.software if entry is not None else None) or "",
        )
        certificate.compare(entry, terms)
        return certificate
