"""Tables of two items that were asked together."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sourdine.core.errors import InvalidParameter
from sourdine.local.estimate import Estimate
from sourdine.local.questionnaire.specification import Item

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class JointTable:
    """Shares of all combinations of two items, a row for each label of the first."""

    rows: Item
    columns: Item
    value: Floats
    lower: Floats
    upper: Floats


def joint_table(items: tuple[Item, ...], estimate: Estimate) -> JointTable:
    """The estimate of a question about two items, as a table.

    >>> from sourdine.local import GRR
    >>> first, second = Item("a", ("x", "y")), Item("b", ("u", "v", "w"))
    >>> oracle = GRR(epsilon=8, categories=6)
    >>> table = joint_table((first, second), oracle.estimate(oracle.tally(np.array([0, 5, 5]))))
    >>> table.value.shape, int(table.value.argmax())
    ((2, 3), 5)
    """
    if len(items) != 2 or estimate.value.size != len(items[0].labels) * len(items[1].labels):
        raise InvalidParameter(
            "This estimate is not of a question about these two items. Pass the items of one pair of `asks`, "
            "and the estimate of the question at the same place."
        )
    rows, columns = items
    shape = (len(rows.labels), len(columns.labels))
    value, lower, upper = (each.reshape(shape) for each in (estimate.value, estimate.lower, estimate.upper))
    return JointTable(rows, columns, value, lower, upper)
