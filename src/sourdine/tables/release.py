"""Charge, count exactly, add noise, read off answers."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sourdine.accounting.ledger import Ledger, PureBudget, Receipt
from sourdine.accounting.release import Release
from sourdine.core.bits import SYSTEM, Bits
from sourdine.core.errors import InvalidParameter, SourdineError
from sourdine.frames.counting import Numbers, Request, totals_of
from sourdine.frames.ranks import ranks
from sourdine.frames.source import Source
from sourdine.tables.aggregate import Quantiles
from sourdine.tables.answer import Answer, Answers
from sourdine.tables.answering import answer_of, quantiles_of
from sourdine.tables.measurement import Kind, condition
from sourdine.tables.plan import Line, Plan
from sourdine.tables.reading import Noisy

_FEW = 1 << 13  # groups that an engine keeps as quickly as a handful
Scan = Sequence[Line]
Watch = Callable[[Sequence[Scan]], Iterable[Scan]]


@dataclass(frozen=True, kw_only=True)
class TableRelease(Release):
    """A release of tables: `values` are its answers, with their intervals; `plan` says how they were made."""

    plan: Plan
    values: Answers

    @property
    def declared(self) -> dict[str, str]:
        """What was declared and what was picked by it, for the certificate."""
        return declared_of(self.plan)


def release(
    plan: Plan,
    source: Source,
    ledger: Ledger | Path | str,
    *,
    purpose: str,
    bits: Bits = SYSTEM,
    watch: Watch = lambda scans: scans,
) -> TableRelease:
    """Pay for a plan from a ledger, or from the one in a file, then carry it out.

    The guarantee is the plan's: epsilon, or (epsilon, delta), for one unit under the plan's neighbours. The
    charge is on the disk before any record is read. After it nothing that is raised or shown depends on the
    data: an error of the engine is told without its words, and the charge stands.
    """
    if isinstance(ledger, str | Path):
        with Ledger.open(ledger) as opened:
            return release(plan, source, opened, purpose=purpose, bits=bits, watch=watch)
    if not isinstance(ledger, Ledger):
        raise InvalidParameter(
            "A release must be paid for: give the ledger, or the path of its file. "
            "Make one with Ledger.create or 'sourdine ledger create'."
        )
    check_source(plan, source)
    check_ledger(plan, ledger)
    secure = bool(getattr(bits, "secure", False))
    receipt = ledger.charge(*plan.spends, purpose=purpose, secure=secure, declared=declared_of(plan))
    return _carry_out(plan, source, receipt=receipt, bits=bits, watch=watch)


def _carry_out(
    plan: Plan,
    source: Source,
    *,
    receipt: Receipt | None = None,
    bits: Bits = SYSTEM,
    watch: Watch = lambda scans: scans,
) -> TableRelease:
    """The answers of a plan. Without a receipt they are for rehearsals and measurements only."""
    import duckdb

    check_source(plan, source)
    try:
        answers = Answers(_answers(plan, source, bits, watch), plan.confidence)
    except duckdb.Error:
        raise SourdineError(
            "The table could not be read to its end, so there is no release. What was charged stays charged, "
            "since part of the table was seen. Check that its file is whole and that the disk has room."
        ) from None
    return TableRelease(
        plan=plan,
        values=answers,
        intervals=tuple(
            (each.estimate.lower, each.estimate.upper) if each.bounded else None for each in answers.each
        ),
        spends=plan.spends,
        receipt=receipt,
        confidence=plan.confidence,
        secure=bool(getattr(bits, "secure", False)),
        notes=plan.notes,
    )


def declared_of(plan: Plan) -> dict[str, str]:
    """What was declared of the columns, each as one text, and the methods that were picked by it."""
    return plan.picked | {name: column.model_dump_json() for name, column in plan.schema.columns.items()}


def check_source(plan: Plan, source: Source) -> None:
    """Refuse a table that is not declared as the plan has it: its values would be clamped to other bounds."""
    if source.schema != plan.schema or plan.unit.column not in (None, *source.types):
        raise InvalidParameter(
            "The table was opened with other declarations than the plan was made with. "
            "The plan's distances may be too short for it. Open it with the plan's schema and unit."
        )


def check_ledger(plan: Plan, ledger: Ledger) -> None:
    """Refuse a ledger that protects somebody else."""
    terms = ledger.terms
    if terms.unit != plan.unit.name:
        raise InvalidParameter(
            f"The ledger protects each '{terms.unit}' and the table is declared to hold units called "
            f"'{plan.unit.name}'. Their budgets do not add up. If they are the same, name them alike."
        )
    if terms.neighbours is not plan.neighbours:
        raise InvalidParameter(
            f"The ledger is for {terms.neighbours} neighbours and the plan for {plan.neighbours} ones. "
            f'Their costs do not add up. Declare neighbours = "{terms.neighbours}".'
        )
    if plan.privacy.squared and isinstance(terms.budget, PureBudget):
        raise InvalidParameter(
            "The ledger keeps pure epsilon, and the plan has a delta, so its noise has no pure epsilon. "
            "Leave out the delta, or pay from a ledger that was made with one."
        )


def scans(plan: Plan) -> list[Scan]:
    """The lines of a plan by the passes over the table they need.

    Lines about the same records are summed in one pass, as long as all their keys together make few groups.
    """
    found: list[list[Line]] = []
    for line in plan.lines:
        for scan in found:
            if _together([*scan, line], plan):
                scan.append(line)
                break
        else:
            found.append([line])
    return list(found)


def _together(lines: Scan, plan: Plan) -> bool:
    """Whether one pass over the table may serve these lines."""
    measured = [line.measurement for line in lines]
    if any(each.kind in (Kind.TREE, Kind.ORDER) for each in measured):
        return False
    if any(each.query.where != measured[0].query.where for each in measured):
        return False
    if all(each.query is measured[0].query and each.asked is None for each in measured):
        return True
    return math.prod(dict(size for each in measured for size in each.sizes(plan.schema)).values()) <= _FEW


def _answers(plan: Plan, source: Source, bits: Bits, watch: Watch) -> tuple[Answer, ...]:
    """Every answer in the order of the questions, scan by scan."""
    found: dict[tuple[str, str], Answer] = {}
    asked = [(query, each, plan.line_for(query, each)) for query in plan.queries for each in query.ask]
    for scan in watch(scans(plan)):
        where = condition(scan[0].measurement.query, source)
        if scan[0].measurement.kind in (Kind.TREE, Kind.ORDER):
            line = scan[0]
            by, value = line.measurement.groupings(source), line.measurement.value(source)
            places = line.measurement.width(plan.schema) + 1
            groups = ranks(source, by=by, value=value, unit=plan.unit, bits=bits, where=where, places=places)
            for query, each, held in asked:
                if held is line and isinstance(each, Quantiles):
                    found[query.name, each.label] = quantiles_of(each, line, plan, groups, bits)
            continue
        requests = [_request(line, plan, source) for line in scan]
        exact = totals_of(source, requests, unit=plan.unit, bits=bits, where=where)
        for line, counted in zip(scan, exact, strict=True):
            drawn = line.mechanism.sample(_array(counted.numbers[0], line, plan), bits).astype(float)
            noisy = Noisy(numbers=drawn, mechanism=line.mechanism, confidence=plan.confidence)
            for query, each, held in asked:
                if held is line:
                    found[query.name, each.label] = answer_of(each, line, plan, noisy)
    return tuple(found[query.name, each.label] for query, each, _ in asked)


def _array(numbers: Numbers, line: Line, plan: Plan) -> NDArray[Any]:
    """Whole numbers in 64 bits where 2^40 records could not make them larger, else of any size."""
    reach = line.measurement.statistic(plan.schema, plan.unit, "").reach
    return np.array(numbers, dtype=np.int64 if reach <= 1 << 22 else object)


def _request(line: Line, plan: Plan, source: Source) -> Request:
    measured = line.measurement
    statistic = measured.statistic(plan.schema, plan.unit, measured.value(source))
    return Request(by=tuple(measured.groupings(source)), statistics=(statistic,))
