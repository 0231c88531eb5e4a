import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import sourdine
from sourdine.accounting.ledger import Ledger, PureBudget, Terms
from sourdine.core.distance import Neighbours
from sourdine.core.errors import BudgetExceeded, InvalidParameter
from sourdine.core.mechanism import Mechanism
from sourdine.tables.quantiles import METHODS, quantiles
from sourdine.tables.quantiles.api import Grid
from sourdine.testing import SeededBits
from tests.errors import refusal_of

DECILES = [i / 10 for i in range(1, 10)]
ALL = ["auto", "tree", *METHODS]
HARD: dict[str, list[float] | np.ndarray] = {
    "empty": [],
    "one": [3.0],
    "all equal": [2.5] * 40,
    "ties": [0.0] * 30 + [5.0] * 40 + [10.0] * 30,
    "lower bound": [0.0] * 50,
    "upper bound": [10.0] * 50,
    "beyond": [-1e300, 1e300, math.inf, -math.inf] * 9,
    "no numbers": [math.nan] * 20,
    "some numbers": [math.nan, 1.0, math.inf, 7.0] * 10,
    "mixed": [1, 2.5, 10**400, True],
    "whole": np.arange(20, dtype=np.uint64),
    "half floats": np.arange(20, dtype=np.float16),
    "long floats": np.array([1e400, 3.0] * 5, dtype=np.longdouble),
    "zeros and a one": np.array([0] * 1492 + [1]),
}


@pytest.mark.parametrize("name", HARD)
@pytest.mark.parametrize("method", ALL)
def test_hard_values_give_answers_on_the_grid_in_order(method: str, name: str) -> None:
    for at in (DECILES, [0.5]):
        found = quantiles(
            HARD[name],
            levels=at,
            bounds=(0, 10),
            epsilon=1,
            method=method,
            granularity=0.5,
            bits=SeededBits(1),
        ).values
        assert found.shape == (len(at),)
        assert np.all((found >= 0) & (found <= 10))
        assert np.all(np.diff(found) >= 0)
        assert np.all(found % 0.5 == 0)


@pytest.mark.parametrize("method", [name for name in METHODS if name != "naive"])
def test_much_budget_finds_the_true_quantiles(method: str) -> None:
    values = np.arange(1001) / 10
    found = quantiles(
        values, levels=[0.1, 0.5, 0.9], bounds=(0, 100), epsilon=3000, method=method, bits=SeededBits(1)
    ).values
    np.testing.assert_allclose(found, [10, 50, 90], atol=0.3)


@pytest.mark.parametrize("method", ["joint", "recursive", "smooth"])
def test_repeated_values_are_found(method: str) -> None:
    values = np.array([0] * 1492 + [1])
    found = quantiles(
        values,
        levels=DECILES,
        bounds=(0, 1),
        epsilon=3,
        method=method,
        granularity=2.0**-20,
        bits=SeededBits(2),
    ).values
    assert np.all(found <= 1e-5)


@pytest.mark.parametrize("method", ALL)
def test_neighbours_may_be_added_or_removed(method: str) -> None:
    for n in (0, 1, 500):
        answer = quantiles(
            np.linspace(0, 1, n),
            levels=[0.25, 0.5],
            bounds=(0, 1),
            epsilon=2,
            method=method,
            neighbours=Neighbours.ADD_REMOVE,
            bits=SeededBits(1),
        )
        assert answer.spends[0].distance.neighbours is Neighbours.ADD_REMOVE


@pytest.mark.parametrize("method", ALL)
def test_a_seed_repeats_and_is_not_secure(method: str) -> None:
    one, two = (
        quantiles(range(50), levels=[0.2, 0.7], bounds=(0, 49), epsilon=1, method=method, bits=SeededBits(4))
        for _ in range(2)
    )
    np.testing.assert_array_equal(one.values, two.values)
    assert not one.secure
    assert quantiles(range(50), levels=[0.5], bounds=(0, 49), epsilon=1).secure


