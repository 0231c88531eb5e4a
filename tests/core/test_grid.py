import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import ArrayLike, NDArray

from sourdine.core import grid
from sourdine.core.distance import Distance, root_above
from sourdine.core.errors import InvalidParameter, UnsupportedLoss
from sourdine.mechanisms import Laplace
from tests.errors import refusal_of

REALS = st.floats(allow_nan=True, allow_infinity=True)


@given(st.lists(REALS, min_size=1), st.integers(-60, 60))
def test_any_float_becomes_a_whole_number_within_the_limit(values: list[float], power: int) -> None:
    units = grid.to_units("Laplace", values, Fraction(2) ** power)
    assert units.dtype == np.int64
    assert np.all(np.abs(units) <= grid.LIMIT)


@given(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6), st.integers(-30, 4))
def test_rounding_moves_two_reals_apart_by_at_most_one_step(x: float, y: float, power: int) -> None:
    step = Fraction(2) ** power
    a, b = grid.to_units("Laplace", [x, y], step)
    assert abs(int(a) - int(b)) <= abs(Fraction(x) - Fraction(y)) / step + 1


@given(st.integers(-(2**66), 2**66), st.integers(0, 2**40), st.integers(-70, 70))
def test_integers_on_a_grid_are_not_rounded_by_floats(value: int, change: int, power: int) -> None:
    step = Fraction(2) ** power
    a, b = (int(grid.to_units("Laplace", [v], step)[0]) for v in (value, value + change))
    assert abs(a - b) <= change / step + 1
    assert abs(a) <= grid.LIMIT
    assert abs(a - value / step) <= Fraction(1, 2) or abs(a) == grid.LIMIT


@given(st.integers(-(2**70), 2**70), st.floats(), st.integers(-70, 70))
def test_the_kind_of_one_item_does_not_change_how_another_is_read(
    whole: int, other: float, power: int
) -> None:
    step = Fraction(2) ** power
    alone = int(grid.to_units("Laplace", [whole], step)[0])
    beside = int(grid.to_units("Laplace", [whole, other], step)[0])
    assert abs(alone - beside) <= 1  # a tie may be rounded up or to even
    assert int(grid.to_units("Laplace", [whole, 1], step)[0]) in (alone, beside)


def test_clipping_counts_steps_and_not_values() -> None:
    assert int(grid.to_units("Laplace", [2**70], Fraction(2**60))[0]) == 1024
    assert int(grid.to_units("Laplace", np.array([2**63 - 1]), Fraction(2**60))[0]) == 8
    assert int(grid.to_units("Laplace", np.array([2**64 - 1], np.uint64), Fraction(2**60))[0]) == 16
    assert int(grid.to_units("Laplace", np.array([2**64 - 1], np.uint64), Fraction(2**64))[0]) == 1


def test_an_empty_list_is_empty_and_long_doubles_are_refused() -> None:
    assert grid.to_units("Laplace", [], None).shape == (0,)
    assert grid.to_units("Laplace", np.array([], dtype=object), None).shape == (0,)
    with pytest.raises(InvalidParameter, match="float64"):
        grid.to_units("Laplace", np.zeros(2, np.longdouble), Fraction(1))


@given(st.integers())
def test_integers_of_any_size_are_clipped(value: int) -> None:
    assert int(grid.to_units("Laplace", value, None)) == max(-grid.LIMIT, min(grid.LIMIT, value))


def test_what_is_not_a_number_counts_as_zero() -> None:
    units = grid.to_units("Laplace", [math.nan, math.inf, -math.inf, 1e300], Fraction(1, 8))
    assert units.tolist() == [0, grid.LIMIT, -grid.LIMIT, grid.LIMIT]


NA = type("NAType", (), {})()


