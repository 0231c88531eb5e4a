"""A new ledger from a budget as people say it."""

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import sourdine
from sourdine.accounting.ledger import ConcentratedBudget, Ledger, Period, PureBudget, RenyiBudget, Terms
from sourdine.accounting.ledger.making import make_terms
from sourdine.core.distance import Neighbours
from sourdine.core.errors import InvalidParameter


def test_a_ledger_is_made_from_an_epsilon(tmp_path: Path) -> None:
    assert sourdine.Ledger is Ledger
    ledger = sourdine.Ledger.create(tmp_path / "people.ledger", epsilon=3)
    found = Ledger.open(tmp_path / "people.ledger")
    assert found.terms == ledger.terms
    assert (found.terms.unit, found.terms.neighbours) == ("person", Neighbours.ADD_REMOVE)
    assert found.terms.budget == PureBudget(limit=Fraction(3))


@pytest.mark.parametrize("epsilon", [0.3, "0.3", "3/10", Fraction(3, 10), np.float64(0.3), "3e-1"])
def test_numbers_are_taken_as_they_are_written(epsilon: float) -> None:
    assert make_terms(epsilon=epsilon).budget.limit == Fraction(3, 10)


def test_each_way_to_say_a_budget() -> None:
    assert make_terms(epsilon=3, delta=1e-6).budget == ConcentratedBudget.within(3, 1e-6)
    assert make_terms(rho="0.1", delta="1e-6").budget == ConcentratedBudget(limit=Fraction(1, 10))
    renyi = make_terms(order=16, divergence=0.6, delta=1e-5)
    assert renyi.budget == RenyiBudget(limit=Fraction(3, 5), order=Fraction(16))
    assert (renyi.delta, make_terms(epsilon=1, delta="1e-6").delta) == (1e-5, 1e-6)
    kept = make_terms(epsilon=3, delta=1e-6, selection_delta=5e-7)
    assert kept.selection_delta == Fraction(5, 10**7)
    assert kept.budget.limit < ConcentratedBudget.within(3, 1e-6).limit
    assert kept.budget.epsilon(kept.budget.limit, kept.rest) <= 3
    assert make_terms(epsilon=1, selection_delta=1e-6).budget == PureBudget(limit=Fraction(1))


def test_periods_units_and_neighbours_by_name() -> None:
    made = make_terms(epsilon=12, period="month", period_limit=1, unit="patient", neighbours="replace")
    assert (made.period, made.period_limit) == (Period.MONTH, 1)
    assert (made.unit, made.neighbours) == ("patient", Neighbours.REPLACE)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (
            {},
            "A ledger needs a budget: 'epsilon', 'rho', 'mu', or 'order' with 'divergence'.",
        ),
        ({"epsilon": 1, "rho": 1}, "More than one budget was given: 'epsilon' and 'rho'"),
        ({"rho": 1}, "A budget given by 'rho' also needs 'delta'"),
        ({"order": 8}, "'order' and 'divergence' go together"),
        ({"divergence": 8, "delta": 1e-6}, "'order' and 'divergence' go together"),
        ({"epsilon": 0}, "'limit' of PureBudget must be above 0"),
        ({"epsilon": "nan"}, "The 'epsilon' of Ledger.create must be a number"),
        ({"epsilon": True}, "The 'epsilon' of Ledger.create must be a number"),
        ({"epsilon": float("inf")}, "The 'epsilon' of Ledger.create must be finite"),
        ({"epsilon": "1e999999999"}, "The 'epsilon' of Ledger.create must be a number"),
        ({"epsilon": 1, "delta": 0}, "The 'delta' of Ledger.create must lie strictly between 0 and 1"),
        (
            {"epsilon": 1, "delta": 1e-6, "selection_delta": 1e-6},
            "'selection_delta' of Ledger.create must be below delta",
        ),
        ({"epsilon": 1, "period": "month"}, "'period' and 'period_limit' go together"),
        ({"epsilon": 1, "period": "hour", "period_limit": 1}, "must be one of day, week, month, year"),
        ({"epsilon": 1, "period": "day", "period_limit": 2}, "be at most the whole budget, epsilon 1. Got 2"),
        ({"epsilon": 1, "neighbours": "twins"}, "The 'neighbours' of Ledger.create must be one of"),
        ({"epsilon": 1, "unit": " "}, "'unit' of Ledger"),
    ],
)
def test_what_makes_no_ledger_is_one_sentence(tmp_path: Path, given: dict[str, object], told: str) -> None:
    with pytest.raises(InvalidParameter) as caught:
        Ledger.create(tmp_path / "a.ledger", **given)  # type: ignore[arg-type]
    assert told in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def test_terms_and_a_budget_do_not_go_together(tmp_path: Path) -> None:
    terms = Terms(budget=PureBudget(limit=1), unit="person", neighbours=Neighbours.ADD_REMOVE)
    for beside in ({"epsilon": 1}, {"unit": "household"}, {"neighbours": "replace"}, {"period": "day"}):
        with pytest.raises(InvalidParameter, match="Give one of the two"):
            Ledger.create(tmp_path / "a.ledger", terms, **beside)
    assert Ledger.create(tmp_path / "a.ledger", terms).terms == terms
