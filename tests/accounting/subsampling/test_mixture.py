import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy.integrate import simpson
from scipy.stats import binom

from sourdine.accounting import DENSE_ORDERS, PLD, Renyi, group, poisson, poisson_group, poisson_replace
from sourdine.accounting.rdp.moments import log_moments
from sourdine.accounting.subsampling.mixture import MixtureLaw, drawn_of
from sourdine.core.distance import Distance, Neighbours
from sourdine.core.distributions import GaussianLaw, pure_law
from sourdine.core.errors import UnsupportedLoss
from sourdine.core.loss import PrivacyLoss
from sourdine.mechanisms import Gaussian, Laplace
from tests.accounting.profiles import Density, gaussian_delta, integrated, normal_mixture
from tests.errors import refusal_of

ADD_REMOVE, REPLACE, ZERO_OUT = Neighbours.ADD_REMOVE, Neighbours.REPLACE, Neighbours.ZERO_OUT
EPSILONS = [-1.5, -0.3, -0.01, 0.0, 0.02, 0.3, 1.0, 2.5]
SEED = (Fraction(64, 60_000), 14_070)


def normal(mu: float, neighbours: Neighbours = ADD_REMOVE) -> PrivacyLoss:
    return PrivacyLoss.symmetric(GaussianLaw(mu), neighbours=neighbours)


def of_group(size: int, rate: float, shift: float) -> Density:
    counts = np.arange(size + 1)
    return normal_mixture(binom.pmf(counts, size, rate).tolist(), (shift * counts).tolist())


@pytest.mark.parametrize(
    ("size", "rate", "mu"), [(2, 0.01, 1.0), (3, 0.3, 0.5), (8, 0.6, 0.7), (5, 0.001, 2.0)]
)
@pytest.mark.parametrize("relation", [ADD_REMOVE, ZERO_OUT])
def test_a_group_against_integration(size: int, rate: float, mu: float, relation: Neighbours) -> None:
    loss = poisson_group(normal(mu, relation), rate, size)
    assert loss.neighbours is relation
    mixed, alone = of_group(size, rate, mu), normal_mixture([1], [0])
    for epsilon in EPSILONS:
        assert loss.remove.profile(epsilon) == pytest.approx(integrated(mixed, alone, epsilon), abs=1e-11)
        assert loss.add.profile(epsilon) == pytest.approx(integrated(alone, mixed, epsilon), abs=1e-11)


@pytest.mark.parametrize(("size", "rate", "mu"), [(1, 0.01, 1.0), (1, 0.4, 2.0), (3, 0.2, 0.5)])
def test_a_replacement_against_integration(size: int, rate: float, mu: float) -> None:
    loss = poisson_replace(normal(2 * mu, REPLACE), rate, Fraction(1, 2), size)
    there, back = of_group(size, rate, mu), of_group(size, rate, -mu)
    assert loss.remove is loss.add
    for epsilon in EPSILONS:
        assert loss.profile(epsilon) == pytest.approx(integrated(there, back, epsilon), abs=1e-11)
        assert loss.profile(epsilon) == pytest.approx(integrated(back, there, epsilon), abs=1e-11)


@pytest.mark.parametrize(("size", "rate", "mu"), [(60, 0.5, 0.3), (10, 0.99, 1.0), (20, 0.9, 0.5)])
def test_nobody_drawn_may_be_rarer_than_floats_tell_from_nothing(size: int, rate: float, mu: float) -> None:
    """1 plus the rest of the ratio would be 0 there, and its logarithm no number; big numbers tell."""
    drawn = drawn_of(size, rate, -mu)
    z = np.array([-3.0, 0.0, 5.0, 40.0, 90.0])
    with mpmath.workdps(60):
        q, m = mpmath.mpf(rate), mpmath.mpf(mu)
        for at, found in zip(z, drawn.log_ratio(z), strict=True):
            true = mpmath.log(
                mpmath.fsum(
                    mpmath.binomial(size, j)
                    * q**j
                    * (1 - q) ** (size - j)
                    * mpmath.exp(-j * m * at - (j * m) ** 2 / 2)
                    for j in range(size + 1)
                )
            )
            assert found == pytest.approx(float(true), rel=1e-9)


@pytest.mark.parametrize(
    ("relation", "size", "rate", "mu", "true"),
    [  # by bisection of the profile in numbers of 60 digits
        (ADD_REMOVE, 60, 0.5, 0.3, 109.610174),
        pytest.param(REPLACE, 100, 0.5, 0.2, 183.524724, marks=pytest.mark.slow),
    ],
)
def test_many_of_a_group_are_never_free(
    relation: Neighbours, size: int, rate: float, mu: float, true: float
) -> None:
    if relation is REPLACE:
        loss = poisson_replace(normal(2 * mu, REPLACE), rate, Fraction(1, 2), size)
    else:
        loss = poisson_group(normal(mu), rate, size)
    found, moments = PLD(), Renyi(orders=DENSE_ORDERS[::8])  # a moment takes long where so many may be drawn
    close = found.epsilon(found.lift(loss), 1e-5)
    assert close.lower <= true + 1e-6
    assert true - 1e-6 <= close.upper <= true + 1e-2
    assert true <= moments.epsilon(moments.lift(loss), 1e-5).upper <= 1.1 * true


