"""Fits are charged before rows are read, bounds and classes are declared, and models are told apart."""

import contextlib
import os
import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline

from sourdine import BudgetExceeded, InvalidParameter, Ledger
from sourdine.core.distance import Neighbours
from sourdine.estimators import (
    Binner,
    ExactScoreWarning,
    LeastSquaresClassifier,
    LeastSquaresRegressor,
    NaiveBayes,
    StandardScaler,
    from_json,
)
from sourdine.estimators.linear import EquationsPlan
from sourdine.estimators.payment import codes
from tests.estimators.cases import BOUNDS, ESTIMATORS, made_up


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    Ledger.create(tmp_path / "rows.ledger", epsilon=3, delta=1e-5).close()
    return tmp_path / "rows.ledger"


@pytest.mark.parametrize("name", ESTIMATORS)
def test_each_fit_pays_once(name: str, ledger: Path) -> None:
    table, targets = made_up(60)
    model = ESTIMATORS[name](ledger=str(ledger))
    assert clone(model).ledger == str(ledger)
    model._fit(table, targets)
    with Ledger.open(ledger) as book:
        (entry,) = book.history()
        assert entry.number == model.receipt_.number  # type: ignore[union-attr]
        assert book.price(*model.spends_) == model.receipt_.price  # type: ignore[union-attr]
    assert model.epsilon_ <= 1
    assert model.card().certificate is not None
    again = pickle.loads(pickle.dumps(model))
    assert again.spends_ == model.spends_


def test_what_cannot_be_paid_reads_nothing(ledger: Path) -> None:
    table, targets = made_up(60)
    model = LeastSquaresClassifier(bounds=BOUNDS, classes=[0, 1], ledger=ledger, epsilon=50)
    with pytest.raises(BudgetExceeded):
        model.fit(table, targets)
    assert not hasattr(model, "weights_")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"bounds": None}, "has no bounds"),
        ({"classes": None}, "has no classes"),
        ({"classes": [1]}, "two labels"),
        ({"classes": [1, 1, 2]}, "each label once"),
        ({"bounds": [(0, 1)]}, "bounds for 1 columns, and 4"),
        ({"bounds": (1, 0)}, "rise"),
        ({"bounds": (0, float("inf"))}, "finite"),
        ({"epsilon": 0}, "above 0"),
        ({"delta": 0}, "strictly between 0 and 1"),
        ({"random_state": -1}, "random_state"),
        ({"norm": 0}, "above 0"),
    ],
)
def test_wrong_declarations_cost_nothing(given: dict[str, Any], said: str, ledger: Path) -> None:
    table, targets = made_up(20)
    whole: dict[str, Any] = {"bounds": BOUNDS, "classes": [0, 1]} | given
    with pytest.raises(InvalidParameter, match=said):
        LeastSquaresClassifier(ledger=ledger, **whole).fit(table, targets)
    with Ledger.open(ledger) as book:
        assert not list(book.history())


@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_tiny_epsilon_is_refused_or_has_steps_to_count_in(name: str) -> None:
    """Steps became so coarse that a half was cut off from sums, or that there were none at all."""
    for epsilon in (1e-3, 1e-6, 1e-9, 1e-30):
        with contextlib.suppress(InvalidParameter):
            plan: Any = ESTIMATORS[name](epsilon=epsilon).plan(4, Neighbours.REPLACE)
            units = [
                getattr(each, "unit", 8)
                for each in (plan, getattr(plan, "moments", None), getattr(plan, "begin", None))
            ]
            assert min(units) >= 8
    if name != "naive Bayes":
        with pytest.raises(InvalidParameter, match="Take a larger epsilon"):
            ESTIMATORS[name](epsilon=1e-30).plan(4)


def test_sparse_rows_and_weights_are_refused_by_name() -> None:
    table, targets = made_up(20)
    model = LeastSquaresClassifier(bounds=BOUNDS, classes=[0, 1])
    with pytest.raises(TypeError, match=r"[Ss]parse"):
        model.fit(scipy.sparse.csr_array(table), targets)
    with pytest.raises(TypeError, match="sample_weight"):
        model.fit(table, targets, sample_weight=np.ones(20))  # type: ignore[call-arg]


