"""Values that many people share: what is released is one of them, and what was told beforehand holds."""

from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats import binom

from sourdine.core.distance import Neighbours
from sourdine.frames.rank_counts import SortedPlaces
from sourdine.tables import Table, forecasts
from sourdine.tables.quantiles import METHODS, JointExponential, QuantileMethod, RecursiveQuantiles, quantiles
from sourdine.tables.quantiles.api import Allowance, chosen, named
from sourdine.tables.release import _carry_out
from sourdine.tables.statistics.quantiles import TreeCounts
from sourdine.testing import SeededBits
from tests.statistics import ALARM

REPLACE, ADD_REMOVE = Neighbours.REPLACE, Neighbours.ADD_REMOVE
DECILES = [i / 10 for i in range(1, 10)]
_RANDOM = np.random.default_rng(8)


def _of(size: int) -> dict[str, tuple[np.ndarray, int]]:
    """Places of values, and how many there are: few answers, ages, hours, one value, incomes, all unlike."""
    answers = _RANDOM.choice(5, size, p=[0.08, 0.17, 0.3, 0.3, 0.15])
    hours = np.where(_RANDOM.random(size) < 0.45, 40, np.clip(_RANDOM.normal(38, 12, size), 0, 99))
    incomes = 1000 * np.rint(np.exp(_RANDOM.normal(10.4, 0.6, size)) / 1000)
    return {
        "answers": (answers, 5),
        "ages": (np.clip(_RANDOM.gamma(4, 10, size), 0, 120), 121),
        "hours": (hours, 100),
        "hours on a fine grid": (1000 * np.rint(hours), 100_000),
        "constant": (np.full(size, 37), 101),
        "constant on a fine grid": (np.full(size, 370_000), 1_000_001),
        "incomes": (np.clip(incomes, 0, 10**6), 10**6 + 1),
        "unlike": (_RANDOM.permutation(10**6)[:size], 10**6),
    }


CASES = {
    f"{size} {name}": (SortedPlaces(np.sort(values.astype(np.int64))), places)
    for size in (20, 200, 5000)
    for name, (values, places) in _of(size).items()
}
TIED = [
    name for name in CASES if name.startswith("5000") and name.split()[1] in ("answers", "hours", "constant")
]


def off(source: SortedPlaces, drawn: np.ndarray, levels: list[float], near: int) -> np.ndarray:
    """By how many values each row of answers is off at most, or the best place near each."""
    aims = np.array([float(Fraction(str(level)) * source.size) for level in levels])
    below, upto = source.count_below(drawn - near), source.count_below(drawn + near + 1)
    return np.asarray(np.maximum(np.maximum(below - aims, aims - upto), 0).max(axis=1))


@pytest.mark.parametrize("name", TIED)
@pytest.mark.parametrize("relation", [REPLACE, ADD_REMOVE])
def test_the_median_of_repeated_values_is_the_value(name: str, relation: Neighbours) -> None:
    """Where a place beside the right one is as likely as the right one, two of three releases are wrong."""
    source, places = CASES[name]
    right = source.places[source.size // 2 - 1]
    found = [
        quantiles(
            source.places,
            levels=[0.5],
            bounds=(0, places - 1),
            granularity=1,
            epsilon=1,
            size=size,
            neighbours=relation,
            bits=SeededBits(seed),
        ).values[0]
        for seed in range(12)
        for size in (None, source.size)
    ]
    assert found == [right] * 24


@pytest.mark.parametrize("kind", [RecursiveQuantiles, JointExponential])
def test_a_split_at_repeated_values_leaves_both_parts_their_share(kind: type[QuantileMethod]) -> None:
    """Six of nine deciles are one value: were all that are equal to go up, those below would be too low."""
    values = SortedPlaces(np.sort(np.repeat([10, 40, 70], [1000, 3000, 1000])))
    mechanism = kind(epsilon=Fraction(2), levels=tuple(Fraction(i, 10) for i in range(1, 10)), places=101)
    found = mechanism.draw(values, 5, SeededBits(2))
    assert np.all(found[:, 2:7] == 40)
    assert np.all(found[:, 0] == 10)
    assert np.all(found[:, 8] == 70)


FORECAST = [name for name in METHODS if name != "naive"]
BUDGETS = [(REPLACE, Fraction(1)), (ADD_REMOVE, Fraction(20))]
OTHERS = [(REPLACE, Fraction(20)), (ADD_REMOVE, Fraction(1))]


@pytest.mark.parametrize("method", FORECAST)
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if "5000" in name else []) for name in CASES]
)
@pytest.mark.parametrize(
    "budgets", [BUDGETS, pytest.param(OTHERS, marks=pytest.mark.slow)], ids=["", "others"]
)
def test_ranks_stay_within_what_is_told(
    method: str, name: str, budgets: list[tuple[Neighbours, Fraction]]
) -> None:
    """At the confidence it is told for, whatever the values; of answers, or of places as near as it says."""
    source, places = CASES[name]
    levels, tries = [0.1, 0.5, 0.9], 20  # the fewest of which some number is too many
    assert binom.isf(ALARM, tries, 0.5) < tries
    for relation, epsilon in budgets:
        mechanism = named(
            method,
            levels=levels,
            places=places,
            allowance=Allowance(budget=epsilon),
            neighbours=relation,
            size=source.size,
        )
        told = mechanism.ranks_off(0.5)
        assert told is not None
        drawn = mechanism.draw(source, tries, SeededBits(4))
        failed = int((off(source, drawn, levels, mechanism.near) > told).sum())
        assert failed <= binom.isf(ALARM, tries, 0.5)


