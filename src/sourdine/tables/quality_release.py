"""How well the data fits what is declared, told privately before anything is asked: a spend of its own."""

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path

from sourdine.accounting.ledger import Ledger
from sourdine.accounting.ledger.receipt import Receipt
from sourdine.accounting.spend import Spend
from sourdine.core.distance import Neighbours
from sourdine.core.random.bits import SYSTEM, Bits
from sourdine.frames.quality import all_cells
from sourdine.frames.schema import PrivacyUnit
from sourdine.frames.source import Source
from sourdine.tables.measurement import PlannedMeasurement
from sourdine.tables.payment import DeclaredTable, check_given, paid, read_again
from sourdine.tables.plan import ReleasePlan
from sourdine.tables.privacy import Allotment, Privacy
from sourdine.tables.quality import DataQuality, Quality, data_quality, smallest_share
from sourdine.tables.query import columns_of
from sourdine.tables.release import check_source

PURPOSE = "data quality"  # as the ledger notes it


@dataclass(frozen=True, kw_only=True)
class QualityPlan:
    """Counts of records that do not fit the columns of a plan's queries; nothing is read or spent.

    All of epsilon goes to one vector of counts with Laplace noise, the one that a release takes a small part
    of its budget for. The guarantee is epsilon for one unit, under the neighbours of the plan.
    """

    plan: ReleasePlan
    epsilon: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", Privacy(epsilon=self.epsilon).epsilon)

    @cached_property
    def line(self) -> PlannedMeasurement:
        """The counts, with their noise."""
        columns = columns_of(self.plan.queries, self.plan.schema)
        return Quality(columns=columns).line(self.plan.context(), Allotment(total=self.epsilon), Fraction(1))

    @property
    def unit(self) -> PrivacyUnit:
        """Whom the counts protect."""
        return self.plan.unit

    @property
    def neighbours(self) -> Neighbours:
        """Under which neighbours."""
        return self.plan.neighbours

    @property
    def spends(self) -> tuple[Spend, ...]:
        """What the counts cost."""
        return (self.line.spend,)

    @property
    def declared(self) -> dict[str, str]:
        """What was declared of the columns that are counted."""
        return self.plan.declared

    @property
    def remedy(self) -> None:
        """Nothing: Laplace noise has a pure epsilon."""

    @property
    def error(self) -> float:
        """By how many records a count may be off, with the plan's confidence."""
        return self.line.mechanism.error(self.plan.confidence)

    @property
    def smallest_share(self) -> float | None:
        """The least share of the records that would be seen; None if nobody says how many there are."""
        if self.plan.size is None:
            return None
        cells = len(all_cells(self.plan.schema, columns_of(self.plan.queries, self.plan.schema)))
        return smallest_share(self.line.mechanism, cells, self.plan.confidence, self.plan.size)


def release_quality(
    quality: QualityPlan,
    table: Source | DeclaredTable,
    ledger: Ledger | Path | str,
    *,
    bits: Bits = SYSTEM,
) -> tuple[DataQuality, Receipt]:
    """Pay for the counts from a ledger, then count; what did not fit, and the receipt.

    The guarantee is the plan's epsilon for one unit. The charge is on the disk before any record is read.
    """
    plan, line, measured = quality.plan, quality.line, quality.line.measurement
    assert isinstance(measured, Quality)
    check_given(ledger)
    source = check_source(plan, table)
    with paid(quality, ledger, bits, purpose=PURPOSE, missing="there are no counts") as receipt:
        (exact,) = read_again(source, lambda: measured.exact(source, plan.unit, bits))
        noisy = measured.read(exact, line, plan.context(), bits)
        counts = data_quality(
            noisy.numbers.tolist(),
            noisy.mechanism,
            columns=measured.columns,
            schema=plan.schema,
            unit=plan.unit,
            size=plan.size,
            confidence=plan.confidence,
        )
    return counts, receipt
