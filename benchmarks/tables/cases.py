"""The table, the questions, and who answers them."""

from pathlib import Path

from benchmarks.peers import ENVIRONMENTS, Environment

KEYS = 100
LOWER, UPPER, STEP = 0.0, 100.0, 0.0001
EDGES = tuple(range(0, 101, 10))
EPSILON = 1.0

OURS = Environment(name="sourdine")
OPENDP = Environment(name="opendp_polars", requirements=("opendp[polars]==0.16.0", "numpy==2.4.6"))
DIFFPRIVLIB = Environment(
    name="diffprivlib_tables",
    requirements=(
        "diffprivlib==0.6.6",
        "scikit-learn==1.6.1",
        "scipy==1.17.1",
        "numpy==2.4.6",
        "pyarrow==26.0.1",
    ),
)


def table(rows: int) -> Path:
    """A Parquet file of made-up records: a key, a value that one time in a hundred is far off, and a unit."""
    import duckdb

    path = ENVIRONMENTS / "tables" / f"{rows}.parquet"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        inside = f"(hash(i, 1) % 1000003) / 1000003.0 * {UPPER}"
        far = f"CASE WHEN hash(i, 2) % 100 = 0 THEN 3 * ({inside}) - 100 ELSE {inside} END"
        made = (
            f"SELECT CAST(hash(i, 3) % {KEYS} AS INTEGER) AS k, {far} AS x, "
            f"CAST(hash(i, 4) % {max(1, rows // 3)} AS INTEGER) AS who FROM range({rows}) t(i)"
        )
        part = path.with_suffix(".part")
        duckdb.execute(f"COPY ({made}) TO '{part}' (FORMAT parquet)")
        part.replace(path)
    return path


def text_table(rows: int, quoted: bool = False) -> Path:
    """The same records as CSV; `quoted` with a column of quoted texts, and Windows' ends of lines."""
    import duckdb

    path = ENVIRONMENTS / "tables" / f"{rows}{' quoted' if quoted else ''}.csv"
    if not path.exists():
        more = ", 'name, ' || (who % 1000) AS name" if quoted else ""
        part = path.with_suffix(".part")
        duckdb.execute(f"COPY (SELECT *{more} FROM '{table(rows)}') TO '{part}' (FORMAT csv, HEADER)")
        if quoted:
            with part.open("rb") as lines, path.with_suffix(".crlf").open("wb") as out:
                while block := lines.read(1 << 24):
                    out.write(block.replace(b"\n", b"\r\n"))
            path.with_suffix(".crlf").replace(part)
        part.replace(path)
    return path
