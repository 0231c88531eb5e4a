import math
from collections.abc import Callable
from fractions import Fraction

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp

from sourdine.accounting import (
    SOURCE_ORDERS,
    Conversion,
    Renyi,
    ZeroConcentrated,
    fixed_size,
    group,
    known,
    parallel,
    poisson,
    together,
)
from sourdine.accounting.rdp import accountant as rdp_accountant
from sourdine.accounting.rdp.moments import log_moments
from sourdine.accounting.rdp.sampled_gaussian import log_moments as sampled_gaussian
from sourdine.accounting.subsampling.fixed_size import FixedSizeLaw
from sourdine.accounting.subsampling.poisson import PoissonAdd, PoissonRemove
from sourdine.accounting.zcdp import RhoCost
from sourdine.core.distance import Distance, Neighbours
from sourdine.core.distributions import (
    AtomLaw,
    DiscreteGaussianLaw,
    GaussianLaw,
    GeometricLaw,
    LossDistribution,
    RhoLaw,
    pure_law,
)
from sourdine.core.errors import InvalidParameter
from sourdine.core.loss import BoundedRangeLaw, PrivacyLoss
from sourdine.mechanisms import Gaussian
from tests.errors import refusal_of

ADD_REMOVE = Neighbours.ADD_REMOVE
ORDERS = np.array([1.01, 1.3, 2.0, 2.5, 5.0, 17.3, 64.0])


def gaussian(mu: float, relation: Neighbours = ADD_REMOVE) -> PrivacyLoss:
    return PrivacyLoss.symmetric(GaussianLaw(mu), neighbours=relation)


def sampled_moment(mu: float, rate: float, order: float) -> mp.mpf:
    """log E[(1 - q + q e^{mu z - mu^2/2})^a] by mp."""
    with mp.workdps(30):
        m, q, a = mp.mpf(mu), mp.mpf(rate), mp.mpf(order)
        inside = lambda z: (1 - q + q * mp.exp(m * z - m * m / 2)) ** a * mp.npdf(z)
        ends = mp.linspace(-12, a * m + 12, max(8, int(a * m / 5)))
        return mp.log(mp.quad(inside, ends, method="gauss-legendre"))


@pytest.mark.parametrize(("mu", "rate"), [(1.0, 64 / 60000), (0.2, 0.1), (2.0, 0.01), (1.0, 0.999)])
@pytest.mark.parametrize("order", [1.01, 2.0, 5.3, 20.7])
def test_the_sampled_gaussian_against_high_precision(mu: float, rate: float, order: float) -> None:
    true = float(sampled_moment(mu, rate, order))
    found = float(sampled_gaussian(mu, rate, np.array([order]))[0])
    assert true <= found <= true * (1 + 1e-9) + 1e-13


@pytest.mark.parametrize("order", [64.25])
def test_high_orders_of_the_sampled_gaussian(order: float) -> None:
    """A chord between whole orders is above, and hardly."""
    true, found = (
        float(sampled_moment(1.0, 0.01, order)),
        float(sampled_gaussian(1.0, 0.01, np.array([order]))[0]),
    )
    assert true * (1 - 1e-12) <= found <= true * (1 + 1e-4)


