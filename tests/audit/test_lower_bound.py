import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from sourdine.audit import bound_epsilon, claim, find_examples
from sourdine.audit.lower_bound import _Counts, _event
from sourdine.core.distance import Distance
from sourdine.core.errors import InvalidParameter
from sourdine.core.loss import PrivacyLoss
from sourdine.core.mechanism import Example
from sourdine.mechanisms import Gaussian, Laplace, OneCoin, Warner
from sourdine.testing import SeededBits
from tests.contract import one_of_each
from tests.mutants.mutant import Resampled

WARNER = Example(mechanism=Warner(truth=Fraction(3, 4)), value=1, neighbour=0, distance=Distance.hamming())


@pytest.mark.parametrize("example", one_of_each(find_examples()))
def test_honest_mechanisms_stay_below_their_claim(example: Example) -> None:
    bound = bound_epsilon(example, samples=50_000, bits=SeededBits(1))
    leak = float(example.mechanism.loss(example.distance).delta)
    if leak > 0.02:  # all there is to see is the leak: the claim holds at its delta, and falls below it
        less = bound_epsilon(example, samples=50_000, delta=0.6 * leak, bits=SeededBits(1))
        assert bound.audited <= bound.claimed < less.audited < less.claimed
        return
    several = len(getattr(example.mechanism, "levels", ())) > 1
    least = 0.05 if several else 0.3  # a few values move several quantiles far less than the worst data would
    assert least * bound.claimed < bound.audited <= bound.claimed  # not by being blind


def test_bound_comes_near_the_truth() -> None:
    bound = bound_epsilon(WARNER, samples=400_000, bits=SeededBits(1))
    assert 0.97 * math.log(3) < bound.audited < math.log(3)
    assert bound.event == 1
    assert bound.samples == 400_000
    assert bound.delta == 0


@pytest.mark.parametrize(("value", "neighbour"), [(0, 1), (1, 0)])
def test_both_directions_are_tried(value: int, neighbour: int) -> None:
    """Under one coin a no betrays itself, and a yes only doubles the odds: one direction shows it."""
    one_coin = Resampled(claimed=WARNER.mechanism, sampler=OneCoin().sample)
    pair = replace(WARNER, mechanism=one_coin, value=value, neighbour=neighbour)
    assert bound_epsilon(pair, samples=20_000, bits=SeededBits(1)).audited > 5


def test_false_alarms_are_as_rare_as_stated() -> None:
    """At a false alarm of 1/5 the exact epsilon is overstated in fewer than 1 of 5 audits."""
    alarms = sum(
        bound_epsilon(WARNER, samples=2_000, false_alarm=0.2, bits=SeededBits(i)).exceeded for i in range(300)
    )
    assert 0 < alarms < 60


def test_many_rare_outcomes_do_not_fool_it() -> None:
    """With hardly an outcome seen twice, chance alone separates the halves; held-out samples do not agree."""
    wide = Example(mechanism=Gaussian(sigma=Fraction(1 << 25)), value=0, neighbour=1, distance=Distance.l2(1))
    assert bound_epsilon(wide, samples=100_000, delta=1e-6, bits=SeededBits(1)).audited == 0


def test_repeats_with_the_same_bits() -> None:
    first, second = (bound_epsilon(WARNER, samples=5_000, bits=SeededBits(7)) for _ in range(2))
    assert first == second


@pytest.mark.parametrize("delta", [0.001, 0.05])
def test_claim_at_a_delta_for_randomized_response(delta: float) -> None:
    """delta(e) = p - e^epsilon q, so epsilon = ln((p - delta)/q)."""
    assert claim(PrivacyLoss.pure(math.log(3)), delta) == pytest.approx(
        math.log((0.75 - delta) / 0.25), rel=1e-8
    )


@pytest.mark.parametrize("delta", [1e-2, 1e-3, 1e-5])
def test_claim_of_a_gaussian_by_brute_force(delta: float) -> None:
    sigma, shift = 10 / 3, 2
    y = np.arange(-200, 201)
    p = np.exp(-(y**2) / (2 * sigma**2))
    q = np.exp(-((y - shift) ** 2) / (2 * sigma**2))
    p, q = p / p.sum(), q / q.sum()
    loss = Gaussian(sigma=Fraction(10, 3)).loss(Distance.l2(2, coordinates=1))
    found = claim(loss, delta)

    def profile(epsilon: float) -> float:
        return float(np.maximum(p - math.exp(epsilon) * q, 0).sum())

    assert profile(found) <= delta * (1 + 1e-6)
    assert profile(found * (1 - 1e-6)) >= delta * (1 - 1e-5)


def test_claims_without_a_delta() -> None:
    assert claim(Laplace(scale=Fraction(2)).loss(Distance.l1(1)), 0) == 0.5
    assert claim(Gaussian(sigma=Fraction(2)).loss(Distance.l2(1)), 0) == math.inf
    assert claim(PrivacyLoss.pure(Fraction(1)), 0.9) <= 1e-8  # everything is within this delta


def test_a_gaussian_is_audited_with_a_delta() -> None:
    example = next(Gaussian.examples())
    bound = bound_epsilon(example, samples=400_000, delta=1e-2, bits=SeededBits(1))
    assert bound.delta == 1e-2
    assert 0.75 * bound.claimed < bound.audited < bound.claimed


@pytest.mark.parametrize(
    "wrong",
    [
        {"samples": 999},
        {"samples": 10**10},
        {"samples": 1e6},
        {"samples": "many"},
        {"false_alarm": 0},
        {"false_alarm": math.nan},
        {"delta": 1.0},
        {"delta": -0.1},
        {"delta": "0.1"},
    ],
)
def test_bad_settings_name_themselves(wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidParameter, match=f"'{next(iter(wrong))}' of an audit"):
        bound_epsilon(WARNER, **wrong)  # type: ignore[arg-type]


def _counts(both: np.ndarray, trials: int) -> _Counts:
    p, q = both
    return _Counts(p, q, trials)


def test_what_confirms_an_event_has_no_say_in_it() -> None:
    """Codes that only the last part holds do not move the event among the others, however many there are."""
    draw = np.random.default_rng(5)
    for codes in (60, 300, 3000):
        rates = 3 * np.exp(np.linspace([-0.5, 0.5], [0.5, -0.5], codes, axis=1))
        order, choose = (_counts(draw.poisson(rates), 4 * codes) for _ in range(2))
        alone = _event(order, choose, 8 * codes, 0.0, 1e-7)
        for extra in (1, 50, 2000):
            places = np.sort(draw.choice(codes + extra, codes, replace=False))
            held = [np.zeros((2, codes + extra), np.int64) for _ in range(2)]
            for one, other in zip(held, (order, choose), strict=True):
                one[:, places] = other.p, other.q
            fuller_order, fuller_choose = (_counts(each, 4 * codes) for each in held)
            more = _event(fuller_order, fuller_choose, 8 * codes, 0.0, 1e-7)
            shown = np.flatnonzero(order.p + order.q + choose.p + choose.q)
            assert set(places[np.intersect1d(alone, shown)]) == set(np.intersect1d(more, places[shown]))