@pytest.mark.parametrize(("rate", "mu"), [(0.9999, 0.01), (1e-12, 0.01)])
def test_weights_that_no_float_holds(rate: float, mu: float) -> None:
    """Of nobody drawn, or of nearly all: the first have no lowest loss then, the others count as more."""
    loss = poisson_group(normal(mu), rate, 100)
    assert (loss.remove.lowest == -math.inf) is (rate > 0.5)
    assert float(loss.remove.profile(0.5)) <= gaussian_delta(100 * mu, 0.5) + 1e-12
    assert float(loss.add.profile(0.5)) <= gaussian_delta(100 * mu, 0.5) + 1e-12
    order, top = 60.0, 100 * mu
    least = 100 * order * math.log(rate) + order * (order - 1) * top**2 / 2  # of all of them drawn
    assert float(log_moments(loss.remove, np.array([order]))[0]) >= least


def test_one_alone_is_a_poisson_sample() -> None:
    assert poisson_group(normal(1.0), 0.2, 1) == poisson(normal(1.0), 0.2)
    law = MixtureLaw(drawn_of(1, 0.2, 1.0), drawn_of(1, 0.2, 0.0))
    for epsilon in EPSILONS:
        assert law.profile(epsilon) == pytest.approx(
            poisson(normal(1.0), 0.2).remove.profile(epsilon), abs=1e-13
        )


def divergence_in_the_plane(
    first: list[tuple[float, tuple[float, float]]], second: list[tuple[float, tuple[float, float]]], x: float
) -> float:
    """The hockey-stick divergence of two mixtures of normal laws of the plane, on a grid of middles."""
    side = np.linspace(-8, 8, 161)
    middle = (side[1:] + side[:-1]) / 2

    def line(at: float) -> np.ndarray:
        return np.exp(-((middle - at) ** 2) / 2) / math.sqrt(2 * math.pi)

    def density(parts: list[tuple[float, tuple[float, float]]]) -> np.ndarray:
        return sum(w * np.outer(line(a), line(b)) for w, (a, b) in parts)  # type: ignore[return-value]

    excess = np.maximum(density(first) - x * density(second), 0.0)
    return float(excess.sum() * (side[1] - side[0]) ** 2)


@pytest.mark.parametrize("rate", [0.1, 0.5])
def test_no_directions_of_a_replaced_record_are_worse(rate: float) -> None:
    """All angles, and shorter gradients too: on a grid of the plane, which errs by less than 3e-4."""
    loss = poisson_replace(normal(2.0, REPLACE), rate, Fraction(1, 2))
    for x in (0.7, 1.0, 1.1, 1.5, 3.0):
        claimed = float(loss.profile(math.log(x)))
        found = []
        for angle in np.linspace(0, math.pi, 7):
            for one, other in ((1.0, 1.0), (0.5, 1.0), (1.0, 0.3)):
                new = (other * math.cos(angle), other * math.sin(angle))
                first = [(1 - rate, (0.0, 0.0)), (rate, (one, 0.0))]
                second = [(1 - rate, (0.0, 0.0)), (rate, new)]
                found.append(divergence_in_the_plane(first, second, x))
        assert max(found) <= claimed + 3e-4
        assert max(found) >= claimed - 3e-4  # opposite ones reach it


def test_no_directions_of_a_group_are_worse() -> None:
    rate = 0.3
    loss = poisson_group(normal(1.0), rate, 2)
    for x in (0.7, 1.0, 1.3, 2.0):
        for angle in np.linspace(0, math.pi, 5):
            other = (math.cos(angle), math.sin(angle))
            both = (1 + other[0], other[1])
            drawn = [
                ((1 - rate) ** 2, (0.0, 0.0)),
                (rate * (1 - rate), (1.0, 0.0)),
                (rate * (1 - rate), other),
                (rate**2, both),
            ]
            alone = [(1.0, (0.0, 0.0))]
            assert divergence_in_the_plane(drawn, alone, x) <= float(loss.remove.profile(math.log(x))) + 3e-4
            assert divergence_in_the_plane(alone, drawn, x) <= float(loss.add.profile(math.log(x))) + 3e-4


