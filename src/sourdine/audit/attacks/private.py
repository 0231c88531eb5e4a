"""What the protected targets share: a ledger of their own, and answers as a plan gives them."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sourdine.accounting.explain import posterior_bounds
from sourdine.accounting.ledger import Ledger, PureBudget, Terms
from sourdine.core.bits import Bits
from sourdine.core.distance import Neighbours
from sourdine.tables import Plan

if TYPE_CHECKING:
    import duckdb

UNIT = "person"


def relation(columns: Mapping[str, NDArray[Any]]) -> "duckdb.DuckDBPyRelation":
    """Arrays as a table."""
    import duckdb

    connection = duckdb.connect()
    plain = {
        name: array.astype(object) if array.dtype.kind == "U" else array for name, array in columns.items()
    }
    connection.register("people", plain)
    return connection.table("people")


@contextmanager
def fresh_ledger(epsilon: Fraction) -> Iterator[Ledger]:
    """A ledger with a pure budget for each person, gone when the demonstration is over."""
    terms = Terms(budget=PureBudget(limit=epsilon), unit=UNIT, neighbours=Neighbours.ADD_REMOVE)
    with TemporaryDirectory() as folder, Ledger.create(Path(folder) / "attack.ledger", terms) as ledger:
        yield ledger


def answer(plan: Plan, exact: ArrayLike, bits: Bits) -> NDArray[np.float64]:
    """Exact counts with the noise of a plan of counts: a row for each query, a column for each repetition.

    One release says little about how often an attack is right, so its noise is drawn many times.
    """
    rows = zip(plan.lines, np.asarray(exact), strict=True)
    return np.array([line.mechanism.sample(row, bits) for line, row in rows], float)


def most_right(epsilon: Fraction | float) -> float:
    """How often any attack can be right about a bit that is a fair coin before: e^epsilon/(1 + e^epsilon).

    >>> round(most_right(1), 3)
    0.731
    """
    return posterior_bounds(0.5, float(epsilon)).upper
