"""Tilted sums of laws on a lattice, against convolutions place by place."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sourdine.accounting.pld.convolution import LossSum, convolve, ever
from sourdine.accounting.pld.masses import Component

STEP = 0.05


def part(masses: list[float], low: int, count: int, infinite: float = 0.0) -> Component:
    weights = np.array(masses) / sum(masses) * (1 - infinite)
    return Component(np.arange(low, low + len(masses)), weights, infinite, count)


def true_delta(parts: list[Component], epsilon: float) -> float:
    """By adding up one loss after the other."""
    masses, low = np.ones(1), 0
    for one in parts:
        for _ in range(one.count):
            masses, low = np.convolve(masses, one.masses), low + int(one.places[0])
    losses = (low + np.arange(len(masses))) * STEP
    gains = np.where(losses > epsilon, -np.expm1(np.minimum(epsilon - losses, 0.0)), 0.0)
    return float(masses @ gains) + 1 - math.prod((1 - one.infinite) ** one.count for one in parts)


def both_ends(parts: list[Component], order: float, spare: float | None) -> tuple[LossSum, LossSum]:
    low, high = (convolve(parts, STEP, order, pessimistic=side, spare=spare) for side in (False, True))
    return low, high


@settings(max_examples=80)
@given(
    st.lists(st.floats(0.01, 1), min_size=2, max_size=9),
    st.lists(st.floats(0.01, 1), min_size=2, max_size=9),
    st.tuples(st.integers(-6, 0), st.integers(-6, 0)),
    st.tuples(st.integers(1, 40), st.integers(1, 40)),
    st.floats(0.01, 30),
    st.one_of(st.none(), st.floats(0, 8)),
)
def test_both_ends_hold_the_truth_at_every_epsilon(
    first: list[float],
    second: list[float],
    lows: tuple[int, int],
    counts: tuple[int, int],
    order: float,
    spare: float | None,
) -> None:
    """Whatever the window: what is folded into a short one is charged, wherever epsilon lies."""
    parts = [part(first, lows[0], counts[0]), part(second, lows[1], counts[1], 1e-4)]
    low, high = both_ends(parts, order, spare)
    for epsilon in np.linspace(low.start - 1, low.start + low.length * STEP + 1, 15):
        truth = true_delta(parts, float(epsilon))
        assert low.delta(float(epsilon)) <= truth * (1 + 1e-11) + 1e-15
        assert truth <= high.delta(float(epsilon)) * (1 + 1e-11) + 1e-15
    for delta in (1e-2, 1e-3, 2e-4):
        if (upper := high.epsilon(delta)) < math.inf:
            assert true_delta(parts, upper) <= delta * (1 + 1e-9)
        if (lower := low.epsilon(delta)) > -math.inf:
            assert true_delta(parts, lower - 1e-12) >= delta * (1 - 1e-9)


@pytest.mark.parametrize("count", [3000, 30_000])
def test_a_short_window_is_short_and_sharp(count: int) -> None:
    parts = [part([0.25, 0.5, 0.25], -1, count)]
    order = 3 / (STEP * math.sqrt(count / 2))  # over the deviation of the sum
    wide, narrow = (both_ends(parts, order, spare)[1] for spare in (None, 1.0))
    assert narrow.length < 0.7 * wide.length
    assert narrow.delta(narrow.tails.mean) == pytest.approx(wide.delta(wide.tails.mean), rel=1e-6)


def test_frequencies_and_places_say_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    parts = [part([0.1, 0.4, 0.3, 0.2], -2, 2000)]
    some = both_ends(parts, 2.0, None)
    monkeypatch.setattr("sourdine.accounting.pld.masses._FEW", 1 << 40)
    for few, all_ in zip(some, both_ends(parts, 2.0, None), strict=True):
        assert type(few.masses) is not type(all_.masses)
        for epsilon in few.tails.mean + np.array([-2.0, 0.0, 1.0, 2.0]):
            assert few.delta(epsilon) == pytest.approx(all_.delta(epsilon), rel=1e-9)


def test_no_epsilon_below_what_floats_resolve() -> None:
    """At a delta that even the last place exceeds, the upper end must not stop there."""
    high = convolve([part([0.3, 0.4, 0.3], -1, 3000)], STEP, 0.01, pessimistic=True)
    last = high.delta(high.start + (high.length - 1) * STEP)
    assert high.beyond < last
    assert high.epsilon((high.beyond + last) / 2) == math.inf
    assert high.epsilon(2 * last) < math.inf


def test_a_count_beyond_floats_tells_nothing() -> None:
    low, high = both_ends([part([0.3, 0.4, 0.3], -1, 2**60)], 1.0, None)
    assert (low.delta(0.0), high.delta(0.0)) == (0.0, 1.0)
    assert (low.epsilon(1e-5), high.epsilon(1e-5)) == (-math.inf, math.inf)


def test_what_happens_at_least_once() -> None:
    assert ever([(0.5, 2), (0.1, 1)]) == pytest.approx(1 - 0.25 * 0.9, rel=1e-15)
    assert ever([(1e-30, 10)]) == pytest.approx(1e-29, rel=1e-12)
    assert ever([(1.0, 1), (0.0, 3)]) == 1
