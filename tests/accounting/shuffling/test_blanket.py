"""The privacy blanket, against sums over all counts and against the exact law of shuffled reports."""

import itertools
import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from sourdine.accounting import Favours, blanket_model
from sourdine.accounting.shuffling import blanket
from sourdine.accounting.shuffling.blanket import Upper, _crowds
from sourdine.core.errors import InvalidParameter


def summed(favours: Favours, local: float, n: int, epsilon: float) -> float:
    """The blanket's delta over all counts: for one, the other, both, neither, and not of the blanket."""
    p, e = math.exp(local), math.exp(epsilon)
    share = 1 / (favours.each * p + 1 - favours.each)
    u, s = favours.alone, favours.both
    masses = [share * u, share * u, share * s, share * (1 - 2 * u - s), 1 - share]
    total = 0.0
    for a, b, d, c in itertools.product(range(n + 1), repeat=4):
        counts = (a, b, d, c, n - a - b - c - d)
        excess = (p - e) * a + (1 - p * e) * b + (1 - e) * (c + p * d)
        if counts[4] >= 0 and excess > 0:
            ways = math.factorial(n) / math.prod(map(math.factorial, counts))
            total += excess * ways * math.prod(m**k for m, k in zip(masses, counts, strict=True))
    return total / n


def kary(k: int, p: float) -> np.ndarray:
    """The law of a report under each input, one row an input."""
    return (np.ones((k, k)) + (p - 1) * np.eye(k)) / (p + k - 1)


def hashing(g: int, p: float) -> np.ndarray:
    """Inputs 0 .. g-1, seeds 0 .. g-1, g a prime: the report is a seed and a response to seed times input."""
    law = np.ones((g, g, g))
    for x, seed in itertools.product(range(g), repeat=2):
        law[x, seed, seed * x % g] = p
    return law.reshape(g, g * g) / (g * (p + g - 1))


def hadamard(p: float) -> np.ndarray:
    """Rows 1, 2 and 3 of four columns."""
    signs = np.array([[(-1) ** (r & c).bit_count() for c in range(4)] for r in (1, 2, 3)])
    return np.where(signs > 0, p, 1.0) / (2 * p + 2)


def subsets(d: int, k: int, p: float) -> np.ndarray:
    sets = list(itertools.combinations(range(k), d))
    law = np.array([[p if x in each else 1.0 for each in sets] for x in range(k)])
    return law / law.sum(axis=1, keepdims=True)


def crowd(laws: list[np.ndarray]) -> dict[tuple[int, ...], float]:
    """P[how often each report occurs], person after person."""
    out = {(0,) * len(laws[0]): 1.0}
    for law in laws:
        grown: dict[tuple[int, ...], float] = {}
        for counts, mass in out.items():
            for y, chance in enumerate(law):
                key = (*counts[:y], counts[y] + 1, *counts[y + 1 :])
                grown[key] = grown.get(key, 0.0) + mass * chance
        out = grown
    return out


def exactly(law: np.ndarray, others: tuple[int, ...], epsilon: float) -> float:
    """delta for a person with input 0 against one with input 1, beside others."""
    rest = [law[x] for x in others]
    one, other = crowd([law[0], *rest]), crowd([law[1], *rest])
    return sum(max(0.0, mass - math.exp(epsilon) * other.get(key, 0.0)) for key, mass in one.items())


def worst(law: np.ndarray, n: int, epsilon: float) -> float:
    crowds = itertools.combinations_with_replacement(range(len(law)), n - 1)
    return max(exactly(law, others, epsilon) for others in crowds)


THREE = Favours(each=1 / 3, alone=1 / 3, both=0, third=1 / 3)


def test_the_case_by_hand() -> None:
    """Three answers, odds of 3, two people, the other with the first answer: .06; another bound says .02."""
    law = kary(3, 3.0)
    assert exactly(law, (0,), math.log(2.5)) == pytest.approx(0.06)
    assert Upper.of(THREE, math.log(3), 2).delta(math.log(2.5)) == pytest.approx(0.06, rel=1e-7)


