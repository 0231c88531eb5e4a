"""A made-up table of people whose columns hang together, for tests of synthetic tables."""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from sourdine.tables import Table

COLUMNS: Mapping[str, object] = {
    "age": {"type": "integer", "lower": 0, "upper": 99},
    "sex": {"type": "category", "keys": ["f", "m"]},
    "town": {"type": "category", "keys": ["Lille", "Nice", "Toulon"]},
    "works": {"type": "flag"},
    "pay": {"type": "real", "lower": 0, "upper": 1000, "granularity": 0.5},
}


def rows(count: int = 3000, seed: int = 1) -> dict[str, list[object]]:
    """Whoever is old does not work, and whoever does not work has no pay; towns go with the sexes."""
    dice = np.random.default_rng(seed)
    age = dice.integers(0, 100, count)
    sex = dice.random(count) < 0.5
    town = np.where(dice.random(count) < 0.8, np.where(sex, 0, 1), 2)
    works = (age > 20) & (age < 65)
    pay = np.where(works, dice.integers(1, 2000, count) / 2, np.nan)
    names = np.array(["Lille", "Nice", "Toulon"])
    return {
        "age": age.tolist(),
        "sex": np.where(sex, "f", "m").tolist(),
        "town": names[town].tolist(),
        "works": works.tolist(),
        "pay": [None if np.isnan(each) else each for each in pay.tolist()],
    }


def table(count: int = 3000, seed: int = 1, **declared: object) -> Table:
    """The table, declared."""
    return Table(pa.table(rows(count, seed)), unit="person", columns=COLUMNS, size=count, **declared)  # type: ignore[arg-type]
