"""Spark: each cell counts as it does on the other engines, and only counts come back."""

import math
import random
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sourdine.core.errors import InvalidParameter
from sourdine.frames import BernsteinSums, PrivacyUnit, Schema, open_source, ranks, totals
from sourdine.frames import rank_counts as levels_module
from sourdine.frames.contributions import key_counts
from sourdine.frames.engines.dialect import DUCKDB
from sourdine.frames.engines.spark import SPARK
from sourdine.frames.quality import place_among_cells, quality_counts
from sourdine.frames.rank_counts import Levels, check_counted
from sourdine.testing import SeededBits

pytestmark = pytest.mark.filterwarnings("ignore")  # PySpark warns of the pandas that is installed

TEXTS = [
    "",
    "it's",
    'say "hi"',
    "é",
    "a;--",
    "%",
    "\\",
    "\\'",
    "\n",
    "💧",
    "NULL",
    "`a`",
    "{x}",
    "${user}",
    "a",
]


@pytest.mark.slow
def test_names_and_constants_are_taken_as_they_are(spark: Any) -> None:
    texts = ", ".join(map(SPARK.literal, TEXTS))
    floats = [0.1, -0.0, 5e-324, 1.7976931348623157e308, math.inf, -math.inf, 1 / 3, 1e-7, 123456789.0]
    numbers = ", ".join(map(SPARK.literal, [*floats, True, False, 2**62, -(2**63)]))
    names = ", ".join(f"1 AS {SPARK.quoted(text)}" for text in TEXTS)
    (found,) = spark.sql(f"SELECT {texts}, {numbers}").collect()
    assert list(found)[: len(TEXTS)] == TEXTS
    assert [math.copysign(1, x) for x in found[len(TEXTS) :][:9]] == [math.copysign(1, x) for x in floats]
    assert list(found)[len(TEXTS) :] == [*floats, True, False, 2**62, -(2**63)]
    assert len(set(spark.sql(f"SELECT {names}").columns)) == len(TEXTS)


def cells() -> pa.Table:
    chance = random.Random(7)
    edges = [x for whole in (-3.0, 0.0, 0.05, 0.15, 0.25, 2.5, 3.5, 99.95, 100.0) for x in nearby(whole)]
    odd = [None, math.nan, math.inf, -math.inf, 1e300, -1e300, 5e-324, -0.0]
    doubles = [*edges, *odd, *(chance.uniform(-5, 120) for _ in range(200))]
    count = len(doubles)
    longs: list[Any] = [None, 2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63), 0, 1, 2, 3, 4, 5]
    texts: list[Any] = [
        None,
        "",
        " 5 ",
        "2.5",
        "1e2",
        "1d",
        "12f",
        "NaN",
        "inf",
        "-inf",
        "1e400",
        "x",
        "+3",
        ".5",
    ]
    texts += ["5.", "-0.25", "true", "T", "no", "on", "1", "0", "2", " true", "é", "１", "--5", "1e", "\t7\n"]
    decimals = [None, *(Decimal(n) / 100 for n in (0, 25, 50, 75, 150, 250, 9999, -725, 5, 10))]
    return pa.table(
        {
            "double": pa.array(doubles, pa.float64(), from_pandas=False),
            "single": pa.array(
                [x if x is None else np.float32(x) for x in doubles], pa.float32(), from_pandas=False
            ),
            "long": pa.array([longs[i % len(longs)] for i in range(count)], pa.int64()),
            "short": pa.array([i % 300 - 150 for i in range(count)], pa.int16()),
            "text": pa.array([texts[i % len(texts)] for i in range(count)]),
            "decimal": pa.array([decimals[i % len(decimals)] for i in range(count)], pa.decimal128(12, 2)),
            "bool": pa.array([(True, False, None)[i % 3] for i in range(count)]),
            "row": list(range(count)),
        }
    )


def nearby(value: float) -> list[float]:
    return [math.nextafter(value, -math.inf), value, math.nextafter(value, math.inf)]


NUMBERS: dict[str, dict[str, Any]] = {
    "grid": {"type": "real", "lower": 0.0, "upper": 100.0},
    "tenths": {"type": "real", "lower": -2.5, "upper": 99.95, "granularity": 0.1, "missing": 1.0},
    "far": {"type": "integer", "lower": 2**47, "upper": 2**47 + 5},
    "whole": {"type": "integer", "lower": -3, "upper": 3},
}


