"""What is known of a table beforehand, by declaration: combinations that cannot be, and totals of keys."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from sourdine.core.errors import InvalidParameter
from sourdine.tables.synthetic.cells import MISSING, CellColumn
from sourdine.tables.synthetic.declared import SyntheticBlock
from sourdine.tables.synthetic.fit import NoisyTable
from sourdine.tables.synthetic.pairs import Pair

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
