"""Which matrix is chosen for what is asked, and that published figures come out."""

import math
from itertools import product

import numpy as np
import pytest

from sourdine.mechanisms.correlation import Participation
from sourdine.tables.series import SeriesView, choose_matrix
from sourdine.tables.series import SeriesView as View
from sourdine.tables.series.choice import view_errors

ONCE, TOTAL, PERIOD = Participation(), SeriesView(), SeriesView(window=1)


def test_totals_take_a_level_root_and_periods_none() -> None:
    totals = choose_matrix(52, (TOTAL,), ONCE, squared=True)
    assert totals.name == "level power 1/2"
    assert totals.errors[0] == pytest.approx(2.065, abs=1e-3)
    assert totals.independent[0] == pytest.approx(5.148, abs=1e-3)
    assert totals.anew[0] == pytest.approx(7.211, abs=1e-3)
    assert choose_matrix(52, (PERIOD,), ONCE, squared=True).name == "independent periods"


def test_pure_epsilon_takes_the_best_tree() -> None:
    choice = choose_matrix(52, (TOTAL,), ONCE, squared=False)
    assert choice.name == "tree of fan 8"
    assert choice.errors[0] == pytest.approx(4.894, abs=1e-3)
    assert choice.anew[0] == 52


@pytest.mark.parametrize(
    ("pattern", "anew", "alone", "least"),
    [((4, 4), 26.38, 10.30, 6.69), ((12, 4), 56, 17.83, 15.02), ((52, 1), 220, 37.12, 37.13)],
)
def test_units_that_come_often(pattern: tuple[int, int], anew: float, alone: float, least: float) -> None:
    choice = choose_matrix(52, (TOTAL,), Participation(*pattern), squared=True)
    assert choice.anew[0] == pytest.approx(anew, rel=0.01)
    assert choice.independent[0] == pytest.approx(alone, rel=1e-3)
    assert choice.errors[0] <= least


def test_a_series_that_may_grow_keeps_its_rows() -> None:
    choice = choose_matrix(52, (TOTAL,), ONCE, squared=True, extensible=True)
    assert choice.name == "power 1/2"
    assert choice.errors[0] == pytest.approx(2.164, abs=1e-3)


def test_mixed_questions_take_a_dense_matrix() -> None:
    views = (TOTAL, PERIOD, View(window=4), View(window=4, against=12))
    choice = choose_matrix(26, views, ONCE, squared=True)
    assert choice.name == "dense"
    best = [min(each[i] for _, each in choice.others) for i in range(4)]
    assert sum((e / b) ** 2 for e, b in zip(choice.errors, best, strict=True)) < min(
        sum((e / b) ** 2 for e, b in zip(each, best, strict=True)) for _, each in choice.others
    )
    assert "4 periods against 12 before" in choice.words(views)


def test_windows_have_their_known_errors() -> None:
    from fractions import Fraction

    from sourdine.mechanisms.correlation import PowerMatrix

    views = (TOTAL, PERIOD, *(View(window=w) for w in (4, 13, 52)), View(4, 52), View(13, 52))
    matrix = PowerMatrix(104, Fraction(1, 2), 1024)
    errors = view_errors(matrix, views, matrix.squared_length(ONCE) ** 0.5)
    assert errors == pytest.approx((2.38, 1.80, 2.33, 2.70, 3.05, 3.29, 3.83), abs=0.006)


@pytest.mark.parametrize("view", [SeriesView(window=4, against=48), SeriesView(window=52)])
def test_a_question_that_is_asked_once_has_a_plan(view: SeriesView) -> None:
    """Fewer questions than periods have no least error by themselves."""
    choice = choose_matrix(52, (view,), Participation(), squared=True)
    assert choice.errors[0] <= choice.independent[0]


def test_windows_of_units_that_come_again_are_no_worse_than_alone() -> None:
    for often in (Participation(), Participation(2, 1), Participation(4, 4)):
        choice = choose_matrix(52, (SeriesView(window=4),), often, squared=True)
        assert choice.errors[0] < 0.96 * min(choice.independent[0], choice.anew[0])
        assert "otherwise" not in choice.words((SeriesView(window=4),))


def test_a_plan_says_what_would_be_better_by_itself() -> None:
    view = SeriesView(window=4, against=4)
    choice = choose_matrix(52, (view,), Participation(12, 4), squared=True)
    assert choice.anew[0] == pytest.approx(math.sqrt(45))  # no window holds more than one of its periods
    assert choice.errors[0] > choice.anew[0]
    assert "4 periods against 4 before (paid anew)" in choice.words((view,)).split("otherwise")[1]


@pytest.mark.parametrize("squared", [True, False])
@pytest.mark.parametrize("pattern", [Participation(), Participation(4, 1), Participation(3, 2)])
@pytest.mark.parametrize(
    "view",
    [
        SeriesView(),
        SeriesView(window=1),
        SeriesView(window=3),
        SeriesView(window=2, against=2),
        SeriesView(window=1, against=3),
        SeriesView(window=3, against=1),
    ],
)
def test_what_is_paid_anew_is_paid_for_the_worst_pattern(
    view: SeriesView, pattern: Participation, squared: bool
) -> None:
    """A unit that comes evenly leaves differences as they are; one that comes and goes does not."""
    periods = 9
    told = choose_matrix(periods, (view,), pattern, squared=squared, extensible=True).anew[0]
    questions = np.zeros((periods, periods))
    for step in view.periods(periods):
        for (first, last), sign in view.spans(step):
            questions[step - 1, first - 1 : last] += sign
    units = np.array(list(product((0, 1), repeat=periods)))
    may = [np.all(np.diff(np.flatnonzero(unit)) >= pattern.separation) for unit in units]
    units = units[np.array(may) & (units.sum(1) <= pattern.times)]
    worst = np.linalg.norm(units @ questions.T, 2 if squared else 1, axis=1).max()
    assert told == pytest.approx(worst)