def test_values_never_raise() -> None:
    """Labels nobody declared, text among numbers, None, huge numbers: the fit goes on."""
    table = made_up(30)[0].astype(object)
    table[0, 0], table[1, 1], table[2, 2], table[3, 3] = "x", None, 10**400, [1]
    targets = np.array([0, 1] * 15, dtype=object)
    targets[4], targets[5], targets[6] = "who", None, float("nan")
    for name in ("least squares", "logistic", "naive Bayes"):
        ESTIMATORS[name]()._fit(table, targets)
    ESTIMATORS["regression"]()._fit(table, targets)
    LeastSquaresClassifier(bounds=BOUNDS, classes=[0, 1]).fit(np.zeros((0, 4)), np.zeros(0))


def test_seeded_models_say_so() -> None:
    table, targets = made_up(50)
    first, second = (ESTIMATORS["logistic"](random_state=5)._fit(table, targets) for _ in range(2))
    assert (first.weights_ == second.weights_).all()
    assert not first.secure_
    assert "protects nobody" in first.card().text()


def test_scores_of_cross_validation_are_marked(ledger: Path) -> None:
    table, targets = made_up(60)
    model = LeastSquaresClassifier(bounds=BOUNDS, classes=[0, 1], ledger=str(ledger), epsilon=0.5)
    with pytest.warns(ExactScoreWarning, match="not private"):
        cross_val_score(model, table, targets, cv=3)
    with Ledger.open(ledger) as book:
        assert len(list(book.history())) == 3
    with pytest.warns(ExactScoreWarning):
        found = GridSearchCV(model.set_params(ledger=None), {"norm": [1, 2]}, cv=2).fit(table, targets)
    assert "exact scores are not private" in found.best_estimator_.notes_[-1]


@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_score_warns_that_it_is_exact(name: str) -> None:
    table, targets = made_up(40)
    model = ESTIMATORS[name]()._fit(table, targets)
    if not hasattr(model, "score"):
        return
    with pytest.warns(ExactScoreWarning, match="not private"):
        model.score(table, targets)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_models_come_back_from_json(name: str) -> None:
    table, targets = made_up(80)
    model = ESTIMATORS[name]()._fit(table, targets)
    again: Any = from_json(model.to_json())
    use = "predict" if hasattr(model, "predict") else "transform"
    assert np.array_equal(getattr(model, use)(table), getattr(again, use)(table))
    assert again.spends_ == model.spends_
    assert again.epsilon_ == model.epsilon_


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"format": "sourdine.estimator/1", "model": "os"}'])
def test_other_texts_are_no_models(text: str) -> None:
    with pytest.raises(InvalidParameter, match="no model"):
        from_json(text)


@pytest.mark.parametrize("fits", [100, pytest.param(1000, marks=pytest.mark.slow)])
def test_intervals_hold_the_coefficients_without_noise(fits: int) -> None:
    """Over seeded fits, 95 % intervals hold the coefficients without noise; 5 deviations of slack."""
    draw = np.random.default_rng(8)
    rows = draw.uniform(0, 10, (1000, 2))
    targets = rows @ [1.0, -2.0] + draw.normal(size=1000)
    make: Any = lambda epsilon, seed: LeastSquaresRegressor(
        epsilon=epsilon, bounds=(0, 10), target_bounds=(-25, 15), random_state=seed
    ).fit(rows, targets)
    exact = make(1e5, 1).coef_
    held = np.mean(
        [
            [low <= true <= high for (low, high), true in zip(make(8, seed).intervals(), exact, strict=True)]
            for seed in range(fits)
        ],
        axis=0,
    )
    print(f"95 % intervals held {held} of {fits} coefficients")
    assert (np.abs(held - 0.95) < 5 * np.sqrt(0.05 * 0.95 / fits)).all()


