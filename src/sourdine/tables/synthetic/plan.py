"""What a synthetic table will measure, cost and need, from declarations alone: no record is read."""

import math
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sourdine.accounting.spend import Spend
from sourdine.core.distance import Distance, Neighbours, root_above
from sourdine.core.errors import InvalidParameter
from sourdine.core.format import entry, setting
from sourdine.frames.schema import DERIVED, Category, Column, Flag, PrivacyUnit, Schema, Text
from sourdine.mechanisms import Exponential, Gaussian, PartitionThreshold
from sourdine.mechanisms.gaussian import LEAST_SIGMA, MOST_SIGMA
from sourdine.tables.privacy import Privacy
from sourdine.tables.statistics.hierarchy import Hierarchy
from sourdine.tables.synthetic.cells import MISSING, MOST_KEYS, CellColumn, TextCells, cells_of
from sourdine.tables.synthetic.declaration import SyntheticBlock
from sourdine.tables.synthetic.fit import NoisyTable
from sourdine.tables.synthetic.measure import FINENESS, Pair, SynthesisNoise, blocks

MOST_COLUMNS = 512
MOST_CELLS = 1 << 22  # of one pair
_MOST_PARTS = 256
_ROWS = 100_000  # where no size is declared
_OVERHEAD = 300 << 20  # bytes of an engine that reads a table
_ENOUGH = 3  # deviations of the noise of its size that a part must exceed
_SURELY = 6  # deviations by which the noisy number of records is not exceeded
# seconds, of a core of 2020 or so, on a million rows; fewer take less for each
_PER_VALUE = 6e-8  # to read one value
_PER_RECORD = 7e-9  # to count one record by two blocks of columns
_PER_CELL = 2e-6  # for a cell of a table until it agrees with others
_PER_EDGE = 4e-3  # for any table until then
_PER_DRAWN = 2.6e-7  # to draw one value: records are sorted for each column


