"""Bounds of a column found privately, where nobody knows any: a spend of its own, before all others."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import ValidationError

from sourdine.accounting.ledger import Ledger
from sourdine.accounting.ledger.making import exact
from sourdine.accounting.release import Release
from sourdine.accounting.spend import Spend
from sourdine.core import check
from sourdine.core.distance import Distance, Neighbours
from sourdine.core.errors import InvalidParameter
from sourdine.core.format import counted, written
from sourdine.core.random.bits import SYSTEM, Bits
from sourdine.frames.csv.format import TextFormat
from sourdine.frames.declared import mistake
from sourdine.frames.expressions.tree import decimal
from sourdine.frames.rank_counts import CountedValues, NumberLadder, ranks
from sourdine.frames.schema import PrivacyUnit, Real, Schema
from sourdine.frames.source import AS_IT_IS, Source, open_source
from sourdine.tables.measurement import EACH_RECORD
from sourdine.tables.payment import admit, paid, read_again
from sourdine.tables.quantiles.histogram import ThresholdHistogram
from sourdine.tables.specification import NO_QUERIES, Specification, check_filled, read_blocks

Kind = Literal["integer", "real"]
_HIDDEN = Fraction(1, 5)  # of the records, from which on bounds are not worth their price
LADDERS: Mapping[str, NumberLadder] = {"integer": NumberLadder(0, 15), "real": NumberLadder(-6, 15)}
_ANY = Schema(columns={"any": Real(lower=-1e15, upper=1e15)}).columns["any"]  # stands for the unknown bounds


@dataclass(frozen=True, kw_only=True)
class BoundsPlan:
    """How the bounds of a column are to be found, and what that costs; no record is read.

    For each end half of epsilon goes to the first rung of a ladder of round numbers that all but half of the
    share `outside` lie within, as far as noise tells (Durfee 2023; AboveThreshold on counts
    below rungs; Dwork and Roth 2014; Lyu, Su, Li 2017). The guarantee is epsilon
    for one unit.

    >>> plan = BoundsPlan(column="pay", epsilon=Fraction(1, 10))
    >>> sum(spend.loss().epsilon for spend in plan.spends)
    Fraction(1, 10)
    """

    column: str
    epsilon: Fraction
    kind: Kind = "real"
    unit: PrivacyUnit = EACH_RECORD
    neighbours: Neighbours = Neighbours.ADD_REMOVE
    outside: float = 0.01
    confidence: float = 0.95
    caveats: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.column:
            raise check.fail("bounds", "column", "be a column's name", self.column)
        meant = exact("bounds", "epsilon", self.epsilon)  # ten times 0.1 are 1, as in the ledger that pays
        check.keep(self, epsilon=check.positive("bounds", "epsilon", meant, 1 << 10))
        if self.kind not in LADDERS:
            raise check.fail("bounds", "kind", "be integer or real", self.kind)
        outside = check.between("bounds", "outside", self.outside, Fraction(1, 10**6), Fraction(1, 2))
        check.keep(self, outside=float(outside), confidence=check.confidence("bounds", self.confidence))

    @property
    def schema(self) -> Schema:
        """The column as it is opened, before it has bounds."""
        return Schema(columns={self.column: _ANY})

    @property
    def declared(self) -> dict[str, str]:
        """What is looked for, for the ledger and the certificate."""
        inside = f"{self.kind}, all but {self.outside:g} of the records inside"
        reading = {"reading": " ".join(self.caveats)} if self.caveats else {}
        return {f"bounds of {self.column}": inside} | reading

    @property
    def remedy(self) -> None:
        """Nothing: a search for bounds has a pure epsilon."""

    @property
    def purpose(self) -> str:
        """What the ledger notes it for."""
        return bounds_purpose(self.column)

    @property
    def mechanism(self) -> ThresholdHistogram:
        """What finds one end."""
        places = LADDERS[self.kind].places
        return ThresholdHistogram(
            epsilon=self.epsilon / (2 * self.unit.max_rows),
            levels=(1 - decimal(self.outside) / 2,),
            places=places,
            cuts=places,
            neighbours=self.neighbours,
        )

    @property
    def spends(self) -> tuple[Spend, ...]:
        """What the two ends cost."""
        distance = Distance.hamming(self.unit.max_rows, neighbours=self.neighbours)
        return (Spend(mechanism=self.mechanism, distance=distance, count=2),)

    @property
    def off(self) -> float:
        """By how many records more than the share outside the two ends may miss, with the confidence."""
        return 2 * self.mechanism.error((1 + self.confidence) / 2)

    @property
    def enough(self) -> int:
        """From how many records on the noise hides no more than a fifth of them."""
        return math.ceil(self.off / _HIDDEN)

    @property
    def words(self) -> str:
        """The promise, and for how many records it is worth something."""
        return (
            f"With {100 * self.confidence:g} % confidence at most {100 * self.outside:g} % of the records "
            f"that count and {self.off:,.0f} more lie outside. Of fewer than about {self.enough:,} records "
            "that tells little."
        )

    def check_size(self, size: int | None, remedy: str) -> None:
        """Refuse to pay for bounds of so few records, if it is public how many there are."""
        if size is not None and check.integer("bounds", "size", size, 1, 1 << 40) < self.enough:
            needed = math.ceil(100 * Fraction(self.enough, size) * self.epsilon) / 100
            raise InvalidParameter(
                f"Bounds of '{self.column}' would tell little: at epsilon {float(self.epsilon):g} noise may "
                f"hide {self.off:,.0f} of about {counted(size, 'record')}. Nothing was spent. Take bounds "
                f"from what the column means, or an epsilon of {needed:g} or more. {remedy}"
            )


@dataclass(frozen=True, kw_only=True)
class FoundBounds(Release):
    """Bounds that were found privately and paid for; `values` are the lower and the upper one."""

    plan: BoundsPlan

    @property
    def block(self) -> str:
        """The declaration of the column, to paste into a specification."""
        lower, upper = self.values
        name = self.plan.column
        plain = name.isascii() and name.replace("_", "").replace("-", "").isalnum()
        title = name if plain else json.dumps(name, ensure_ascii=False)
        return (
            f"[columns.{title}]\n"
            f'type = "{self.plan.kind}"\n'
            f"lower = {lower!r}\n"
            f"upper = {upper!r}\n"
            f"found = {json.dumps(self.found, ensure_ascii=False)}\n"
        )

    @property
    def found(self) -> str:
        """Where the bounds come from, for the certificates of later releases."""
        line = "" if self.receipt is None else f", line {self.receipt.number} of its ledger"
        return f"privately, for epsilon {written(self.plan.epsilon)}{line}"

    @property
    def declared(self) -> dict[str, object]:
        """The same declaration for `Table(columns=...)`."""
        lower, upper = self.values
        return {"type": self.plan.kind, "lower": lower, "upper": upper, "found": self.found}


def find_bounds(
    table: object,
    column: str,
    *,
    unit: PrivacyUnit | str,
    epsilon: Fraction | float | str,
    ledger: Ledger | Path | str,
    kind: Kind | None = None,
    outside: float = 0.01,
    neighbours: Neighbours = Neighbours.ADD_REMOVE,
    size: int | None = None,
    confidence: float = 0.95,
    text: TextFormat | Mapping[str, object] = AS_IT_IS,
    bits: Bits = SYSTEM,
) -> FoundBounds:
    """Bounds between which all but a small share of a column's numbers lie, paid from a ledger.

    The guarantee is epsilon for one unit. The charge is on the disk before any record is read. Without a
    `kind` numbers are reals, and a column that comes as text is refused. `size` is about how many records
    there are, if that is public: of too few nothing is paid.
    """
    whose = PrivacyUnit(name=unit) if isinstance(unit, str) else unit
    plan = BoundsPlan(
        column=column,
        epsilon=epsilon,  # type: ignore[arg-type]
        kind="real" if kind is None else kind,
        unit=whose,
        neighbours=neighbours,
        outside=outside,
        confidence=confidence,
        caveats=TextFormat.read(text).caveats,
    )
    plan.check_size(size, "To pay all the same, leave out the size.")
    source = open_column(table, plan, text)
    if kind is None:
        check_numbers(source, column, 'kind="integer" or kind="real"')
    return release_bounds(plan, source, ledger, bits=bits)


def check_numbers(source: Source, column: str, remedy: str) -> None:
    """Refuse a column that comes as text where nobody said that it holds numbers."""
    if column in source.text:
        raise InvalidParameter(
            f"The column '{column}' holds text, and nothing says that it holds numbers, which alone have "
            f"bounds. Nothing was spent. If it does, say {remedy}."
        )


def bounds_purpose(column: str) -> str:
    """What a ledger notes for the bounds of a column."""
    return f"bounds of {column}"[:200]


def open_column(
    table: object, plan: BoundsPlan, text: TextFormat | Mapping[str, object] = AS_IT_IS
) -> Source:
    """The table with the one column whose bounds are looked for."""
    others = [] if plan.unit.column is None else [plan.unit.column]
    return open_source(table, plan.schema, others, text=text)


def release_bounds(
    plan: BoundsPlan, source: Source, ledger: Ledger | Path | str, *, bits: Bits = SYSTEM
) -> FoundBounds:
    """Pay for a plan, then find the bounds."""
    source = admit(plan, source)
    with paid(plan, ledger, bits, purpose=plan.purpose, missing="there are no bounds") as receipt:
        values = _bounds_of(plan, source, bits)
    return FoundBounds(
        plan=plan,
        values=values,
        intervals=None,
        spends=plan.spends,
        receipt=receipt,
        confidence=plan.confidence,
        secure=bool(getattr(bits, "secure", False)),
        notes=(plan.words, *plan.caveats),
        declarations=plan.declared,
    )


def _bounds_of(plan: BoundsPlan, source: Source, bits: Bits) -> tuple[int, int] | tuple[float, float]:
    """Both ends; the lower is the upper end of what has its sign changed."""
    ladder, mechanism = LADDERS[plan.kind], plan.mechanism
    values = read_again(
        source,
        lambda: ranks(
            source,
            by=(),
            value=ladder.place(source, plan.column),
            unit=plan.unit,
            bits=bits,
            places=ladder.places,
        ),
    )[()]
    assert isinstance(values, CountedValues)
    upper = ladder.below(int(mechanism.sample(values, bits)[0]))
    lower = -ladder.below(int(mechanism.sample(_mirrored(values, ladder.places), bits)[0]))
    if plan.kind == "integer":  # no whole number lies between a rung and what it is rounded to
        lower, upper = Fraction(math.ceil(lower)), Fraction(math.floor(upper))
    if lower >= upper:  # one value alone, or noise: bounds must differ
        lower, upper = min(lower, upper) - 1, max(lower, upper) + 1
    return (int(lower), int(upper)) if plan.kind == "integer" else (float(lower), float(upper))


def _mirrored(values: CountedValues, places: int) -> CountedValues:
    """The same values with their signs changed."""
    counts = np.diff(values.cumulative, prepend=0)[::-1]
    return CountedValues(places - 1 - values.values[::-1], np.cumsum(counts))


def load_draft(path: Path) -> tuple[Specification, Mapping[str, Any]]:
    """What a specification says of its table and its guarantee, while its columns still wait for bounds."""
    blocks = read_blocks(path)
    some = {name: blocks[name] for name in ("table", "privacy") if name in blocks}
    check_filled(some, path)
    try:
        specification = Specification.model_validate({**some, "queries": NO_QUERIES, "folder": path.parent})
    except ValidationError as problem:
        raise mistake(problem, "") from None
    columns = blocks.get("columns")
    return specification, columns if isinstance(columns, Mapping) else {}
