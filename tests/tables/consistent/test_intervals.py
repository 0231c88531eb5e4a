"""Intervals of consistent tables hold the exact count as often as they say; distances hold too."""

from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import binom

from sourdine.core.distance import Neighbours
from sourdine.core.errors import InvalidParameter
from sourdine.core.mechanism import Mechanism
from sourdine.frames import PrivacyUnit
from sourdine.mechanisms import Gaussian, Laplace
from sourdine.tables import Table, forecasts, rehearse
from sourdine.tables.consistent import agreed
from sourdine.tables.intervals import Noisy, worst_noises
from sourdine.tables.release import _carry_out
from sourdine.testing import SeededBits
from tests.statistics import ALARM
from tests.tables.consistent.test_structures import STRUCTURES
from tests.tables.exact import exact_numbers

ROWS = [["north", "a", "x"], ["north", "a", "y"], ["south", "b", "z"], ["south", "c", "w"]]
COLUMNS: dict[str, Any] = {
    "town": {"type": "category", "keys": ["w", "x", "y", "z"]},
    "sex": {"type": "category", "keys": ["f", "m"]},
    "age": {"type": "category", "keys": [1, 2, 3]},
}
PLACES = {"name": "places", "ask": [{"hierarchy": ["region", "department", "town"], "rows": ROWS}]}
CELLS = {"name": "cells", "ask": [{"contingency": ["sex", "age"], "consistent": True}], "by": ["town"]}


@pytest.mark.parametrize("name", ["tree", "two columns", "all margins"])
@pytest.mark.parametrize(
    "mechanism",
    [
        Laplace(scale=Fraction(1, 4)),
        Laplace(scale=Fraction(3, 2)),
        Laplace(scale=Fraction(60)),
        Gaussian(sigma=Fraction(1, 2)),
        Gaussian(sigma=Fraction(20)),
    ],
)
@pytest.mark.parametrize("confidence", [pytest.param(0.8, marks=pytest.mark.slow), 0.95])
def test_intervals_cover(name: str, mechanism: Mechanism, confidence: float) -> None:
    """Most cells are empty. An interval a third narrower would be found out at the wide noises."""
    held, draws = STRUCTURES[name], 300
    cells = np.random.default_rng(1).poisson(6, (1, held.cells)) * (np.arange(held.cells) % 4 == 0)
    exact = np.repeat(held.exact(cells), draws, axis=0)
    drawn = mechanism.sample(exact, SeededBits(9)).astype(float)
    found = agreed(held, Noisy(numbers=drawn, mechanism=mechanism, confidence=confidence))
    inside = (found.lower <= exact.ravel()) & (exact.ravel() <= found.upper)
    assert (found.lower <= found.value).all()
    assert (found.value <= found.upper).all()
    assert (found.lower >= 0).all()
    least = binom.ppf(ALARM / inside.reshape(draws, -1).shape[1], draws, confidence)
    assert (inside.reshape(draws, -1).sum(axis=0) >= least).all()


def test_the_widest_law_is_wide_enough() -> None:
    """Sums of Laplace noises with random weights, and one noise, at several confidences."""
    random = np.random.default_rng(7)
    drawn = random.laplace(size=(40_000, 12)) / np.sqrt(2)
    for power in (0.0, 0.5, 1.0, 3.0):
        weights = np.arange(1, 13, dtype=float) ** -power
        total = np.abs(drawn @ (weights / np.sqrt((weights**2).sum())))
        for confidence in (0.5, 0.8, 0.95, 0.99):
            missed = int((total > worst_noises(confidence)).sum())
            assert binom.sf(missed - 1, len(total), 1 - confidence) > ALARM
            assert worst_noises(confidence) < 1.5 * np.quantile(total, confidence)


def moved(left: list[list[int]], right: list[list[int]]) -> list[tuple[int, int]]:
    """How far the numbers of each line are apart: L1 and the square of L2."""
    apart = [np.array(a) - np.array(b) for a, b in zip(left, right, strict=True)]
    return [(int(np.abs(each).sum()), int((each**2).sum())) for each in apart]


@pytest.mark.parametrize("neighbours", [Neighbours.ADD_REMOVE, Neighbours.REPLACE])
def test_a_unit_moves_no_more_than_is_paid_for(neighbours: Neighbours) -> None:
    """On random tables, one unit gone or another in its place."""
    random = np.random.default_rng(4)
    reached = 0.0
    for seed in range(3):
        size = 30
        rows = {
            "who": [f"u{i % 6}" for i in range(size)],
            "town": random.choice(["w", "x", "y", "z"], size).tolist(),
            "sex": random.choice(["f", "m"], size).tolist(),
            "age": random.integers(1, 4, size).tolist(),
        }
        unit = PrivacyUnit(name="person", column="who", max_rows=2, max_groups=3)
        other = {name: list(values) for name, values in rows.items()}
        places = [i for i in range(size) if rows["who"][i] == "u0"]
        for i in places:
            if neighbours is Neighbours.REPLACE:
                other["town"][i], other["sex"][i], other["age"][i] = "w", "f", 1
            else:
                other["who"][i] = None
        for delta in (None, 1e-6):
            plans, numbers = [], []
            for held in (rows, other):
                table = Table(pa.table(held), unit=unit, columns=COLUMNS, neighbours=neighbours)
                plans.append(table.plan(PLACES, CELLS, epsilon=1, delta=delta, quality=False))
                numbers.append(exact_numbers(plans[-1], table.source, seed))
            for line, (one, two) in zip(plans[0].lines, moved(*numbers), strict=True):
                assert (one if delta is None else two) <= line.distance.amount
                reached = max(reached, float((one if delta is None else two) / line.distance.amount))
    assert reached > 0.25