def test_the_ledger_is_charged_before_the_values_are_looked_at(tmp_path: Path) -> None:
    class Untouchable:
        def __array__(self, *_: object, **__: object) -> np.ndarray:
            raise AssertionError("looked at")

    untouchable: Any = Untouchable()
    terms = Terms(budget=PureBudget(limit=Fraction(1)), unit="value", neighbours=Neighbours.REPLACE)
    ledger = Ledger.create(tmp_path / "quantiles.ledger", terms)
    with pytest.raises(BudgetExceeded):
        quantiles(untouchable, levels=[0.5], bounds=(0, 1), epsilon=2, ledger=ledger)
    with pytest.raises(AssertionError, match="looked at"):
        quantiles(untouchable, levels=[0.5], bounds=(0, 1), epsilon=0.5, ledger=ledger)
    with pytest.raises(BudgetExceeded):
        quantiles([0.5], levels=[0.5], bounds=(0, 1), epsilon=0.75, ledger=ledger)
    answer = quantiles([0.5], levels=[0.2, 0.5], bounds=(0, 1), epsilon=0.5, ledger=ledger, purpose="two")
    assert answer.receipt is not None
    again = tmp_path / "quantiles.ledger"
    with pytest.raises(BudgetExceeded):
        quantiles([0.5], levels=[0.5], bounds=(0, 1), epsilon=0.01, ledger=again)


@pytest.mark.parametrize("method", ALL)
def test_a_spend_names_a_mechanism_that_can_be_read_back(method: str) -> None:
    answer = quantiles(
        [1.0, 2.0], levels=[0.5, 0.9], bounds=(0, 3), epsilon=1, method=method, bits=SeededBits(0)
    )
    mechanism = answer.spends[0].mechanism
    assert Mechanism.from_json(mechanism.to_json()) == mechanism
    assert mechanism.loss(answer.spends[0].distance).epsilon == 1


def test_it_can_be_had_from_the_top() -> None:
    assert sourdine.quantiles is quantiles


BAD = [
    ("levels", {"levels": []}),
    ("levels", {"levels": 0.5}),
    ("levels", {"levels": ["half"]}),
    ("levels", {"levels": [0.0]}),
    ("levels", {"levels": [0.5, 0.2]}),
    ("levels", {"levels": [math.nan]}),
    ("bounds", {"bounds": (1, 0)}),
    ("bounds", {"bounds": (0, 0)}),
    ("bounds", {"bounds": 5}),
    ("bounds", {"bounds": (0, math.inf)}),
    ("bounds", {"bounds": (0, 10**400)}),
    ("bounds", {"bounds": (-1.7e308, 1.7e308)}),
    ("bounds", {"bounds": (0, 5e-324)}),
    ("granularity", {"granularity": 0}),
    ("granularity", {"granularity": 1e-300}),
    ("granularity", {"granularity": 2}),
    ("granularity", {"granularity": math.nan}),
    ("epsilon", {"epsilon": 0}),
    ("epsilon", {"epsilon": "much"}),
    ("method", {"method": "magic"}),
    ("size", {"size": -1}),
    ("size", {"size": 2.5}),
    ("steps", {"steps": 0}),
    ("steps", {"steps": 1 << 52}),
    ("steps", {"steps": 10, "granularity": 0.1}),
    ("radius", {"radius": -1, "method": "inverse"}),
    ("radius", {"radius": 1}),
    ("cuts", {"cuts": 0, "method": "histogram"}),
    ("bins", {"bins": 0, "method": "tree"}),
    ("ties", {"ties": "many"}),
    ("neighbours", {"neighbours": Neighbours.ZERO_OUT}),
]


@pytest.mark.parametrize(("name", "given"), BAD)
def test_bad_parameters_name_themselves(name: str, given: dict[str, object]) -> None:
    arguments: dict[str, object] = {"levels": [0.5], "bounds": (0, 1), "epsilon": 1} | given
    with pytest.raises(InvalidParameter, match=f"The '{name}' of ") as caught:
        quantiles([0.5], **arguments)  # type: ignore[arg-type]
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("bad", [[[1.0, 2.0]], ["a"], [None, "a"], np.array([1 + 2j]), 3.0])
def test_values_that_are_no_row_of_numbers_are_refused(bad: object) -> None:
    with pytest.raises(InvalidParameter, match="must be one row of numbers"):
        quantiles(bad, levels=[0.5], bounds=(0, 1), epsilon=1)  # type: ignore[arg-type]


MISSING = {
    "None": [1.0, None] * 40,
    "None among whole numbers": [1, None] * 40,
    "NA": [1.0, pd.NA] * 40,
    "a nullable column": pd.Series([1, None] * 40, dtype="Int64"),
    "masked": np.ma.masked_equal([1.0, 999.0] * 40, 999.0),
    "masked whole numbers": np.ma.masked_equal([1, 999] * 40, 999),
    "masked objects": np.ma.masked_equal(np.array([1, 999] * 40, object), 999),
}


