"""Numeric oracles: levels, decodings, variances and forecasts by enumeration; coverage by simulation."""

import dataclasses
import json
import math
from fractions import Fraction
from functools import partial

import mpmath
import numpy as np
import pytest

from sourdine.core.distance import Distance
from sourdine.core.errors import InvalidParameter
from sourdine.core.mechanism import Mechanism
from sourdine.core.random.bits import SYSTEM
from sourdine.local import (
    BoundedLaplaceOracle,
    BoundedStaircaseOracle,
    Counts,
    Duchi,
    Hybrid,
    NumericOracle,
    Piecewise,
    Question,
    SquareWave,
)
from sourdine.local.numeric.oracle import UnbiasedOracle
from sourdine.local.numeric.window import Window
from sourdine.testing import SeededBits
from tests import laws
from tests.errors import refusal_of

UNBIASED = (Duchi, Hybrid, Piecewise, SquareWave)
BOUNDED = (BoundedLaplaceOracle, BoundedStaircaseOracle)
EPSILONS = (Fraction(1, 2), Fraction(1), Fraction(4))


def small(kind: type[NumericOracle], epsilon: Fraction, cells: int = 8) -> NumericOracle:
    return kind(epsilon=epsilon, lower=Fraction(-1), upper=Fraction(3), cells=cells)


def points(oracle: NumericOracle) -> list[float]:
    """The places of the grid; all are floats, as the range is 4 and the cells 8."""
    return [float(oracle.lower + (oracle.upper - oracle.lower) * i / oracle.cells) for i in range(9)]


def rows(oracle: NumericOracle) -> np.ndarray:
    """The true law of every code from every place, without the code under test."""
    law = [laws.LAWS[type(oracle)](oracle, value) for value in points(oracle)]
    return np.array([[each.get(code, 0.0) for code in range(oracle.codes)] for each in law])


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("kind", UNBIASED + BOUNDED)
def test_the_ratio_of_probabilities_is_epsilon_and_attained(
    kind: type[NumericOracle], epsilon: Fraction
) -> None:
    table = rows(small(kind, epsilon))
    assert table.sum(axis=1) == pytest.approx(np.ones(9))
    sent = table[:, table.max(axis=0) > 0]  # a hybrid that is all bit never sends the other codes
    worst = np.log(sent.max(axis=0) / sent.min(axis=0)).max()
    assert worst == pytest.approx(float(epsilon), rel=1e-9)


@pytest.mark.parametrize("epsilon", [Fraction(1, 1 << 20), Fraction(4, 3), Fraction(512)])
@pytest.mark.parametrize("width", [1, 3, 8])
def test_every_place_of_a_window_has_the_same_normaliser(width: int, epsilon: Fraction) -> None:
    """As many codes inside and outside from each place: the ratio is e^epsilon and nothing else."""
    window = Window(epsilon, 8, width)
    inside = window.rows == window.likely
    assert np.all(inside.sum(axis=1) == width)
    assert np.all((window.rows == window.unlikely).sum(axis=1) == 8)
    assert window.codes == width + 8
    with mpmath.workdps(40):
        growth = mpmath.exp(mpmath.mpf(epsilon.numerator) / epsilon.denominator)
        assert window.likely == pytest.approx(float(growth / (width * growth + 8)), rel=1e-14)
        assert window.unlikely == pytest.approx(float(1 / (width * growth + 8)), rel=1e-13)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("kind", UNBIASED)
def test_decodings_are_unbiased_with_the_stated_variance(
    kind: type[UnbiasedOracle], epsilon: Fraction
) -> None:
    oracle = small(kind, epsilon)
    assert isinstance(oracle, UnbiasedOracle)
    table, values = rows(oracle), np.array(points(oracle))
    decoded = oracle.middle + oracle.reach * oracle.decoded
    assert table @ decoded == pytest.approx(values, abs=1e-12)
    variance = table @ decoded**2 - values**2
    assert variance == pytest.approx(oracle.variance(values))
    assert -1e-9 <= oracle.worst_variance - variance.max() <= oracle.blur * oracle.reach**2 + 1e-9


