import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sourdine.accounting import Training
from sourdine.accounting.explain import explain_guarantee, explain_training, sentences
from sourdine.accounting.explain.words import at_least, at_most, doubts, percent_down, percent_up, suspicion
from sourdine.core.distance import Neighbours

SEED = Training(size=60000, batch_size=64, noise_multiplier=1.0, epochs=15)


@given(st.floats(0, 1))
def test_frequencies_err_to_the_safe_side(share: float) -> None:
    high, low = at_most(share), at_least(share)
    assert low.many / low.of - 1e-8 <= share <= high.many / high.of + 1e-8
    assert high.many <= high.of
    assert high.of in (10**k for k in range(2, 400))


@pytest.mark.parametrize(
    ("share", "told"),
    [
        (0.5, "50 of 100"),
        (0.0, "0 of 100"),
        (1.0, "100 of 100"),
        (1e-3, "1 of 1,000"),
        (1.23e-4, "13 of 100,000"),
    ],
)
def test_frequencies_are_short(share: float, told: str) -> None:
    assert str(at_most(share)) == told


def test_per_cent_errs_to_the_safe_side() -> None:
    assert percent_up(0.76315, 3) == "76.4\N{NO-BREAK SPACE}%"
    assert percent_down(0.23685, 3) == "23.6\N{NO-BREAK SPACE}%"


def test_an_epsilon_in_words() -> None:
    said = sentences(explain_guarantee(1.17))
    assert len(said) == 4
    assert said[0].startswith("Somebody who gave it 50 chances in 100 that you were in the data")
    assert "at most 77 chances in 100 afterwards, and at least 23 chances in 100" in said[0]
    assert "multiplied by at most 3.23" in said[1]
    assert "right in at most 77 of 100; a coin is right in 50" in said[2]
    assert "1 of 100 cases finds at most 33 of 1,000 true ones; a blind one finds 10" in said[3]


def test_another_prior() -> None:
    assert "1 chances in 100" in sentences(explain_guarantee(1), 0.01)[0]
    assert "at most 27 chances in 1,000 afterwards" in sentences(explain_guarantee(1), 0.01)[0]


def test_a_run_in_words() -> None:
    said = " ".join(sentences(explain_training(SEED, 1e-5)))
    assert (
        "In all but 1 of 1,000 cases at most, somebody who gave it 50 chances in 100 that a given example"
        in said
    )
    assert "right in at most 533 of 1,000" in said
    assert "finds at most 16 of 1,000 true ones" in said
    assert "is not the probability that the loss" in said


def test_a_loss_above_epsilon_is_mostly_just_above_it() -> None:
    said = sentences(explain_guarantee(1, 1e-5))[-1]
    assert "may be as large as 0.74; but that the loss" in said  # e/(e + 1), and a little
    assert said.endswith("exceeds ε + 1 has a probability of at most 1.6e-5.")  # 1e-5/(1 - 1/e)


def test_a_weak_guarantee_is_called_one() -> None:
    said = sentences(explain_guarantee(17.14, 1e-10))
    assert "stops hardly anybody" in said[-1]
    assert "e^17.2" in said[1]
    assert not any("hardly" in sentence for sentence in sentences(explain_guarantee(1)))


def test_every_relation_has_its_suspicion() -> None:
    told = {
        suspicion(explain_guarantee(1, unit=unit, neighbours=relation))
        for unit in ("person", "household")
        for relation in Neighbours
    }
    assert len(told) == 6


def test_no_sentence_holds_nan_or_inf() -> None:
    for epsilon, delta in ((0, 0), (0, 0.5), (1e-12, 0), (10_000, 0), (3, 0.9), (700, 1e-300)):
        said = " ".join(sentences(explain_guarantee(epsilon, delta)))
        assert "nan" not in said.lower()
        assert "inf" not in said
        assert math.isfinite(len(said))


@pytest.mark.parametrize(
    ("epsilon", "delta", "asked"),
    [
        (1, None, 0),
        (10, 1e-5, 0),
        (20, 1e-3, 0),
        (100, None, 1),
        (1, 0.1, 1),
        (100, 0.1, 2),
        (math.inf, None, 1),
    ],
)
def test_odd_budgets_are_questioned(epsilon: float, delta: float | None, asked: int) -> None:
    questions = doubts(epsilon, delta)
    assert len(questions) == asked
    assert all("Is that intended?" in each for each in questions)