def exact_moments(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    return np.array([float(logsumexp((a - 1) * np.log(p / q), b=p)) for a in ORDERS])


def test_atoms_are_summed() -> None:
    p, q = np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.3, 0.5])
    found = log_moments(AtomLaw.between(p, q), ORDERS)
    assert found == pytest.approx(exact_moments(p, q), rel=1e-10)
    assert np.all(found >= exact_moments(p, q))


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 6.0])
def test_randomized_response_in_closed_form(epsilon: float) -> None:
    """As in Mironov 2017."""
    p = 1 / (1 + math.exp(-epsilon))
    true = [math.log(p**a * (1 - p) ** (1 - a) + (1 - p) ** a * p ** (1 - a)) for a in ORDERS]
    assert log_moments(pure_law(epsilon), ORDERS) == pytest.approx(true, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(("units", "scale"), [(1, 1.0), (3, 5.0), (2, 0.3)])
def test_any_bounded_law_goes_by_chords(units: int, scale: float) -> None:
    y = np.arange(-2000, 2001)
    p, q = np.exp(-np.abs(y) / scale), np.exp(-np.abs(y - units) / scale)
    keep = q > 1e-280
    true = exact_moments((p / p.sum())[keep], (q / q.sum())[keep])
    found = log_moments(GeometricLaw(units, scale), ORDERS)
    assert np.all(found >= true - 1e-12)
    assert found == pytest.approx(true, rel=1e-4)


def test_a_law_of_bounded_range_stays_below_its_rho_and_above_its_mean() -> None:
    """Its moments are those of the worst law, and each mechanism's are below epsilon^2/8 a (a-1)."""
    found = log_moments(BoundedRangeLaw(1.0), ORDERS)
    assert np.all(found > 0)
    loss = PrivacyLoss.symmetric(BoundedRangeLaw(1.0), neighbours=ADD_REMOVE, epsilon=1, rho=Fraction(1, 8))
    cost = Renyi(orders=tuple(ORDERS)).lift(loss)
    assert np.all(cost.remove <= ORDERS * (ORDERS - 1) / 8 * (1 + 1e-12))


@pytest.mark.parametrize("law", [GaussianLaw(0.7), RhoLaw(0.245), DiscreteGaussianLaw(7, 100.0)])
def test_concentrated_laws_are_lines(law: LossDistribution) -> None:
    assert log_moments(law, ORDERS) == pytest.approx(ORDERS * (ORDERS - 1) * 0.245, rel=1e-12)


def test_the_discrete_gaussian_is_covered() -> None:
    y = np.arange(-400, 401)
    p, q = np.exp(-(y**2) / 18.0), np.exp(-((y - 2) ** 2) / 18.0)
    keep = q > 1e-250
    true = exact_moments((p / p.sum())[keep], (q / q.sum())[keep])
    found = log_moments(DiscreteGaussianLaw(2, 9.0), ORDERS)
    assert np.all(found[:5] >= true[:5] * (1 - 1e-12))
    assert found[:5] == pytest.approx(true[:5], rel=1e-6)


@pytest.mark.parametrize("rate", [0.01, 0.4])
@pytest.mark.parametrize("kind", [PoissonRemove, PoissonAdd])
def test_sampling_a_bounded_law(rate: float, kind: type) -> None:
    y = np.arange(-700, 701)
    p, q = np.exp(-np.abs(y) / 2.0), np.exp(-np.abs(y - 3) / 2.0)
    p, q = p / p.sum(), q / q.sum()
    if kind is PoissonRemove:
        first, second = (1 - rate) * q + rate * p, q
    else:
        first, second = p, (1 - rate) * p + rate * q
    keep = second > 1e-140
    true = exact_moments(first[keep], second[keep])
    found = log_moments(kind(GeometricLaw(3, 2.0), rate), ORDERS)
    assert np.all(found >= true - 1e-12)
    assert found == pytest.approx(true, rel=1e-3)


@pytest.mark.parametrize("rate", [0.001, 0.2])
def test_sampling_an_unbounded_law_goes_by_whole_orders(rate: float) -> None:
    """For a Gaussian in disguise: equal at whole orders, a chord between."""
    plain = sampled_gaussian(0.7, rate, ORDERS)
    found = log_moments(PoissonRemove(RhoLaw(0.245), rate), ORDERS)
    whole = np.floor(ORDERS) == ORDERS
    assert found[whole] == pytest.approx(plain[whole], rel=1e-8)
    assert np.all(found >= plain - 1e-13)


@pytest.mark.parametrize("rate", [0.01, 0.3])
def test_adding_costs_no_more_than_removing(rate: float) -> None:
    """Mironov, Talwar, Zhang 2019, seen on a grid that knows nothing of it."""
    generic = log_moments.dispatch(LossDistribution)(PoissonAdd(GaussianLaw(1.0), rate), ORDERS)
    assert np.all(generic <= sampled_gaussian(1.0, rate, ORDERS) * (1 + 1e-4) + 1e-10)


@pytest.mark.parametrize("size", [1, 30])
@pytest.mark.parametrize("order", [1.3, 2.0, 5.0, 17.3])
def test_fixed_size_against_integration(size: int, order: float) -> None:
    """The moment of the law is a (a-1) times an integral over its profile."""
    law = fixed_size(gaussian(0.5, Neighbours.REPLACE), size, size=100).remove
    x = np.exp(np.concatenate([np.linspace(-40, -2, 20001), np.linspace(-2, 12, 200001)]))
    excess = law.profile(np.log(x)) - np.maximum(1 - x, 0)
    true = math.log1p(order * (order - 1) * float(np.trapezoid(x ** (order - 2) * excess, x)))
    found = float(log_moments(law, np.array([order]))[0])
    assert true * (1 - 1e-5) <= found <= true * (1 + 2e-3)


def fixed_size_moment(profile: Callable[[mp.mpf], mp.mpf], rate: float, order: float) -> float:
    """log of 1 + a (a-1) times the integral of x^{a-2} (delta(x) - (1-x)+), from the profile of one use.

    Above x = 1 the pair is (1-q) Q + q P against Q, below it is P against (1-q) P + q Q.
    """

    def excess(x: mp.mpf) -> mp.mpf:
        if x >= 1:
            return rate * profile((x - 1 + rate) / rate)
        rest = 1 - x * (1 - rate)
        return rest * profile(x * rate / rest) - (1 - x)

    places = [0, 0.2, 0.5, 0.8, 0.95, 1, 1.05, 1.3, 2, 4, 16, 100, 10**4, 10**8]
    whole = mp.quad(lambda x: x ** (order - 2) * excess(x), places)
    return float(mp.log1p(order * (order - 1) * whole))


@pytest.mark.parametrize("rate", [0.01, pytest.param(0.3, marks=pytest.mark.slow), 0.9])
@pytest.mark.parametrize("order", [1.3, pytest.param(2.0, marks=pytest.mark.slow), 5.0])
def test_fixed_size_covers_mechanisms_known_by_their_rho(rate: float, order: float) -> None:
    """Gaussian noise, and randomized responses whose rho is no more than epsilon^2/2."""
    rho = 0.2
    mu, epsilon = math.sqrt(2 * rho), math.sqrt(2 * rho)

    def gaussian_profile(x: mp.mpf) -> mp.mpf:
        if x == 0:
            return mp.mpf(1)
        at = mp.log(x) / mu
        return mp.ncdf(mu / 2 - at) - x * mp.ncdf(-mu / 2 - at)

    def coin_profile(x: mp.mpf) -> mp.mpf:
        likely = 1 / (1 + mp.exp(-epsilon))
        return max(likely - x * (1 - likely), 0) + max(1 - likely - x * likely, 0)

    found = float(log_moments(FixedSizeLaw(RhoLaw(rho), rate), np.array([order]))[0])
    for profile in (gaussian_profile, coin_profile):
        assert fixed_size_moment(profile, rate, order) <= found * (1 + 1e-9)
    own = log_moments(FixedSizeLaw(GaussianLaw(mu), rate), np.array([order]))
    assert float(own[0]) == pytest.approx(fixed_size_moment(gaussian_profile, rate, order), rel=3e-3)


def test_what_tells_everything_has_no_moment() -> None:
    assert np.all(np.isinf(log_moments(known(1, 1e-9).remove, ORDERS)))


def test_the_worst_and_the_sum_of_laws() -> None:
    first, second = PrivacyLoss.pure(Fraction(1)), gaussian(0.5)
    one, other = log_moments(first.remove, ORDERS), log_moments(second.remove, ORDERS)
    assert log_moments(parallel([first, second]).remove, ORDERS) == pytest.approx(np.maximum(one, other))
    assert log_moments(together([(first, 2), (second, 3)]).remove, ORDERS) == pytest.approx(
        2 * one + 3 * other
    )


def seed_run(accountant: Renyi) -> tuple[float, float]:
    cost = accountant.repeat(accountant.lift(poisson(gaussian(1.0), Fraction(64, 60000))), 14070)
    return accountant.epsilon(cost, 1e-5).upper, accountant.order(cost, 1e-5)


def test_the_source_documents_value() -> None:
    """15 epochs of 60,000 examples in batches of 64 at noise 1: printed as 1.17 at order 13."""
    epsilon, order = seed_run(Renyi(orders=SOURCE_ORDERS, conversion=Conversion.MIRONOV))
    assert (round(epsilon, 2), order) == (1.17, 13.0)
    assert len(SOURCE_ORDERS) == 151


def test_the_tight_conversion_of_the_same_run() -> None:
    assert seed_run(Renyi(orders=range(2, 65)))[0] == pytest.approx(0.8725, abs=5e-5)
    epsilon, order = seed_run(Renyi())
    assert epsilon == pytest.approx(0.8681, abs=5e-5)  # fractional orders by quadrature do better
    with mp.workdps(30):
        r = 14070 * sampled_moment(1.0, 64 / 60000, order) / (order - 1)
        true = r + mp.log1p(-1 / mp.mpf(order)) - mp.log(order * mp.mpf(1e-5)) / (order - 1)
    assert float(true) <= epsilon <= float(true) * (1 + 1e-9)


def test_the_hard_run() -> None:
    """Peers say 18.02."""
    loss = poisson(gaussian(1 / 0.8), Fraction(4096, 10**6))
    assert Renyi().epsilon(Renyi().repeat(Renyi().lift(loss), 100_000), 1e-8).upper == pytest.approx(
        18.02, abs=0.01
    )


def test_replacing_one_is_not_adding_one() -> None:
    """A peer gave 4.73 for replacing in Gaussian noise of 1, where the truth is 9.997."""
    loss = Gaussian(sigma=1).loss(Distance.l2(2, coordinates=1, neighbours=Neighbours.REPLACE))
    assert Renyi().epsilon(Renyi().lift(loss), 1e-5).upper > 9.99


@settings(max_examples=10)
@given(st.floats(0.1, 3), st.floats(0.1, 3), st.floats(-8, -2))
def test_dense_orders_are_dense_enough(mu: float, factor: float, log_delta: float) -> None:
    """A Gaussian's best order is anywhere; the dense grid loses less than 2e-3."""
    delta, rho = 10**log_delta, (mu * factor) ** 2 / 2
    best = ZeroConcentrated().epsilon(RhoCost(ADD_REMOVE, Fraction(rho)), delta).upper
    found = Renyi().epsilon(Renyi().lift(gaussian(mu * factor)), delta).upper
    assert best * (1 - 1e-9) <= found <= best * (1 + 2e-3)


def test_the_least_of_law_rho_and_epsilon_counts() -> None:
    accountant = Renyi(orders=(1.5, 8.0, 200.0))
    loss = PrivacyLoss.symmetric(
        GaussianLaw(3.0), neighbours=ADD_REMOVE, rho=Fraction(2), epsilon=Fraction(5)
    )
    assert np.all(accountant.curve(accountant.lift(loss)) <= np.array([3.0, 5.0, 5.0]) + 1e-9)


def test_directions_are_kept_apart_unless_units_are_replaced() -> None:
    p, q = np.array([0.7, 0.2, 0.1]), np.array([0.1, 0.1, 0.8])
    remove, add = AtomLaw.between(p, q), AtomLaw.between(q, p)
    one = Renyi().lift(PrivacyLoss(remove=remove, add=add, neighbours=ADD_REMOVE))
    assert not np.array_equal(one.remove, one.add)
    other = Renyi().lift(PrivacyLoss(remove=remove, add=add, neighbours=Neighbours.REPLACE))
    assert np.array_equal(other.remove, np.maximum(one.remove, one.add))
    assert np.array_equal(other.remove, other.add)


def test_a_group_under_sampling_keeps_no_moments_it_cannot_prove() -> None:
    loss = group(poisson(gaussian(1.0), 0.01), 3)
    assert np.all(np.isinf(Renyi().lift(loss).remove))


@pytest.mark.parametrize("orders", [(), (1.0,), (0.5, 2), (math.inf,), ("two",)])
def test_bad_orders_are_refused(orders: tuple[float, ...]) -> None:
    with refusal_of("orders", "Renyi"):
        Renyi(orders=orders)


def test_costs_at_other_orders_do_not_join() -> None:
    first, second = Renyi(orders=(2.0,)), Renyi(orders=(2.0, 3.0))
    with pytest.raises(InvalidParameter, match="be the same for both costs"):
        first.join(first.lift(gaussian(1.0)), second.lift(gaussian(1.0)))


def test_a_moment_that_is_no_number_promises_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rdp_accountant, "log_moments", lambda law, orders: np.full(len(orders), np.nan))
    accountant = Renyi()
    assert accountant.epsilon(accountant.lift(gaussian(1.0)), 1e-5).upper == math.inf
