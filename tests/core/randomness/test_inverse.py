from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sourdine.core.interval_arithmetic import precision
from sourdine.core.random.tables import Decay, GeometricDecay, StepDecay, Truncated
from sourdine.testing import ScriptedBits, SeededBits
from tests.statistics import ALARM, fit

DECAYS = [
    GeometricDecay(Fraction(1, 7)),
    GeometricDecay(Fraction(7, 3)),
    GeometricDecay(Fraction(1000, 3)),
    StepDecay(Fraction(1, 3), 1, 1),
    StepDecay(Fraction(7, 5), 5, 2),
    StepDecay(Fraction(1, 10), 7, 7),
    StepDecay(Fraction(30), 3, 1),
]


def weights(decay: Decay, count: int) -> list[mpmath.mpf]:
    """The first weights, from the definition, in a second library of big numbers."""
    if isinstance(decay, GeometricDecay):
        rate = mpmath.mpf(decay.scale.denominator) / decay.scale.numerator
        return [mpmath.exp(-m * rate) for m in range(count)]
    assert isinstance(decay, StepDecay)
    drop = mpmath.mpf(decay.drop.numerator) / decay.drop.denominator
    return [mpmath.exp(-drop * ((m + decay.period - decay.inner) // decay.period)) for m in range(count)]


def cumulative(decay: Decay, x: int, last: int) -> list[mpmath.mpf]:
    """P[Y <= y] for y = 0 .. last, from the definition."""
    w = weights(decay, last + 1)
    masses = [w[abs(y - x)] for y in range(last + 1)]
    total = mpmath.fsum(masses)
    return [mpmath.fsum(masses[: y + 1]) / total for y in range(last + 1)]


@pytest.mark.parametrize("decay", DECAYS)
def test_masses_are_the_sums_of_the_weights(decay: Decay) -> None:
    mpmath.mp.prec = 300
    w = weights(decay, 60)
    unit = 1 - w[1] if isinstance(decay, GeometricDecay) else 1
    sums = [mpmath.fsum(w[:count]) * unit for count in range(61)]
    floats = decay.mass(np.arange(61))
    for count, total in enumerate(sums):
        assert abs(floats[count] - total) <= total * mpmath.mpf(2) ** -48
        with precision(200):
            middle = mpmath.mpf(decay.certified(count).mid().str(50, radius=False))
        assert abs(middle - total) <= (1 + total) * mpmath.mpf(10) ** -45


@given(
    st.one_of(
        st.builds(GeometricDecay, st.fractions(Fraction(1, 1024), 2**40)),
        st.builds(
            lambda drop, period, share: StepDecay(drop, period, max(1, int(period * share))),
            st.fractions(Fraction(1, 2**60), 64),
            st.integers(1, 2**28),
            st.floats(0, 1),
        ),
    ),
    st.integers(0, 2**30),
)
def test_float_masses_keep_their_promise(decay: Decay, count: int) -> None:
    """The relative error stays below 2^-46 at any size, and the guess nearly inverts the mass."""
    mass = decay.mass(np.array([count]))
    with precision(400):
        exact = decay.certified(count)
        assert abs(float(mass[0] - exact)) <= float(exact) * 2.0**-46
    guess = decay.guess(mass)
    assert np.all(np.isfinite(guess))
    whole = np.floor(guess).astype(np.int64)
    assert decay.mass(whole)[0] <= mass[0] * (1 + 1e-6)
    assert decay.mass(whole + 1)[0] >= mass[0] * (1 - 1e-6)


@pytest.mark.parametrize("decay", DECAYS)
@pytest.mark.parametrize(("x", "last"), [(0, 12), (5, 12), (12, 12), (0, 1), (3, 40)])
def test_every_boundary_is_where_it_should_be(decay: Decay, x: int, last: int) -> None:
    """U walks along the distribution function: one word before and one after each boundary."""
    mpmath.mp.prec = 400
    law = Truncated(decay, last)
    for y, at in enumerate(cumulative(decay, x, last)[:-1]):
        word = int(at * 2**64)
        for offset in (-1, 1):
            if 0 <= word + offset < 2**64:
                u = mpmath.mpf(word + offset) / 2**64
                expected = sum(edge <= u for edge in cumulative(decay, x, last)[:-1])
                found = int(law.sample(np.array([x]), ScriptedBits([word + offset]))[0])
                assert found == expected
                if law_is_wide(decay, x, last, y):
                    assert found == y + (offset > 0)


def law_is_wide(decay: Decay, x: int, last: int, y: int) -> bool:
    """Whether the cells on both sides of a boundary hold more than a few words."""
    w = weights(decay, last + 1)
    return min(w[abs(y - x)], w[abs(y + 1 - x)]) / mpmath.fsum(w) > mpmath.mpf(2) ** -60


@pytest.mark.parametrize("decay", DECAYS)
@pytest.mark.parametrize("digits", [64, 128, 192])
def test_a_tie_draws_bits_until_balls_tell(decay: Decay, digits: int) -> None:
    mpmath.mp.prec = 600
    x, last = 4, 14
    at = int(cumulative(decay, x, last)[x] * 2**digits)
    for offset, expected in [(-1, x), (1, x + 1)]:
        value = at + offset
        words = [value >> shift & (2**64 - 1) for shift in range(digits - 64, -1, -64)]
        bits = ScriptedBits(words)
        assert int(Truncated(decay, last).sample(np.array([x]), bits)[0]) == expected
        assert bits.left == 0


def test_a_dyadic_boundary_is_left_by_the_next_bits() -> None:
    """Equal weights on four places: their boundaries are quarters, and U = 1/4 itself belongs above."""
    law = Truncated(StepDecay(Fraction(1), 9, 9), 3)
    for word, expected in [(2**62 - 1, 0), (2**62, 1), (2**63, 2), (0, 0), (2**64 - 1, 3)]:
        assert int(law.sample(np.array([2]), ScriptedBits([word]))[0]) == expected


@given(
    st.integers(0, 2**64 - 1),
    st.integers(0, 50),
    st.sampled_from(DECAYS),
    st.integers(1, 50),
)
def test_the_float_filter_is_never_wrong(word: int, x: int, decay: Decay, last: int) -> None:
    """Whatever the word, the answer is the one that big numbers give."""
    mpmath.mp.prec = 200
    x = min(x, last)
    found = int(Truncated(decay, last).sample(np.array([x]), ScriptedBits([word]))[0])
    edges = [mpmath.mpf(0), *cumulative(decay, x, last)]
    assert edges[found] <= mpmath.mpf(word + 1) / 2**64
    assert mpmath.mpf(word) / 2**64 <= edges[found + 1]


@pytest.mark.parametrize("decay", DECAYS)
@pytest.mark.parametrize("count", [60_000, pytest.param(2_000_000, marks=pytest.mark.slow)])
def test_samples_follow_their_law(decay: Decay, count: int) -> None:
    bits = SeededBits(21)
    for x, last in [(0, 20), (7, 20), (20, 20)]:
        edges = [0.0, *map(float, cumulative(decay, x, last))]
        law = dict(enumerate(np.diff(edges).tolist()))
        assert fit(Truncated(decay, last).sample(np.full(count, x), bits), law) > ALARM


@pytest.mark.parametrize(("scale", "last"), [(Fraction(2**40), 2**30), (Fraction(10**6, 3), 2**30)])
def test_huge_ranges_follow_their_law(scale: Fraction, last: int) -> None:
    law = Truncated(GeometricDecay(scale), last)
    x = 10**6
    answers = law.sample(np.full(100_000, x), SeededBits(22))
    edges = np.unique(np.concatenate([x + np.arange(-9, 30) * 10**5, [last]]).astype(np.int64))
    s = float(scale)

    def until(y: np.ndarray) -> np.ndarray:  # the continuous law, as good here
        down = np.exp(-np.maximum(x - y, 0) / s) - np.exp(-x / s)
        return down + -np.expm1(-np.maximum(y - x, 0) / s)

    shares = np.diff(until(edges.astype(float)), prepend=0.0) / until(np.array([float(last)]))
    assert fit(np.searchsorted(edges, answers), dict(enumerate(shares.tolist()))) > ALARM


@pytest.mark.parametrize("decay", DECAYS)
@pytest.mark.parametrize("last", [1, 2, 9, 10, 31])
@pytest.mark.parametrize("confidence", [0.3, 0.9, 0.999])
def test_the_reach_is_the_least_that_covers_from_everywhere(
    decay: Decay, last: int, confidence: float
) -> None:
    mpmath.mp.prec = 100
    w = weights(decay, last + 1)

    def covered(k: int) -> mpmath.mpf:
        shares = []
        for x in range(last + 1):
            masses = [w[abs(y - x)] for y in range(last + 1)]
            near = [mass for y, mass in enumerate(masses) if abs(y - x) <= k]
            shares.append(mpmath.fsum(near) / mpmath.fsum(masses))
        return min(shares)

    reach = Truncated(decay, last).reach(confidence)
    assert covered(reach) >= confidence
    assert reach == 0 or covered(reach - 1) < confidence + 1e-9


def test_a_word_a_value_and_no_more() -> None:
    bits = ScriptedBits(list(SeededBits(1).words(1000)))
    Truncated(GeometricDecay(Fraction(7, 3)), 100).sample(np.arange(100).repeat(10), bits)
    assert bits.left == 0
    assert np.array_equal(bits.words(3), SeededBits(0).words(3))


@pytest.mark.parametrize("decay", DECAYS)
def test_floats_prove_nearly_everything(decay: Decay, monkeypatch: pytest.MonkeyPatch) -> None:
    """A million values may meet the big numbers once in a while, on a small range practically never."""
    monkeypatch.setattr(Truncated, "_settle", lambda *_: pytest.fail("went to big numbers"))
    places = np.arange(101).repeat(500)
    answers = Truncated(decay, 100).sample(places, SeededBits(23))
    assert len(np.unique(answers)) == 101


def test_masses_off_a_table_are_the_same() -> None:
    for decay in (GeometricDecay(Fraction(70)), StepDecay(Fraction(3, 4), 50, 11)):
        law = Truncated(decay, 100)
        places = np.arange(1000) % 101
        whole = law.sample(places, SeededBits(3))
        bits = SeededBits(3)
        parts = [law.sample(places[start : start + 50], bits) for start in range(0, 1000, 50)]
        assert (whole == np.concatenate(parts)).all()
