import math
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sourdine.accounting import PLD, fixed_size
from sourdine.accounting.joint import worst
from sourdine.accounting.subsampling.fixed_size import FixedSizeLaw
from sourdine.core.distance import Distance, Neighbours
from sourdine.core.distributions import AtomLaw, GaussianLaw, RhoLaw
from sourdine.core.errors import InvalidParameter, UnsupportedLoss
from sourdine.core.loss import PrivacyLoss
from sourdine.mechanisms import Laplace
from tests.accounting.profiles import hockey_stick, integrated, normal_mixture

REPLACE = Neighbours.REPLACE


@pytest.mark.parametrize("mu", [0.5, 2.0])
@pytest.mark.parametrize("size", [1, 30, 90])
def test_the_profile_is_the_larger_pair_on_either_side_of_zero(mu: float, size: int) -> None:
    rate = size / 100
    loss = fixed_size(PrivacyLoss.symmetric(GaussianLaw(mu), neighbours=REPLACE), size, size=100)
    p, q = normal_mixture([1], [mu]), normal_mixture([1], [0])
    mixed_q, mixed_p = normal_mixture([1 - rate, rate], [0, mu]), normal_mixture([1 - rate, rate], [mu, 0])
    for epsilon in (0.0, 0.1, 0.7, 2.0):
        assert loss.profile(epsilon) == pytest.approx(integrated(mixed_q, q, epsilon), abs=1e-11)
        assert loss.profile(-epsilon) == pytest.approx(integrated(p, mixed_p, -epsilon), abs=1e-11)


@pytest.mark.parametrize(
    "base", [GaussianLaw(1.0), RhoLaw(0.3), AtomLaw.between([0.2, 0.3, 0.5], [0.5, 0.3, 0.2])]
)
def test_it_is_a_law(base: AtomLaw) -> None:
    """Convex in e^epsilon, also across 0, where both halves meet."""
    law = fixed_size(PrivacyLoss.symmetric(base, neighbours=REPLACE), 1, size=5).remove
    x = np.linspace(0.3, 3.0, 4001)
    slopes = np.diff(law.profile(np.log(x))) / np.diff(x)
    assert np.all(np.diff(slopes) >= -1e-9)
    assert np.all(slopes <= 1e-12)
    assert law.profile(-1e-13) == pytest.approx(float(law.profile(0.0)), abs=1e-12)


@settings(max_examples=40)
@given(
    st.lists(st.floats(0.05, 1), min_size=9, max_size=9),
    st.integers(2, 4),
    st.floats(-1, 1.5),
)
def test_it_covers_every_mechanism_on_every_sample(weights: list[float], units: int, epsilon: float) -> None:
    """Enumeration: any mechanism on samples of two records out of {0, 1, 2}, and all neighbours."""
    table = np.array(weights).reshape(3, 3)  # a law of three answers for each sum of two records, cyclic
    table = table / table.sum(axis=1, keepdims=True)

    def answer(sample: tuple[int, ...]) -> np.ndarray:
        return table[sum(sample) % 3]

    pairs = [(a, b) for a in range(3) for b in range(3) if a != b]
    law = worst([AtomLaw.between(table[a], table[b]) for a, b in pairs])
    base = PrivacyLoss.symmetric(law, neighbours=REPLACE)
    claimed = float(fixed_size(base, 2, size=units + 1).profile(epsilon))
    rest = [0, 1, 1, 2][:units]
    for one, other in pairs:
        laws = []
        for data in ([one, *rest], [other, *rest]):
            samples = list(combinations(data, 2))
            laws.append(np.mean([answer(sample) for sample in samples], axis=0))
        assert hockey_stick(laws[0], laws[1], epsilon) <= claimed + 1e-12


def test_epsilon_follows_the_formula() -> None:
    loss = fixed_size(Laplace(scale=2).loss(Distance.l1(2, neighbours=REPLACE)), 10, size=1000)
    assert loss.epsilon == pytest.approx(math.log1p(0.01 * math.expm1(1.0)), rel=1e-15)
    assert math.isinf(loss.rho)
    for epsilon in (0.001, 0.01):
        base = Laplace(scale=2).loss(Distance.l1(2, neighbours=REPLACE))
        inner = math.log1p(math.expm1(epsilon) / 0.01)
        assert loss.profile(epsilon) == pytest.approx(0.01 * float(base.profile(inner)), rel=1e-9)


def test_it_composes() -> None:
    """A sample of almost everything costs almost as much as everything."""
    base = PrivacyLoss.symmetric(GaussianLaw(0.5), neighbours=REPLACE)
    accountant = PLD()

    def epsilon(loss: PrivacyLoss) -> float:
        return accountant.epsilon(accountant.repeat(accountant.lift(loss), 10), 1e-6).upper

    most, half, few = (epsilon(fixed_size(base, size, size=1000)) for size in (999, 500, 10))
    assert few < half < most <= epsilon(base) + 1e-3
    assert most > 0.95 * epsilon(base)


def test_everybody_is_no_sample() -> None:
    base = PrivacyLoss.pure(1, neighbours=REPLACE)
    assert fixed_size(base, 7, size=7) is base


@pytest.mark.parametrize("relation", [Neighbours.ADD_REMOVE, Neighbours.ZERO_OUT])
def test_other_relations_are_refused(relation: Neighbours) -> None:
    with pytest.raises(UnsupportedLoss, match=f"replacement neighbours, and this one is for {relation}"):
        fixed_size(PrivacyLoss.pure(1, neighbours=relation), 1, size=2)


@pytest.mark.parametrize(("size", "of"), [(0, 5), (6, 5), (1, 0), (1.5, 5)])
def test_a_bad_size_is_refused(size: int, of: int) -> None:
    with pytest.raises(InvalidParameter, match="of fixed_size must"):
        fixed_size(PrivacyLoss.pure(Fraction(1), neighbours=REPLACE), size, of)


def test_at_zero_the_law_is_that_of_positive_losses() -> None:
    """The atom at 0 lies below: survival is continuous from the right."""
    law = FixedSizeLaw(GaussianLaw(1.0), 0.25)
    at, after = law.survival(0.0), law.survival(1e-12)
    assert (float(at.p), float(at.q)) == pytest.approx((float(after.p), float(after.q)), abs=1e-9)
