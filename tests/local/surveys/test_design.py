"""Designs of surveys: bias and variance by enumeration, epsilon by definition, and none beats the best."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp, mpf

from sourdine.core.distance import Distance
from sourdine.local import GRR, Survey, best_survey
from sourdine.mechanisms import Channel, OneCoin, TwoCoins, Warner
from sourdine.testing import SeededBits
from tests.errors import refusal_of

designs = st.tuples(st.floats(0.02, 0.98), st.floats(0.02, 0.98)).filter(
    lambda pair: pair[0] > pair[1] + 0.01
)


def worst(p: float, q: float) -> float:
    return max(abs(math.log(a / b)) for a, b in ((p, q), (1 - p, 1 - q)))


@given(designs)
def test_epsilon_is_the_worst_over_both_answers_and_directions(pair: tuple[float, float]) -> None:
    found = Survey(Channel(*pair)).epsilon
    assert found == pytest.approx(worst(*pair), rel=1e-9)
    with mp.workdps(40):
        p, q = (mpf(each) for each in pair)
        assert mpf(found) >= max(mp.log(p / q), mp.log((1 - q) / (1 - p))) * (1 - mpf(2) ** -45)


def test_the_three_surveys_of_the_sources() -> None:
    two = Survey.of(TwoCoins())
    assert two.epsilon == pytest.approx(math.log(3))
    assert two.epsilon >= TwoCoins().loss(Distance.hamming()).epsilon * (1 - 1e-14)
    assert float(two.estimate(450, 1000).value) == pytest.approx(2 * 0.45 - 1 / 2)
    assert two == Survey.of(Warner(truth=Fraction(3, 4))) == Survey.two_coins()
    one = Survey.of(OneCoin())
    assert one.epsilon == math.inf
    assert float(one.estimate(700, 1000).value) == pytest.approx(2 * 0.7 - 1)
    assert Survey(Channel(0.5, 0.0)).epsilon == math.inf


@settings(max_examples=12)
@given(designs, st.lists(st.booleans(), min_size=1, max_size=6))
def test_no_bias_and_the_stated_variance_for_given_people(
    pair: tuple[float, float], truths: list[bool]
) -> None:
    survey, people = Survey(Channel(*pair)), len(truths)
    masses, values = [], []
    for said in itertools.product((0, 1), repeat=people):
        yes = [pair[0] if truth else pair[1] for truth in truths]
        masses.append(math.prod(p if answer else 1 - p for p, answer in zip(yes, said, strict=True)))
        values.append(float(survey.estimate(sum(said), people).value))
    mass, value, share = np.array(masses), np.array(values), sum(truths) / people
    assert mass @ value == pytest.approx(share, abs=1e-9)
    assert mass @ (value - share) ** 2 == pytest.approx(float(survey.variance(share, people)), rel=1e-9)
    assert float(survey.bias(share)) == pytest.approx(0, abs=1e-12)


@settings(max_examples=40)
@given(designs, st.floats(0, 1), st.integers(1, 30))
def test_no_bias_and_the_stated_variance_for_drawn_people(
    pair: tuple[float, float], share: float, people: int
) -> None:
    survey = Survey(Channel(*pair))
    rate = share * pair[0] + (1 - share) * pair[1]
    mass = np.array([math.comb(people, k) * rate**k * (1 - rate) ** (people - k) for k in range(people + 1)])
    value = survey.estimate(np.arange(people + 1), np.full(people + 1, people), population=True).value
    assert mass @ value == pytest.approx(share, abs=1e-9)
    expected = float(survey.variance(share, people, population=True))
    assert mass @ (value - share) ** 2 == pytest.approx(expected, rel=1e-9)


def test_coins_that_are_not_as_declared_make_a_bias() -> None:
    declared, real = Survey.two_coins(), Survey.two_coins(truth=0.4, yes=0.6)
    truth = np.arange(200_000) % 10 < 3
    words = SeededBits(2).words(400_000).reshape(2, -1) / 2.0**64
    said = np.where(words[0] < 0.4, truth, words[1] < 0.6)
    seen = float(declared.estimate(int(said.sum()), said.size).value) - 0.3
    assert seen == pytest.approx(float(declared.bias(0.3, real.channel)), abs=0.012)
    assert abs(seen) > 0.1


@given(st.floats(0.01, 8), st.floats(0.01, 0.99))
def test_two_coins_at_an_epsilon_cost_just_that(epsilon: float, yes: float) -> None:
    survey = Survey.at(epsilon, yes)
    assert survey.epsilon == pytest.approx(epsilon, rel=1e-9)
    truth = survey.channel.p - survey.channel.q
    assert survey.channel.q == pytest.approx((1 - truth) * yes)


@settings(max_examples=300)
@given(designs, st.floats(0, 1))
def test_no_design_of_the_same_epsilon_beats_the_best(pair: tuple[float, float], share: float) -> None:
    best = Survey.of(best_survey(worst(*pair)))
    for drawn in (False, True):
        assert float(best.variance(share, 1, population=drawn)) <= float(
            Survey(Channel(*pair)).variance(share, 1, population=drawn)
        ) * (1 + 1e-9)


@settings(max_examples=100)
@given(designs)
def test_every_design_is_made_from_the_best_by_coins_of_its_own(pair: tuple[float, float]) -> None:
    """The proof of optimality: always yes, always no and Warner's answer, mixed by weights that add to 1."""
    p, q = pair
    truth = 1 / (1 + math.exp(-worst(p, q)))
    kept = (p - q) / (2 * truth - 1)
    always = p - kept * truth
    assert always >= -1e-9
    assert always + kept <= 1 + 1e-9
    assert always + kept * (1 - truth) == pytest.approx(q)