@dataclass(frozen=True, kw_only=True)
class SyntheticPlan:
    """A synthetic table before it is paid: its columns, mechanisms, cost, and what it needs of the machine.

    The guarantee is (epsilon, delta) for one unit, of which one record counts, added or removed or replaced.
    """

    schema: Schema
    privacy: Privacy
    unit: PrivacyUnit
    neighbours: Neighbours = Neighbours.ADD_REMOVE
    block: SyntheticBlock = field(default_factory=SyntheticBlock)
    size: int | None = None
    hierarchies: tuple[Hierarchy, ...] = ()
    checked: bool = False
    caveats: tuple[str, ...] = ()
    chosen: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.privacy.delta is None or not self.privacy.squared:
            raise InvalidParameter(
                "A synthetic table adds Gaussian noise, which has no pure epsilon: it needs a delta, and not "
                "all of it for keys. Nothing was spent. Declare one, as in "
                f"{setting('delta', 1e-06)}."
            )
        self._check_names()
        self._check_texts()
        self._check_size()
        self._check_levels()
        if self.target is not None:
            self._check_parts()

    def _check_names(self) -> None:
        block, known = self.block, self.schema.base.columns
        about = [*block.bins, *block.totals, *(name for zero in block.zeros for name in zero)]
        about += [] if block.target is None else [block.target]
        for name in (*(block.columns or ()), *block.leave_out, *about):
            if name not in known:
                raise InvalidParameter(
                    f"The synthetic table is asked for the column '{name}', which is not declared. Cells are "
                    f"never taken from the data. Declare it under {entry('columns', name)}, or take it out."
                )
        if lost := [name for name in about if name not in self.names]:
            raise InvalidParameter(
                f"The synthetic table leaves out the column '{lost[0]}' and says something of it. Do one."
            )
        if not self.names:
            raise InvalidParameter("The synthetic table has no column left. Leave out fewer.")
        if block.mark in self.names:
            raise InvalidParameter(f"The mark '{block.mark}' is a column of the table. Give it another name.")
        if len(self.names) > MOST_COLUMNS:
            raise InvalidParameter(
                f"The synthetic table has {len(self.names):,} columns, and at most {MOST_COLUMNS} share a "
                "budget sensibly. Leave out what nobody needs."
            )
        if block.target is not None:
            column = self.schema.columns[block.target]
            if not isinstance(column, Category | Flag):
                raise InvalidParameter(
                    f"The target '{block.target}' must have declared keys, one for each tree, and it is no "
                    "category and no flag. Declare its keys, or choose another target."
                )
            if len(self.names) == 1:
                raise InvalidParameter("A target needs other columns beside it. Add some, or ask without it.")
        self.zeros, self.totals  # noqa: B018 (what is said of keys that are not declared is refused)

    def _check_texts(self) -> None:
        """Keys that nobody listed need a part of delta: half, if nothing is said; else none is needed."""
        delta, part = self.privacy.delta, self.privacy.selection_delta
        assert delta is not None
        if not self.texts:
            part = None
        elif part is None:
            part = delta / 2
        elif part == 0:
            raise InvalidParameter(
                f"The column '{self.texts[0]}' holds texts that nobody listed, whose keys are chosen "
                "privately, and selection_delta leaves nothing of delta for that. Nothing was spent. Give it "
                f"a part, or leave the column out by name: {entry('leave_out', [self.texts[0]])}."
            )
        object.__setattr__(self, "privacy", replace(self.privacy, selection_delta=part))

    def _check_size(self) -> None:
        largest = sorted(self._sizes, reverse=True)[:2]
        if math.prod(largest) > MOST_CELLS:
            raise InvalidParameter(
                f"Two columns of the synthetic table have {largest[0]:,} and {largest[1]:,} cells, and their "
                f"table would have more than {MOST_CELLS:,}, most of them noise. Nothing was spent. Declare "
                "fewer bins, coarser keys or longer periods, or leave one out."
            )
        room = _memory()
        if room is not None and self.bytes > room:
            raise InvalidParameter(
                f"The synthetic table needs about {self.bytes / 2**30:.1f} GiB of memory, and this machine "
                f"has {room / 2**30:.1f}. Nothing was spent. Leave out columns, or run it on a larger one."
            )

    def _check_levels(self) -> None:
        for each in self.hierarchies:
            for name in each.levels[:-1]:
                if name in self.names or name == self.block.mark:
                    raise InvalidParameter(
                        f"The level '{name}' of a hierarchy is a column of the synthetic table too, which "
                        f"would not add up. Leave the column out: {entry('leave_out', [name])}."
                    )

    def _check_parts(self) -> None:
        """Refuse parts that noise would drown, if it is public how many records there are."""
        if self.size is None:
            return
        noise = _ENOUGH * min(self._size_deviations)
        average = self.size / len(self.parts)
        if average < 10 * noise:
            raise InvalidParameter(
                f"With the target '{self.target}' a part has about {average:,.0f} of {self.size:,} records, "
                f"and noise alone may seem {noise:,.0f}. Nothing was spent. Choose a target with fewer keys, "
                "ask without one, or with a larger epsilon."
            )

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The columns of the synthetic table, in their order."""
        chosen = self.block.columns
        if chosen is None:
            identity = {self.unit.column}
            chosen = tuple(name for name in self.schema.base.columns if name not in identity)
        return tuple(name for name in chosen if name not in self.block.leave_out)

    @property
    def left_out(self) -> tuple[str, ...]:
        """What is declared of the real table and not in the synthetic one."""
        return tuple(name for name in self.schema.base.columns if name not in self.names)

    @property
    def target(self) -> str | None:
        """The column of whose keys each has a tree."""
        return self.block.target

    @cached_property
    def parts(self) -> tuple[str, ...]:
        """What the parts are called: one for each cell of the target, or one for all."""
        if self.target is None:
            return ("",)
        labels = self._cells(self.target).labels
        if len(labels) > _MOST_PARTS:
            raise InvalidParameter(
                f"The target '{self.target}' has {len(labels):,} keys, each with a tree of its own, and at "
                f"most {_MOST_PARTS} are grown. Choose a target with fewer."
            )
        return labels

    @cached_property
    def columns(self) -> tuple[CellColumn, ...]:
        """The columns of a tree: all but the target."""
        return tuple(self._cells(name) for name in self.names if name != self.target)

    @cached_property
    def target_cells(self) -> CellColumn | None:
        """The cells of the target."""
        return None if self.target is None else self._cells(self.target)

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """The columns of texts that nobody listed, whose keys are chosen privately before all else."""
        return tuple(name for name in self.names if isinstance(self.schema.columns[name], Text))

    @cached_property
    def selections(self) -> dict[str, PartitionThreshold]:
        """How the keys of each column of texts are chosen."""
        thresholds = {}
        for name in self.texts:
            thresholds[name] = PartitionThreshold.within(
                rho=OF_KEYS * self.privacy.total / len(self.texts),
                delta=Fraction(self.privacy.selection_delta or 0) / len(self.texts),
                minimum=self.schema.text(name).at_least or 1,
                neighbours=self.neighbours,
            )
        return thresholds

    def with_keys(self, chosen: Mapping[str, tuple[str, ...]]) -> "SyntheticPlan":
        """The same plan once keys were chosen: neither its noise nor what it costs depends on them."""
        return replace(self, chosen=chosen)

    def _cells(self, name: str) -> CellColumn:
        column: Column = self.schema.columns[name]
        assert not isinstance(column, DERIVED)
        if isinstance(column, Text):
            return TextCells(
                name=name,
                missing=column.missing == "drop" or column.other is None,
                keys=self.chosen.get(name, ()),
                other=column.other,
            )
        return cells_of(name, column, self.block.bins.get(name))

    @cached_property
    def zeros(self) -> dict[Pair, NDArray[np.bool_]]:
        """By pair, which cells may hold anybody: pairs with zeros are edges of every tree."""
        return allowed_cells(self.block, self.columns)

    @cached_property
    def totals(self) -> dict[str, NDArray[np.float64]]:
        """By column, how many units have each of its cells, where that is declared."""
        return known_totals(self.block, self.columns, self.target_cells)

    # what it costs

    @property
    def fixed(self) -> tuple[Pair, ...]:
        """Edges that are not chosen: pairs with zeros, and the only one of two columns."""
        return ((0, 1),) if len(self.columns) == 2 else tuple(self.zeros)

    @property
    def rounds(self) -> int:
        """How many edges are chosen."""
        return len(self.columns) - 1 - len(self.fixed)

    @cached_property
    def noise(self) -> SynthesisNoise:
        """The mechanisms, as little noise as the budget pays for."""
        return divide_budget(
            self.privacy.total * (1 - OF_KEYS if self.texts else 1),
            [OPEN_CELLS if column.name in self.texts else column.size for column in self.columns],
            self.rounds,
            self._moved,
        )

    @property
    def _size_deviations(self) -> list[float]:
        """The deviation of the number of records in a part, by the counts of each column."""
        return [
            float(each.sigma) * math.sqrt(size)
            for each, size in zip(self.noise.columns, self._sizes, strict=True)
        ]

    @property
    def _sizes(self) -> list[int]:
        """How many cells columns have, of texts at most."""
        return [MOST_KEYS + 2 if column.name in self.texts else column.size for column in self.columns]

    @property
    def _moved(self) -> int:
        """How many cells of a table a unit changes, each by 1: its own, and the one it is replaced by."""
        return 2 if self.neighbours is Neighbours.REPLACE else 1

    @cached_property
    def spends(self) -> tuple[Spend, ...]:
        """What is charged, as one block: the same for one tree and for one in each part.

        A unit has one record, which lies in one part (docs/guarantees/synthetic.md).
        """
        moved, noise, many = self._moved, self.noise, len(self.columns)
        table = Distance.l2(square=moved, coordinates=moved, neighbours=self.neighbours)
        one = Distance.linf(1, neighbours=self.neighbours)
        spends = [
            Spend(mechanism=each, distance=one, count=count)
            for each, count in Counter(self.selections.values()).items()
        ]
        spends += [
            Spend(mechanism=each, distance=table, count=count)
            for each, count in Counter(noise.columns).items()
        ]
        if self.rounds:
            scores = Distance.linf(FINENESS * moved, neighbours=self.neighbours)
            spends.append(Spend(mechanism=noise.edges, distance=scores, count=self.rounds))
        if many > 1:
            spends.append(Spend(mechanism=noise.pairs, distance=table, count=many - 1))
        return tuple(spends)

    @cached_property
    def declared(self) -> dict[str, str]:
        """What was declared, each as one text, for the ledger and the certificate."""
        columns = {name: self.schema.columns[name].model_dump_json() for name in self.names}
        left = {"left out": ", ".join(self.left_out)} if self.left_out else {}
        levels = {f"levels of {each.column}": each.label for each in self.hierarchies}
        which = f"one of the different records of each {self.unit.name}, chosen by a secret hash"
        rows = {"records": "each counts once" if self.unit.column is None else which}
        checked = (
            {"the declarations": "were checked against the data, which is not private"}
            if self.checked
            else {}
        )
        block = self.block.model_dump_json(exclude_defaults=True)
        reading = {"reading": " ".join(self.caveats)} if self.caveats else {}
        return {"synthetic table": block} | reading | rows | left | levels | checked | columns

    @property
    def remedy(self) -> str:
        """How a ledger could pay for Gaussian noise, which has no pure epsilon."""
        return "Pay"

    # what it needs

    @property
    def bytes(self) -> int:
        """About how much memory it needs at most, for the declared number of records, or 100,000."""
        rows, cells = self.size or _ROWS, sorted(self._sizes, reverse=True)
        of_records = rows * (len(self.names) * 9 + 24)
        largest = math.prod(cells[:2])
        of_tables = 8 * sum(cells[0] * each for each in cells[1:])
        seeming = _SURELY * min(self._size_deviations) * math.sqrt(len(self.parts))
        of_rows = (self.block.rows or rows + round(seeming)) * len(self.names) * 20
        return _OVERHEAD + of_records + 64 * largest + 6 * of_tables * len(self.parts) + of_rows

    @property
    def seconds(self) -> float:
        """About how long it takes, for the declared number of records, or 100,000."""
        rows, packed = self.size or _ROWS, len(blocks(self._sizes))
        cells = sorted(self._sizes, reverse=True)
        tables = sum(cells[0] * each for each in cells[1:]) * len(self.parts)
        of_records = len(self.names) * _PER_VALUE + packed * (packed + 1) / 2 * _PER_RECORD
        of_tables = tables * _PER_CELL + len(self.names) * len(self.parts) * _PER_EDGE
        drawn = (self.block.rows or rows) * len(self.names)
        return 0.3 + rows * of_records + of_tables + drawn * _PER_DRAWN

    @property
    def notes(self) -> tuple[str, ...]:
        """What somebody who reads the result must know."""
        notes = list(self.caveats)
        if self.unit.column is not None:
            notes.append(
                f"The table describes each {self.unit.name} by one of its different records: it is a table "
                "of units, and not of records."
            )
        if self.target is not None and self.size is None:
            notes.append(
                "No size is declared, so nobody could tell beforehand whether the parts of "
                f"'{self.target}' are large enough."
            )
        for name, mechanism in self.selections.items():
            notes.append(
                f"The keys of '{name}' were chosen privately: a key is among them if the count of units that "
                f"have it reaches {mechanism.threshold:,} with Gaussian noise of deviation "
                f"{float(mechanism.scale):.4g}. All others are one."
            )
        if self.left_out:
            notes.append(f"Left out: {', '.join(self.left_out)}.")
        return tuple(notes)


def _memory() -> int | None:
    """The memory of this machine, where it tells."""
    try:
        return int(os.sysconf("SC_PAGE_SIZE")) * int(os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):
        return None


# How the budget of a synthetic table is divided: among columns, the choice of edges, and pairs.


SHARES = (Fraction(21, 50), Fraction(1, 10), Fraction(12, 25))
"""Of the budget: for columns, for the choice of edges, for pairs.

