"""What a synthetic table will measure, cost and need, from declarations alone: no record is read."""

import math
import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sourdine.accounting.spend import Spend
from sourdine.core.distance import Distance, Neighbours, root_above
from sourdine.core.errors import InvalidParameter
from sourdine.core.text.notation import entry, setting
from sourdine.frames.columns import Category, Column, Flag
from sourdine.frames.derived import DERIVED
from sourdine.frames.privacy_unit import PrivacyUnit
from sourdine.frames.schema import Schema
from sourdine.mechanisms import Exponential, Gaussian
from sourdine.mechanisms.gaussian import LEAST_SIGMA, MOST_SIGMA
from sourdine.tables.privacy import Privacy
from sourdine.tables.statistics.hierarchy import Hierarchy
from sourdine.tables.synthetic.cells import CellColumn, cells_of
from sourdine.tables.synthetic.declared import SyntheticBlock
from sourdine.tables.synthetic.pairs import Pair, blocks
from sourdine.tables.synthetic.part import SynthesisNoise
from sourdine.tables.synthetic.tree import FINENESS

SHARES = (Fraction(7, 20), Fraction(3, 20), Fraction(1, 2))
"""Of the budget: for columns, for the choice of edges, for pairs."""
MOST_COLUMNS = 512
MOST_CELLS = 1 << 22  # of one pair
_MOST_PARTS = 256
_ROWS = 100_000  # where no size is declared
_OVERHEAD = 150 << 20  # bytes of an engine that reads a table
_ENOUGH = 3  # deviations of the noise of its size that a part must exceed
_SURELY = 6  # deviations by which the noisy number of records is not exceeded
_PER_RECORD = 6.5e-9  # seconds to count one record by two blocks of columns, and by what else is done with it
_PER_CELL = 2.0e-6  # seconds for a cell of a table until it agrees with others


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

    def __post_init__(self) -> None:
        if self.privacy.delta is None or not self.privacy.squared or self.privacy.selection_delta:
            raise InvalidParameter(
                "A synthetic table adds Gaussian noise, which has no pure epsilon: it needs a delta, all of "
                f"it for the noise. Nothing was spent. Declare one, as in {setting('delta', 1e-06)}."
            )
        self._check_names()
        self._check_size()
        self._check_levels()
        if self.target is not None:
            self._check_parts()

    def _check_names(self) -> None:
        block, known = self.block, self.schema.base.columns
        named = [*(block.columns or ()), *block.leave_out, *block.bins, *(n for z in block.zeros for n in z)]
        named += [] if block.target is None else [block.target]
        for name in named:
            if name not in known:
                raise InvalidParameter(
                    f"The synthetic table is asked for the column '{name}', which is not declared. Cells are "
                    f"never taken from the data. Declare it under {entry('columns', name)}, or take it out."
                )
        lost = [n for n in (*block.bins, *(n for z in block.zeros for n in z)) if n not in self.names]
        if block.target is not None and block.target not in self.names:
            lost.append(block.target)
        if lost:
            raise InvalidParameter(
                f"The synthetic table leaves out the column '{lost[0]}' and says something of it. Do one."
            )
        if not self.names:
            raise InvalidParameter("The synthetic table has no column left. Leave out fewer.")
        if block.mark in self.names:
            raise InvalidParameter(f"The mark '{block.mark}' is a column of the table. Name it otherwise.")
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
        self.zeros  # noqa: B018 (keys that are not declared, and zeros that make a ring, are refused)

    def _check_size(self) -> None:
        largest = sorted((column.size for column in self.columns), reverse=True)[:2]
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

    def _cells(self, name: str) -> CellColumn:
        column: Column = self.schema.columns[name]
        assert not isinstance(column, DERIVED)
        return cells_of(name, column, self.block.bins.get(name))

    @cached_property
    def zeros(self) -> dict[Pair, NDArray[np.bool_]]:
        """By pair, which cells may hold anybody: pairs with zeros are edges of every tree."""
        allowed: dict[Pair, NDArray[np.bool_]] = {}
        names = [column.name for column in self.columns]
        for zero in self.block.zeros:
            if self.target in zero:
                raise InvalidParameter(
                    f"Zeros with the target '{self.target}' are not possible: each of its keys has a tree "
                    "of its own. Name other columns, or ask without a target."
                )
            one, other = sorted(names.index(name) for name in zero)
            pair = (one, other)
            cells = allowed.setdefault(pair, np.ones([self.columns[each].size for each in pair], np.bool_))
            cells[np.ix_(*(self._places(self.columns[each], zero) for each in pair))] = False
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

    @staticmethod
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
        columns, edges, pairs = self._shares()
        many = len(self.columns)
        moved = self._moved
        weights = [_weight(column.size) for column in self.columns]
        per_column = [root_above(moved * sum(weights) / (2 * columns * weight)) for weight in weights]
        per_pair = root_above(moved * (many - 1) / (2 * pairs)) if many > 1 else LEAST_SIGMA
        if max(*per_column, per_pair) > MOST_SIGMA:
            raise InvalidParameter(
                "The budget is so small that the noise would drown everything. Nothing was spent. Ask with "
                "a larger epsilon."
            )
        epsilon = 1 / root_above(self.rounds / (8 * edges)) if self.rounds else Fraction(1)
        return SynthesisNoise(
            columns=tuple(Gaussian(sigma=max(each, LEAST_SIGMA)) for each in per_column),
            edges=Exponential(
                epsilon=min(epsilon, Fraction(1 << 10)),
                sensitivity=Fraction(FINENESS * moved),
                candidates=max(1, many * (many - 1) // 2),
            ),
            pairs=Gaussian(sigma=max(per_pair, LEAST_SIGMA)),
        )

    @property
    def _size_deviations(self) -> list[float]:
        """The deviation of the number of records in a part, by the counts of each column."""
        return [
            float(each.sigma) * math.sqrt(column.size)
            for each, column in zip(self.noise.columns, self.columns, strict=True)
        ]

    @property
    def _moved(self) -> int:
        """How many cells of a table a unit changes, each by 1: its own, and the one it is replaced by."""
        return 2 if self.neighbours is Neighbours.REPLACE else 1

    def _shares(self) -> tuple[Fraction, Fraction, Fraction]:
        columns, edges, pairs = (share * self.privacy.total for share in SHARES)
        if not self.rounds:
            pairs, edges = pairs + edges, Fraction(0)
        if len(self.columns) == 1:
            columns, pairs = columns + pairs, Fraction(0)
        return columns, edges, pairs

    @cached_property
    def spends(self) -> tuple[Spend, ...]:
        """What is charged, as one block: the same for one tree and for one in each part.

        A unit has one record, which lies in one part (docs/guarantees/synthetic.md).
        """
        moved, noise, many = self._moved, self.noise, len(self.columns)
        table = Distance.l2(square=moved, coordinates=moved, neighbours=self.neighbours)
        spends = [
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
        return {"synthetic table": block} | rows | left | levels | checked | columns

    # what it needs

    @property
    def bytes(self) -> int:
        """About how much memory it needs at most, for the declared number of records, or 100,000."""
        rows, cells = self.size or _ROWS, sorted((column.size for column in self.columns), reverse=True)
        of_records = rows * (len(self.names) * 7 + 24)
        largest = math.prod(cells[:2])
        of_tables = 8 * sum(cells[0] * each for each in cells[1:])
        seeming = _SURELY * min(self._size_deviations) * math.sqrt(len(self.parts))
        of_rows = (self.block.rows or rows + round(seeming)) * len(self.names) * 20
        return _OVERHEAD + of_records + 64 * largest + 6 * of_tables * len(self.parts) + of_rows

    @property
    def seconds(self) -> float:
        """About how long it takes, for the declared number of records, or 100,000."""
        rows, packed = self.size or _ROWS, len(blocks([column.size for column in self.columns]))
        cells = sorted((column.size for column in self.columns), reverse=True)
        tables = sum(cells[0] * each for each in cells[1:]) * len(self.parts)
        of_rows = (self.block.rows or rows) * len(self.names) * 2e-7
        return 0.3 + rows * packed * (packed + 1) / 2 * _PER_RECORD + tables * _PER_CELL + of_rows

    @property
    def notes(self) -> tuple[str, ...]:
        """What somebody who reads the result must know."""
        notes = []
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
        if self.left_out:
            notes.append(f"Left out: {', '.join(self.left_out)}.")
        return tuple(notes)


def _weight(cells: int) -> Fraction:
    """The part of a column of so many cells in what counts of columns cost.

    Errors of a column add up over its cells, so columns of many cells have less noise. The sum of all is
    least, at the same cost, where 1/sigma^2 is in proportion to cells^(2/3).
    """
    return Fraction(round(64 * cells ** (2 / 3)), 64)


def _memory() -> int | None:
    """The memory of this machine, where it tells."""
    try:
        return int(os.sysconf("SC_PAGE_SIZE")) * int(os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):
        return None
