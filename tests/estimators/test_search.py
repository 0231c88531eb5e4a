"""A private search costs what it says, and chooses by the exponential mechanism."""

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import RidgeClassifier
from sklearn.pipeline import make_pipeline

from sourdine import InvalidParameter, Ledger
from sourdine.accounting.ledger import ConcentratedBudget
from sourdine.estimators import (
    Binner,
    LeastSquaresClassifier,
    LeastSquaresRegressor,
    NaiveBayes,
    PrivateSearchCV,
    StandardScaler,
)
from sourdine.estimators.search import SearchBudget, coins, scored
from sourdine.testing import SeededBits
from tests.estimators.cases import BOUNDS, made_up


def test_the_whole_search_is_within_its_budget(tmp_path: Path) -> None:
    Ledger.create(tmp_path / "rows.ledger", epsilon=2, delta=1e-6).close()
    table, targets = made_up(200)
    model = make_pipeline(Binner(BOUNDS), LeastSquaresClassifier(norm=1, classes=[0, 1]))
    search = PrivateSearchCV(model, {"binner__bins": [2, 8]}, epsilon=2, ledger=tmp_path / "rows.ledger")
    search.fit(table, targets)
    spent = sum((Fraction(spend.loss().rho) for spend in search.spends_), Fraction(0))
    assert (
        0.99 * ConcentratedBudget.within(2, 1e-6).limit <= spent <= ConcentratedBudget.within(2, 1e-6).limit
    )
    with Ledger.open(tmp_path / "rows.ledger") as book:
        assert len(list(book.history())) == 3
    assert search.predict(table[:3]).shape == (3,)


def test_a_search_that_cannot_be_paid_pays_nothing(tmp_path: Path) -> None:
    Ledger.create(tmp_path / "rows.ledger", epsilon=1, delta=1e-6).close()
    table, targets = made_up(50)
    model = LeastSquaresClassifier(bounds=BOUNDS, classes=[0, 1])
    with pytest.raises(Exception, match="left"):
        PrivateSearchCV(model, {"norm": [1, 2]}, epsilon=2, ledger=tmp_path / "rows.ledger").fit(
            table, targets
        )
    with Ledger.open(tmp_path / "rows.ledger") as book:
        assert not list(book.history())


@pytest.mark.parametrize(
    "grid", [{"norm": [1, -1]}, {"classes": [[0, 1], [0]]}, {"bounds": [(0, 1), (1, 0)]}]
)
def test_a_wrong_candidate_pays_nothing(grid: dict[str, Any], tmp_path: Path) -> None:
    """The first candidate was paid for before the second was looked at."""
    Ledger.create(tmp_path / "rows.ledger", epsilon=2, delta=1e-6).close()
    table, targets = made_up(50)
    model = LeastSquaresClassifier(bounds=BOUNDS, classes=[0, 1])
    scaled = make_pipeline(StandardScaler(bounds=BOUNDS), model)
    for whole, named in (
        (model, grid),
        (scaled, {f"{model.__class__.__name__.lower()}__{k}": v for k, v in grid.items()}),
    ):
        with pytest.raises(InvalidParameter):
            PrivateSearchCV(whole, named, ledger=tmp_path / "rows.ledger").fit(table, targets)
    with Ledger.open(tmp_path / "rows.ledger") as book:
        assert not list(book.history())


def test_shares_add_up() -> None:
    budget = SearchBudget.within(Fraction(1, 10), 7)
    assert 7 * budget.each + budget.choice**2 / 8 <= Fraction(1, 10)
    assert float(7 * budget.each + budget.choice**2 / 8) == pytest.approx(0.1)


def test_each_row_has_a_coin_of_its_own() -> None:
    out = coins(SeededBits(1), 100_000, Fraction(1, 4))
    assert abs(out.mean() - 0.25) < 5 * np.sqrt(0.25 * 0.75 / 100_000)


class Constant:
    """Always says the same; cannot take some rows."""

    def __init__(self, value: float) -> None:
        self.value = value

    def predict(self, rows: Any) -> Any:
        if rows[0, 0] < 0:
            raise ValueError("below 0")
        return [self.value]


def test_scores_move_by_one_row_only_and_upwards() -> None:
    rows, labels = np.array([[1.0], [2.0], [-1.0], [3.0]]), np.array([1, 0, 1, 1])
    for model in (Constant(1), Constant(0)):
        before = scored(model, rows[:3], labels[:3], None)
        assert 0 <= scored(model, rows, labels, None) - before <= 1
    whole = scored(Constant(5), rows, np.array([5.0, 0.0, 5.0, 1e300]), (0, 10))
    assert whole == (1 << 20) + round(0.75 * (1 << 20)) + round(0.75 * (1 << 20))


def test_regressors_need_bounds_and_nothing_else_is_private() -> None:
    table, targets = made_up(50)
    with pytest.raises(InvalidParameter, match="target_bounds"):
        PrivateSearchCV(LeastSquaresRegressor(bounds=BOUNDS), {"norm": [1]}).fit(table, targets)
    with pytest.raises(InvalidParameter, match="Nothing in RidgeClassifier is private"):
        PrivateSearchCV(RidgeClassifier(), {"alpha": [1]}).fit(table, targets)
    found = PrivateSearchCV(
        LeastSquaresRegressor(bounds=BOUNDS, target_bounds=(0, 1)),
        {"norm": [0.5, 1]},
        target_bounds=(0, 1),
        random_state=1,
    ).fit(table, targets)
    assert found.best_params_["norm"] in {0.5, 1}


def test_a_search_takes_frames_with_texts() -> None:
    frame = pd.DataFrame({"age": [20.0, 60.0] * 150, "smokes": ["no", "yes"] * 150})
    model = NaiveBayes(bounds=[(0, 100), ["no", "yes"]], classes=["well", "ill"])
    search = PrivateSearchCV(model, {"bins": [2, 4]}, epsilon=5, random_state=1)
    assert search.fit(frame, ["well", "ill"] * 150).predict(frame[:2]).tolist() == ["well", "ill"]