def test_ten_people_of_four_answers() -> None:
    """By counts of the first two answers; others who hold the rest are alike."""
    law, n, epsilon = kary(4, math.e), 10, 0.8
    found = 0.0
    for zeros, ones in itertools.product(range(n), repeat=2):
        if zeros + ones <= n - 1:
            merged = np.stack([law[:, 0], law[:, 1], law[:, 2] + law[:, 3]], axis=1)
            rows = [merged[0]] * zeros + [merged[1]] * ones + [merged[2]] * (n - 1 - zeros - ones)
            one, other = crowd([merged[0], *rows]), crowd([merged[1], *rows])
            delta = sum(max(0.0, m - math.exp(epsilon) * other.get(key, 0.0)) for key, m in one.items())
            found = max(found, delta)
    assert found == pytest.approx(2.83e-4, rel=0.01)
    four = Favours(each=1 / 4, alone=1 / 4, both=0, third=1 / 4)
    assert found <= Upper.of(four, 1.0, n).delta(epsilon) <= 1.5 * found


SMALL = [
    (kary(3, math.e), THREE, 4),
    (kary(2, math.exp(2)), Favours(each=1 / 2, alone=1 / 2, both=0), 6),
    (kary(5, math.exp(2)), Favours(each=1 / 5, alone=1 / 5, both=0, third=1 / 5), 4),
    (hashing(3, math.e), Favours(each=1 / 3, alone=2 / 9, both=1 / 9, third=2 / 9), 3),
    (hadamard(math.exp(1.5)), Favours(each=1 / 2, alone=1 / 4, both=1 / 4, third=1 / 4), 4),
    (subsets(2, 4, math.e), Favours(each=1 / 2, alone=1 / 3, both=1 / 6, third=1 / 6), 3),
]


@pytest.mark.parametrize("case", range(len(SMALL)))
@pytest.mark.parametrize("epsilon", [0.05, 0.3, 0.8])
def test_never_below_the_exact_delta_nor_its_lower_end_above(case: int, epsilon: float) -> None:
    law, favours, n = SMALL[case]
    local = math.log(law.max() / law.min())
    exact = worst(law, n, epsilon)
    assert Upper.of(favours, local, n).delta(epsilon) >= exact
    for one in _crowds(favours, local, n):
        assert one.delta(epsilon) <= exact * (1 + 1e-12)


@pytest.mark.parametrize("case", range(len(SMALL)))
def test_the_lower_end_is_the_delta_of_the_crowds_it_names(case: int) -> None:
    law, favours, n = SMALL[case]
    local = math.log(law.max() / law.min())
    second, *third = _crowds(favours, local, n)
    assert second.delta(0.2) == pytest.approx(exactly(law, (1,) * (n - 1), 0.2), rel=1e-7)
    for crowd_ in third:
        merged = [exactly(law, (z,) * (n - 1), 0.2) for z in range(2, len(law))]
        assert crowd_.delta(0.2) <= max(merged) * (1 + 1e-9)


@pytest.mark.parametrize(
    ("favours", "local", "n", "epsilon"),
    [
        (Favours(each=1 / 3, alone=2 / 9, both=1 / 9), 1.0, 8, 0.5),
        (Favours(each=0.5, alone=0.25, both=0.25), 2.0, 9, 0.7),
        (Favours(each=0.2, alone=0.16, both=0.04), 4.0, 10, 2.0),
        (Favours(each=0.5, alone=0.5, both=0), 1.5, 10, 0.3),
        (THREE, 3.0, 1, 1.0),
    ],
)
def test_few_reports_are_summed_exactly(favours: Favours, local: float, n: int, epsilon: float) -> None:
    wanted = summed(favours, local, n, epsilon)
    assert wanted <= Upper.of(favours, local, n).delta(epsilon) <= wanted * (1 + 1e-4)


def test_faint_reports_lose_no_digits() -> None:
    """At an epsilon of 1e-6 every difference that matters is of that size, and so is delta."""
    with mp.workdps(40):
        p, e, n = mp.exp(mp.mpf("1e-6")), mp.exp(mp.mpf("2e-7")), 30
        share = 3 / (p + 2)
        wanted = mp.mpf(0)
        for c in range(1, n + 1):
            for rest in range(n - c + 1):
                mass = mp.binomial(n, c) * (share * 2 / 3) ** c * mp.binomial(n - c, rest)
                mass *= (share / 3) ** rest * (1 - share) ** (n - c - rest)
                for a in range(c + 1):
                    excess = (p - e) * a + (1 - p * e) * (c - a) + (1 - e) * rest
                    wanted += mass * mp.binomial(c, a) / mp.mpf(2) ** c * max(excess, 0)
        wanted /= n
    found = Upper.of(THREE, 1e-6, n).delta(2e-7)
    assert float(wanted) <= found <= float(wanted) * (1 + 1e-6)