def test_the_distance_in_l2_is_reached() -> None:
    """Both cells of a unit lie in one department: its larger levels move by all its records at once."""
    columns = {"sex": ["f"] * 4, "age": [1] * 4}
    rows = {"who": ["u"] * 4, "town": ["x", "x", "y", "y"], **columns}
    unit = PrivacyUnit(name="person", column="who", max_rows=2, max_groups=2)
    table = Table(pa.table(rows), unit=unit, columns=COLUMNS)
    plan = table.plan(PLACES, epsilon=1, delta=1e-6, quality=False, noise="gaussian")
    (numbers,) = exact_numbers(plan, table.source)
    assert sum(number**2 for number in numbers) == plan.lines[0].distance.amount == 56


def test_sums_are_taken_of_what_counts() -> None:
    """A unit counts in so many cells, and larger levels are sums of those: they add up before noise."""
    rows = {"who": ["u"] * 4, "town": ["w", "x", "y", "z"], "sex": ["f"] * 4, "age": [1] * 4}
    unit = PrivacyUnit(name="person", column="who", max_groups=2)
    table = Table(pa.table(rows), unit=unit, columns=COLUMNS)
    (numbers,) = exact_numbers(table.plan(PLACES, epsilon=1, quality=False), table.source)
    assert (numbers[0], sum(numbers[1:3]), sum(numbers[3:6]), sum(numbers[6:])) == (2, 2, 2, 2)


def test_answers_have_a_row_for_each_level_and_key() -> None:
    rows = {"town": ["x", "y", "z"] * 100, "sex": ["f", "m"] * 150, "age": [1, 2, 3] * 100}
    table = Table(pa.table(rows), unit="person", columns=COLUMNS)
    plan = table.plan(PLACES, CELLS, epsilon=1000)
    found = _carry_out(plan, table.source, bits=SeededBits(3)).values
    places = found["places"]
    assert places.columns == ("region", "department", "town")
    assert [places.at(*key)[0] for key in (("all",) * 3, ("north", "all", "all"), ("south", "b", "z"))] == [
        300,
        200,
        100,
    ]
    assert places.at("south", "c", "w") == (0, 0, 1)  # ends go outwards to whole numbers
    cells = found["cells"]
    assert cells.at("x", "all", "all")[0] == 100
    assert cells.at("x", "f", 1)[0] + cells.at("x", "m", 1)[0] == cells.at("x", "all", 1)[0] == 100
    assert all(each.error is not None and each.error < 1 for each in forecasts(plan))


def test_a_rehearsal_adds_up_too() -> None:
    table = Table(pa.table({"town": ["x"], "sex": ["f"], "age": [1]}), unit="person", columns=COLUMNS)
    places = rehearse(table.plan(PLACES, epsilon=0.5)).values["places"]
    assert places.at("all", "all", "all")[0] == sum(places.at(*row)[0] for row in map(tuple, ROWS))


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        ({"contingency": ["sex", "age"], "margins": ["all"]}, "margins need consistent"),
        ({"contingency": ["sex", "age"], "consistent": True, "margins": ["town"]}, "some of the columns"),
        ({"contingency": ["sex", "age"], "consistent": True, "margins": ["sex", "sex"]}, "must not repeat"),
        ({"contingency": ["sex", "age"], "consistent": True, "margins": [["sex", "age"]]}, "not all of them"),
        (
            {"hierarchy": ["region", "town"], "rows": [["n", "x"], ["s", "x"]]},
            "rows 1 and 2, without repeated ones, are of the same town.*Keep one",
        ),
        ({"hierarchy": ["region", "town"], "rows": [["n", "x"]]}, "has no row in"),
        ({"hierarchy": ["region", "town"], "rows": [["n"]]}, "a key for each level"),
        ({"hierarchy": ["region", "town"], "rows": [["all", "x"]]}, "names the sums"),
        ({"hierarchy": "place"}, "which only a specification can name"),
    ],
)
def test_what_cannot_add_up_is_refused(ask: dict[str, Any], said: str) -> None:
    table = Table(pa.table({"town": ["x"], "sex": ["f"], "age": [1]}), unit="person", columns=COLUMNS)
    with pytest.raises(InvalidParameter, match=said):
        table.plan({"name": "q", "ask": [ask]}, epsilon=1)


@pytest.mark.slow
def test_a_million_cells() -> None:
    """100 x 100 x 100 cells and their default margins add up."""
    from sourdine.tables.consistent import Crossed

    held = Crossed((100, 100, 100), ((0, 1, 2), (), (0,), (1,), (2,)))
    random = np.random.default_rng(1)
    exact = held.exact(random.poisson(0.4, (1, held.cells)))
    found = held.whole(exact.astype(float) + np.rint(random.laplace(size=exact.shape) * 5))
    assert (found >= 0).all()
    np.testing.assert_array_equal(held.exact(found[:, : held.cells]), found)
