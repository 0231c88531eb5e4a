"""A table of people with holes in it, and what is declared of its columns."""

from typing import Any

import numpy as np
import pyarrow as pa

from sourdine.local.cleaner import Cleaner, Method

AGE = {"type": "integer", "lower": 0, "upper": 120, "missing": 40}
INSIDE = (Method.LAPLACE, Method.STAIRCASE)
COLUMNS: dict[str, dict[str, object]] = {
    "age": AGE,
    "weight": {"type": "real", "lower": 30.0, "upper": 200.0, "granularity": 0.1},
    "sex": {"type": "category", "keys": ["f", "m"], "missing": "f"},
    "floor": {"type": "category", "keys": [-1, 0, 7]},
    "ill": {"type": "flag"},
}


def people(rows: int = 400) -> pa.Table:
    place = np.arange(rows)
    return pa.table(
        {
            "name": pa.array([f"secret {i}" for i in place]),
            "age": pa.array(place % 100, mask=place % 10 == 0),
            "weight": pa.array(50.0 + place % 37, mask=place % 4 == 0),
            "sex": pa.array(np.where(place % 3 == 0, "f", "m"), mask=place % 11 == 0),
            "floor": pa.array(np.array([-1, 0, 7, 99])[place % 4]),
            "ill": pa.array(place % 5 == 0, mask=place % 7 == 0),
        }
    )


def loud(**more: Any) -> Cleaner:
    """So little noise that hardly a cell changes."""
    return Cleaner(COLUMNS, each=60, **more)