def test_rounding_is_outwards(monkeypatch: pytest.MonkeyPatch) -> None:
    favours, local, n = Favours(each=0.3, alone=0.2, both=0.1), 2.0, 10
    exact = [summed(favours, local, n, epsilon) for epsilon in (0.1, 0.5, 1.0)]
    for name, value in {"_CELLS": 3, "_MANY": 0, "_WHOLE": 0, "_NODES": 2.5}.items():
        monkeypatch.setattr(blanket, name, value)
    coarse = Upper.of(favours, local, n)
    for wanted, epsilon in zip(exact, (0.1, 0.5, 1.0), strict=True):
        assert 1.01 * wanted < coarse.delta(epsilon) < 5 * wanted


@settings(max_examples=100)
@given(st.integers(1, 40), st.integers(1, 40), st.floats(0, 60), st.floats(0.1, 4), st.floats(0.01, 1))
def test_more_reports_that_tell_count_as_fewer(
    first: int, second: int, others: float, local: float, share: float
) -> None:
    """h(C, T) <= (C/C1) h(C1, T C1/C) for C1 <= C; C1 alone in the place of C would not do."""
    low, high = sorted((first, second))
    p, e = math.exp(local), math.exp(share * local)

    def mean(c: int, t: float) -> float:
        a = np.arange(c + 1)
        return float(binom.pmf(a, c, 0.5) @ np.maximum((p - e) * a + (1 - p * e) * (c - a) + (1 - e) * t, 0))

    assert mean(high, others) <= high / low * mean(low, others * low / high) * (1 + 1e-9) + 1e-12


def test_a_large_crowd_by_direct_sums() -> None:
    """Two answers: only how many reports tell matters, and it is binomial."""
    local, n = 4.0, 1000
    p, share = math.exp(local), 2 / (math.exp(local) + 1)
    found = blanket_model(Favours(each=1 / 2, alone=1 / 2, both=0), local, n, 1e-6)

    def delta(epsilon: float) -> float:
        e, total = math.exp(epsilon), 0.0
        for c in range(1, 150):
            a = np.arange(c + 1)
            excess = np.maximum((p - e) * a + (1 - p * e) * (c - a), 0)
            total += binom.pmf(c, n, share) * float(binom.pmf(a, c, 0.5) @ excess)
        return total / n

    assert found.upper == pytest.approx(1.853, rel=1e-3)
    assert delta(found.upper) <= 1e-6 <= delta(found.upper * 0.9995)


@pytest.mark.parametrize(
    ("shares", "said"),
    [
        ((0.3, 0.1, 0.1), "'each'"),
        ((0.3, 0.2, 0.2), "'each'"),
        ((0.1, 0.0, 0.1), "'alone'"),
        ((0.8, 0.5, 0.3), "'alone'"),
        ((1.2, 0.6, 0.6), "'each'"),
        ((0.3, 0.3, math.nan), "'both'"),
    ],
)
def test_shares_that_cannot_be_are_refused(shares: tuple[float, float, float], said: str) -> None:
    with pytest.raises(InvalidParameter, match=said):
        Favours(each=shares[0], alone=shares[1], both=shares[2])
    with pytest.raises(InvalidParameter, match="'third'"):
        Favours(each=0.3, alone=0.2, both=0.1, third=0.25)


def test_the_ends() -> None:
    assert blanket_model(THREE, 1.0, 100, 0.0).upper == 1
    assert blanket_model(THREE, 60.0, 100, 1e-6).upper == 60
    assert blanket_model(THREE, 1.0, 1, 1e-9).upper == pytest.approx(1, abs=1e-6)
    assert blanket_model(THREE, 0.5, 50, 0.5).upper == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("bad", [(0, 10, 1e-6), (-1, 10, 1e-6), (1, 0, 1e-6), (1, 10, 1), (1, 2.5, 0.1)])
def test_bad_input_is_refused(bad: tuple[float, int, float]) -> None:
    with pytest.raises(InvalidParameter, match="of blanket_model must"):
        blanket_model(THREE, *bad)


@pytest.mark.parametrize("epsilon", [1e-300, 1e-20, 1e-17, 1e-13, 1e-12])
def test_reports_that_say_next_to_nothing_cost_no_more_than_that(epsilon: float) -> None:
    found = blanket_model(Favours(each=0.5, alone=0.5, both=0.0), epsilon, 10, 1e-6)
    assert 0 <= found.lower <= found.upper <= epsilon
