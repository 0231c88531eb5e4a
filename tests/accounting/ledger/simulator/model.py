"""What must hold whatever happens: a model of what was acknowledged, and of what was said of the rest."""

from dataclasses import dataclass, field, replace
from pathlib import Path

from sourdine.accounting.ledger import Entry, Ledger
from sourdine.core.errors import LedgerError
from tests.accounting.ledger.simulator.actor import PARTS

LIMIT, DAILY = 2 * PARTS, PARTS
_NOTHING_SPENT = ("Nothing was spent", "cannot be trusted", "do not spend from it")


class Fault(Exception):
    """Something that must never happen."""


def lost(problem: str) -> bool:
    """Whether Python lost the exception of a text that is no text any more.

    It is raised within SQLite, whose locks are then lowered: that calls what watches them, in Python, while
    the exception is pending. Unwatched, it arrives and is told in a sentence, as `test_store` shows.
    """
    return "SystemError" in problem and "exception" in problem


@dataclass(frozen=True)
class Charge:
    """A charge that is asked for."""

    parts: int
    purpose: str
    flattered: bool = False


@dataclass
class Happened:
    """What a refusal may be due to."""

    second_name: bool = False
    copied: bool = False
    damaged: bool = False
    power_lost: bool = False


@dataclass
class Model:
    """Lines that were acknowledged, charges said not to be spent, and those of which nothing is known."""

    has_days: bool
    paid: dict[Charge, tuple[int, str]] = field(default_factory=dict)
    unpaid: set[Charge] = field(default_factory=set)
    doubtful: set[Charge] = field(default_factory=set)

    def copy(self) -> "Model":
        """The same, for a copy of the file."""
        return replace(self, paid=dict(self.paid), unpaid=set(self.unpaid), doubtful=set(self.doubtful))

    def acknowledge(self, charge: Charge, line: tuple[int, str], seen: int) -> None:
        """A receipt was given to somebody who had seen so many lines."""
        if line[0] in (number for number, _ in self.paid.values()):
            raise Fault(f"line {line[0]} was given twice")
        if line[0] <= seen:
            raise Fault(f"line {line[0]} was paid by who had seen line {seen}")
        self.paid[charge] = line
        if _parts(self.paid) > LIMIT:
            raise Fault(f"{_parts(self.paid)} parts of {LIMIT} were paid")

    def beyond(self, charge: Charge, going: list[Charge], happened: Happened) -> None:
        """A charge was refused since it does not fit, while others were going on."""
        self.unpaid.add(charge)
        most = _parts(self.paid) + _parts(self.doubtful) + sum(each.parts for each in going) + charge.parts
        if most <= LIMIT and not self.has_days and not happened.copied:
            raise Fault("a charge was refused that fits")

    def refuse(self, charge: Charge | None, text: str, failing: bool, happened: Happened) -> None:
        """Something was refused: it must have a cause, and say what became of a charge."""
        causes = {
            "busy": True,
            "would not be read back": charge is not None and charge.flattered,
            "second name": happened.second_name,
            "There is no ledger": happened.second_name,
            "mounted here as a single file": happened.second_name,
            "no longer the ledger that was opened": happened.copied or happened.power_lost,
            "was there before": happened.copied or happened.damaged,
            "damaged": happened.damaged,
            "cannot be read": happened.damaged or failing,
            "not a ledger": happened.damaged,
            "newer Sourdine": happened.damaged,
            "Could not": failing or happened.damaged or happened.power_lost,
            "no room left": failing or happened.damaged,
            "cannot be written": failing,
            "The disk failed": failing,
            "was lost while a charge was written": failing or happened.power_lost,
            "cannot be reached": failing or happened.power_lost,
        }
        if not any(allowed and words in text for words, allowed in causes.items()):
            raise Fault(f"refused without a cause: {text}")
        if charge is None:
            return
        if "counts as spent" in text or "not known" in text:
            self.doubtful.add(charge)
        elif any(
            words in text for words in ("Nothing was spent", "cannot be trusted", "do not spend from it")
        ):
            self.unpaid.add(charge)
        else:
            raise Fault(f"nothing is said of the charge: {text}")

    def check(self, path: Path, happened: Happened) -> None:
        """What somebody new finds at the end."""
        try:
            with Ledger.open(path) as ledger:
                entries = ledger.history()
        except LedgerError as problem:
            if not happened.damaged:
                raise Fault(f"at the end: {problem}") from problem
            return
        except Exception as problem:
            if happened.damaged and lost(repr(problem)):
                return
            raise Fault(f"at the end: no sentence, but {problem!r}") from problem
        found = {entry.purpose: (entry.number, entry.fingerprint) for entry in entries}
        if len(found) < len(entries):
            raise Fault("a charge is there twice")
        for charge, line in self.paid.items():
            if found.get(charge.purpose) != line:
                raise Fault(f"{charge.purpose} was paid as line {line[0]} and is not there")
        if wrong := sorted({charge.purpose for charge in self.unpaid} & found.keys()):
            raise Fault(f"{wrong[0]} is there, and it was said that nothing was spent")
        if sum(entry.price for entry in entries) * PARTS > LIMIT:
            raise Fault("more is spent than there was")
        if self.has_days:
            _check_days(entries)


def _parts(charges: dict[Charge, tuple[int, str]] | set[Charge]) -> int:
    return sum(charge.parts for charge in charges)


def _check_days(entries: list[Entry]) -> None:
    days: dict[str, int] = {}
    for entry in entries:
        assert entry.period is not None
        if days and entry.period < max(days):
            raise Fault("an old day was opened again")
        days[entry.period] = days.get(entry.period, 0) + int(entry.price * PARTS)
    if any(parts > DAILY for parts in days.values()):
        raise Fault("more is spent in a day than it had")
