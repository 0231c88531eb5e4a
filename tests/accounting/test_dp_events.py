import importlib.util
import math
import sys
from collections import namedtuple
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtr

from sourdine.accounting import PLD, DisjointPart, FixedSize, Poisson, Spend, TruncatedPoisson, plan_cost
from sourdine.core.distance import Distance, Neighbours
from sourdine.core.distributions import GeometricLaw
from sourdine.core.errors import InvalidParameter, UnsupportedLoss
from sourdine.mechanisms import Gaussian, Geometric, KaryResponse, Laplace
from tests.accounting.profiles import hockey_stick, integrated, normal_mixture

installed = pytest.mark.skipif(
    importlib.util.find_spec("dp_accounting") is None, reason="dp_accounting is not installed"
)


def event(name: str, **fields: Any) -> Any:
    """Something that looks like an event, by its name and fields."""
    return namedtuple(name, list(fields))(**fields) if fields else type(name, (), {})()


def mixture(**fields: Any) -> Any:
    return event("MixtureOfGaussiansDpEvent", standard_deviation=2.0, **fields)


GAUSSIAN = event("GaussianDpEvent", noise_multiplier=2.0)
EPSILONS = np.linspace(0, 3, 31)


def profile(spends: tuple[Spend, ...]) -> np.ndarray:
    (spend,) = spends
    return np.asarray(spend.one_loss().profile(EPSILONS))


def test_gaussian_noise_is_the_continuous_one() -> None:
    for neighbours, mu in (
        (Neighbours.ADD_REMOVE, 0.5),
        (Neighbours.ZERO_OUT, 0.5),
        (Neighbours.REPLACE, 1.0),
    ):
        found = profile(Spend.from_dp_event(GAUSSIAN, neighbours))
        true = ndtr(mu / 2 - EPSILONS / mu) - np.exp(EPSILONS) * ndtr(-mu / 2 - EPSILONS / mu)
        assert np.allclose(found, true, rtol=1e-9)


def test_laplace_noise_is_covered() -> None:
    """delta of continuous Laplace noise is 1 - e^{(epsilon - 1/s)/2}."""
    found = profile(Spend.from_dp_event(event("LaplaceDpEvent", noise_multiplier=0.5)))
    true = np.maximum(0, 1 - np.exp((EPSILONS - 2) / 2))
    assert np.all(found >= true - 1e-12)
    assert found[-1] == 0
    (spend,) = Spend.from_dp_event(event("LaplaceDpEvent", noise_multiplier=0.5), Neighbours.REPLACE)
    assert spend.one_loss().epsilon == 4


def test_discrete_laplace_noise_has_its_epsilon() -> None:
    (spend,) = Spend.from_dp_event(event("DiscreteLaplaceDpEvent", noise_parameter=0.25, sensitivity=3))
    assert spend.one_loss().epsilon == Fraction(3, 4)


def test_randomized_response_by_its_definition() -> None:
    p, k = 0.25, 5
    likely, other = 1 - p + p / k, p / k
    true = np.maximum(0, likely - np.exp(EPSILONS) * other) + np.maximum(0, other - np.exp(EPSILONS) * likely)
    true += (k - 2) * np.maximum(0, other - np.exp(EPSILONS) * other)
    made = event("RandomizedResponseDpEvent", noise_parameter=p, num_buckets=k)
    assert np.allclose(profile(Spend.from_dp_event(made, Neighbours.REPLACE)), true, atol=1e-12)


@pytest.mark.parametrize(
    ("epsilon", "delta"), [(1.0, 0.0), (1.0, 1e-5), (0.0, 0.25), (1e-9, 0.0), (100.0, 1e-15)]
)
def test_one_epsilon_and_delta_are_covered(epsilon: float, delta: float) -> None:
    (spend,) = Spend.from_dp_event(event("EpsilonDeltaDpEvent", epsilon=epsilon, delta=delta))
    loss = spend.one_loss()
    likely = (1 - delta) / (1 + math.exp(-epsilon))
    dominating = delta + np.maximum(0, likely - np.exp(EPSILONS) * (1 - delta - likely))
    assert np.all(loss.profile(EPSILONS) >= dominating * (1 - 1e-12) - 1e-15)
    assert loss.delta == Fraction(delta)
    assert float(loss.epsilon) == pytest.approx(epsilon, rel=1e-9)


@pytest.mark.parametrize("rho", [1e-30, 1e-19, 0.01, 0.5, 3.0])
def test_of_a_rho_nothing_else_is_used(rho: float) -> None:
    (spend,) = Spend.from_dp_event(event("ZCDpEvent", rho=rho, xi=0.0))
    loss = spend.one_loss()
    assert Fraction(rho) <= Fraction(loss.rho) <= Fraction(rho) + Fraction(1, 2**60)
    assert type(loss.remove).__name__ == "RhoLaw"