@pytest.mark.parametrize("kind", [Hybrid, Piecewise])
def test_a_value_between_places_is_right_on_average_too(kind: type[UnbiasedOracle]) -> None:
    oracle = kind(epsilon=Fraction(2), lower=Fraction(0), upper=Fraction(1), cells=8)
    law = laws.LAWS[kind](oracle, 0.3)
    mean = sum(mass * (0.5 + 0.5 * oracle.decoded[code]) for code, mass in law.items())
    assert mean == pytest.approx(0.3, abs=0.5 / 8 / 1024)
    square = sum(mass * (0.5 + 0.5 * oracle.decoded[code] - mean) ** 2 for code, mass in law.items())
    assert square <= oracle.worst_variance


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("kind", [Hybrid, Piecewise, SquareWave, *BOUNDED])
def test_the_channel_is_the_law(kind: type[NumericOracle], epsilon: Fraction) -> None:
    oracle = small(kind, epsilon)
    assert oracle.channel == pytest.approx(rows(oracle), rel=1e-6)  # type: ignore[attr-defined]


def published(epsilon: float) -> dict[type, float]:
    """Worst variances on [-1, 1], as published; for continuous outputs."""
    growth, root = math.exp(epsilon), math.exp(epsilon / 2)
    duchi = ((growth + 1) / (growth - 1)) ** 2
    hybrid = (root + 3) / (3 * root * (root - 1)) + (growth + 1) ** 2 / (root * (growth - 1) ** 2)
    return {Duchi: duchi, Piecewise: 4 * root / (3 * (root - 1) ** 2), Hybrid: hybrid}


@pytest.mark.parametrize("epsilon", [0.7, 1.0, 2.0, 5.0])
def test_published_windows_give_the_published_variances(epsilon: float) -> None:
    window = round(1024 * math.exp(-epsilon / 2))
    share = Fraction(1 - math.exp(-epsilon / 2))
    expected = published(epsilon)
    assert Duchi(epsilon=epsilon, lower=-1, upper=1).worst_variance == pytest.approx(expected[Duchi])
    piecewise = Piecewise(epsilon=epsilon, lower=-1, upper=1, cells=1024, window=window)
    assert piecewise.worst_variance == pytest.approx(expected[Piecewise], rel=2e-3)
    hybrid = Hybrid(epsilon=epsilon, lower=-1, upper=1, cells=1024, window=window, share=share)
    assert hybrid.worst_variance == pytest.approx(expected[Hybrid], rel=2e-3)


def test_the_figures_of_the_literature() -> None:
    assert published(1.0)[Duchi] == pytest.approx(4.68, abs=0.005)
    assert published(1.0)[Hybrid] == pytest.approx(4.29, abs=0.005)
    assert Hybrid(epsilon=1, lower=-1, upper=1).worst_variance < 4.28
    assert Hybrid(epsilon=5, lower=-1, upper=1).worst_variance < 0.119 * 0.61  # staircase noise has 0.119


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0, 6.0])
def test_the_best_window_and_share_beat_all_others(epsilon: float) -> None:
    piecewise = partial(Piecewise, epsilon=epsilon, lower=-1, upper=1, cells=24)
    hybrid = partial(Hybrid, epsilon=epsilon, lower=-1, upper=1, cells=24)
    best = piecewise().worst_variance
    assert best == min(piecewise(window=width).worst_variance for width in range(1, 25))
    shares = [Fraction(i, 40) for i in range(1, 41)]
    others = [hybrid(window=width, share=share).worst_variance for width in range(1, 25) for share in shares]
    if epsilon > 0.62:
        assert hybrid().worst_variance <= min(others) + 1e-6
    assert hybrid().worst_variance <= best + 1e-4


