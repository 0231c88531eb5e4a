import math

import pytest

from sourdine.accounting.dpsgd.training import step_loss
from sourdine.accounting.pld.composition import delta_bracket, epsilon_bracket
from sourdine.accounting.pld.scout import Repeated
from sourdine.accounting.pld.several import Guess, LawFamily
from sourdine.accounting.pld.tilt import Tilt
from sourdine.core.distributions import GaussianLaw
from tests.accounting.profiles import gaussian_delta


def test_gaussian_noise_at_several_deltas() -> None:
    """Sums of normal losses are one: Balle and Wang's formula says what each end must be."""
    deltas = [1e-8, 1e-7, 1e-6]
    found, _ = LawFamily.of(GaussianLaw(0.1), [(25, 1e-8)]).brackets(25, deltas, 1e-3, [0.0] * 3)
    for bracket, delta in zip(found, deltas, strict=True):
        assert gaussian_delta(0.5, bracket.upper) <= delta <= gaussian_delta(0.5, bracket.lower)
        assert bracket.width <= 1e-3


@pytest.mark.parametrize("order", [0.5, 30.0])
@pytest.mark.parametrize("share", [0.3, 20.0])
def test_no_guess_makes_a_bracket_wrong(order: float, share: float) -> None:
    family = LawFamily.of(GaussianLaw(0.1), [(25, 1e-6)])
    for spare in (None, 0.0):
        guess = Guess(Tilt(order, order, spare), share, (0.3,))
        (bracket,), _ = family.brackets(25, [1e-6], 1e-2, [0.0], guess)
        assert gaussian_delta(0.5, bracket.upper) <= 1e-6 <= gaussian_delta(0.5, bracket.lower)
        assert bracket.width <= 1e-2


def test_deltas_far_from_each_other_are_found_as_well() -> None:
    deltas = [1e-200, 1e-30, 1e-3]
    found, _ = LawFamily.of(GaussianLaw(0.1), [(25, 1e-200)]).brackets(25, deltas, 1e-2, [0.0] * 3)
    for bracket, delta in zip(found, deltas, strict=True):
        alone = epsilon_bracket([Repeated(GaussianLaw(0.1), 25)], delta, 1e-2)
        assert bracket.lower <= alone.upper
        assert alone.lower <= bracket.upper
        assert bracket.width <= max(alone.width, 1e-2)


@pytest.mark.parametrize("direction", ["remove", "add"])
@pytest.mark.parametrize(
    ("noise", "rate", "count"), [(0.6, 1e-3, 1000), (2.0, 0.02, 100), (1.0, 1e-3, 14070)]
)
def test_what_chernoff_says_is_so(direction: str, noise: float, rate: float, count: int) -> None:
    law = getattr(step_loss(noise, rate), direction)
    family, laws = LawFamily.of(law, [(count, 1e-7)]), [Repeated(law, count)]
    said = [family.surely_within(count, epsilon, 1e-7) for epsilon in (0.0, 0.2, 0.5, 1.0, 2.0, 6.0, 20.0)]
    assert not said[0]
    assert said[-1]
    assert said == sorted(said)
    true = epsilon_bracket(laws, 1e-7, 1e-3)
    assert not family.surely_within(count, true.lower - 1e-3, 1e-7)
    first = next(e for e, sure in zip((0.0, 0.2, 0.5, 1.0, 2.0, 6.0, 20.0), said, strict=True) if sure)
    assert delta_bracket(laws, first, 1e-2).lower <= 1e-7


def test_an_answer_below_the_least_is_not_looked_for() -> None:
    family = LawFamily.of(GaussianLaw(0.1), [(25, 1e-6)])
    (bracket,), _ = family.brackets(25, [1e-6], 1e-3, [10.0])
    assert bracket.upper == 10.0
    assert bracket.lower == 0.0


def test_a_count_beyond_floats_gives_the_widest_bracket() -> None:
    (bracket,), _ = LawFamily.of(GaussianLaw(1.0), [(2**60, 1e-5)]).brackets(2**60, [1e-5], 1e-3, [0.0])
    assert bracket.lower == 0
    assert bracket.upper > 2**50 or bracket.upper == math.inf


@pytest.mark.parametrize("order", [0.5, 4.0, 30.0])
def test_what_a_sum_with_another_tilt_tells_is_so(order: float) -> None:
    """Of several epsilons, only those are told at which Balle and Wang's formula is within delta."""
    family = LawFamily.of(GaussianLaw(0.1), [(25, 1e-7)])
    epsilons, deltas = [0.2, 1.0, 2.0, 3.0, 6.0], [1e-3, 1e-7, 1e-6, 1e-6, 1e-6]
    told = family.told_within(25, epsilons, deltas, 1e-3, Tilt(order, order))
    for sure, epsilon, delta in zip(told, epsilons, deltas, strict=True):
        assert not sure or gaussian_delta(0.5, epsilon) <= delta
    assert told[:2] == [False, False]
    assert told[-1]


def test_a_sum_beyond_the_lattice_tells_nothing() -> None:
    family = LawFamily.of(GaussianLaw(1.0), [(2**60, 1e-5)])
    assert family.told_within(2**60, [1.0], [1e-5], 1e-3, Tilt(4.0, 4.0)) == [False]