def normal_delta(mu: float) -> np.ndarray:
    return np.asarray(ndtr(mu / 2 - EPSILONS / mu) - np.exp(EPSILONS) * ndtr(-mu / 2 - EPSILONS / mu))


@pytest.mark.parametrize(("steps", "levels"), [(1, 1), (2, 2), (7, 3), ([8, 3], 4)])
def test_a_tree_costs_one_node_of_each_level(steps: int | list[int], levels: int) -> None:
    made = event("SingleEpochTreeAggregationDpEvent", noise_multiplier=3.0, step_counts=steps)
    assert np.allclose(profile(Spend.from_dp_event(made)), normal_delta(math.sqrt(levels) / 3), rtol=1e-9)
    twice = Spend.from_dp_event(made, Neighbours.REPLACE)
    assert np.allclose(profile(twice), normal_delta(2 * math.sqrt(levels) / 3), rtol=1e-9)


@pytest.mark.parametrize(
    ("sizes", "chances"), [((0.0, 1.0), (0.75, 0.25)), ((0.0, 0.5, 1.0), (0.25, 0.25, 0.5)), ((1.0,), (1.0,))]
)
def test_a_mixture_of_gaussians_is_covered(sizes: tuple[float, ...], chances: tuple[float, ...]) -> None:
    """With a deviation of 2, by integrals; two parts of which one does not move are exact."""
    spends = Spend.from_dp_event(mixture(sensitivities=sizes, sampling_probs=chances))
    p = normal_mixture(list(chances), [size / 2 for size in sizes])
    q = normal_mixture([1.0], [0.0])
    true = [max(integrated(p, q, epsilon), integrated(q, p, epsilon)) for epsilon in EPSILONS[:8]]
    found = profile(spends)[:8]
    assert np.all(found >= np.array(true) - 1e-9)
    if len(sizes) < 3:
        assert np.allclose(found, true, atol=1e-7)


def test_discrete_gaussian_noise_by_dimension() -> None:
    one, many = (
        Spend.from_dp_event(event("DiscreteGaussianDpEvent", sigma=3.0, sensitivity=2.0, dimension=each))
        for each in (1, None)
    )
    assert one[0].one_loss().rho == many[0].one_loss().rho == Fraction(2, 9)
    y = np.arange(-80, 81)
    mass = np.exp(-(y**2) / 18)
    mass /= mass.sum()
    true = [hockey_stick(mass, np.roll(mass, 2), epsilon) for epsilon in EPSILONS]
    assert np.allclose(profile(one), true, atol=1e-12)
    assert np.all(profile(many) >= profile(one) - 1e-12)


def test_choices_and_the_best_of_runs() -> None:
    (choice,) = Spend.from_dp_event(event("ExponentialMechanismDpEvent", epsilon=0.5))
    assert (choice.one_loss().epsilon, choice.one_loss().rho) == (Fraction(1, 2), Fraction(1, 32))
    (flip,) = Spend.from_dp_event(event("PermuteAndFlipDpEvent", epsilon=0.5))
    assert np.all(profile((flip,)) >= np.maximum(0, 1 - np.exp((EPSILONS - 0.5) / 2)) - 1e-12)
    response = event("EpsilonDeltaDpEvent", epsilon=0.5, delta=0.0)
    (best,) = Spend.from_dp_event(event("RepeatAndSelectDpEvent", event=response, mean=8.0, shape=1.0))
    assert best.one_loss().epsilon == Fraction(3, 2)


def test_truncated_batches() -> None:
    made = event(
        "TruncatedSubsampledGaussianDpEvent",
        dataset_size=100,
        sampling_probability=0.1,
        truncated_batch_size=30,
        noise_multiplier=2.0,
    )
    (spend,) = Spend.from_dp_event(made)
    assert spend.sampling == TruncatedPoisson(batch_size=10, size=100, max_batch_size=30)
    with pytest.raises(UnsupportedLoss):
        Spend.from_dp_event(made, Neighbours.REPLACE)


PRESENT = [
    event("NoOpDpEvent"),
    GAUSSIAN,
    event("DiscreteGaussianDpEvent", sigma=3.0, sensitivity=2.0, dimension=1),
    event("DiscreteLaplaceDpEvent", noise_parameter=0.25, sensitivity=1),
    event("ExponentialMechanismDpEvent", epsilon=0.5),
    event("EpsilonDeltaDpEvent", epsilon=0.5, delta=1e-5),
    event("SelfComposedDpEvent", event=GAUSSIAN, count=3),
    event("PoissonSampledDpEvent", sampling_probability=0.25, event=GAUSSIAN),
    event("RepeatAndSelectDpEvent", event=GAUSSIAN, mean=4.0, shape=1.0),
    event(
        "TruncatedSubsampledGaussianDpEvent",
        dataset_size=128,
        sampling_probability=0.125,
        truncated_batch_size=30,
        noise_multiplier=2.0,
    ),
]