def test_what_is_missing_is_no_number() -> None:
    """None, NA and masked items count as NaN does, whatever lies under the mask."""
    one_and_none: list[ArrayLike] = [
        [1, None],  # type: ignore[list-item]
        [1.0, NA],
        np.ma.masked_equal([1, 999], 999),
        np.ma.masked_equal([1.0, 9.0], 9),
    ]
    for values in one_and_none:
        np.testing.assert_array_equal(grid.reals(values), [1.0, math.nan])
        assert grid.to_units("Laplace", values, Fraction(1, 2)).tolist() == [2, 0]
    some_and_none: list[ArrayLike] = [
        [1, None],  # type: ignore[list-item]
        [2**70, NA],
        np.ma.masked_equal([1, 999], 999),
        np.ma.masked_equal([True, 0], 0),
    ]
    for values in some_and_none:
        assert grid.to_units("Geometric", values, None)[1] == 0
    none: list[ArrayLike] = [[None], np.ma.masked_equal([7], 7)]  # type: ignore[list-item]
    for values in none:
        assert grid.to_units("Geometric", values, None).tolist() == [0]


def test_a_mask_does_not_change_how_other_items_are_read() -> None:
    for held in (np.array([2**60 + 1, 3]), np.array([1e300, 3.0]), np.array([True, False])):
        none, some = np.ma.MaskedArray(held, False), np.ma.MaskedArray(held, [False, True])
        for read in (grid.numbers, grid.reals):
            assert read(none).dtype == read(some).dtype
            assert read(none)[0] == read(some)[0]


def test_other_types_are_refused_by_their_type_alone() -> None:
    with pytest.raises(InvalidParameter, match="granularity"):
        grid.to_units("Laplace", [1.0], None)
    with pytest.raises(InvalidParameter, match="numbers"):
        grid.to_units("Laplace", ["secret"], Fraction(1))
    assert grid.to_units("Laplace", [True, False], None).tolist() == [1, 0]
    assert int(grid.to_units("Laplace", np.uint64(2**64 - 1), None)) == grid.LIMIT


@pytest.mark.parametrize("step", [None, Fraction(1), Fraction(1, 4)])
def test_a_truth_of_numpy_among_objects_is_a_number(step: Fraction | None) -> None:
    values = np.array([np.True_, None, np.False_, True, 3], dtype=np.object_)
    units = grid.to_units("Geometric", values, step)
    assert (units * float(step or 1)).tolist() == [1, 0, 0, 1, 3]
    np.testing.assert_array_equal(grid.reals(values), [1.0, math.nan, 0.0, 1.0, 3.0])


@pytest.mark.parametrize("step", [None, Fraction(1)])
def test_a_duration_is_no_number(step: Fraction | None) -> None:
    """NumPy derives its durations from its integers."""
    day = np.timedelta64(1, "D")
    durations: list[ArrayLike] = [day, [day], np.array([day]), np.array([day, 1], dtype=np.object_)]
    for values in durations:
        with pytest.raises(InvalidParameter, match="must be"):
            grid.to_units("Geometric", values, step)


HUGE = [2**62, 2**63, -(2**63) - 1, 2**64, -(2**70), 10**400]


@pytest.mark.parametrize("huge", HUGE)
@pytest.mark.parametrize("make", [list, lambda items: np.array(items, dtype=np.object_)])
def test_no_error_tells_how_large_an_integer_is(huge: int, make: Callable[[list[float]], ArrayLike]) -> None:
    """numpy makes floats of [1, 2**63] and objects of [1, 2**70]: both are integers all the same."""
    edge = grid.LIMIT if huge > 0 else -grid.LIMIT
    assert grid.to_units("Laplace", make([5, huge]), None).tolist() == [5, edge]
    assert grid.to_units("Laplace", make([5, huge]), Fraction(1, 4)).tolist() == [20, edge]
    assert grid.to_units("Laplace", make([0.5, huge]), Fraction(1, 4)).tolist() == [2, edge]
    with pytest.raises(InvalidParameter, match="integers"):
        grid.to_units("Laplace", make([0.5, huge]), None)


def test_an_integer_does_not_change_with_its_neighbours_in_a_list() -> None:
    step = Fraction(1 << 10)
    first = 2**63 - 1
    assert grid.to_units("Laplace", [first, 2**70], step)[0] == grid.to_units("Laplace", [first, 5], step)[0]


