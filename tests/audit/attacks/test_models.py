"""Attacks on models: what is stolen and inverted without protection, and not with it."""

import sys

import numpy as np
import pytest
from scipy.special import expit, ndtr

from sourdine.audit.attacks import AttackResult, extraction, inversion
from sourdine.audit.attacks.attack import Arm
from sourdine.testing import SeededBits


@pytest.fixture(scope="module")
def stolen() -> AttackResult:
    return extraction.run(SeededBits(1))


@pytest.fixture(scope="module")
def inverted() -> AttackResult:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "pyarrow", None)  # a plain installation has none
        return inversion.run(SeededBits(1))


def test_a_model_is_its_answers(stolen: AttackResult) -> None:
    assert stolen.unprotected.success == 1.0
    assert stolen.protected.success < 0.65
    assert stolen.succeeds
    assert stolen.stopped
    assert stolen.limit == pytest.approx(float(expit(1)))


def test_rounded_answers_only_take_more_questions(stolen: AttackResult) -> None:
    (chart,) = stolen.charts
    for digits in extraction.DIGITS:
        rates = [each.value for each in chart.points if each.series == f"rounded to {digits}"]
        assert rates[-1] > 0.9
        assert rates[-1] >= rates[0]


def test_as_many_exact_answers_as_weights_are_the_weights() -> None:
    weights = np.linspace(-0.3, 0.4, extraction.FEATURES + 1)[:, None]
    asked = np.vstack([np.zeros(extraction.FEATURES), np.eye(extraction.FEATURES)])
    assert extraction._rebuilt(asked, weights, None) == pytest.approx(weights, abs=1e-12)


def test_a_model_that_follows_records_gives_them_away(inverted: AttackResult) -> None:
    assert inverted.unprotected.success > 0.75
    assert abs(inverted.protected.success - 0.5) < 0.06
    assert inverted.succeeds
    assert inverted.stopped
    assert inverted.limit == pytest.approx(float(expit(1)))  # epsilon 1/2 for each of two leaves


def test_what_is_true_of_everybody_is_told_as_such(inverted: AttackResult) -> None:
    (chart,) = inverted.charts
    lines = {
        name: [each.value for each in chart.points if each.series == name]
        for name in (Arm.UNPROTECTED, Arm.PROTECTED)
    }
    anybody = [float(ndtr(effect / 2)) for effect in inversion.EFFECTS]
    assert [each.value for each in chart.points][-len(anybody) :] == pytest.approx(anybody)
    assert all(np.diff(lines[Arm.UNPROTECTED])[1:] > 0)
    assert max(lines[Arm.PROTECTED]) < 0.6


def test_leaves_of_one_record_are_that_record() -> None:
    people = inversion.Treated(
        leaf=np.array([0, 1, 1]),
        leaves=3,
        secret=np.array([True, False, True]),
        outcome=np.array([10.0, 20.0, 60.0]),
    )
    model = inversion.exact_model(people)
    assert model.tolist() == [[30.0, 10.0], [20.0, 60.0], [30.0, 30.0]]
    assert inversion.guess(model, people, SeededBits(1)) == 3
