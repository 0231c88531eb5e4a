"""Counts of keys that nobody declared, how far a unit moves them, and records by those that were chosen."""

from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

from sourdine.core.errors import InvalidParameter
from sourdine.frames import BernsteinSums, PrivacyUnit, Schema, Source, open_source, totals
from sourdine.frames.contributions import key_counts, with_keys
from sourdine.frames.keys import Keys
from sourdine.testing import SeededBits
from tests.frames.every_engine import ALL_ENGINES, ENGINES

TEXTS = ["a", "A", "b ", "é", "e\u0301", "o'x", 'say "hi"', "back\\slash", "%s", "1", "x" * 200, "=1+1", "😀"]
ODD = ["", "x" * 201, "a\nb", "tab\t", "\x7f", None]
RANDOM = np.random.default_rng(3)
ROWS = pa.table(
    {
        "town": [RANDOM.choice(np.array(TEXTS + ODD, dtype=object)) for _ in range(400)],
        "job": [["x", "y", None][i % 3] for i in range(400)],
        "who": [f"p{i % 70}" for i in range(400)],
    }
)
PEOPLE = PrivacyUnit(name="person", column="who", max_groups=3)


def source_of(table: object, **declared: Any) -> Source:
    columns = {"town": {"type": "text", **declared}, "job": {"type": "text"}}
    return open_source(table, Schema.read(columns), ["who"])


def counted(
    source: Source, columns: list[str], unit: PrivacyUnit, seed: int = 1
) -> dict[tuple[str, ...], int]:
    found = key_counts(source, columns, unit=unit, bits=SeededBits(seed))
    held = found.by_key()
    assert list(held) == sorted(held)
    assert found.chosen(np.arange(found.size)) == tuple(held)
    # in the order of their numbers, then of their texts
    ranked = sorted(held, key=lambda key: (held[key], key))
    assert found.of(0, found.size).tolist() == [held[key] for key in ranked]
    for some in (slice(0, None, 3), slice(-4, None), slice(2, 3), slice(0, 0)):
        places = np.arange(found.size)[some]
        assert found.chosen(places) == tuple(sorted(ranked[some]))
    return held  # type: ignore[return-value]


@pytest.mark.parametrize("engine", ALL_ENGINES)
def test_records_with_each_key_are_counted_alike_everywhere(engine: str, tmp_path: Path) -> None:
    source = source_of(ENGINES[engine](ROWS, tmp_path))
    rows = ROWS.to_pylist()
    alone = Counter((row["town"],) for row in rows if row["town"] in TEXTS)
    assert counted(source, ["town"], PrivacyUnit()) == alone
    both = Counter((row["job"], row["town"]) for row in rows if row["town"] in TEXTS and row["job"])
    assert counted(source, ["job", "town"], PrivacyUnit()) == both


@pytest.mark.parametrize("engine", ["csv", "pandas", "lazy", "duckdb"])
def test_units_count_once_for_each_key(engine: str, tmp_path: Path) -> None:
    source = source_of(ENGINES[engine](ROWS, tmp_path))
    pairs = {(row["who"], row["town"]) for row in ROWS.to_pylist() if row["town"] in TEXTS}
    many = PrivacyUnit(name="person", column="who", max_groups=50)
    assert counted(source, ["town"], many) == Counter((town,) for _, town in pairs)
    few = counted(source, ["town"], PEOPLE)
    most = Counter(who for who, _ in pairs)
    assert sum(few.values()) == sum(min(3, count) for count in most.values())


def test_whole_numbers_are_keys_and_fractions_are_not() -> None:
    source = open_source(pa.table({"zip": [75011, 75011, 2**63 - 1]}), Schema.read({"zip": {"type": "text"}}))
    assert counted(source, ["zip"], PrivacyUnit()) == {("75011",): 2, (str(2**63 - 1),): 1}
    with pytest.raises(InvalidParameter, match="declared to hold text or whole numbers"):
        open_source(pa.table({"zip": [1.5]}), Schema.read({"zip": {"type": "text"}}))


def test_a_collation_makes_no_keys_alike() -> None:
    connection = duckdb.connect()
    connection.execute("SET default_collation = 'NOCASE'")
    held = connection.sql("SELECT * FROM (VALUES ('a', 'x', 'p'), ('A', 'x', 'q')) AS t(town, job, who)")
    source = source_of(held)
    assert counted(source, ["town"], PrivacyUnit()) == {("A",): 1, ("a",): 1}
    table, by = with_keys(source, ["town"], Keys.of([("a",)], 1), others=True)
    found = totals(table, by=[by], statistics=[BernsteinSums()], unit=PrivacyUnit(), bits=SeededBits(1))
    assert found.numbers == (((1,), (1,)),)


