"""A table cleaner: every cell made private on its own, so that the whole table may be handed out."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sourdine.accounting.ledger import Ledger, Receipt
from sourdine.accounting.ledger.ledger import opened
from sourdine.accounting.release import Release
from sourdine.accounting.spend import Spend
from sourdine.core import check
from sourdine.core.distance import Neighbours
from sourdine.core.errors import InvalidParameter, SourdineError
from sourdine.core.format import either
from sourdine.core.mechanism import Mechanism
from sourdine.core.random.bits import SYSTEM, Bits
from sourdine.frames.csv.format import TextFormat
from sourdine.frames.quality import ABSENT, read_cells
from sourdine.frames.schema import DERIVED, Category, Column, Flag, Integer, Real, Schema, Text
from sourdine.frames.source import AS_IT_IS, Source, open_source
from sourdine.local.cleaner.cells import Cleaned, CleanedCells, Gap, KeyCells
from sourdine.local.cleaner.division import divided, known
from sourdine.local.cleaner.numbers import Method, NumberCells, gridded
from sourdine.local.cleaner.writing import Output, like, write
from sourdine.local.estimate import Estimate

FORMAT = "sourdine cleaning 1"
MOST_ROWS = 1 << 20
SHARE = Fraction(1, 4)
Watch = Callable[[Sequence[CleanedCells]], Iterable[CleanedCells]]


@dataclass(frozen=True, init=False)
class Cleaner:
    """How every declared column of a table is made private; nothing of it is taken from the table.

    One record costs the sum of its cells' epsilons (basic composition; Dwork, Roth 2014, theorem 3.16), and a
    person with up to `rows` records that many times as much: `total`. Give the epsilon of a person, which is
    divided evenly over the columns that have none of their `own`; or give `each` column the same epsilon.
    Columns that are not declared are left out of the result. `gap` says what becomes of a cell that is shown
    as missing, and `gaps` of those of single columns: with any but `Gap.KEEP` the table has a value in every
    cell, as learners want it.

    >>> cleaner = Cleaner(
    ...     {
    ...         "age": {"type": "integer", "lower": 0, "upper": 120, "missing": 40},
    ...         "smokes": {"type": "flag", "missing": False},
    ...     },
    ...     epsilon=3,
    ...     own={"smokes": 1},
    ... )
    >>> {cells.name: str(cells.epsilon) for cells in cleaner.cells}, str(cleaner.total)
    ({'age': '2', 'smokes': '1'}, '3')
    """

    schema: Schema
    cells: tuple[CleanedCells, ...]
    rows: int
    unit: str
    share: Fraction

    def __init__(
        self,
        columns: Mapping[str, object] | Schema,
        *,
        epsilon: Fraction | float | None = None,
        each: Fraction | float | None = None,
        own: Mapping[str, Fraction | float] | None = None,
        method: Method = Method.LAPLACE,
        methods: Mapping[str, Method] | None = None,
        gap: Gap = Gap.KEEP,
        gaps: Mapping[str, Gap] | None = None,
        rows: int = 1,
        unit: str = "person",
        share: Fraction | float = SHARE,
    ) -> None:
        declared = columns if isinstance(columns, Schema) else Schema.read(columns)
        on_grids = {
            name: gridded(column) if isinstance(column, Real) else column
            for name, column in declared.columns.items()
        }
        if not on_grids:
            raise InvalidParameter("No column is declared, so nothing would be left. Declare at least one.")
        count = check.integer("a cleaning", "rows", rows, 1, MOST_ROWS)
        costs = divided(tuple(on_grids), epsilon, each, own or {}, count)
        chosen = {**dict.fromkeys(on_grids, method), **known("methods", methods or {}, on_grids)}
        missing = check.inside("a cleaning", "share", share, 0, 1)
        decided = {**dict.fromkeys(on_grids, gap), **known("gaps", gaps or {}, on_grids)}
        cells = tuple(
            _cells(name, column, costs[name], method=chosen[name], share=missing, gap=decided[name])
            for name, column in on_grids.items()
        )
        for name, value in {
            "schema": Schema(columns=on_grids),
            "cells": cells,
            "rows": count,
            "unit": unit,
            "share": missing,
        }.items():
            object.__setattr__(self, name, value)

    @property
    def record(self) -> Fraction:
        """What one record costs."""
        return sum((cells.price for cells in self.cells), Fraction(0))

    @property
    def total(self) -> Fraction:
        """What the cleaned table costs each person in it."""
        return self.rows * self.record

    @property
    def spends(self) -> tuple[Spend, ...]:
        """What is charged, once for each record of a person."""
        return tuple(replace(spend, count=self.rows) for cells in self.cells for spend in cells.charges)

    def _spends_for(self, ledger: Ledger) -> tuple[Spend, ...]:
        """What is charged to a ledger: cell by cell, what costs less in its currency; both are bounds."""
        chosen: list[Spend] = []
        for cells in self.cells:
            ways = [
                tuple(replace(spend, count=self.rows) for spend in way)
                for way in (cells.charges, cells.spends)
            ]
            chosen += min(ways, key=lambda way: ledger.price(*way))
        return tuple(chosen)

    @property
    def declared(self) -> dict[str, str]:
        """What was declared of the columns, for a ledger and a certificate."""
        return {name: column.model_dump_json() for name, column in self.schema.columns.items()}

    def open(self, table: object, text: TextFormat | Mapping[str, object] = AS_IT_IS) -> Source:
        """A table to be cleaned, of which only names and types are looked at."""
        return open_source(table, self.schema, text=text, spark=False)

    def clean(
        self,
        table: object,
        *,
        ledger: Ledger | Path | str | None = None,
        purpose: str = "a cleaned table",
        keep_order: bool = False,
        text: TextFormat | Mapping[str, object] = AS_IT_IS,
        bits: Bits = SYSTEM,
        watch: Watch = lambda columns: columns,
    ) -> "CleanTable":
        """The cleaned table, of the same kind as the one that came in.

        Records come out in an order drawn anew, since an order may tell about them: that of a table sorted by
        pay tells who earns more, whatever the noise. Keep the order only if it is public, or if each person's
        place in it is. How many records there are is not hidden. With a ledger, the charge is on the disk
        before any record is read.
        """
        source = self.open(table, text)
        secure = bool(getattr(bits, "secure", False))
        with opened(ledger) as payer:
            receipt = None if payer is None else self._pay(payer, purpose, secure)
            spends = self.spends if payer is None else self._spends_for(payer)
        places = self.read(source)
        order = None if keep_order else shuffled(len(next(iter(places.values()))), bits)
        cleaned = {}
        for cells in watch(self.cells):
            private = places.pop(cells.name)
            cleaned[cells.name] = cells.sample(private if order is None else private[order], bits)
        complete = self.decide(cleaned, bits)
        return CleanTable(
            cleaner=self,
            columns=cleaned,
            shown=complete,
            kept_order=keep_order,
            values=like(table, {cells.name: Output.of(cells, complete[cells.name]) for cells in self.cells}),
            intervals=None,
            spends=spends,
            receipt=receipt,
            secure=secure,
            declarations=self.declared,
        )

    def _pay(self, ledger: Ledger, purpose: str, secure: bool) -> Receipt:
        if ledger.terms.unit != self.unit:
            raise InvalidParameter(
                f"The ledger protects each '{ledger.terms.unit}', and the cleaning each '{self.unit}'. Their "
                "budgets do not add up. If they are the same, name them alike."
            )
        if ledger.terms.neighbours is not Neighbours.REPLACE:
            raise InvalidParameter(
                f"The ledger is for {ledger.terms.neighbours} neighbours. A cleaned table shows how many "
                "records there are, so it protects what a record holds and not that it is there. Pay from a "
                "ledger for replace neighbours: "
                + either(
                    'Ledger.create(path, epsilon=..., neighbours="replace").',
                    "sourdine ledger create FILE --neighbours replace.",
                )
            )
        return ledger.charge(
            *self._spends_for(ledger), purpose=purpose, secure=secure, declared=self.declared
        )

    def decide(self, columns: Mapping[str, Cleaned], bits: Bits) -> dict[str, Cleaned]:
        """The cells that are handed out: of those shown as missing, what the rules of their columns say.

        Whether a record is left out, and what is drawn, depends on its cleaned cells and on nothing else, so
        it costs nothing (post-processing; Dwork, Roth 2014, proposition 2.1).
        """
        decided = dict(columns)
        out = np.zeros(len(next(iter(columns.values()))), np.bool_)
        for cells in self.cells:
            if cells.gap is Gap.DROP:
                out |= np.ma.getmaskarray(columns[cells.name])
            elif cells.gap is Gap.DRAW and cells.keeps_missing:
                decided[cells.name] = cells.drawn(columns[cells.name], bits)
        return {name: each[~out] for name, each in decided.items()} if out.any() else decided

    def read(self, source: Source) -> dict[str, NDArray[np.int64]]:
        """All private cells, as places on grids and among keys."""
        columns = _fetch(source, {cells.name: cells.read(source) for cells in self.cells})
        return {name: np.ma.filled(each.astype(np.int64), ABSENT) for name, each in columns.items()}

    def estimates(self, table: object, confidence: float = 0.95) -> dict[str, Estimate]:
        """What a table that was cleaned like this says: means and shares, rid of the effect of the noise."""
        for cells in self.cells:
            if cells.keeps_missing and not cells.has_gaps:
                raise InvalidParameter(
                    f"In this table the cells of '{cells.name}' that were shown as missing were left out or "
                    "drawn anew, so it does not say what was reported. Take the estimates of whoever cleaned "
                    f"it, or have it cleaned with gap = '{Gap.KEEP}'."
                )
        source = self.open(table)
        columns = _fetch(source, {cells.name: cells.reread(source) for cells in self.cells})
        level = check.confidence("Cleaner.estimates", confidence)
        return {
            cells.name: cells.estimate(cells.restored(np.ma.asarray(columns[cells.name])), level)
            for cells in self.cells
        }

    def to_json(self) -> dict[str, object]:
        """What was done to a table, to be handed out with it: it holds nothing of the data."""
        return {
            "format": FORMAT,
            "unit": self.unit,
            "rows": self.rows,
            "epsilon": str(self.total),
            "share": str(self.share),
            "columns": {
                cells.name: {
                    "declared": cells.column.model_dump(mode="json"),
                    "epsilon": str(cells.epsilon),
                    **({"method": str(cells.kind)} if isinstance(cells, NumberCells) else {}),
                    **({} if cells.gap is Gap.KEEP else {"gap": str(cells.gap)}),
                    "mechanisms": [spend.mechanism.to_json() for spend in cells.spends],
                }
                for cells in self.cells
            },
        }

    @classmethod
    def from_json(cls, description: object) -> "Cleaner":
        """The cleaner that a description tells of."""
        wrong = InvalidParameter(
            "This describes no cleaning. It is cut short or was changed. Get it again from whoever cleaned."
        )
        if not isinstance(description, Mapping) or description.get("format") != FORMAT:
            raise wrong
        try:
            columns = description["columns"]
            cleaner = cls(
                {name: each["declared"] for name, each in columns.items()},
                own={name: Fraction(each["epsilon"]) for name, each in columns.items()},
                methods={name: Method(each["method"]) for name, each in columns.items() if "method" in each},
                gaps={name: Gap(each["gap"]) for name, each in columns.items() if "gap" in each},
                rows=description["rows"],
                unit=description["unit"],
                share=Fraction(description["share"]),
            )
            renamed = {**description, "columns": {name: _renamed(each) for name, each in columns.items()}}
        except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError):
            raise wrong from None
        expected = cleaner.to_json()
        # version 0.1 gave the epsilon of all rows
        before = str(cleaner.rows * sum(cells.epsilon for cells in cleaner.cells))
        if renamed not in (expected, expected | {"epsilon": before}):
            raise wrong
        return cleaner


def _renamed(column: Mapping[str, Any]) -> dict[str, Any]:
    """What is told of a column, with its mechanisms by the names that are written now."""
    written = [Mechanism.from_json(each).to_json() for each in column["mechanisms"]]
    return {**column, "mechanisms": written}


@dataclass(frozen=True, kw_only=True)
class CleanTable(Release):
    """A table whose every cell is private. `values` is the table.

    `columns` are its cells as they were reported, and `shown` as they are handed out: without those that are
    shown as missing, where the cleaner has a rule for them.
    """

    cleaner: Cleaner
    columns: Mapping[str, Cleaned]
    shown: Mapping[str, Cleaned]
    kept_order: bool

    @property
    def size(self) -> int:
        """How many records were reported."""
        return len(next(iter(self.columns.values())))

    @property
    def handed_out(self) -> int:
        """How many of them are handed out."""
        return len(next(iter(self.shown.values())))

    def estimates(self, confidence: float = 0.95) -> dict[str, Estimate]:
        """Means and shares of the true cells, rid of what the noise did to them; they cost nothing more."""
        level = check.confidence("CleanTable.estimates", confidence)
        return {cells.name: cells.estimate(self.columns[cells.name], level) for cells in self.cleaner.cells}

    def write(self, path: Path | str) -> None:
        """Keep the table in a file: CSV, TSV, JSON or Parquet, by its ending."""
        write(
            {cells.name: Output.of(cells, self.shown[cells.name]) for cells in self.cleaner.cells},
            Path(path),
        )


def shuffled(count: int, bits: Bits) -> NDArray[np.int64]:
    """An order in which every order is equally likely: that of random words, drawn anew if two are equal."""
    while True:
        words = bits.words(count)
        order = np.argsort(words)
        ranked = words[order]
        if not (ranked[1:] == ranked[:-1]).any():
            return order


def _cells(
    name: str, column: Column, epsilon: Fraction, *, method: Method, share: Fraction, gap: Gap
) -> CleanedCells:
    if isinstance(column, Integer | Real) and not isinstance(column, DERIVED):
        return NumberCells(name=name, column=column, epsilon=epsilon, kind=method, share=share, gap=gap)
    if isinstance(column, Text):
        raise InvalidParameter(
            f"The column '{name}' is declared as text, and a cell is made private among known keys. "
            "Declare it as a category with its keys, or leave it out."
        )
    if not isinstance(column, Category | Flag) or isinstance(column, DERIVED):
        raise InvalidParameter(
            f"The column '{name}' holds dates or is derived, and a cell is made private among known keys or "
            "numbers. Write what is meant into a column of the table, or leave it out."
        )
    return KeyCells(name=name, column=column, epsilon=epsilon, gap=gap)


def _fetch(source: Source, cells: Mapping[str, str]) -> dict[str, NDArray[Any]]:
    """Cells of a table; an error of the engine is told without its words, which may quote cells."""
    import duckdb

    try:
        return read_cells(source, cells)
    except duckdb.Error:
        raise SourdineError(
            "The table could not be read to its end, so there is no result. What was charged stays charged. "
            "Check that its file is whole and that there is room."
        ) from None