@pytest.mark.slow
@pytest.mark.parametrize("ansi", [True, False])
def test_every_cell_counts_as_it_does_elsewhere(spark: Any, ansi: bool) -> None:
    """Places, whole keys, flags and texts of every type; numbers in text come from a file elsewhere."""
    spark.conf.set("spark.sql.ansi.enabled", ansi)
    table = cells()
    frame = spark.createDataFrame(table)
    for declared in NUMBERS.values() if ansi else [NUMBERS["tenths"]]:
        names = ["double", "single", "long", "short", "decimal", "bool", "text"]
        schema = Schema.read(dict.fromkeys(names, declared))
        far = open_source(frame, schema, ["row"])
        near = open_source(table.drop(["text"]), Schema.read(dict.fromkeys(names[:-1], declared)), ["row"])
        words = open_source(
            table.to_pandas().astype({"text": object})[["text", "row"]],
            Schema.read({"text": declared}),
            ["row"],
        )
        asked = [far.place_of(name) for name in names]
        found = far.ask(f"SELECT {', '.join(asked)} FROM {far.view} ORDER BY {SPARK.quoted('row')}")
        known = [near.place_of(name) for name in names[:-1]]
        expected = near.ask(f'SELECT {", ".join(known)} FROM {near.view} ORDER BY "row"')
        text = words.ask(f'SELECT {words.place_of("text")} FROM {words.view} ORDER BY "row"')
        assert [row[:-1] for row in found] == expected
        assert [row[-1:] for row in found] == text
    whole = ["double", "single", "long", "decimal", "bool", "text"]
    kinds = {name: far.types[name] for name in names}
    parts = {
        dialect: [dialect.whole(dialect.quoted(name), kinds[name]) for name in whole]
        + [dialect.flag(dialect.quoted(name), kinds[name]) for name in [*whole, "short"]]
        + [dialect.text(dialect.quoted(name), kinds[name]) for name in ("text", "bool", "long")]
        for dialect in (SPARK, DUCKDB)
    }
    near = open_source(table, Schema.read({"row": NUMBERS["far"]}), names)
    found = far.ask(f"SELECT {', '.join(parts[SPARK])} FROM {far.name} ORDER BY {SPARK.quoted('row')}")
    assert found == near.ask(f'SELECT {", ".join(parts[DUCKDB])} FROM {near.name} ORDER BY "row"')
    spark.conf.unset("spark.sql.ansi.enabled")


