"""What one row moves is at most what is paid for: enumerated, before noise, whatever the row is."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from sourdine.core.distance import Neighbours
from sourdine.core.random.bits import SYSTEM, Bits
from sourdine.estimators import moments, rows
from sourdine.estimators.moments import ConstantRule, ProductSums
from sourdine.estimators.payment import PrivateEstimator
from sourdine.mechanisms import Gaussian
from tests.estimators.cases import BOUNDS, ESTIMATORS, made_up, odd_rows

_DRAW = Gaussian.sample


class Watched:
    """Puts nothing on the numbers and keeps them: what a fit gave to its mechanism, call by call."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seen: list[NDArray[np.int64]] = []

        def sample(mechanism: Gaussian, values: Any, bits: Bits = SYSTEM) -> NDArray[Any]:
            self.seen.append(np.array(values, np.int64))
            return np.array(values, np.int64)

        monkeypatch.setattr(Gaussian, "sample", sample)

    def of(
        self, model: PrivateEstimator, table: NDArray[Any], targets: NDArray[Any]
    ) -> list[NDArray[np.int64]]:
        """The exact numbers of one fit."""
        self.seen = []
        model._fit(table, targets)
        return self.seen


def far(first: NDArray[np.int64], second: NDArray[np.int64]) -> int:
    """The squared L2 distance, exactly."""
    return sum((int(a) - int(b)) ** 2 for a, b in zip(first.flat, second.flat, strict=True))


def first_sums(model: PrivateEstimator, watched: Watched, table: NDArray[Any], targets: NDArray[Any]) -> Any:
    """What is released first: it rests on the rows alone, and later rounds on what was released."""
    return watched.of(model, table, targets)[0]


