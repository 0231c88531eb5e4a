import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mp, mpf

from sourdine.accounting import PLD
from sourdine.core.distance import Neighbours
from sourdine.core.errors import InvalidParameter
from sourdine.core.loss import MOST_OUTCOMES, PrivacyLoss, finite_laws, ratios


@st.composite
def pairs(draw: st.DrawFn) -> tuple[list[Fraction], list[Fraction]]:
    size = draw(st.integers(1, 5))
    counts = [draw(st.lists(st.integers(0, 9), min_size=size, max_size=size)) for _ in range(2)]
    laws = [[each + (sum(law) == 0) for each in law] for law in counts]
    return tuple([Fraction(each, sum(law)) for each in law] for law in laws)  # type: ignore[return-value]


def worst_set(p: list[Fraction], q: list[Fraction], epsilon: float) -> float:
    """The profile by its definition, over all sets of outcomes."""
    factor = Fraction(math.exp(epsilon))
    sets = itertools.product((0, 1), repeat=len(p))
    return max(
        float(sum(m * (a - factor * b) for m, a, b in zip(chosen, p, q, strict=True))) for chosen in sets
    )


@given(pairs())
def test_the_profile_is_the_worst_set_of_outcomes(pair: tuple[list[Fraction], list[Fraction]]) -> None:
    p, q = pair
    loss = PrivacyLoss.between(p, q)
    for epsilon in (0.0, 0.1, 0.5, 1.0, 3.0):
        assert float(loss.remove.profile(epsilon)) == pytest.approx(worst_set(p, q, epsilon), abs=1e-12)
        assert float(loss.add.profile(epsilon)) == pytest.approx(worst_set(q, p, epsilon), abs=1e-12)
    shared = [(a, b) for a, b in zip(p, q, strict=True) if a and b]
    with mp.workdps(40):
        ratios = [mp.log(mpf(a.numerator) * b.denominator / (a.denominator * b.numerator)) for a, b in shared]
        assert all(abs(ratio) <= mpf(loss.epsilon) for ratio in ratios)
    assert loss.delta == max(
        sum(a for a, b in zip(p, q, strict=True) if not b), sum(b for a, b in zip(p, q, strict=True) if not a)
    )


@given(pairs())
def test_rho_bounds_every_order_of_the_shared_outcomes(pair: tuple[list[Fraction], list[Fraction]]) -> None:
    p, q = pair
    loss = PrivacyLoss.between(p, q)
    shared = [(a, b) for a, b in zip(p, q, strict=True) if a and b]
    if not shared:
        assert loss.delta == 1
        return
    given_p, given_q = (np.array([float(each[side]) for each in shared]) for side in (0, 1))
    given_p, given_q = given_p / given_p.sum(), given_q / given_q.sum()
    for order in (1.5, 2.0, 5.0, 40.0):
        for a, b in ((given_p, given_q), (given_q, given_p)):
            divergence = math.log(float(np.sum(a**order * b ** (1 - order)))) / (order - 1)
            assert divergence <= order * float(loss.rho) + 1e-12


def test_composition_is_bracketed_as_by_enumeration() -> None:
    p, q = [Fraction(1, 2), Fraction(1, 3), Fraction(1, 6)], [Fraction(1, 6), Fraction(1, 3), Fraction(1, 2)]
    loss = PrivacyLoss.between(p, q)
    twice = PLD().repeat(PLD().lift(loss), 3)
    for epsilon in (0.2, 1.0, 2.0):
        exact = sum(
            max(0.0, float(math.prod(a)) - math.exp(epsilon) * float(math.prod(b)))
            for a, b in zip(itertools.product(p, repeat=3), itertools.product(q, repeat=3), strict=True)
        )
        found = PLD().delta(twice, epsilon)
        assert found.lower - 1e-12 <= exact <= found.upper + 1e-12
        assert found.width < 2e-3 * exact


def test_a_close_ratio_keeps_its_digits() -> None:
    tiny = Fraction(1, 10**30)
    loss = PrivacyLoss.between([Fraction(1, 2) + tiny, Fraction(1, 2) - tiny], [Fraction(1, 2)] * 2)
    assert float(loss.epsilon) == pytest.approx(2e-30, rel=1e-9)
    assert float(loss.remove.atoms[0][-1]) == pytest.approx(2e-30, rel=1e-9)  # type: ignore[attr-defined]


def test_equal_laws_lose_nothing_and_disjoint_ones_everything() -> None:
    nothing, everything = PrivacyLoss.between([1], [1]), PrivacyLoss.between({"a": 1}, {"b": 1})
    assert (nothing.epsilon, nothing.rho, nothing.delta) == (0, 0, 0)
    assert everything.delta == 1
    assert float(everything.profile(5.0)) == 1
    assert PrivacyLoss.between([1], [1], neighbours=Neighbours.REPLACE).neighbours is Neighbours.REPLACE


@pytest.mark.parametrize(
    ("first", "second", "words"),
    [
        ([0.5, 0.4], [0.5, 0.5], "add up to exactly 1"),
        ([1 / 3, 1 / 3, 1 / 3], [0.5, 0.5, 0], "add up to exactly 1"),
        ([0.5, 0.5], [1], "as many outcomes"),
        ([], [], "outcomes"),
        ([1.5, -0.5], [1, 0], "between 0 and 1"),
        ({"a": 1}, [1], "mapping or a sequence"),
        ([True], [1], "be a number"),
        ([math.nan], [1], "finite"),
        ([Fraction(1, 2**600), 1 - Fraction(1, 2**600)], [1, 0], "512 bits"),
        (
            [Fraction(1)] + [Fraction(0)] * MOST_OUTCOMES,
            [Fraction(1)] + [Fraction(0)] * MOST_OUTCOMES,
            "65,536",
        ),
    ],
)
def test_what_is_no_pair_of_laws_is_refused(first: object, second: object, words: str) -> None:
    with pytest.raises(InvalidParameter, match=words):
        finite_laws("a pair", first, second)  # type: ignore[arg-type]


def test_a_refusal_names_the_call() -> None:
    with pytest.raises(InvalidParameter, match=r"of PrivacyLoss\.between"):
        PrivacyLoss.between([0.5, 0.4], [0.5, 0.5])


def test_numbers_are_what_people_wrote() -> None:
    assert finite_laws("a pair", np.array([0.1, 0.9]), [Fraction(1, 2), 0.5]).first == (
        Fraction(1, 10),
        Fraction(9, 10),
    )


def test_laws_that_share_no_outcome_tell_everything() -> None:
    found = ratios(finite_laws("FinitePair", [1, 0], [0, 1]))
    for law in (found.forth, found.back):
        whole = law.survival(-np.inf)
        assert (law.infinite, float(whole.p), float(whole.q)) == (1.0, 1.0, 0.0)
