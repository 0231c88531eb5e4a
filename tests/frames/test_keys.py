"""Keys in columns are the tuples that they stand for."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sourdine.frames.keys import TEXT, Cell, KeyColumn, Keys, values_of

CELLS = st.one_of(st.text(max_size=3), st.integers(-9, 9), st.booleans(), st.sampled_from([0.25, 0.5, None]))
COLUMNS = st.lists(st.lists(CELLS, max_size=4, unique_by=lambda cell: (type(cell), cell)), max_size=3)


def same(found: Keys, wanted: list[tuple[Cell, ...]]) -> None:
    assert len(found) == len(wanted)
    assert repr(list(found)) == repr(wanted)  # True and 1 are not alike
    assert found == wanted
    assert [found[place] for place in range(len(found))] == wanted


@given(COLUMNS)
def test_a_product_is_that_of_tuples(columns: list[list[Cell]]) -> None:
    wanted = list(itertools.product(*columns))
    found = Keys.product(columns)
    same(found, wanted)
    same(found[1::2], wanted[1::2])
    assert Keys.of(wanted, len(columns)) == found
    for place, key in enumerate(wanted):
        first = found.find(key)
        assert first is not None
        assert first <= place
        assert wanted[first] == key
    assert found.find(("nothing", "such") * 3) is None


@given(COLUMNS, COLUMNS)
def test_groups_are_repeated_for_other_keys_and_joined(one: list[list[Cell]], two: list[list[Cell]]) -> None:
    first, second = Keys.product(one), Keys.product(two)
    beside = [(*a, *b) for a in itertools.product(*one) for b in itertools.product(*two)]
    same(first.each_with(second), beside)
    third = Keys.product(one[::-1])
    same(Keys.joined([first, third]), [*itertools.product(*one), *itertools.product(*one[::-1])])


def test_texts_that_were_chosen_are_found_by_their_letters() -> None:
    keys = Keys.of_columns(np.array(["a", "é", "1"], dtype=TEXT))
    assert [keys.find((key,)) for key in ("é", "e", 1, "1", None)] == [1, None, None, 2, None]
    others = Keys.joined([keys, Keys.of_columns(np.array(["others"], dtype=TEXT))])
    assert others[-1] == ("others",)
    assert others.columns[0].values.dtype == TEXT


def test_one_key_for_all_and_other_words_for_the_same() -> None:
    column = KeyColumn.one("all", 3)
    assert column.cells().tolist() == ["all"] * 3
    bins = KeyColumn(values_of(range(2)), np.array([1, 0, 1], np.int32)).changed(["low", "high"])
    assert bins.cells().tolist() == ["high", "low", "high"]


def test_a_long_list_is_made_an_array_once_and_stays_of_its_type() -> None:
    ones, flags = tuple([1, 0] * 40_000), tuple([True, False] * 40_000)
    assert values_of(ones) is values_of(ones)
    assert (values_of(ones).dtype, values_of(flags).dtype) == (np.dtype(np.int64), np.dtype(bool))


def test_unlike_keys_are_refused() -> None:
    with pytest.raises(ValueError, match="unlike"):
        Keys.of([("a",), ("b", 1)], 1)
    with pytest.raises(IndexError):
        Keys.product([["a"]])[1]