@pytest.mark.parametrize("values", MISSING.values(), ids=MISSING)
@pytest.mark.parametrize("method", ["tree", "inverse"])
def test_what_is_missing_is_left_out(values: Any, method: str) -> None:
    """Were it counted, at the bound or as 0, the quantiles at both ends would tell."""
    answer = quantiles(
        values,
        levels=[0.3, 0.9],
        bounds=(0, 1000),
        epsilon=9,
        granularity=1,
        method=method,
        bits=SeededBits(1),
    )
    assert answer.values.tolist() == [1, 1]


def test_all_may_be_missing() -> None:
    for values in ([None], [None, None], np.ma.masked_all(5)):
        assert 0 <= quantiles(values, levels=[0.5], bounds=(0, 1), epsilon=1).values[0] <= 1  # type: ignore[arg-type]


def test_levels_may_come_as_an_array_and_thirds_are_thirds() -> None:
    at: Any = np.array([1 / 3, 0.5])
    found = quantiles([1.0], levels=at, bounds=(0, 1), epsilon=1, method="recursive", bits=SeededBits(0))
    mechanism: Any = found.spends[0].mechanism
    assert mechanism.levels == (Fraction(1, 3), Fraction(1, 2))


@pytest.mark.parametrize(
    ("bounds", "granularity", "places"),
    [((0, 1), 0.1, 11), ((0, 0.3), 0.1, 4), ((-5, 5), 3, 4), ((2, 3), 1, 2)],
)
def test_a_grid_reaches_from_bound_to_bound(
    bounds: tuple[float, float], granularity: float, places: int
) -> None:
    grid = Grid.declared(bounds, granularity)
    assert grid.places == places
    values = grid.value(np.arange(places))
    assert values[0] == bounds[0]
    assert bounds[1] - granularity < values[-1] <= bounds[1]
    np.testing.assert_array_equal(grid.place(values), np.arange(places))
    np.testing.assert_array_equal(grid.place([-1e9, 1e9]), [0, places - 1])


def test_wide_grids_hold_wide_places() -> None:
    for places in ((1 << 31) - 1, 1 << 31, (1 << 31) + 1):
        grid = Grid.declared((0, places - 1), 1)
        assert grid.places == places
        found = quantiles(
            [places - 1.0] * 200,
            levels=[0.5],
            bounds=(0, places - 1),
            epsilon=50,
            granularity=1,
            bits=SeededBits(1),
        ).values
        assert abs(found[0] - (places - 1)) <= 1


@pytest.mark.parametrize("method", ALL)
def test_notes_say_what_was_taken_and_why(method: str, tmp_path: Path) -> None:
    terms = Terms(budget=PureBudget(limit=Fraction(1)), unit="value", neighbours=Neighbours.REPLACE)
    ledger = Ledger.create(tmp_path / "quantiles.ledger", terms)
    for values in ([0.5], list(HARD["ties"])):
        found = quantiles(
            values, levels=[0.2, 0.5], bounds=(0, 1), epsilon=Fraction(1, 2), method=method, ledger=ledger
        )
        taken = "joint" if method == "auto" else method
        why = "under replace neighbours, up to 29 are found best all at once"
        told = f"{taken}, since {why if method == 'auto' else 'it was asked for'}"
        assert found.notes[0] == f"Method: {told}."
        assert any("No interval is known" in note for note in found.notes) == (method != "tree")
        assert (found.intervals is None) == (method != "tree")
        certificate = found.certificate(ledger)
        assert certificate.declared == {"bounds": "[0.0, 1.0]", "step": "1e-06", "method": told}
        assert certificate.verify(ledger) == ()


@pytest.mark.parametrize("relation", [Neighbours.REPLACE, Neighbours.ADD_REMOVE])
def test_a_tree_costs_its_epsilon_and_its_intervals_hold(relation: Neighbours) -> None:
    rng, bits = np.random.default_rng(0), SeededBits(5)
    at, held = [0.1, 0.5, 0.9], []
    for _ in range(60):
        values = np.sort(rng.uniform(0, 1, 2000))
        found = quantiles(
            values,
            levels=at,
            bounds=(0, 1),
            epsilon=1,
            method="tree",
            neighbours=relation,
            confidence=0.9,
            bits=bits,
        )
        lower, upper = found.intervals
        assert np.all((lower <= found.values) & (found.values <= upper))
        held.append((lower <= values[[199, 999, 1799]]) & (values[[199, 999, 1799]] <= upper))
        loss = found.spends[0].mechanism.loss(found.spends[0].distance)
        assert (loss.epsilon, loss.neighbours, found.confidence) == (1, relation, 0.9)
    assert np.mean(held) >= 0.86  # of 180 at 0.9, less than four standard deviations below
    assert np.mean(upper - lower) < 0.2