def test_the_best_design_is_warners() -> None:
    best = best_survey(1)
    assert isinstance(best, GRR)
    assert best.epsilon == 1
    assert best.channel.p == pytest.approx(math.e / (1 + math.e))
    assert best_survey(math.log(3)).channel.p == pytest.approx(3 / 4)


def test_how_many_people() -> None:
    survey = Survey.of(TwoCoins())
    found = survey.people(0.1, 0.9)
    assert found.normal == math.ceil(0.25 / 0.25 * (1.6448536 / 0.1) ** 2)
    assert found.surely == math.ceil(math.log(20) / (2 * 0.05**2))
    assert found.exact is not None
    assert found.normal * 0.98 <= found.exact < found.surely
    narrow = Survey(Channel(0.99, 0.01)).people(0.05, between=(0.0, 0.05))
    assert narrow.normal < Survey(Channel(0.99, 0.01)).people(0.05).normal / 3
    assert Survey.of(best_survey(0.01)).people(0.01).exact is None


@pytest.mark.parametrize("drawn", [False, True])
def test_intervals_cover(drawn: bool) -> None:
    response, trials, people, share = Warner(truth=Fraction(7, 10)), 4000, 400, 0.2
    bits = SeededBits(5)
    truth = np.broadcast_to(np.arange(people) < share * people, (trials, people))
    if drawn:
        truth = bits.words(trials * people).reshape(trials, people) / 2.0**64 < share
    yes = response.sample(truth, bits).sum(axis=1)
    survey = Survey.of(response)
    each = (
        survey.estimate(yes, np.full(trials, people), population=True)
        if drawn
        else survey.estimate(yes, people)
    )
    held = float(((each.lower <= share) & (share <= each.upper)).mean())
    assert 0.935 < held < 0.965
    other = survey.estimate(yes, np.full(trials, people), 0.8, population=True)
    assert float((other.upper - other.lower).mean()) < float((each.upper - each.lower).mean())


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda: Survey(Channel(0.5, 0.5)), "channel"),
        (lambda: Survey(Channel(1.2, 0.5)), "channel"),
        (lambda: Survey.two_coins(truth=0), "truth"),
        (lambda: Survey.two_coins(yes=1.5), "yes"),
        (lambda: Survey.at(0), "epsilon"),
        (lambda: Survey.at(1, yes=0), "yes"),
        (lambda: Survey.two_coins().variance(0.5, 0), "people"),
        (lambda: Survey.two_coins().estimate(1, 0), "people"),
        (lambda: Survey.two_coins().estimate(3, 2), "yes"),
        (lambda: Survey.two_coins().estimate([1, 1], [2, 2]), "people"),
        (lambda: Survey.two_coins().people(0), "error"),
        (lambda: Survey.two_coins().people(0.1, 1), "confidence"),
        (lambda: Survey.two_coins().people(0.1, between=(0.5, 0.2)), "between"),
        (lambda: best_survey(0), "epsilon"),
    ],
)
def test_bad_parameters_name_themselves(call: object, name: str) -> None:
    with refusal_of(name):
        call()  # type: ignore[operator]
