"""The tables, the columns, and who is measured.

The Adult files are not part of the project. They are looked for beside it, or where ADULT says.
"""

import os
from pathlib import Path

from benchmarks.peers import ENVIRONMENTS, ROOT, Environment

OURS = Environment(name="sourdine")
PYCANON = Environment(name="pycanon", requirements=("pycanon==1.3.6",))
ANJANA = Environment(name="anjana", requirements=("anjana==1.2.3",))

ADULT = Path(os.environ.get("ADULT", ROOT.parent / "shared" / "data" / "adult"))
SMALL = ADULT / "adult-30162.csv"
HIERARCHIES = ADULT / "hierarchies"
FOLDER = ENVIRONMENTS / "anonymity"

QUASI = ["sex", "age", "race", "marital-status", "education", "native-country", "workclass", "occupation"]
SENSITIVE = "salary-class"
MORE = ["education_num", "relationship", "hours_per_week", "capital_gain"]
NAMES = [
    "age", "workclass", "fnlwgt", "education", "education_num", "marital-status", "occupation",
    "relationship", "race", "sex", "capital_gain", "capital_loss", "hours_per_week",
    "native-country", SENSITIVE,
]  # fmt: skip
K, LIMIT = 5, 5  # at least so many records in a class, at most so many percent left out


def resampled(rows: int) -> Path:
    """A table of so many rows made from Adult, as CSV.

    A row is one of Adult's whose age moves by up to three years and of which one value in ten, column by
    column, is another row's: else every class would only be larger, and nothing left to generalise.
    """
    path = FOLDER / f"adult-{rows}.csv"
    if not path.exists():
        import numpy as np
        import pandas as pd

        generator = np.random.default_rng(1)  # public, made up
        adult = pd.read_csv(SMALL, sep=";")
        picked = generator.integers(0, len(adult), rows)
        made = {}
        for name in adult.columns:
            other = generator.integers(0, len(adult), rows)
            places = np.where(generator.random(rows) < 0.1, other, picked)
            made[name] = adult[name].to_numpy()[places]
        made["age"] = np.clip(made["age"] + generator.integers(-3, 4, rows), 17, 90)
        _keep(pd.DataFrame(made), path)
    return path


def with_twelve() -> Path:
    """Adult without missing values and with four more columns, as CSV."""
    path = FOLDER / "adult-twelve.csv"
    if not path.exists():
        import pandas as pd

        raw = pd.read_csv(
            ADULT / "adult-train.csv", names=NAMES, skipinitialspace=True, na_values="?"
        ).dropna()
        _keep(raw[[*QUASI, *MORE, SENSITIVE]], path)
    return path


def many(rows: int) -> Path:
    """The first table again and again, as Parquet, in another order each time."""
    import duckdb

    path = FOLDER / f"many-{rows}.parquet"
    if not path.exists():
        part = path.with_suffix(".part")
        source = f"SELECT * FROM read_csv('{resampled(300_000)}')"
        copies = -(-rows // 300_000)
        duckdb.execute(
            f"COPY (SELECT t.* FROM ({source}) t, range({copies}) r(i) ORDER BY hash(i, t) LIMIT {rows}) "
            f"TO '{part}' (FORMAT parquet)"
        )
        part.rename(path)
    return path


def _keep(frame: object, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    frame.to_csv(part, sep=";", index=False)  # type: ignore[attr-defined]
    part.rename(path)
