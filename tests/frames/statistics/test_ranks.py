"""Values in order: the same ranks as a sorted list has, and no more of a unit than is declared."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sourdine.frames import CountedValues, PrivacyUnit, RankSource, Schema, Source, open_source, ranks
from sourdine.frames.cells import grouping, steps
from sourdine.frames.rank_counts import GroupRanks, SortedPlaces
from sourdine.frames.schema import span
from sourdine.testing import SeededBits
from tests.frames.every_engine import ALL_ENGINES, ENGINES

SCHEMA = Schema.read(
    {
        "age": {"type": "integer", "lower": 0, "upper": 9},
        "sex": {"type": "category", "keys": ["f", "m", "x"]},
        "well": {"type": "flag", "missing": False},
    }
)
AGES: list[Any] = [3.0, 5.0, 5.0, -4.0, 80.0, math.nan, None, 3.0, math.inf, 7.0]
TABLE = pa.table(
    {
        "age": pa.array(AGES * 4, pa.float64(), from_pandas=False),
        "sex": ["f", "m", "f", "m", "f", "f", "m", None, "f", "other"] * 4,
        "well": [True] * 20 + [False] * 10 + [None] * 10,
        "who": [i % 6 for i in range(40)],
    }
)


EACH = PrivacyUnit()


def asked(source: Source, by: list[str], unit: PrivacyUnit = EACH, seed: int = 1) -> GroupRanks:
    return ranks(
        source,
        by=[grouping(name, SCHEMA.columns[name], source.types[name]) for name in by],
        value=steps("age", SCHEMA.number("test", "age"), source.types["age"]),
        unit=unit,
        bits=SeededBits(seed),
    )


@pytest.mark.parametrize("engine", ALL_ENGINES)
def test_ranks_are_the_same_everywhere(engine: str, tmp_path: Path) -> None:
    source = open_source(ENGINES[engine](TABLE, tmp_path), SCHEMA, ["who"])
    found = asked(source, ["sex", "well"])
    assert list(found) == [(sex, well) for sex in ("f", "m", "x") for well in (False, True)]
    everyone: dict[tuple[object, ...], list[int]] = {
        ("f", well): sorted([3, 5, 9] * 2) for well in (False, True)
    }
    everyone |= {("m", well): sorted([5, 0] * 2) for well in (False, True)}
    for key, values in found.items():
        assert values.values_between(0, 99).tolist() == everyone.get(key, [])
        assert values.size == len(everyone.get(key, []))
    alone = asked(source, [])[()]
    assert alone.values_between(0, 99).tolist() == sorted([3, 5, 5, 0, 9, 3, 7] * 4)
    some = asked(source, ["sex"], PrivacyUnit(column="who", max_rows=2))
    again = asked(open_source(TABLE, SCHEMA, ["who"]), ["sex"], PrivacyUnit(column="who", max_rows=2))
    for key, values in some.items():
        assert values.values_between(0, 99).tolist() == again[key].values_between(0, 99).tolist()
    assert sum(values.size for values in some.values()) == 2 * 6


def test_nobody_is_an_empty_list() -> None:
    source = open_source(TABLE.slice(0, 0), SCHEMA, ["who"])
    for unit in (PrivacyUnit(), PrivacyUnit(column="who")):
        assert {key: values.size for key, values in asked(source, ["well"], unit).items()} == {
            (False,): 0,
            (True,): 0,
        }
        assert asked(source, [], unit)[()].count_below([0, 5]).tolist() == [0, 0]


def test_which_records_count_changes_with_the_secret() -> None:
    table = pa.table({"age": list(range(10)) * 4, "sex": ["f"] * 40, "well": [True] * 40, "who": [1] * 40})
    source = open_source(table, SCHEMA, ["who"])
    unit = PrivacyUnit(column="who", max_rows=3)
    seen = [tuple(asked(source, [], unit, seed)[()].values_between(0, 99).tolist()) for seed in range(20)]
    assert all(len(each) == 3 for each in seen)
    assert len(set(seen)) > 12


@given(
    st.lists(st.integers(-20, 20)),
    st.lists(st.integers(-25, 25) | st.sampled_from([-(2**62), -(2**31) - 1, 2**31 - 1, 2**31, 2**62])),
    st.integers(-3, 45),
    st.integers(-3, 45),
)
def test_values_counted_or_sorted_are_a_sorted_list(
    values: list[int], places: list[int], first: int, last: int
) -> None:
    """Places beyond what the type of the values holds lie above or below all of them."""
    distinct, counts = np.unique(np.array(values, np.int64), return_counts=True)
    ordered = [SortedPlaces(np.sort(np.array(values, kind))) for kind in (np.int32, np.int64)]
    sources: list[RankSource] = [CountedValues(distinct, np.cumsum(counts)), *ordered]
    start, end = max(first, 0), max(last, 0)
    for held in sources:
        assert held.size == len(values)
        assert held.count_below(places).tolist() == [sum(v < place for v in values) for place in places]
        assert held.values_between(first, last).tolist() == sorted(values)[start:end]


KEYED = Schema.read(
    {
        "age": {"type": "integer", "lower": 0, "upper": 9},
        "text": {"type": "category", "keys": ["b", "", "it's ü", "a"], "missing": "a"},
        "far": {"type": "category", "keys": [7, -3, 10**15]},
        "other": {"type": "category", "keys": [5, 4], "missing": 5},
        "well": {"type": "flag"},
    }
)


@pytest.mark.parametrize("places", [10, None])
@pytest.mark.parametrize("name", ["text", "far", "other", "well"])
def test_keys_of_every_kind_are_told_apart_however_values_are_counted(name: str, places: int | None) -> None:
    held: dict[str, list[Any]] = {
        "text": ["a", "b", "B", None, "it's ü", "", "zz"],
        "far": [7, -3, None, 8, 10**15, -(10**15), 7],
        "other": [5, 4, None, 6, 4, 4, -1],
        "well": [True, False, None, True, True, False, None],
    }
    ages = [1, 2, 3, 4, 5, 6, 7]
    rows = {**held, "age": ages}
    source = open_source(pa.table({key: each * 2 for key, each in rows.items()}), KEYED)
    column: Any = KEYED.columns[name]
    found = ranks(
        source,
        by=[grouping(name, column, source.types[name])],
        value=steps("age", KEYED.number("test", "age"), source.types["age"]),
        unit=EACH,
        bits=SeededBits(0),
        places=places,
    )
    keys = [False, True] if name == "well" else list(column.keys)
    default = None if column.missing == "drop" else column.missing
    named = [key if key in keys else default for key in held[name]]
    assert {key: values.values_between(0, 99).tolist() for (key,), values in found.items()} == {
        key: sorted([age for age, mine in zip(ages, named, strict=True) if mine == key] * 2) for key in keys
    }


MIXED = Schema.read(
    {
        "few": {"type": "category", "keys": [4, 5, 6]},
        "odd": {"type": "category", "keys": [9, -2, 7]},
        "text": {"type": "category", "keys": ["b", "a'"], "missing": "b"},
        "flag": {"type": "flag"},
        "x": {"type": "real", "lower": 0.0, "upper": 10.0, "granularity": 0.01},
        "some": {"type": "real", "lower": 0.0, "upper": 10.0, "granularity": 1e-4},
        "fine": {"type": "real", "lower": 0.0, "upper": 10.0, "granularity": 1e-8},
    }
)


@pytest.mark.parametrize("column", ["x", "some", "fine"])
@pytest.mark.parametrize("by", [(), ("few",), ("few", "flag", "text"), ("odd", "few"), ("text",)])
def test_many_places_are_counted_or_sorted_alike(column: str, by: tuple[str, ...]) -> None:
    """By the engine, or sorted in 32 or in 64 bits: every way gives the values in order."""
    chance = np.random.default_rng(4)
    pick = lambda items: [items[i] for i in chance.integers(0, len(items), 600)]
    values = [*chance.uniform(-1, 11, 300).tolist(), *[2.5, math.nan, math.inf, 0.0, 10.0] * 60]
    rows = pa.table(
        {
            "few": pick([4, 5, 6, 7, None, -(2**63)]),
            "odd": pick([9, -2, 7, 8, None]),
            "text": pick(["a'", "b", "c", None]),
            "flag": pick([True, False, None]),
            "x": pa.array(values, pa.float64(), from_pandas=False),
            "some": pa.array(values, pa.float64(), from_pandas=False),
            "fine": pa.array(values, pa.float64(), from_pandas=False),
        }
    )
    source = open_source(rows, MIXED)
    number, grouped = MIXED.number("test", column), [source.grouping(name) for name in by]
    places = span(number)[1] + 1
    value, bits = source.place_of(column), SeededBits(1)
    found = ranks(source, by=grouped, value=value, unit=PrivacyUnit(), bits=bits, places=places)
    asked = ", ".join([*(each.known(f"({each.raw})") for each in grouped), value])
    expected: dict[tuple[Any, ...], list[int]] = {key: [] for key in found}
    for *keys, place in source.ask(f"SELECT {asked} FROM {source.view}"):
        if place >= 0 and tuple(keys) in expected:
            expected[tuple(keys)].append(place)
    assert sum(map(len, expected.values())) > 50
    for key, held in found.items():
        assert held.values_between(0, 999).tolist() == sorted(expected[key])
        assert held.size == len(expected[key])