@pytest.mark.slow
def test_scaling_is_exact_for_the_largest_numbers(spark: Any) -> None:
    chance = random.Random(3)
    cases = [(2**62 * 7, 5, 7), (-(2**31) * 9, 2, 9), (2**62 * (2**40) - 1, 2**20, 2**40), (0, 1, 2)]
    for _ in range(40):
        count = chance.randrange(2, 2**40)
        cases.append(
            (chance.randrange(-(2**62), 2**62) * count + chance.randrange(count), count // 2 or 1, count)
        )
    asked = ", ".join(
        SPARK.scaled(f"CAST('{part}' AS DECIMAL(38, 0))", most, f"{count}L") for part, most, count in cases
    )
    (found,) = spark.sql(f"SELECT {asked}").collect()
    towards_zero = lambda top, bottom: abs(top) // bottom * (1 if top >= 0 else -1)
    assert [int(each) for each in found] == [towards_zero(part * most, count) for part, most, count in cases]


@pytest.mark.slow
def test_no_more_of_a_unit_counts_than_is_declared(spark: Any) -> None:
    """And what counts is a part of what there is; with room for everything, it is the same as elsewhere."""
    chance = random.Random(5)
    rows = pa.table(
        {
            "who": [f"unit {chance.randrange(6)}" for _ in range(120)],
            "site": [chance.choice(["A", "b'", "C", None, "?"]) for _ in range(120)],
            "x": [chance.randrange(-3, 12) for _ in range(120)],
        }
    )
    schema = Schema.read(
        {
            "site": {"type": "category", "keys": ["A", "b'", "C"]},
            "x": {"type": "integer", "lower": 0, "upper": 9},
        }
    )
    sources = [open_source(each, schema, ["who"]) for each in (spark.createDataFrame(rows), rows)]

    def counted(source: Any, unit: PrivacyUnit) -> list[Any]:
        value = source.place_of("x")
        statistics = [
            BernsteinSums(max_rows=unit.max_rows),
            BernsteinSums(value=value, width=9, degree=2, max_rows=unit.max_rows),
        ]
        by, bits = [source.grouping("site")], SeededBits(1)
        found = totals(source, by=by, statistics=statistics, unit=unit, bits=bits)
        ordered = ranks(source, by=by, value=value, unit=unit, bits=bits, places=10)
        return [*found.numbers, [each.values_between(0, 999).tolist() for each in ordered.values()]]

    room = PrivacyUnit(column="who", max_rows=120, max_groups=3)
    assert counted(sources[0], room) == counted(sources[1], room)
    tight = PrivacyUnit(column="who", max_rows=2, max_groups=1)
    counts, moments, values = counted(sources[0], tight)
    assert sum(n for (n,) in counts) <= 6 * 2
    assert sum(map(sum, moments)) <= 6 * 2 * 9**2
    assert 0 < sum(map(len, values)) <= 6 * 2
    alone = rows.filter(pa.array([who != "unit 3" for who in rows["who"].to_pylist()]))
    without = counted(open_source(spark.createDataFrame(alone), schema, ["who"]), tight)
    assert sum(abs(a - b) for (a,), (b,) in zip(counts, without[0], strict=True)) <= 2
    moved = [abs(a - b) for x, y in zip(moments, without[1], strict=True) for a, b in zip(x, y, strict=True)]
    assert 0 < sum(moved) <= 2 * 9**2


@pytest.mark.slow
def test_bytes_that_are_no_text_are_no_keys(spark: Any) -> None:
    cells = ["61", "61FF", "FF", "C1A1", "EDA080", "C361", "C3A9E280A8", "610A"]
    rows = " UNION ALL ".join(f"SELECT CAST(X'{cell}' AS STRING) AS town" for cell in cells)
    source = open_source(spark.sql(rows), Schema.read({"town": {"type": "text"}}))
    found = key_counts(source, ["town"], unit=PrivacyUnit(), bits=SeededBits(1))
    assert found.by_key() == {("a",): 1, ("é\u2028",): 1}
    assert (found.units.tolist(), found.many.tolist()) == ([1], [2])


@pytest.mark.slow
def test_nothing_stays_in_the_session(spark: Any) -> None:
    before = {each.name for each in spark.catalog.listTables()}
    source = open_source(spark.createDataFrame(pa.table({"x": [1]})), Schema.read({"x": NUMBERS["whole"]}))
    side_tables = {"sourdine_more": {"y": np.array([5, 6])}}
    assert source.columns("SELECT count(*) AS n FROM sourdine_more", side_tables)["n"].tolist() == [2]
    assert {each.name for each in spark.catalog.listTables()} - before == {source.name}
    del source
    assert {each.name for each in spark.catalog.listTables()} == before


@pytest.mark.slow
def test_what_a_cluster_cannot_answer_is_refused(spark: Any) -> None:
    frame = spark.createDataFrame(pa.table({"x": [1], "X": [2], "name": ["a"]}))
    schema = Schema.read({"x": NUMBERS["whole"]})
    with pytest.raises(InvalidParameter, match="two columns called 'x'"):
        open_source(frame, schema)
    with pytest.raises(InvalidParameter, match=r"has 3 columns, and none is called 'age'\. Check"):
        open_source(frame, Schema.read({"age": NUMBERS["whole"]}))
    with pytest.raises(InvalidParameter, match="declared to hold text, and the table holds BIGINT"):
        open_source(spark.range(3), Schema.read({"id": {"type": "category", "keys": ["a"]}}))
    with pytest.raises(InvalidParameter, match=r"pandas, Polars, Arrow or DuckDB\. Got a frame of Spark"):
        open_source(frame.select("name"), Schema.read({"name": NUMBERS["whole"]}), spark=False)
    mapped = spark.sql("SELECT 1 AS x, map('a', 1) AS who")
    with pytest.raises(InvalidParameter, match="'who' cannot tell units apart: the table holds MAP"):
        open_source(mapped, schema, ["who"])
    source = open_source(spark.range(3).toDF("x"), schema)
    check_counted(source, "deciles", 1 << 10, 1 << 10)
    with pytest.raises(InvalidParameter, match='Use the method "tree"'):
        check_counted(source, "deciles", 1 << 10, (1 << 10) + 1)


VALUES = st.lists(st.tuples(st.integers(0, 2), st.integers(-1, 3**6 - 1)), max_size=120)


@settings(max_examples=25)
@given(
    VALUES, st.sampled_from([4, 12, 40, 1000]), st.lists(st.integers(0, 3**6), max_size=8), st.integers(0, 40)
)
def test_bins_cut_where_they_are_looked_at_tell_the_same_as_a_sorted_list(
    rows: list[tuple[int, int]], most: int, places: list[int], first: int
) -> None:
    """With room for few rows most bins are cut only when they are looked at."""
    table = pa.table(
        {"g": pa.array([g for g, _ in rows], pa.int64()), "v": pa.array([v for _, v in rows], pa.int64())}
    )
    schema = Schema.read({"g": {"type": "category", "keys": [2, 0, 1]}})
    source = open_source(table, schema, ["v"])
    sql = f'SELECT "g" AS key_0, "v" AS value FROM {source.name}'
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(levels_module, "MOST_ROWS", most)
        binned = Levels(source, sql, [source.grouping("g")], [243, 81, 27, 9, 3, 1], 3).open(3**6, [0.1, 0.5])
        for key, found in zip((2, 0, 1), binned, strict=True):
            held = sorted(v for g, v in rows if g == key and v >= 0)
            assert found.size == len(held)
            assert found.count_below(places).tolist() == [sum(v < p for v in held) for p in places]
            assert found.values_between(first, first + 7).tolist() == held[first : first + 7]
            assert (
                found.count_below(np.arange(3**6 + 1)).tolist()
                == np.searchsorted(held, np.arange(3**6 + 1)).tolist()
            )


@pytest.mark.slow
def test_every_record_is_in_the_same_cell_as_elsewhere(spark: Any) -> None:
    table = cells()
    towns = [None, "", " ", "  ", "Lille", "a" * 201, "two\nlines", "nan", "f", "F "]
    table = table.append_column("town", pa.array([towns[i % len(towns)] for i in range(len(table))]))
    number, keys = NUMBERS["tenths"], {"type": "category", "keys": [0, 1, 2]}
    declared: dict[str, Any] = {
        "double": number,
        "single": NUMBERS["whole"],
        "long": keys,
        "short": NUMBERS["whole"],
        "decimal": number,
        "bool": {"type": "flag"},
        "text": NUMBERS["whole"],
        "town": {"type": "text"},
        "row": {"type": "category", "keys": [1, 5, 7]},
    }
    frame = spark.createDataFrame(table)
    far = open_source(frame, Schema.read(declared))
    objects = table.to_pandas().astype({"text": object, "town": object})
    near = open_source(objects, Schema.read(declared))
    here = open_source(table.drop(["text"]), Schema.read({k: v for k, v in declared.items() if k != "text"}))
    for name in declared:
        other = near if name == "text" else here  # numbers in text come from a file, or from objects
        asked = [
            f"SELECT {place_among_cells(held, name)} FROM {held.view} ORDER BY {held.dialect.quoted('row')}"
            for held in (far, other)
        ]
        assert far.ask(asked[0]) == other.ask(asked[1]), name
    unlike = {"town": {"type": "category", "keys": ["Lille", "f"]}, "text": {"type": "flag"}}
    far, near = (open_source(held, Schema.read(unlike)) for held in (frame, objects))
    bits = SeededBits(1)
    assert quality_counts(far, list(unlike), unit=PrivacyUnit(), bits=bits) == quality_counts(
        near, list(unlike), unit=PrivacyUnit(), bits=bits
    )


@pytest.mark.slow
def test_a_unit_counts_in_few_cells(spark: Any) -> None:
    rows = [(who, age) for who in ("a", "b", "c", None) for age in (1, 50, 500, None, 7, -2)] + [("d", 3)]
    frame = spark.createDataFrame(rows, "who string, age bigint")
    schema = Schema.read({"age": {"type": "integer", "lower": 0, "upper": 120}})
    for seed in range(3):
        source = open_source(frame, schema, ["who"])
        unit = PrivacyUnit(column="who", max_rows=2)
        found = quality_counts(source, ["age"], unit=unit, bits=SeededBits(seed))
        assert sum(found) == 2 * 3 + 1
        assert min(found) >= 0
        assert found[2] == 0  # nothing is unreadable
    assert quality_counts(
        source, ["age"], unit=PrivacyUnit(column="who", max_rows=9), bits=SeededBits(1)
    ) == (
        10,
        3,
        0,
        3,
        3,
    )