@pytest.mark.parametrize("made", PRESENT, ids=lambda made: type(made).__name__)
def test_there_and_back_in_the_present_version(made: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fields in the order of that package's newest classes, which no index has yet."""
    fields = {type(each).__name__: getattr(each, "_fields", ()) for each in PRESENT}
    classes = {name: namedtuple(name, fields[name]) for name in fields}
    monkeypatch.setitem(sys.modules, "dp_accounting", SimpleNamespace(dp_event=SimpleNamespace(**classes)))
    spends = Spend.from_dp_event(made)
    for spend in spends:
        back = spend.to_dp_event()
        (again,) = Spend.from_dp_event(back)
        assert type(back).__name__ == type(made).__name__
        assert (again.count, again.sampling) == (spend.count, spend.sampling)
        low, high = (np.asarray(each.one_loss().profile(EPSILONS)) for each in (spend, again))
        assert np.all(high >= low * (1 - 1e-9))
        assert np.allclose(high, low, rtol=1e-6)


def test_a_pure_epsilon_becomes_one_step_of_discrete_laplace(monkeypatch: pytest.MonkeyPatch) -> None:
    made = SimpleNamespace(DiscreteLaplaceDpEvent=namedtuple("DiscreteLaplaceDpEvent", ["a", "moved"]))
    monkeypatch.setitem(sys.modules, "dp_accounting", SimpleNamespace(dp_event=made))
    distance = Distance.hamming(neighbours=Neighbours.ADD_REMOVE)
    spend = Spend(mechanism=KaryResponse(epsilon=Fraction(1, 3), categories=2), distance=distance)
    back = spend.to_dp_event()
    assert back.moved == 1
    assert Fraction(1, 3) <= Fraction(back.a) < Fraction(1, 3) + Fraction(1, 10**15)


def test_composition_and_sampling() -> None:
    sampled = event("PoissonSampledDpEvent", sampling_probability=0.25, event=GAUSSIAN)
    many = event("SelfComposedDpEvent", event=sampled, count=100)
    both = event("ComposedDpEvent", events=[many, event("NoOpDpEvent"), GAUSSIAN])
    first, second = Spend.from_dp_event(both)
    assert (first.count, first.sampling, second.count) == (100, Poisson(sampling_rate=Fraction(1, 4)), 1)
    assert Spend.from_dp_event(event("NoOpDpEvent")) == ()
    assert Spend.from_dp_event(event("SelfComposedDpEvent", event=GAUSSIAN, count=0)) == ()
    assert Spend.from_dp_event(event("PoissonSampledDpEvent", sampling_probability=0, event=GAUSSIAN)) == ()
    fixed = event("SampledWithoutReplacementDpEvent", source_dataset_size=100, sample_size=10, event=GAUSSIAN)
    (one,) = Spend.from_dp_event(fixed, Neighbours.REPLACE)
    assert one.sampling == FixedSize(batch_size=10, size=100)
    assert one.distance.amount == 4
    with pytest.raises(UnsupportedLoss):
        Spend.from_dp_event(fixed)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (event("NonPrivateDpEvent"), "NonPrivateDpEvent is refused: nothing can pay"),
        (event("UnsupportedDpEvent"), "UnsupportedDpEvent is refused"),
        (
            event("SampledWithReplacementDpEvent", source_dataset_size=9, sample_size=3, event=GAUSSIAN),
            "SampledWithReplacementDpEvent is refused: of a record",
        ),
        (event("FutureDpEvent"), "FutureDpEvent is refused.*FinitePair"),
        (event("MixtureOfGaussiansDpEvent"), "sensitivities"),
        (mixture(sensitivities=(1.0, -1.0), sampling_probs=(0.5, 0.5)), "at least 0"),
        (mixture(sensitivities=(0.0, 1.0), sampling_probs=(0.5, 0.4)), "add up to 1"),
        (mixture(sensitivities=(0.0, 1.0), sampling_probs=(1.0,)), "one probability for each"),
        (event("RepeatAndSelectDpEvent", event=GAUSSIAN, mean=5.0, shape=0.0), "geometric"),
        (event("SingleEpochTreeAggregationDpEvent", noise_multiplier=1.0, step_counts=[]), "one tree"),
        (
            event(
                "TruncatedSubsampledGaussianDpEvent",
                dataset_size=100,
                sampling_probability=0.105,
                truncated_batch_size=30,
                noise_multiplier=1.0,
            ),
            "whole number over the size",
        ),
        ("GaussianDpEvent", "class str"),
        (event("GaussianDpEvent", noise_multiplier=0.0), "above 0"),
        (event("GaussianDpEvent", noise_multiplier=math.inf), "finite"),
        (event("GaussianDpEvent", sigma=1.0), "noise_multiplier"),
        (event("ZCDpEvent", rho=0.5, xi=0.1), "xi"),
        (event("RandomizedResponseDpEvent", noise_parameter=1.5, num_buckets=3), "at most 1"),
        (event("EpsilonDeltaDpEvent", epsilon=1.0, delta=1.0), "below 1"),
        (event("SelfComposedDpEvent", event=GAUSSIAN, count=-1), "count"),
        (event("ComposedDpEvent", events=3), "list of events"),
        (
            event(
                "PoissonSampledDpEvent",
                sampling_probability=0.1,
                event=event("SelfComposedDpEvent", event=GAUSSIAN, count=2),
            ),
            "one sample for each",
        ),
    ],
)
def test_what_is_not_covered_is_refused(wrong: object, words: str) -> None:
    with pytest.raises(InvalidParameter, match=words):
        Spend.from_dp_event(wrong)