def test_noise_too_large_has_no_interval() -> None:
    table, targets = made_up(30)
    model = LeastSquaresRegressor(bounds=BOUNDS, target_bounds=(0, 1), epsilon=0.1, random_state=1)
    assert np.isnan(model.fit(table, targets).intervals()).all()


def test_labels_of_any_type() -> None:
    assert codes(np.array([0, 1]), [True, False, 2, 0.5]).tolist() == [1, 0, -1, -1]
    assert codes(np.array([3, 1]), [1, 3]).tolist() == [1, 0]
    assert codes(np.array(["a", "b"]), np.array(["b", "é", ""])).tolist() == [1, -1, -1]


def test_pipelines_of_bins_and_scalers() -> None:
    table, targets = made_up(3000)
    binned = make_pipeline(
        Binner(BOUNDS, bins=8), LeastSquaresClassifier(norm=1, classes=[0, 1], random_state=1)
    )
    with pytest.warns(ExactScoreWarning):
        assert binned.fit(table, targets).score(table, targets) > 0.9
    scaled = make_pipeline(
        StandardScaler(bounds=BOUNDS, random_state=1),
        LeastSquaresClassifier(bounds=(-4, 4), classes=[0, 1], random_state=1),
    )
    with pytest.warns(ExactScoreWarning):
        assert scaled.fit(table, targets).score(table, targets) > 0.8
    names = Binner([(0, 1), ["no", "yes"]], bins=2).fit([[0, "no"]]).get_feature_names_out(["age", "smokes"])
    assert list(names) == ["age=0..0.5", "age=0.5..1", "smokes=no", "smokes=yes"]


def test_texts_in_naive_bayes() -> None:
    rows = [[1.0, "yes"], [2.0, "no"], [None, "perhaps"]] * 400
    labels = ["a", "b", "b"] * 400
    model = NaiveBayes(bounds=[(0, 3), ["no", "yes"]], bins=3, classes=["a", "b"], random_state=2).fit(
        rows, labels
    )
    assert model.predict([[1.0, "yes"], [2.0, "no"]]).tolist() == ["a", "b"]
    with pytest.raises(InvalidParameter, match="2 columns are declared"):
        NaiveBayes(bounds=[(0, 3), ["no", "yes"]], classes=["a", "b"]).fit(np.zeros((3, 3)), ["a"] * 3)


def test_threads_never_spend_more_than_there_is(tmp_path: Path) -> None:
    """Twelve fits at once, and a budget for three of them: epsilon 1/2 costs 0.27 of the rho of 1."""
    Ledger.create(tmp_path / "rows.ledger", epsilon=1, delta=1e-6).close()
    table, targets = made_up(50)

    def fitted(_: int) -> bool:
        model = LeastSquaresClassifier(
            bounds=BOUNDS, classes=[0, 1], ledger=tmp_path / "rows.ledger", epsilon=0.5
        )
        try:
            model.fit(table, targets)
        except BudgetExceeded:
            assert not hasattr(model, "weights_")
            return False
        return True

    with ThreadPoolExecutor(6) as pool:
        assert sum(pool.map(fitted, range(12))) == 3
    with Ledger.open(tmp_path / "rows.ledger") as book:
        assert len(list(book.history())) == 3


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_forks_have_noise_of_their_own_and_a_kill_after_the_charge_is_paid(ledger: Path) -> None:
    table, targets = made_up(50)
    reports = [ledger.with_name(name) for name in ("first", "second", "third")]
    for place, report in enumerate(reports):
        child = os.fork()
        if not child:
            model = LeastSquaresClassifier(bounds=BOUNDS, classes=[0, 1], ledger=ledger, epsilon=0.3)
            if place == 2:  # the last is killed when it begins to read
                EquationsPlan.run = lambda *given: os.kill(os.getpid(), 9)  # type: ignore[method-assign,assignment]
            report.write_text(repr(model.fit(table, targets).weights_.tolist()))
            os._exit(0)
        os.waitpid(child, 0)
    assert reports[0].read_text() != reports[1].read_text()
    assert not reports[2].exists()
    with Ledger.open(ledger) as book:
        assert len(list(book.history())) == 3
