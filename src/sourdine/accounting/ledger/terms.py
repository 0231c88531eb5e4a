"""The terms of a ledger, which never change: its budget, its privacy unit, and limits of periods.

Texts that a ledger keeps are short and never empty; values read from its file are of exactly the kind
written.
"""

import hashlib
import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from fractions import Fraction
from typing import TypeVar

from sourdine.accounting.accountant import left_of
from sourdine.accounting.ledger.budget import Budget, RenyiGridBudget
from sourdine.core import check
from sourdine.core.distance import Neighbours
from sourdine.core.distributions import float_above
from sourdine.core.format import plain
from sourdine.core.serialization import added, decoded, encoded

_MOST_TEXT = 1000


def check_text(name: str, value: object) -> None:
    """Refuse what is no such text."""
    if not isinstance(value, str) or not value.strip() or len(value) > _MOST_TEXT:
        raise check.fail("Ledger", name, f"be a text of 1 to {_MOST_TEXT} characters", value)


def declarations(declared: object) -> dict[str, str]:
    """Declarations as they are now, texts by name; they may be many and long, since a digest is kept."""
    if not isinstance(declared, Mapping):
        raise check.fail("Ledger", "declared", "be a mapping of texts", declared)
    texts = dict(declared)
    for text in (*texts.keys(), *texts.values()):
        if not isinstance(text, str):
            raise check.fail("Ledger", "declared", "hold texts by name", text)
    return texts


def declared_digest(declared: Mapping[str, str]) -> str:
    """The SHA-256 of declarations as JSON in ASCII without spaces, sorted by name.

    >>> declared_digest({"b": "2", "a": "1"}) == declared_digest({"a": "1", "b": "2"})
    True
    >>> declared_digest({})[:16]  # of the two characters {}
    '44136fa355b3678a'
    """
    written = json.dumps(dict(declared), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(written.encode("ascii")).hexdigest()


T = TypeVar("T")


def typed(kind: type[T], value: object) -> T:
    """The value, or a TypeError; bool('false') would be True, and True would pass for the number 1.

    >>> typed(int, 3)
    3
    """
    if type(value) is not kind:
        raise TypeError(f"not a {kind.__name__}")
    return value


class Period(StrEnum):
    """A stretch of the calendar, in universal time."""

    DAY = "day"
    WEEK = "week"
    MONTH = "month"
    YEAR = "year"

    def key(self, time: datetime) -> str:
        """The stretch that holds a time; keys sort as the stretches do.

        >>> Period.MONTH.key(datetime(2026, 11, 15))
        '2026-11'
        """
        if self is Period.WEEK:
            year, week, _ = time.isocalendar()
            return f"{year:04}-W{week:02}"
        return time.strftime({"day": "%Y-%m-%d", "month": "%Y-%m", "year": "%Y"}[self.value])


@dataclass(frozen=True, kw_only=True)
class Terms:
    """The budget, whom it protects and how it is counted. None of it ever changes.

    `selection_delta` is the part of delta that is kept for spends with a delta of their own: those that
    choose keys privately. The rest, `rest`, is where the budget's epsilon is read off. A pure budget needs
    no rest, so its selection delta may be all of delta, and is if no delta is given.
    """

    identity: str = ""
    budget: Budget
    unit: str
    neighbours: Neighbours
    delta: float | None = None
    period: Period | None = None
    period_limit: Fraction | None = None
    selection_delta: Fraction | None = added(None, name="reserve")

    def __post_init__(self) -> None:
        check.member("Ledger", "neighbours", self.neighbours, Neighbours)
        check_text("unit", self.unit)
        if self.selection_delta is not None:
            selection_delta = check.inside("Ledger", "selection_delta", self.selection_delta, 0, 1)
            object.__setattr__(self, "selection_delta", selection_delta)
            if self.delta is None and self.budget.name == "pure":
                object.__setattr__(self, "delta", float_above(selection_delta))
        if self.delta is not None:
            check.keep(self, delta=float(check.inside("Ledger", "delta", self.delta, 0, 1)))
        if self.budget.name != "pure" and self.delta is None:
            remedy = "Without one, rho, mu and divergence say nothing about epsilon. A common choice is 1e-6."
            raise check.fail("Ledger", "delta", "be given for this budget", None, remedy)
        self._check_selection_delta()
        if (self.period is None) != (self.period_limit is None):
            raise check.fail("Ledger", "period", "come with its limit, and the other way round", self.period)
        if isinstance(self.budget, RenyiGridBudget):
            self._check_grid(self.budget)
        if self.period is not None:
            check.member("Ledger", "period", self.period, Period)
            limit = check.positive("Ledger", "period_limit", self.period_limit, self.budget.limit)
            object.__setattr__(self, "period_limit", limit)
        if not self.identity:
            object.__setattr__(self, "identity", uuid.uuid4().hex)

    def _check_selection_delta(self) -> None:
        if self.selection_delta is None or self.delta is None:
            return
        if self.budget.name in ("gdp", "odometer"):
            remedy = (
                "What has a delta of its own has no mu and no odometer here. Keep a limit in rho instead."
            )
            raise check.fail(
                "Ledger",
                "selection_delta",
                "be left out for this budget",
                float(self.selection_delta),
                remedy,
            )
        remedy = f"The ledger's delta is {plain(self.delta)}, and the rest of it is needed for the noise."
        if self.budget.name != "pure" and not self.rest:
            raise check.fail(
                "Ledger", "selection_delta", "be below delta", float(self.selection_delta), remedy
            )
        if self.selection_delta > Fraction(self.delta):
            raise check.fail("Ledger", "selection_delta", "be at most delta", float(self.selection_delta))

    def _check_grid(self, budget: RenyiGridBudget) -> None:
        """Refuse a grid of which no order can hold its target, and periods: shares have none."""
        if self.period is not None:
            remedy = "Shares of several orders have none. Take the composition 'basic' or 'zcdp'."
            raise check.fail("Ledger", "period", "be left out for this budget", self.period, remedy)
        if not any(limit > 0 for limit in budget.limits(self.rest)):
            remedy = "Take a larger epsilon or delta, or higher orders."
            raise check.fail(
                "Ledger", "orders", "have one that fits", list(map(float, budget.orders)), remedy
            )

    @property
    def rest(self) -> float:
        """The delta at which the budget's epsilon is read off: what the selection delta leaves; 0 without a
        delta."""
        return max(0.0, left_of(self.delta or 0.0, self.selection_delta or Fraction(0)))

    def to_json(self) -> str:
        """The terms as the file holds them."""
        return json.dumps(encoded(self))

    @classmethod
    def from_json(cls, text: str) -> "Terms":
        """The terms of a file."""
        return decoded(cls, json.loads(text))