def test_where_no_key_was_chosen_all_are_others() -> None:
    held = duckdb.connect().sql("SELECT 'a' AS town, 'x' AS job, 'p' AS who")
    table, by = with_keys(source_of(held), ["town"], Keys.of([], 1), others=True)
    found = totals(table, by=[by], statistics=[BernsteinSums()], unit=PrivacyUnit(), bits=SeededBits(1))
    assert found.numbers == (((1,),),)


NO_TEXT = [b"a\xff", b"\xff", b"\xc1\xa1", b"\xed\xa0\x80", b"\xc3a", b"\xf4\x90\x80\x80"]


def as_text(cells: list[bytes]) -> pa.Array:
    """Bytes that an Arrow table holds as text without looking at them."""
    ends = np.cumsum([0, *map(len, cells)], dtype=np.int32)
    return pa.Array.from_buffers(
        pa.string(), len(cells), [None, pa.py_buffer(ends), pa.py_buffer(b"".join(cells))]
    )


@pytest.mark.parametrize("unit", [PrivacyUnit(), PEOPLE])
def test_bytes_that_are_no_text_are_missing(unit: PrivacyUnit) -> None:
    towns = as_text([b"a", "é\u0085\u2028💧".encode(), *NO_TEXT])
    who = [str(place) for place in range(len(towns))]
    source = source_of(pa.table({"town": towns, "job": who, "who": who}))
    assert counted(source, ["town"], unit) == {("a",): 1, ("é\u0085\u2028💧",): 1}


def test_the_name_of_the_others_is_never_a_key() -> None:
    source = source_of(ROWS, other="a")
    assert ("a",) not in counted(source, ["town"], PrivacyUnit())
    table, by = with_keys(source, ["town"], Keys.of([("b ",)], 1), others=True)
    found = totals(table, by=[by], statistics=[BernsteinSums()], unit=PrivacyUnit(), bits=SeededBits(1))
    towns = [row["town"] for row in ROWS.to_pylist()]
    assert found.numbers[0] == ((towns.count("b "),), (sum(t in TEXTS and t != "b " for t in towns),))


@pytest.mark.parametrize("missing", ["drop", "other"])
def test_what_is_missing_follows_its_declaration(missing: str) -> None:
    source = source_of(ROWS, other="others", missing=missing)
    table, by = with_keys(source, ["town"], Keys.of([("a",)], 1), others=True)
    found = totals(table, by=[by], statistics=[BernsteinSums()], unit=PrivacyUnit(), bits=SeededBits(1))
    towns = [row["town"] for row in ROWS.to_pylist()]
    rest = [t for t in towns if t != "a" and (missing == "other" or t in TEXTS)]
    assert found.numbers[0] == ((towns.count("a"),), (len(rest),))


def test_a_table_may_use_the_names_that_are_used_inside() -> None:
    held = pa.table({"town": ["a", "b"], "job": ["x", "y"], "who": ["p", "q"], "Sourdine key 0": [7, 7]})
    source = source_of(held)
    table, by = with_keys(source, ["town"], Keys.of([("a",), ("b",)], 1), others=False)
    found = totals(table, by=[by], statistics=[BernsteinSums()], unit=PrivacyUnit(), bits=SeededBits(1))
    assert found.numbers[0] == ((1,), (1,))


def random_rows(units: int) -> list[tuple[str, str | None, str | None]]:
    """Records of units, some with many keys, some with none."""
    town = np.array([*TEXTS[:5], None, "x" * 201], dtype=object)
    return [
        (f"p{unit}", RANDOM.choice(town), RANDOM.choice(np.array(["x", "y", None], dtype=object)))
        for unit in range(units)
        for _ in range(RANDOM.integers(0, 9))
    ]


def opened(rows: list[tuple[str, str | None, str | None]]) -> Source:
    who, town, job = (list(column) for column in zip(*rows, strict=True)) if rows else ([], [], [])
    text = pa.string()
    return source_of(
        pa.table({"town": pa.array(town, text), "job": pa.array(job, text), "who": pa.array(who, text)})
    )


@pytest.mark.parametrize("columns", [["town"], ["job", "town"]])
@pytest.mark.parametrize("groups", [1, 2])
def test_a_unit_moves_few_counts_by_one(columns: list[str], groups: int) -> None:
    """One unit comes, goes, or holds something else: each time it counts once in at most so many keys."""
    unit = PrivacyUnit(name="person", column="who", max_groups=groups)
    reached = 0
    for seed in range(4):
        rows = random_rows(5)
        without = [row for row in rows if row[0] != "p0"]
        other = [row for row in random_rows(1) if row[0] == "p0"]
        found = [
            Counter(counted(opened(held), columns, unit, seed)) for held in (rows, without, without + other)
        ]
        for held in (found[0], found[2]):
            gained, lost = held - found[1], found[1] - held
            assert not lost
            assert set(gained.values()) <= {1}
            assert len(gained) <= groups
            reached = max(reached, len(gained))
    assert reached == groups