def test_the_window_of_the_square_wave_is_the_published_one() -> None:
    for epsilon in (0.01, 1.0, 3.0):
        growth = math.exp(epsilon)
        b = (epsilon * growth - growth + 1) / (2 * growth * (growth - 1 - epsilon))
        found = SquareWave(epsilon=epsilon, lower=0, upper=1, cells=1000).window
        assert found == round(2 * b * 1000)
    assert SquareWave(epsilon=Fraction(1, 1 << 20), lower=0, upper=1, cells=1000).window == 1000
    assert SquareWave(epsilon=500, lower=0, upper=1, cells=1000).window == 1


@pytest.mark.parametrize("kind", UNBIASED + BOUNDED)
def test_any_value_is_taken_and_none_raises(kind: type[NumericOracle]) -> None:
    oracle = small(kind, Fraction(50))
    values = [math.nan, math.inf, -math.inf, 1e300, -5, 3, 1 << 400]
    reports = oracle.sample(values, SeededBits(1))
    assert reports.dtype == np.int64
    assert reports.shape == (7,)
    same = oracle.sample([0, 3, -1, 3, -1, 3, 3], SeededBits(1))
    assert np.array_equal(reports, same)
    assert oracle.sample(np.zeros((2, 3)), SYSTEM).shape == (2, 3)
    assert oracle.sample(np.zeros(0), SYSTEM).shape == (0,)
    with pytest.raises(InvalidParameter, match="must be numbers"):
        oracle.sample(["a"])


@pytest.mark.parametrize("kind", UNBIASED + BOUNDED)
def test_many_values_are_placed_as_one_is(kind: type[NumericOracle]) -> None:
    oracle = kind(epsilon=Fraction(40), lower=0, upper=1, cells=4)
    values = np.tile([0.0, 1.0, 0.5, 0.25], 20_000)
    decoded = oracle.mean(oracle.tally(oracle.sample(values, SeededBits(2)))).value
    assert decoded == pytest.approx(0.4375, abs=0.01)
    quarters = oracle.sample(values, SeededBits(3)).reshape(-1, 4)
    assert np.mean(quarters[:, :2] == quarters[0, :2]) > 0.999


@pytest.mark.parametrize("kind", UNBIASED + BOUNDED)
def test_reports_survive_packing_and_questions(kind: type[NumericOracle]) -> None:
    oracle = small(kind, Fraction(1))
    reports = oracle.sample(np.linspace(-1, 3, 50), SeededBits(5))
    rows = oracle.pack(reports)
    assert np.array_equal(oracle.unpack(rows), reports)
    with pytest.raises(InvalidParameter, match="Report 1 is none"):
        oracle.unpack(np.full((1, oracle.width), 255, np.uint8))
    asked = Question.from_json(json.loads(json.dumps(Question(name="age", oracle=oracle).to_json())))
    assert asked.oracle == oracle
    assert Mechanism.from_json(oracle.to_json()) == oracle
    halves = asked.tally(rows[:20]) + asked.tally(rows[20:])
    assert asked.estimate(halves).value == pytest.approx(oracle.mean(oracle.tally(reports)).value)


@pytest.mark.parametrize("kind", UNBIASED + BOUNDED)
def test_counts_of_another_oracle_and_bad_arguments_are_refused(kind: type[NumericOracle]) -> None:
    oracle, other = small(kind, Fraction(1)), small(kind, Fraction(2))
    counts = other.tally(other.sample([0.0]))
    with pytest.raises(InvalidParameter, match="other parameters"):
        oracle.mean(counts)
    with pytest.raises(InvalidParameter, match="no reports"):
        oracle.mean(oracle.tally(np.zeros(0, np.int64)))
    with pytest.raises(InvalidParameter, match="'population'"):
        other.mean(counts, population=1)  # type: ignore[arg-type]
    with pytest.raises(InvalidParameter, match="'reports'"):
        oracle.error(reports=0)
    for bad in ({"upper": -2}, {"cells": 0}, {"epsilon": 1000}):
        with refusal_of(next(iter(bad))):
            dataclasses.replace(oracle, **bad)