def test_a_radius_is_told_of() -> None:
    """Of the answers themselves nothing is known where values are equal, and the bound does not say so."""
    source, places = CASES["5000 answers"]
    smooth = named("smooth", levels=[0.5], places=places, allowance=Allowance(budget=Fraction(1)))
    drawn, told = smooth.draw(source, 100, SeededBits(1)), smooth.ranks_off(0.95)
    assert told is not None
    assert smooth.near == 1
    assert (off(source, drawn, [0.5], 0) > told).mean() > 0.3
    assert (off(source, drawn, [0.5], 1) > told).mean() == 0
    halving = RecursiveQuantiles(epsilon=1, levels=(Fraction(1, 2),), places=places, radius=1)
    assert halving.ranks_off() is None


def test_halving_tells_no_bound_where_steps_are_too_fine_to_set_values_apart() -> None:
    """Of 2^41 places a step has 2^20 fine ones; of more it has fewer, and equal values fall together."""
    kinds = [RecursiveQuantiles(epsilon=1, levels=(Fraction(1, 2),), places=1 << b) for b in (41, 42)]
    assert [kind.ranks_off() is None for kind in kinds] == [False, True]


@pytest.mark.parametrize("name", ["20 hours", "200 hours on a fine grid", "200 constant", "200 unlike"])
def test_forecasts_of_counts_in_bins_hold(name: str) -> None:
    """Of the ranks at the edges of the bin that an answer lies in."""
    source, places = CASES[name]
    column = {"x": {"type": "integer", "lower": 0, "upper": places - 1}}
    table = Table(pa.table({"x": source.places}), unit="record", columns=column, size=source.size)
    plan = table.plan({"name": "q", "ask": [{"quantiles": "x", "levels": DECILES}]}, epsilon=1)
    (told,) = forecasts(plan)
    measured = plan.lines[0].measurement
    assert isinstance(measured, TreeCounts)
    tree = measured.tree(plan.schema)
    assert (tree.height, tree.leaf > 1) == (1, True)
    assert told.error is not None
    assert "if values are spread evenly between their bounds and within bins of " in told.note
    tries, failed = 30, np.zeros(len(DECILES), int)
    for seed in range(tries):
        values = _carry_out(plan, table.source, bits=SeededBits(seed)).values["q"].estimate.value
        places_ = np.asarray(values, np.int64)[None, :]
        for i, level in enumerate(DECILES):
            failed[i] += off(source, places_[:, i : i + 1], [level], tree.leaf - 1)[0] > told.error
    assert failed.max() <= binom.isf(ALARM, tries, 0.05)


def test_a_query_takes_what_quantiles_take() -> None:
    column: dict[str, Any] = {"x": {"type": "integer", "lower": 0, "upper": 1000}}
    table = Table(pa.table({"x": [5] * 30}), unit="record", columns=column, size=30)

    def line(**more: Any) -> Any:
        plan = table.plan({"name": "q", "ask": [{"quantiles": "x", "levels": [0.5], **more}]}, epsilon=0.5)
        return plan.lines[0]

    assert line(method="smooth", radius=9).mechanism.radius == 9
    assert line(method="histogram", cuts=9).mechanism.cuts == 9
    assert line(method="tree", bins=9).measurement.tree(table.schema).fan == 9
    assert line().choice.name == "tree"
    assert line(ties=True).choice.name == "inverse"
    same = chosen(
        "auto",
        levels=[0.5],
        places=1001,
        allowance=Allowance(budget=Fraction(1, 2)),
        neighbours=ADD_REMOVE,
        size=30,
    )
    assert (line().measurement.tree(table.schema), line().choice) == same