def test_events_that_never_end_are_refused() -> None:
    deep = GAUSSIAN
    for _ in range(60):
        deep = event("SelfComposedDpEvent", event=deep, count=1)
    with pytest.raises(InvalidParameter, match="deep"):
        Spend.from_dp_event(deep)


@pytest.mark.skipif(importlib.util.find_spec("dp_accounting") is not None, reason="it is installed")
def test_without_the_package_no_event_is_made() -> None:
    with pytest.raises(InvalidParameter, match="Install dp-accounting"):
        Spend(mechanism=Laplace(scale=Fraction(2)), distance=Distance.l1(1)).to_dp_event()


@installed
def test_back_to_events_that_cover_the_spend() -> None:
    from dp_accounting import dp_event
    from dp_accounting.pld import PLDAccountant

    sampled = dp_event.PoissonSampledDpEvent(0.01, dp_event.GaussianDpEvent(1.0))
    for made in (
        dp_event.SelfComposedDpEvent(sampled, 500),
        dp_event.GaussianDpEvent(2.0),
        dp_event.DiscreteLaplaceDpEvent(0.25, 1),
    ):
        (spend,) = Spend.from_dp_event(made)
        assert spend.to_dp_event() == made
        ours = PLD().epsilon(plan_cost([spend], PLD()), 1e-5)
        theirs = PLDAccountant().compose(made).get_epsilon(1e-5)
        assert theirs <= ours.upper * 1.001
    discrete = Spend(mechanism=Gaussian(sigma=Fraction(3)), distance=Distance.l2(1), count=2)
    assert discrete.to_dp_event().count == 2
    assert (
        Fraction(1, 18) <= Fraction(discrete.to_dp_event().event.rho) < Fraction(1, 18) + Fraction(1, 10**15)
    )
    reals = Laplace(scale=Fraction(1, 2), granularity=Fraction(1, 64))
    scored = Spend(mechanism=reals, distance=Distance.l1(0.25, coordinates=1))
    assert isinstance(scored.to_dp_event(), dp_event.ZCDpEvent)


@pytest.mark.parametrize("coordinates", [None, 1, 3])
def test_back_from_numbers_that_move_together(
    coordinates: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One number that moves by 3 has a law of its own; several are known by their epsilon alone."""
    made = SimpleNamespace(DiscreteLaplaceDpEvent=namedtuple("DiscreteLaplaceDpEvent", ["a", "moved"]))
    monkeypatch.setitem(sys.modules, "dp_accounting", SimpleNamespace(dp_event=made))
    spend = Spend(mechanism=Laplace(scale=Fraction(2)), distance=Distance.l1(3, coordinates=coordinates))
    back = spend.to_dp_event()
    alone = GeometricLaw(back.moved, 1 / back.a)  # what such an event stands for: one number that moves
    assert np.all(alone.profile(EPSILONS) >= spend.one_loss().profile(EPSILONS) - 1e-12)
    assert back == ((0.5, 3) if coordinates == 1 else (1.5, 1))


@installed
def test_what_no_event_covers_is_refused() -> None:
    geometric = Spend(mechanism=Geometric(scale=Fraction(2)), distance=Distance.l1(1))
    for spend, words in (
        (
            Spend(mechanism=KaryResponse(epsilon=Fraction(1), categories=3), distance=Distance.hamming()),
            "replaced",
        ),
        (
            Spend(mechanism=geometric.mechanism, distance=Distance.l1(1), part=DisjointPart("sex", "f")),
            "parts",
        ),
    ):
        with pytest.raises(InvalidParameter, match=words):
            spend.to_dp_event()