@given(st.integers(-grid.LIMIT, grid.LIMIT), st.integers(-(2**63), 2**63 - 1))
def test_sums_never_wrap_around(value: int, noise: int) -> None:
    total = grid.plus(np.array([value]), np.array([noise]))[0]
    noise = max(-grid.LIMIT, min(grid.LIMIT, noise))
    assert int(total) == max(-grid.LIMIT, min(grid.LIMIT, value + noise))


def test_a_distance_in_steps_counts_the_rounding() -> None:
    half = Fraction(1, 2)
    assert grid.distance_units(Distance.l1(3), None) == 3
    assert grid.distance_units(Distance.l1(3, coordinates=2), half) == 8
    assert grid.distance_units(Distance.l2(3, coordinates=4), half) == (6 + 2) ** 2
    assert grid.distance_units(Distance.linf(3), half) == 7
    with pytest.raises(UnsupportedLoss, match="how many numbers change"):
        grid.distance_units(Distance.l1(3), half)


@pytest.mark.parametrize("step", [0, -1, Fraction(1, 3), 0.1, "1", True, math.nan, 2.0**-120])
def test_a_granularity_is_a_power_of_two(step: object) -> None:
    with refusal_of("granularity", "Laplace"):
        grid.step("Laplace", step)


@given(st.fractions(min_value=0, max_value=10**9))
def test_a_root_is_never_below(square: Fraction) -> None:
    root = root_above(square)
    assert square <= root**2 <= square + Fraction(1, 2**24)
    assert root_above(square**2) == square


@pytest.mark.parametrize("value", [12.5, [1, 2.5], "many"])
def test_reals_without_a_grid_are_sent_to_a_mechanism_that_has_one(value: object) -> None:
    with pytest.raises(InvalidParameter, match="must be integers") as caught:
        grid.to_units("Geometric", value, None)  # type: ignore[arg-type]
    assert "Reals need a mechanism with a granularity, such as Laplace" in str(caught.value)
    assert "declare" not in str(caught.value)


def enumerated(shifts: tuple[int, ...], epsilon: float) -> float:
    """delta(epsilon) of independent discrete Laplace noises of scale 1, moved by these shifts."""
    p = np.exp(-np.abs(np.arange(-40, 41)))
    p /= p.sum()
    whole = moved = np.ones(1)
    for shift in shifts:
        whole, moved = np.outer(whole, p).ravel(), np.outer(moved, np.roll(p, shift)).ravel()
    return float(np.maximum(whole - math.exp(epsilon) * moved, 0).sum())


def test_two_units_may_move_two_coordinates() -> None:
    distance = Distance.l1(2, coordinates=2)
    assert grid.one_moves(distance, Fraction(1))
    assert not grid.one_moves(distance, Fraction(2))
    loss = Laplace(scale=1).loss(distance)
    for epsilon in (0.0, 0.5, 1.0, 1.5):
        worst = max(enumerated((2,), epsilon), enumerated((1, 1), epsilon))
        assert float(loss.profile(epsilon)) >= worst - 1e-12


def test_the_largest_integers_on_the_coarsest_grids() -> None:
    """Just below half a step of 2^65, at half of 2^64 or above, and the same of either sign."""
    most = np.array([2**64 - 1], np.uint64)
    assert [grid.to_units("Laplace", most, Fraction(2) ** power)[0] for power in (63, 64, 65, 66, 90)] == [
        2,
        1,
        0,
        0,
        0,
    ]
    least = np.array([-(2**63)])
    assert [grid.to_units("Laplace", least, Fraction(2) ** power)[0] for power in (63, 64, 65, 66)] == [
        -1,
        0,
        0,
        0,
    ]


@pytest.mark.parametrize(
    "values", [[-3, 0, 7, 12], np.array([-3, 0, 7, 12]), np.array([-3, 0, 7, 12], np.int8)]
)
def test_places_are_clipped(values: list[int] | NDArray[np.int64]) -> None:
    before = np.array(values)
    assert grid.places("Owner", values, 9).tolist() == [0, 0, 7, 9]
    assert np.array_equal(values, before)  # what was given stays as it was
    assert grid.places("Owner", np.array([2**64 - 1], np.uint64), 9).tolist() == [9]
    assert grid.places("Owner", np.ma.array([5, 6], mask=[True, False]), 9).tolist() == [0, 6]