@pytest.mark.parametrize("order", [1.3, 2.0, 7.5, 31.0])
def test_moments_against_sums_over_a_fine_grid(order: float) -> None:
    """In logarithms, by Simpson's rule, from far below the outermost peak to far above."""
    counts, z = np.arange(4), np.linspace(-30.0, 6.3 * order + 30.0, 80_001)
    weights = np.log(binom.pmf(counts, 3, 0.05))

    def density(shift: float) -> np.ndarray:
        parts = weights - (z[:, None] - shift * counts) ** 2 / 2
        return np.logaddexp.reduce(parts, axis=1) - math.log(2 * math.pi) / 2

    still = -(z**2) / 2 - math.log(2 * math.pi) / 2
    one = poisson_group(normal(0.7), 0.05, 3)
    both = poisson_replace(normal(1.4, REPLACE), 0.05, Fraction(1, 2), 3)
    pairs = [
        (one.remove, density(0.7), still),
        (one.add, still, density(-0.7)),
        (both.remove, density(0.7), density(-0.7)),
    ]
    for law, p, q in pairs:
        exponents = order * p + (1 - order) * q
        top = float(exponents.max())
        true = top + math.log(float(simpson(np.exp(exponents - top), x=z)))
        found = float(log_moments(law, np.array([order]))[0])
        assert -1e-10 <= found - true < 1e-9 * (1 + abs(true))


def test_orders_beyond_the_quadrature_are_bounded() -> None:
    law = poisson_group(normal(0.5), 0.01, 2).remove
    orders = np.array([63.0, 64.0, 65.0, 500.0])
    found = log_moments(law, orders)
    assert np.all(np.isfinite(found))
    assert np.all(np.diff(found) > 0)
    least = np.log(0.01**2) * orders + orders * (orders - 1) * 0.5  # of both drawn, alone
    assert np.all(found >= least)


@pytest.mark.parametrize(
    ("size", "least", "most"), [(2, 1.3078, 1.3085), (4, 2.8345, 2.8360), (8, 6.307, 6.311)]
)
def test_users_of_the_known_run(size: int, least: float, most: float) -> None:
    """As a tool of others says of the same mixtures: 1.3082, 2.8353, 6.3085."""
    rate, steps = SEED
    loss = poisson_group(normal(1.0), rate, size)
    found = PLD().epsilon(PLD().repeat(PLD().lift(loss), steps), 1e-5)
    assert least <= found.lower <= found.upper <= most
    alone = PLD().repeat(PLD().lift(group(poisson(normal(1.0), rate), size)), steps)
    assert found.upper < PLD(width=0.05).epsilon(alone, 1e-5).upper
    moments = Renyi()
    assert found.upper < moments.epsilon(moments.repeat(moments.lift(loss), steps), 1e-5).upper


def test_replacement_in_the_known_run() -> None:
    rate, steps = SEED
    loss = poisson_replace(normal(2.0, REPLACE), rate, Fraction(1, 2))
    found = PLD().epsilon(PLD().repeat(PLD().lift(loss), steps), 1e-5)
    assert 1.0245 <= found.lower <= found.upper <= 1.0260


def test_all_of_the_data_is_no_sample() -> None:
    for epsilon in (0.5, 2.0):
        grouped = poisson_group(normal(0.5), 1, 3)
        replaced = poisson_replace(normal(0.5, REPLACE), 1, Fraction(1, 2), 3)
        assert (
            grouped.profile(epsilon)
            == replaced.profile(epsilon)
            == pytest.approx(gaussian_delta(1.5, epsilon))
        )


def test_other_noise_of_a_group_has_the_bound_of_groups() -> None:
    base = Laplace(scale=2).loss(Distance.l1(1))
    found = poisson_group(base, Fraction(1, 10), 2)
    assert found.epsilon == 2 * Fraction(poisson(base, Fraction(1, 10)).epsilon)


def test_what_is_not_known_is_refused() -> None:
    with pytest.raises(UnsupportedLoss, match="continuous Gaussian noise only"):
        poisson_replace(PrivacyLoss.symmetric(pure_law(1.0), neighbours=REPLACE), 0.1, Fraction(1, 2))
    discrete = Gaussian(sigma=2).loss(Distance.l2(1, neighbours=REPLACE))
    with pytest.raises(UnsupportedLoss, match="continuous Gaussian noise only"):
        poisson_replace(discrete, 0.1, Fraction(1, 2))
    with pytest.raises(UnsupportedLoss, match="for replacement neighbours, and the loss is for add-remove"):
        poisson_replace(normal(1.0), 0.1, Fraction(1, 2))
    with pytest.raises(UnsupportedLoss, match="add-remove and zero-out neighbours"):
        poisson_group(normal(1.0, REPLACE), 0.1, 2)
    for alone in (0, 1.5, -1):
        with refusal_of("alone", "poisson_replace"):
            poisson_replace(normal(1.0, REPLACE), 0.1, alone)
    with refusal_of("group", "poisson_group"):
        poisson_group(normal(1.0), 0.1, 101)