@pytest.mark.parametrize("bad", [0, 1, math.nan, "sure"])
def test_a_bad_confidence_is_refused(bad: Any) -> None:
    with refusal_of("confidence", "quantiles"):
        quantiles([0.5], levels=[0.5], bounds=(0, 1), epsilon=1, confidence=bad)


def test_every_parameter_of_a_method_can_be_set() -> None:
    common: dict[str, Any] = {"levels": [0.5], "bounds": (0, 10), "epsilon": 50, "bits": SeededBits(1)}
    values = [5.0] * 100
    wide = quantiles(values, method="inverse", granularity=1, radius=4, **common)
    assert getattr(wide.spends[0].mechanism, "radius", None) == 4
    halves = quantiles(values, steps=20, **common)
    assert halves.values.tolist() == [5.0]
    assert getattr(halves.spends[0].mechanism, "places", None) == 21
    cut = quantiles(values, method="histogram", steps=20, cuts=3, **common)
    assert getattr(cut.spends[0].mechanism, "cuts", None) == 3
    few = quantiles(values, method="tree", steps=20, bins=3, **common)
    assert few.intervals is not None
    assert few.spends[0].distance.amount == 2  # one level: a value leaves a bin and enters another
    for ties, name in ((None, "tree"), (False, "tree"), (True, "inverse")):
        taken = quantiles(values, size=100, ties=ties, **(common | {"epsilon": 0.01}))
        assert taken.notes[0].startswith(f"Method: {name}, since")
        assert (taken.intervals is None) == (name != "tree")


@pytest.mark.parametrize(
    ("bounds", "step", "places"),
    [
        ((0, 1), "1/1000000", 10**6 + 1),
        ((0, 120), "1/10000", 1_200_001),
        ((-6, 6), "1/100000", 1_200_001),
        ((0, 500_000), "1/2", 10**6 + 1),
        ((0, 99), "1/20000", 1_980_001),
        ((0.1, 0.3), "1/5000000", 10**6 + 1),
        ((0, 10**30), str(10**24), 10**6 + 1),
        ((0, 1e-30), None, 10**6 + 1),
        ((0, 1 / 3), None, (1 << 20) + 1),
        ((0, math.pi), None, (1 << 20) + 1),
    ],
)
def test_where_nothing_is_declared_a_step_is_round(
    bounds: tuple[float, float], step: str | None, places: int
) -> None:
    """So that whole numbers and such with few digits are places, and come out as they went in."""
    grid = Grid.declared(bounds, None)
    assert grid.places == places
    assert step is None or grid.exact == Fraction(step)
    ends = grid.value(np.array([0, places - 1]))
    assert ends.tolist() == pytest.approx(list(map(float, bounds)), rel=1e-12)
    if places == 1_200_001 and bounds[0] == 0:
        ages = np.arange(0, 121) + 0.25
        np.testing.assert_array_equal(grid.value(grid.place(ages)), np.minimum(ages, 120))


BAD_FOR_A_TREE = [
    ("epsilon", {"epsilon": 0}),
    ("levels", {"levels": [0.5, 0.2]}),
    ("neighbours", {"neighbours": "swap"}),
]


@pytest.mark.parametrize(
    ("name", "given"), [*BAD_FOR_A_TREE, ("neighbours", {"neighbours": Neighbours.ZERO_OUT})]
)
def test_bad_parameters_of_a_tree_name_themselves(name: str, given: dict[str, object]) -> None:
    arguments: dict[str, object] = {"levels": [0.5], "bounds": (0, 1), "epsilon": 1, "method": "tree"} | given
    with pytest.raises(InvalidParameter, match=f"The '{name}' of quantiles"):
        quantiles([0.5], **arguments)  # type: ignore[arg-type]


def test_a_relation_may_be_named() -> None:
    ages = np.arange(100)
    first, second = (
        quantiles(
            ages,
            levels=[0.5],
            bounds=(0, 99),
            epsilon=1,
            granularity=1,
            neighbours=relation,
            bits=SeededBits(1),
        )
        for relation in ("add-remove", Neighbours.ADD_REMOVE)
    )
    assert first.values == second.values
    assert first.spends == second.spends