@pytest.mark.parametrize("kind", UNBIASED + BOUNDED)
def test_the_forecast_covers_the_mean_whatever_the_values(kind: type[NumericOracle]) -> None:
    """Bernstein and Hoeffding are wide: among 200 means at 90 % hardly one may lie outside."""
    oracle = kind(epsilon=1, lower=-1, upper=3, cells=14)
    for value in (-1.0, 1.0, 2.7):
        reports = oracle.sample(np.full((200, 400), value), SeededBits(7)).reshape(200, 400)
        means = np.array([oracle.mean(oracle.tally(row)).value for row in reports])
        assert np.mean(np.abs(means - value) <= oracle.error(0.9, reports=400)) >= 0.9
    rounding = oracle.reach * oracle.rounding  # is not less with more reports
    assert oracle.error(reports=10**8) - rounding < (oracle.error(reports=10**4) - rounding) / 20


def test_the_forecast_is_near_the_normal_one() -> None:
    """At many reports, the sure half-width is the normal one times sqrt(2 ln 40)/1.96."""
    for kind in UNBIASED:
        oracle = kind(epsilon=2, lower=0, upper=1)
        sure = math.sqrt(2 * math.log(40) * oracle.worst_variance / 10**8)
        rounding = oracle.reach * oracle.rounding
        assert oracle.error(0.95, reports=10**8) - rounding == pytest.approx(sure, rel=0.01)


def test_noise_is_told_from_the_spread_of_values() -> None:
    """The reports of a spread crowd vary more, and the interval for the people themselves does not widen."""
    oracle = Piecewise(epsilon=5, lower=-1, upper=1)
    values = np.tile([-1.0, 1.0], 50_000)
    counts = oracle.tally(oracle.sample(values, SeededBits(9)))
    assert oracle.mean(counts).variance * 10**5 == pytest.approx(float(oracle.variance(1.0)), rel=0.05)
    assert oracle.mean(counts, population=True).variance * 10**5 == pytest.approx(1, rel=0.1)
    bit = Duchi(epsilon=5, lower=-1, upper=1)
    told = bit.tally(bit.sample(values, SeededBits(9)))
    assert bit.mean(told).variance == bit.mean(told, population=True).variance
    assert bit.mean(told).variance * 10**5 == pytest.approx(bit.worst_variance, rel=0.01)


def test_one_report_has_an_interval() -> None:
    for kind in UNBIASED + BOUNDED:
        oracle = small(kind, Fraction(1))
        one = oracle.mean(oracle.tally(np.array([0])))
        assert one.lower <= one.value <= one.upper
        assert one.upper - one.lower > 1
        assert oracle.mean(oracle.tally(np.array([0])), population=True).variance > 0


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("kind", UNBIASED)
def test_reports_have_the_stated_variance(kind: type[UnbiasedOracle], epsilon: Fraction) -> None:
    """4 million reports: the sample variance is within 0.2 % or so, and must be within 1 %."""
    oracle = kind(epsilon=epsilon, lower=-1, upper=1)
    for value in (-1.0, 0.25, 1.0):
        decoded = oracle.decoded[oracle.sample(np.full(4_000_000, value), SeededBits(11))]
        assert decoded.var() == pytest.approx(float(oracle.variance(value)), rel=0.01)
        assert decoded.mean() == pytest.approx(value, abs=5 * math.sqrt(oracle.worst_variance / 4e6))


def coverage(oracle: NumericOracle, people: np.ndarray, *, anew: bool, batches: int) -> float:
    """How often 95 % intervals hold the mean of the people, or, drawn anew, of what they are drawn from."""
    hits, tries = 0, 1000
    rng = np.random.default_rng(13)
    for seed in range(batches):
        crowds = rng.choice(people, (tries, len(people))) if anew else np.tile(people, (tries, 1))
        codes = oracle.sample(crowds, SeededBits(seed)) + oracle.codes * np.arange(tries)[:, None]
        sums = np.bincount(codes.ravel(), minlength=tries * oracle.codes).reshape(tries, -1)
        for row in sums:
            found = oracle.mean(Counts(oracle.fingerprint, len(people), row), population=anew)
            hits += bool(found.lower <= people.mean() <= found.upper)
    return hits / batches / tries


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("kind", UNBIASED)
def test_intervals_for_those_who_reported_cover(kind: type[UnbiasedOracle], epsilon: Fraction) -> None:
    """12,000 tries: one standard error is 0.2 %. Duchi's bit hides the spread, so it covers more."""
    oracle = kind(epsilon=epsilon, lower=-1, upper=1)
    people = np.concatenate([np.linspace(-1, 1, 300), np.full(700, 0.75)])
    share = coverage(oracle, people, anew=False, batches=12)
    assert 0.94 <= share <= (0.99 if kind is Duchi else 0.96)


