"""Admission and payment: the one check that a plan and a table match, and the one charge of tables.

Every function that takes a plan and a table calls `admit` before it reads a record, and every charge goes
through `charge`. A table that was opened with wider bounds moves further than its plan pays for.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol, TypeVar

from sourdine.accounting.ledger import Ledger, PureBudget, Receipt
from sourdine.accounting.ledger.address import Address
from sourdine.accounting.ledger.ledger import opened
from sourdine.accounting.spend import Spend
from sourdine.core.distance import Neighbours
from sourdine.core.errors import InvalidParameter, SourdineError
from sourdine.core.format import either, setting
from sourdine.core.random.bits import Bits
from sourdine.frames.engines.duckdb import failure_of
from sourdine.frames.schema import PrivacyUnit, Schema
from sourdine.frames.source import Source

_PAUSES = (0.01, 0.1, 1.0)
"""Seconds before a table is read again; who uses its connection for longer uses it all the time."""
T = TypeVar("T")


class Protection(Protocol):
    """Whom a plan protects, and under which relation of neighbours."""

    @property
    def unit(self) -> PrivacyUnit: ...
    @property
    def neighbours(self) -> Neighbours: ...


class DeclaredPlan(Protection, Protocol):
    """A plan whose distances follow from declared columns."""

    @property
    def schema(self) -> Schema: ...


class PayablePlan(Protocol):
    """A plan that a ledger can pay for.

    Values that come as an array have no declared unit: each is one of the ledger's. `declared` are the
    declarations that its price rests on, each as one text. `remedy` says how its noise would have a pure
    epsilon, where it has none.
    """

    @property
    def unit(self) -> PrivacyUnit | None: ...
    @property
    def neighbours(self) -> Neighbours: ...
    @property
    def spends(self) -> tuple[Spend, ...]: ...
    @property
    def declared(self) -> Mapping[str, str]: ...
    @property
    def remedy(self) -> str | None: ...


class DeclaredTable(Protection, Protocol):
    """A table that is open with its declarations, such as a `Table`."""

    @property
    def source(self) -> Source: ...


def admit(plan: DeclaredPlan, table: Source | DeclaredTable) -> Source:
    """Return the records of a table that is declared as a plan has it, and refuse any other.

    A unit moves a clamped sum by the width of the bounds that the table was opened with. Only where these are
    the plan's is the move the one that is paid for.
    """
    if not isinstance(table, Source):
        if (plan.unit, plan.neighbours) != (table.unit, table.neighbours):
            raise InvalidParameter(
                "The plan was made for another table. Its distances may be too short for this one. "
                "Make it with this table's plan()."
            )
        table = table.source
    if not plan.schema.extends(table.schema) or plan.unit.column not in (None, *table.types):
        raise InvalidParameter(
            "The table was opened with other declarations than the plan was made with. "
            "The plan's distances may be too short for it. Open it with the plan's schema and unit."
        )
    table.engine.connect()  # what prevents a question is raised here, and not after the charge
    return table


def check_ledger(plan: PayablePlan, ledger: Ledger) -> None:
    """Refuse a ledger that protects another unit, has other neighbours, or cannot hold the plan's noise."""
    terms = ledger.terms
    if plan.unit is not None and terms.unit != plan.unit.name:
        raise InvalidParameter(
            f"The ledger protects each '{terms.unit}', and the plan units called '{plan.unit.name}', whose "
            "budgets do not add up. Name them alike if they are the same."
        )
    if terms.neighbours is not plan.neighbours:
        raise InvalidParameter(
            f"The ledger is for {terms.neighbours} neighbours and the plan for {plan.neighbours} ones, whose "
            f"costs do not add up. Declare {setting('neighbours', terms.neighbours.value)}."
        )
    if plan.remedy is not None and isinstance(terms.budget, PureBudget):
        raise InvalidParameter(
            "The ledger keeps pure epsilon, and the plan's noise has none. "
            f"{plan.remedy} from a ledger that was made with a delta."
        )


def charge(
    ledger: Ledger,
    plan: PayablePlan,
    *,
    purpose: str,
    secure: bool | None,
    spends: tuple[Spend, ...] | None = None,
) -> Receipt:
    """Charge a plan, with what was declared for it, to a ledger that protects the same units.

    `spends` are what is due now, where that is a part of the plan, such as a longer horizon.
    """
    check_ledger(plan, ledger)
    due = plan.spends if spends is None else spends
    return ledger.charge(*due, purpose=purpose, secure=secure, declared=plan.declared)


@contextmanager
def silence(missing: str) -> Iterator[None]:
    """While records are read, replace errors of engines, drivers and decoders by sentences of our own.

    Some of them name a byte or a value, and their kind may depend on records. So there is one sentence for
    all that values can cause, and one for each `Failure` that they cannot. Errors of our own speak of
    declarations alone and pass.

    >>> with silence("there is no release"):
    ...     raise UnicodeDecodeError("utf-8", b"secret", 0, 1, "bad")
    Traceback (most recent call last):
    sourdine.core.errors.SourdineError: The table could not be read to its end, so there is no release. ...
    """
    try:
        yield
    except SourdineError:
        raise
    except Exception as problem:
        failure = failure_of(problem)
        if failure is not None:
            raise SourdineError(
                f"{failure.value}, so {missing}. What was charged stays charged: let nothing else use, "
                "interrupt or close it while the table is read."
            ) from None
        raise SourdineError(
            f"The table could not be read to its end, so {missing}. What was charged stays charged, since "
            "part of the table was seen. Check that its file is whole and that the disk has room; on Spark, "
            "that the driver takes an answer with a row for each group (spark.driver.maxResultSize)."
        ) from None


def read_again(source: Source, read: Callable[[], T]) -> T:
    """Read a table under a charge that is made, and again if a `Failure` prevents it, at most three times.

    Call it before any noise of the charge is drawn: what failed has shown nothing but its class, which no
    value decides, so reading again reveals nothing that the charge does not pay for. The plan is the same
    object; the table must have the digest that it had. Every other failure is raised as it is.
    """
    digest = source.engine.digest()
    for pause in _PAUSES:
        try:
            return read()
        except Exception as problem:
            if failure_of(problem) is None or source.engine.digest() != digest:
                raise
            time.sleep(pause)
            source.engine.connect()
    return read()


@contextmanager
def paid(
    plan: PayablePlan, ledger: Ledger | Path | str, bits: Bits, *, purpose: str, missing: str
) -> Iterator[Receipt]:
    """Charge a plan, then carry out what is within; no error from there has the text of an engine.

    The charge is on the disk before anything within runs. An exception within never undoes it. `missing` says
    what there is not if the table cannot be read.
    """
    check_given(ledger)
    secure = bool(getattr(bits, "secure", False))
    with opened(ledger) as payer:
        receipt = charge(payer, plan, purpose=purpose, secure=secure)
    with silence(missing):
        yield receipt


def check_given(ledger: object) -> None:
    """Refuse to read records that nothing pays for."""
    if not isinstance(ledger, Ledger | Address | Path | str):
        raise InvalidParameter(
            "A release must be paid for: give the ledger, or the path of its file. "
            f"Make one with {either('Ledger.create', '`sourdine ledger create`')}."
        )