@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_row_moves_the_sums_by_at_most_what_is_paid_for(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    watched, make = Watched(monkeypatch), ESTIMATORS[name]
    table, targets = made_up(40)
    model = make()
    before = watched.of(model, table, targets)
    allowed = [spend.distance.amount for spend in model.spends_ for _ in range(spend.count)]
    assert len(before) == len(allowed)
    farthest = 0.0
    for place, (row, target) in enumerate(odd_rows()):
        for at in (0, 17, 40):  # where a row stands must not matter either
            more = np.insert(table, at, row, axis=0), np.insert(targets, at, np.array(target))
            after = watched.of(make(), *more)
            moved = far(before[0], after[0])
            assert moved <= allowed[0], (name, place)
            farthest = max(farthest, moved / float(allowed[0]))
    assert farthest > 0.3  # the bound is no fantasy: some row comes near it


@pytest.mark.parametrize("name", ["logistic", "logistic, three", "k-means"])
def test_later_rounds_move_by_at_most_what_is_paid_for(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The released part is fixed to that of the first table, as composition has it."""
    table, targets = made_up(40)
    model = ESTIMATORS[name]()
    kept: list[NDArray[np.int64]] = []
    replayed: list[NDArray[np.int64]] = []

    def first(mechanism: Gaussian, values: Any, bits: Bits = SYSTEM) -> NDArray[Any]:
        kept.append(np.array(values, np.int64))
        return kept[-1]

    monkeypatch.setattr(Gaussian, "sample", first)
    model._fit(table, targets)
    allowed = [spend.distance.amount for spend in model.spends_ for _ in range(spend.count)]

    def again(mechanism: Gaussian, values: Any, bits: Bits = SYSTEM) -> NDArray[Any]:
        replayed.append(np.array(values, np.int64))
        return kept[len(replayed) - 1]

    monkeypatch.setattr(Gaussian, "sample", again)
    for row, target in odd_rows():
        replayed.clear()
        ESTIMATORS[name]()._fit(np.vstack([table, row]), np.append(targets, target))
        for one, other, most in zip(kept, replayed, allowed, strict=True):
            assert far(one, other) <= most


DECLARED: dict[str, Any] = {
    "as they are": BOUNDS,
    "from zero": (0, 100),
    "far too narrow": (0.0, 1e-9),
    "beside the rows": (1e6, 1e6 + 1),
    "huge": (-(2.0**400), 2.0**400),
    "negative": (-100, -1),
}


@pytest.mark.slow
@pytest.mark.parametrize("declared", DECLARED)
@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("relation", [Neighbours.ADD_REMOVE, Neighbours.REPLACE])
def test_no_neighbour_violates_what_is_paid(
    name: str, declared: str, relation: Neighbours, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every odd row and 40 at random, as floats of two sizes and as objects, in every round of a fit.

    The released part is fixed to that of the first table, as composition has it.
    """
    draw = np.random.default_rng(33)
    table, targets = made_up(25)
    more = [
        (draw.standard_cauchy(4) * 10.0 ** draw.integers(-3, 4), int(draw.integers(-1, 4))) for _ in range(40)
    ]
    model = ESTIMATORS[name](epsilon=2)
    model.set_params(**({"bounds": DECLARED[declared]} if model.bounds is not None else {}))
    plan = model.plan(4, relation)
    allowed = [spend.distance.amount for spend in plan.spends for _ in range(spend.count)]
    played: list[NDArray[np.int64]] = []
    exact: list[NDArray[np.int64]] = []

    def sample(mechanism: Gaussian, values: Any, bits: Bits = SYSTEM) -> NDArray[Any]:
        exact.append(np.array(values, np.int64))
        if len(exact) > len(played):
            played.append(np.asarray(_DRAW(mechanism, exact[-1], bits)))
        return played[len(exact) - 1]

    monkeypatch.setattr(Gaussian, "sample", sample)

    def sums(rows: NDArray[Any], labels: NDArray[Any]) -> list[NDArray[np.int64]]:
        exact.clear()
        plan.run(rows, labels, SYSTEM)
        return exact.copy()

    violations = looked = 0
    before = sums(table, targets)
    for row, target in [*odd_rows(), *more]:
        for kind in (np.float64, np.float32, np.object_):
            with np.errstate(over="ignore"):
                changed = np.vstack([table, row]).astype(kind)
            if relation is Neighbours.REPLACE:
                changed = np.vstack([changed[1:-1], changed[-1:]])
            labels = np.append(targets if relation is Neighbours.ADD_REMOVE else targets[1:], target)
            base = before if kind != np.float32 else sums(table.astype(kind), targets)
            after = sums(changed, labels)
            looked += len(after)
            violations += sum(far(a, b) > most for a, b, most in zip(base, after, allowed, strict=True))
    assert looked >= 144
    assert violations == 0


def test_rows_are_read_by_themselves() -> None:
    rule = ConstantRule.beside(rows.RowRule.declared("x", 4, bounds=(-1, 1), norm=1.3))
    table = np.random.default_rng(3).normal(size=(500, 4))
    together = rule.whole(table, 4096)
    alone = np.concatenate([rule.whole(row[None], 4096) for row in table])
    assert (together == alone).all()
    assert (np.square(together).sum(axis=1) <= 4096**2).all()


@pytest.mark.parametrize("targets", [0, 1, 3])
def test_products_by_brute_force(targets: int) -> None:
    """The bound holds for whole rows on the edge of the ball, and is attained by one number alone."""
    plan = ProductSums(width=3, targets=targets, fineness=3)
    unit = plan.unit
    worst = 0
    for place in np.ndindex(*(2 * unit + 1,) * 3):
        row = np.array(place, np.float64)[None] - unit
        if np.square(row).sum() <= unit**2:
            sums = plan.start()
            goal = np.zeros((1, targets))
            goal[:, :1] = unit
            plan.add(sums, row, goal)
            worst = max(worst, int(np.square(plan.line(sums)).sum()))
    assert worst <= plan.distance().amount
    assert worst == plan.distance().amount  # (unit, 0, 0)


def test_replaced_rows_move_twice_as_far() -> None:
    plan = ProductSums(width=2, targets=1)
    assert plan.distance(Neighbours.REPLACE).amount == 4 * plan.distance().amount


@pytest.mark.parametrize(
    ("fault", "name"),
    [
        ("unbounded rows", "least squares"),
        ("off-diagonals ten times", "components"),
        ("labels", "three classes"),
    ],
)
def test_planted_faults_are_seen(fault: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The enumeration is no rubber stamp: each of these faults passes what is paid for."""
    table, targets = made_up(40)
    if fault == "unbounded rows":
        monkeypatch.setattr(
            ConstantRule,
            "whole",
            lambda rule, values, unit: np.column_stack(
                [np.nan_to_num(values) * unit, np.ones(len(values)) * unit]
            ),
        )
    elif fault == "labels":
        whole = moments.ProductSums.add
        monkeypatch.setattr(
            ProductSums, "add", lambda plan, sums, some, goals: whole(plan, sums, some, goals * 3)
        )
    else:
        monkeypatch.setattr(moments, "BESIDE", 70)
    watched, model = Watched(monkeypatch), ESTIMATORS[name]()
    before = first_sums(model, watched, table, targets)
    moved = [
        far(
            before,
            first_sums(ESTIMATORS[name](), watched, np.vstack([table, row]), np.append(targets, target)),
        )
        for row, target in odd_rows()[:2]
    ]
    assert max(moved) > model.spends_[0].distance.amount


def test_bounds_that_begin_at_zero_have_noise() -> None:
    """A peer adds none for bounds=(0, 100)."""
    table, targets = made_up(200)
    from sourdine.estimators import LeastSquaresRegressor

    first, second = (
        LeastSquaresRegressor(bounds=(0, 100), target_bounds=(0, 1)).fit(table, targets) for _ in range(2)
    )
    assert (first.coef_ != second.coef_).any()
    assert first.spends_[0].loss().rho < Fraction(1, 10)


def test_the_price_is_that_of_the_mechanism() -> None:
    model = ESTIMATORS["logistic"](epsilon=2)
    plan = model.plan(4)
    rho = sum((Fraction(spend.loss().rho) for spend in plan.spends), Fraction(0))
    closed = sum(
        spend.count * spend.distance.amount / (2 * spend.mechanism.sigma**2)  # type: ignore[attr-defined]
        for spend in plan.spends
    )
    assert rho == closed
