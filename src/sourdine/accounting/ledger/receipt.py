"""What a ledger gives for a charge, and what it knows of itself."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from fractions import Fraction

from sourdine.accounting.ledger.budget import UNLIMITED
from sourdine.accounting.spend import Spend, foreign_names, foreign_words
from sourdine.core.format import counted, plain, shorten_down, shorten_up
from sourdine.core.view import Viewable

_DIGITS = 6


@dataclass(frozen=True, kw_only=True)
class Receipt(Viewable):
    """Proof that a block was paid, before any noise was drawn.

    `fingerprint` is the mark of the line in the ledger's chain; `spent` is the total with this charge.
    `delta` is what the charge took of the ledger's selection delta, and `selection_delta_left` what it left
    of it, if any.
    """

    ledger: str
    number: int
    time: datetime
    price: Fraction
    spent: Fraction
    limit: Fraction
    currency: str
    fingerprint: str
    delta: Fraction = Fraction(0)
    selection_delta_left: Fraction | None = None

    @property
    def left(self) -> Fraction:
        """What the charge left of the budget."""
        return self.limit - self.spent

    def __repr__(self) -> str:
        paid = f"{self.currency} {readable(self.price)}"
        return f"<Receipt for {paid}, line {self.number} of ledger {self.ledger[:8]}, {room(self.left)} left>"


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A line of a ledger, read back.

    `software`, `secure` and `declared_digest` are what was recorded when the block was paid; None if nothing
    was. Lines of version 0.1 hold the declarations themselves, `declared`.
    `delta` is what the block took of the ledger's selection delta, and `delta_total` what all have taken
    with it. `foreign` names the mechanisms of the block that are not of this package.
    """

    number: int
    time: datetime
    purpose: str
    author: str
    price: Fraction
    total: Fraction
    period: str | None
    spends: tuple[Spend, ...]
    fingerprint: str
    software: str | None = None
    secure: bool | None = None
    declared: Mapping[str, str] | None = None
    declared_digest: str | None = None
    delta: Fraction = Fraction(0)
    delta_total: Fraction = Fraction(0)

    @property
    def foreign(self) -> tuple[str, ...]:
        """The names of what is not of this package, whose claims are those of its authors."""
        return foreign_names(self.spends)


@dataclass(frozen=True, kw_only=True)
class Status(Viewable):
    """Where a ledger stands.

    Everything paid is (`epsilon`, `delta`)-DP, and all that can be paid (`epsilon_limit`, `delta`)-DP. Of
    delta, `selection_delta` is kept for spends with a delta of their own, which took
    `selection_delta_spent` so far.
    """

    ledger: str
    unit: str
    neighbours: str
    currency: str
    limit: Fraction
    spent: Fraction
    left: Fraction
    blocks: int
    delta: float | None
    epsilon: float
    epsilon_limit: float
    period: str | None = None
    period_limit: Fraction | None = None
    period_spent: Fraction | None = None
    is_backup: bool = False
    selection_delta: Fraction | None = None
    selection_delta_spent: Fraction | None = None

    def __repr__(self) -> str:
        spent = f"{self.currency} {readable(self.spent)} of {room(self.limit)} spent"
        return f"<Status of ledger {self.ledger[:8]}: {spent} by {counted(self.blocks, 'charge')}>"


def foreign_lines(entries: Iterable[Entry]) -> str:
    """What people are told of mechanisms in a ledger that are not of this package, if there are any."""
    lines: dict[str, list[int]] = {}
    for entry in entries:
        for name in entry.foreign:
            lines.setdefault(name, []).append(entry.number)
    placed = [f"{name} ({_lines(numbers)})" for name, numbers in sorted(lines.items())]
    return foreign_words(placed) if placed else ""


def _lines(numbers: list[int]) -> str:
    one = f"line {numbers[0]}"
    return one if len(numbers) == 1 else f"{len(numbers):,} lines, the first {one}"


def readable(number: Fraction) -> str:
    """What is paid or spent as people read it: decimals, of six digits at most, that never tell less.

    >>> readable(Fraction(1, 3)), readable(Fraction(4)), readable(Fraction(1, 10**6))
    ('0.333334', '4', '1e-6')
    """
    return str(number) if number.denominator == 1 else plain(float(shorten_up(float(number), _DIGITS)))


def room(number: Fraction) -> str:
    """What may be spent as people read it: decimals that never tell more.

    >>> room(Fraction(2, 3)), room(Fraction(1, 20))
    ('0.666666', '0.05')
    """
    if number == UNLIMITED:
        return "no limit"
    return str(number) if number.denominator == 1 else plain(float(shorten_down(float(number), _DIGITS)))


def left_words(left: Fraction, limit: Fraction) -> str:
    """The same as a sentence.

    >>> left_words(Fraction(1, 2), Fraction(1)), left_words(Fraction(1, 10**24), Fraction(1))
    ('0.5 is left.', 'Almost nothing is left.')
    """
    text = remaining(left, limit)
    return f"{text[0].upper()}{text[1:]} is left."


def remaining(left: Fraction, limit: Fraction) -> str:
    """What is left of a budget as people read it; a crumb that rounding left over is not told in digits.

    >>> remaining(Fraction(1, 2), Fraction(1)), remaining(Fraction(1, 10**24), Fraction(1))
    ('0.5', 'almost nothing')
    """
    if limit == UNLIMITED:
        return "any amount"
    return "almost nothing" if 0 < left * 10**9 < limit else room(left)
