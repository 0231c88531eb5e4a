"""The table, what is asked of it, and on which engines."""

from pathlib import Path

ENGINES = ("duckdb", "polars lazy", "polars frame", "spark")
DECILES = tuple(level / 10 for level in range(1, 10))
LOWER, UPPER = 0.0, 100.0
STEPS = {"cents": 0.01, "fine": None}  # None is the default grid, of about a million steps
EPSILON = 1.0


def write_table(path: Path, rows: int, keys: int) -> None:
    """A Parquet file of made-up records: a key, and a value that one time in a hundred lies far off."""
    import duckdb

    inside = f"(hash(i, 1) % 1000003) / 1000003.0 * {UPPER}"
    far = f"CASE WHEN hash(i, 2) % 100 = 0 THEN 3 * ({inside}) - 100 ELSE {inside} END"
    made = f"SELECT CAST(hash(i, 3) % {keys} AS INTEGER) AS k, {far} AS x FROM range({rows}) t(i)"
    with duckdb.connect() as connection:
        connection.execute(f"COPY ({made}) TO '{path}' (FORMAT parquet)")
