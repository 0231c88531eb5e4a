"""The tables, what is asked of them, on which engines, and how large they are."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.growth.expressions import QUESTIONS, RECORDS, REGIONS

ENGINES = ("duckdb", "polars lazy", "polars frame", "spark", "csv")
DECILES = tuple(level / 10 for level in range(1, 10))
LOWER, UPPER = 0.0, 100.0
STEPS = {"cents": 0.01, "fine": None}  # None is the default grid, of about a million steps
EPSILON = 1.0
PRIVATE_EPSILON, DELTA = 20.0, 1e-6  # keys that ten people have are shown
MOST_OF_A_COLUMN = 10**6  # declared keys; more are those of two columns
ROWS_A_PERSON, MAX_ROWS, MAX_GROUPS = 100, 3, 5
_LARGEST_OF_FRAMES = 10**7  # rows above which Spark and frames in memory are left out
TASKS = {
    "rows": "count, mean and deciles by 100 keys",
    "small": "count and mean by 10 keys",
    "declared": "count and mean by declared keys",
    "private": "count and mean by keys that nobody declared",
    "deciles": "nine deciles by group",
    "people": f"count and mean by 100 keys, {ROWS_A_PERSON} rows a person",
    "expressions": "dates and expressions, by region or period",
    "first": "the first table of a process",
}


@dataclass(frozen=True, kw_only=True)
class Case:
    """One table and one question about it, on one engine."""

    task: str
    rows: int
    keys: int
    engine: str = "duckdb"
    grid: str = "cents"
    question: str = ""  # one of those with expressions

    @property
    def columns(self) -> tuple[str, ...]:
        """What it is asked by: one column, or two where one has not so many keys."""
        return ("a", "b") if self.task == "declared" and self.keys > MOST_OF_A_COLUMN else ("k",)

    @property
    def file(self) -> str:
        """The name of its table."""
        kind = "csv" if self.engine == "csv" else "parquet"
        shape = self.task if self.task in ("private", "people", "expressions") else "plain"
        return f"{shape}_{self.rows}_{self.keys}.{kind}"

    @property
    def words(self) -> str:
        """What it is, in a line."""
        which = self.question or self.grid
        return f"{TASKS[self.task]}: {self.rows:,} rows, {self.keys:,} keys, {self.engine}, {which}"

    def asked(self) -> dict[str, Any]:
        """As JSON."""
        return asdict(self)


def cases(quick: bool) -> Iterator[Case]:
    """Against rows, then keys, then groups, then rows of people who have many."""
    most = 6 if quick else 8
    for power in range(3, most + 1):
        case = Case(task="rows", rows=10**power, keys=100)
        for engine in ("duckdb", "polars lazy", "polars frame", "spark"):
            if engine in ("duckdb", "polars lazy") or 10**5 <= case.rows <= _LARGEST_OF_FRAMES:
                yield replace(case, engine=engine)
        if power >= most - 1:
            yield replace(case, grid="fine")
    for rows in (10**3, 10**5):
        for engine in ("duckdb", "csv", "polars frame"):
            yield Case(task="small", rows=rows, keys=10, engine=engine)
    for power in range(1, 6 if quick else 8):
        case = Case(task="declared", rows=10**6 if quick else 10**7, keys=10**power)
        yield case
        yield replace(case, engine="polars lazy")
        if power <= 6:
            yield replace(case, engine="spark", rows=10**6)
    for power in range(1, 6 if quick else 8):
        yield Case(task="private", rows=10**6 if quick else 10**7, keys=10**power)
    for power in range(1, 5 if quick else 6):
        yield Case(task="deciles", rows=10**5 if quick else 10**6, keys=10**power)
    for power in range(4, 6 if quick else 8):
        yield Case(task="people", rows=10**power, keys=100)
        yield Case(task="people", rows=10**power, keys=100, engine="polars lazy")
    for question in QUESTIONS:
        yield Case(task="expressions", rows=10**5 if quick else 10**7, keys=len(REGIONS), question=question)
    yield Case(task="first", rows=10**3, keys=10, engine="csv")


def write_table(path: Path, case: Case) -> None:
    """A file of made-up records: a key, a value that one time in a hundred lies far off, perhaps a person."""
    import duckdb

    inside = f"(hash(i, 1) % 1000003) / 1000003.0 * {UPPER}"
    far = f"CASE WHEN hash(i, 2) % 100 = 0 THEN 3 * ({inside}) - 100 ELSE {inside} END"
    key = f"hash(i, 3) % {case.keys}"
    columns = {"k": f"'town ' || ({key})" if case.task == "private" else f"CAST({key} AS INTEGER)"}
    if case.columns == ("a", "b"):
        size = case.keys // 1000
        columns = {"a": f"CAST({key} AS INTEGER) // {size}", "b": f"CAST({key} AS INTEGER) % {size}"}
    if case.task == "people":
        columns["person"] = f"CAST(hash(i, 4) % {max(1, case.rows // ROWS_A_PERSON)} AS INTEGER)"
    columns = RECORDS if case.task == "expressions" else {**columns, "x": far}
    listed = ", ".join(f"{sql} AS {name}" for name, sql in columns.items())
    form = "csv, HEADER" if path.suffix == ".csv" else "parquet"
    with duckdb.connect() as connection:
        connection.execute(f"COPY (SELECT {listed} FROM range({case.rows}) t(i)) TO '{path}' (FORMAT {form})")
