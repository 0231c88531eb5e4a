"""Tilted sums of laws on a lattice, against convolutions place by place."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sourdine.accounting.pld.convolution import LossSum, Tails, convolve, ever
from sourdine.accounting.pld.masses import Component, MassTable
from sourdine.core.distributions import Floats

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


START, BEYOND = -0.7, 0.25


def by_hand(first: Floats, second: Floats, scale: float, *, pessimistic: bool) -> LossSum:
    """A window with these sums, to which nothing was folded, and with a share at infinity."""
    none = Tails(mean=0.0, rates=np.ones(1), up=np.full(1, -1e9), down=np.full(1, -1e9))
    return LossSum(
        start=START,
        step=STEP,
        length=len(first),
        order=0.5,
        scale=scale,
        masses=MassTable(first, second),
        grow=1.0,
        beyond=BEYOND,
        tails=none,
        pessimistic=pessimistic,
    )


@pytest.mark.parametrize("length", [2, 3, 4, 64, 65, 66, 200, 4500])
@pytest.mark.parametrize(("pessimistic", "scale"), [(False, 0.3), (True, -0.3)])
def test_a_crossing_is_where_the_profile_is_delta(length: int, pessimistic: bool, scale: float) -> None:
    """In every step of a window, at its ends, and between them."""
    weights = np.exp(-np.arange(length) * 3 / length) / length
    heights = np.arange(length) * STEP
    first, second = (np.cumsum(each[::-1])[::-1] for each in (weights, weights * np.exp(-heights)))
    held = by_hand(first, second, scale, pessimistic=pessimistic)
    places = np.linspace(0, heights[-1] - STEP / 3, 40)
    for height in [*places, *heights[:-1:67], *heights[-3:-1]]:
        gains = np.maximum(-np.expm1(height - heights), 0.0)
        delta = BEYOND + math.exp(scale) * float(weights @ gains)
        for near in (None, START + height, START + heights[-1] / 3, START - 1):  # any guess will do
            assert held._crossing(delta, near) == pytest.approx(START + height, abs=1e-9)
    for delta in (held.delta(START), 2 * held.delta(START)):
        assert held._crossing(delta) == START
    assert held._crossing(BEYOND) == pytest.approx(START + heights[-1])


@pytest.mark.parametrize("pessimistic", [False, True])
def test_where_floats_cannot_say_the_crossing_errs_to_its_side(pessimistic: bool) -> None:
    """The step is known, and neither end of it: the upper end takes the higher, the lower the lower."""
    for place, first, second in (
        (2, [4.0, 3.0, 2.0, 1e-20, 0.0], [1e-9, 1e-9, 1e-9, 1e-30, 0.0]),  # less is left than delta
        (1, [4.0, 3.0, 0.9, 0.8, 0.0], [1e-9, 1e-9, 0.8, 0.7, 0.0]),
        (0, [4.0, 2.0, 0.5, 0.0, 0.0], [1e-9, 0.0, 0.0, 0.0, 0.0]),  # the other sum is lost
        (3, [4.0, 3.0, 2.0, 1.9, 0.0], [1e-9, 1e-9, 1e-9, 0.0, 0.0]),
        (3, [4.0, 3.0, 2.0, 1.9, 1.8], [1e-9, 1e-9, 1e-9, 1e-9, 0.0]),
        (2, [4.0, 3.0, 2.0, 1.0, 0.0], [1e-9, 1e-9, 1e-9, 1e-9, 0.0]),  # exactly delta is left
    ):
        held = by_hand(np.array(first), np.array(second), 0.0, pessimistic=pessimistic)
        found = held._crossing(BEYOND + (1.0 if place else 3.0))
        assert found == pytest.approx(START + (place + pessimistic) * STEP, abs=1e-12)


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