@pytest.mark.slow
@pytest.mark.parametrize("kind", UNBIASED)
def test_intervals_for_the_population_cover(kind: type[UnbiasedOracle]) -> None:
    oracle = kind(epsilon=Fraction(4), lower=-1, upper=1)
    people = np.concatenate([np.linspace(-1, 1, 300), np.full(700, 0.75)])
    assert 0.94 <= coverage(oracle, people, anew=True, batches=12) <= 0.96


@pytest.mark.slow
@pytest.mark.parametrize("kind", BOUNDED)
def test_intervals_of_bounded_mechanisms_cover_or_more(kind: type[NumericOracle]) -> None:
    oracle = kind(epsilon=Fraction(1), lower=-1, upper=1, cells=44)
    for people in (np.full(1000, -1.0), np.linspace(-1, 1, 1000)):
        assert coverage(oracle, people, anew=False, batches=3) >= 0.94


def test_counts_add_up() -> None:
    oracle = Hybrid(epsilon=1, lower=0, upper=1)
    one, two = (oracle.tally(oracle.sample(np.full(50, 0.5), SeededBits(i))) for i in (1, 2))
    assert Counts.from_json((one + two).to_json()).reports == 100


@pytest.mark.parametrize("epsilon", [1, 4])
@pytest.mark.parametrize("reports", [1, 2, 5, 30])
@pytest.mark.parametrize("place", [0.0, 0.5, 1.0])
def test_intervals_of_one_bit_cover_from_the_first_report_on(
    epsilon: int, reports: int, place: float
) -> None:
    """Exactly: so many people at one place give a binomial number of upper ends."""
    oracle = Duchi(epsilon=epsilon, lower=-1, upper=1)
    growth = math.exp(epsilon)
    upper = 0.5 + place * (growth - 1) / (2 * (growth + 1))
    covered = 0.0
    for ones in range(reports + 1):
        found = oracle.mean(oracle.tally(np.repeat([0, 1], [reports - ones, ones])))
        mass = math.comb(reports, ones) * upper**ones * (1 - upper) ** (reports - ones)
        covered += mass * bool(found.lower <= place <= found.upper)
    assert covered >= 0.89


@pytest.mark.parametrize(
    "epsilon", [Fraction(1, 10), Fraction(1, 2), Fraction(61, 100), Fraction(1), Fraction(4)]
)
def test_the_hybrid_is_never_worse_than_the_bit(epsilon: Fraction) -> None:
    """Where no window helps it is the bit alone; its grid is coarser, which costs a millionth."""
    ends = {"epsilon": epsilon, "lower": Fraction(-1), "upper": Fraction(1)}
    hybrid, bit = Hybrid(**ends), Duchi(**ends)  # type: ignore[arg-type]
    assert hybrid.worst_variance <= bit.worst_variance * (1 + 1e-5)
    assert (hybrid.share == 0) == (epsilon < Fraction(3, 5))
    if hybrid.share == 0:
        counts = hybrid.tally(hybrid.sample(np.full(1000, 1.0), SeededBits(1)))
        assert counts.sums[:-2].sum() == 0
        assert np.isfinite(hybrid.distribution(counts).mean)
        distance = Distance.hamming()
        points = np.linspace(0, 1, 11)
        assert hybrid.loss(distance).profile(points) == pytest.approx(bit.loss(distance).profile(points))