Chosen on Adult, as `benchmarks/README.md` tells.
"""
OF_KEYS = Fraction(1, 10)
"""Of the budget, where there are texts that nobody listed: for the choice of their keys."""
OPEN_CELLS = 64
"""Cells that a column of such texts is taken to have, for the division alone."""
_MOST_EPSILON = Fraction(1 << 10)


def divide_budget(rho: Fraction, cells: Sequence[int], rounds: int, moved: int) -> SynthesisNoise:
    """As little noise as rho pays for: for columns of so many cells, `rounds` choices, and a tree of pairs.

    A unit moves `moved` counts of a table by 1 each. What is not needed is not paid for.

    >>> noise = divide_budget(Fraction(1, 50), [2, 16], 0, 1)
    >>> [round(float(each.sigma), 1) for each in (*noise.columns, noise.pairs)]
    [17.2, 8.6, 6.6]
    """
    columns, edges, pairs = (share * rho for share in SHARES)
    if not rounds:
        pairs, edges = pairs + edges, Fraction(0)
    if len(cells) == 1:
        columns, pairs = columns + pairs, Fraction(0)
    weights = [_weight(each) for each in cells]
    per_column = [root_above(moved * sum(weights) / (2 * columns * weight)) for weight in weights]
    per_pair = root_above(moved * (len(cells) - 1) / (2 * pairs)) if pairs else LEAST_SIGMA
    if max(*per_column, per_pair) > MOST_SIGMA:
        raise InvalidParameter(
            "The budget is so small that the noise would drown everything. Nothing was spent. Ask with "
            "a larger epsilon."
        )
    epsilon = 1 / root_above(rounds / (8 * edges)) if rounds else Fraction(1)
    return SynthesisNoise(
        columns=tuple(Gaussian(sigma=max(each, LEAST_SIGMA)) for each in per_column),
        edges=Exponential(
            epsilon=min(epsilon, _MOST_EPSILON),
            sensitivity=Fraction(FINENESS * moved),
            candidates=max(1, len(cells) * (len(cells) - 1) // 2),
        ),
        pairs=Gaussian(sigma=max(per_pair, LEAST_SIGMA)),
    )


def _weight(cells: int) -> Fraction:
    """The part of a column of so many cells in what counts of columns cost.

    Errors of a column add up over its cells, so columns of many cells have less noise. The sum of all is
    least, at the same cost, where 1/sigma^2 is in proportion to cells^(2/3).
    """
    return Fraction(round(64 * cells ** (2 / 3)), 64)


# What is known of a table beforehand, by declaration: combinations that cannot be, and totals of keys.


Floats = NDArray[np.float64]
_SURE = 1e-9  # the variance of what is known


def allowed_cells(block: SyntheticBlock, columns: Sequence[CellColumn]) -> dict[Pair, NDArray[np.bool_]]:
    """By pair, which cells may hold anybody: pairs with zeros are edges of every tree."""
    allowed: dict[Pair, NDArray[np.bool_]] = {}
    names = [column.name for column in columns]
    for zero in block.zeros:
        if block.target in zero:
            raise InvalidParameter(
                f"Zeros with the target '{block.target}' are not possible: each of its keys has a tree "
                "of its own. Name other columns, or ask without a target."
            )
        one, other = sorted(names.index(name) for name in zero)
        cells = allowed.setdefault((one, other), np.ones([columns[one].size, columns[other].size], np.bool_))
        cells[np.ix_(*(_places(columns[each], zero) for each in (one, other)))] = False
    piece = list(range(len(names)))
    for one, other in allowed:
        if piece[one] == piece[other]:
            raise InvalidParameter(
                f"The zeros of '{names[one]}' with '{names[other]}' close a ring of columns, which a "
                "tree has none of. Leave some out, or make one column of two."
            )
        piece = [piece[one] if each == piece[other] else each for each in piece]
    for (one, other), cells in allowed.items():
        if not cells.any(1).all() or not cells.any(0).all():
            raise InvalidParameter(
                f"The zeros of '{names[one]}' with '{names[other]}' leave a key with nobody at all. "
                "Take the key out of its column."
            )
    return allowed


def _places(column: CellColumn, zero: Mapping[str, object]) -> list[int]:
    keys = zero[column.name]
    assert isinstance(keys, tuple)
    for key in keys:
        if str(key) not in column.known:
            raise InvalidParameter(
                f"The zeros of '{column.name}' name a cell that it does not have. Its cells are its "
                "declared keys, or its bins such as '0 to 19'."
            )
    return [list(column.known).index(str(key)) for key in keys]


def known_totals(
    block: SyntheticBlock, columns: Sequence[CellColumn], target: CellColumn | None
) -> dict[str, Floats]:
    """By column, how many units have each of its cells: declared, and so public.

    Where there is a target, its keys alone have totals: those of other columns are not of its parts.
    """
    known = {column.name: column for column in (*columns, *(() if target is None else (target,)))}
    totals: dict[str, Floats] = {}
    for name, declared in block.totals.items():
        if target is not None and name != target.name:
            raise InvalidParameter(
                f"The totals of '{name}' are not those of the parts of the target '{target.name}'. Declare "
                "totals of the target, or ask without one."
            )
        labels = known[name].labels
        if lost := [key for key in declared if key not in labels]:
            raise InvalidParameter(
                f"The totals of '{name}' name '{lost[0]}', a cell that it does not have. Its cells are its "
                f"declared keys, its bins such as '0 to 19', and '{MISSING}'."
            )
        if lost := [key for key in known[name].known if key not in declared]:
            raise InvalidParameter(
                f"The totals of '{name}' leave out its cell '{lost[0]}'. Give all of them, also those of 0."
            )
        totals[name] = np.array([declared.get(label, 0) for label in labels], np.float64)
    sums = {float(each.sum()) for each in totals.values()}
    if len(sums) > 1 or 0.0 in sums:
        raise InvalidParameter(
            "The totals of columns must add up to the same number of units, above 0, since each unit has one "
            "cell of each column. Mend them, or leave some out."
        )
    return totals


def tables_of(totals: Mapping[str, Floats], columns: Sequence[CellColumn]) -> tuple[NoisyTable, ...]:
    """Totals as tables that hardly vary, so that the means by variances are what was declared."""
    return tuple(
        NoisyTable(columns=(place,), values=totals[column.name], variances=np.full(column.size, _SURE))
        for place, column in enumerate(columns)
        if column.name in totals
    )
