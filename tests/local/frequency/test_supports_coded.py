"""What local hashing, Hadamard response and projective geometry share, by enumeration of every report."""

import itertools
import json
import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any

import mpmath
import numpy as np
import pytest

from sourdine.core.distance import Distance
from sourdine.core.distributions import AtomLaw
from sourdine.core.errors import InvalidParameter
from sourdine.core.mechanism import Mechanism
from sourdine.local import GRR, OLH, FrequencyOracle, HadamardResponse, ProjectiveGeometry
from sourdine.local.frequency.supports import CodedOracle, TellingOracle
from sourdine.testing import SeededBits
from tests import contract
from tests.laws import law_of
from tests.statistics import ALARM, fit

KINDS: list[Callable[..., Any]] = [*contract.oracles(CodedOracle)]
ORACLES = [
    OLH(epsilon=Fraction(1, 2), categories=5, groups=2),
    OLH(epsilon=1, categories=9, groups=3),
    OLH(epsilon=1, categories=6, groups=4),
    OLH(epsilon=2, categories=7, groups=8),
    OLH(epsilon=2, categories=11, groups=9),
    ProjectiveGeometry(epsilon=Fraction(1, 2), categories=15, order=2),
    ProjectiveGeometry(epsilon=1, categories=4, order=3),
    ProjectiveGeometry(epsilon=1, categories=21, order=4),
    ProjectiveGeometry(epsilon=1, categories=18, order=5),
    ProjectiveGeometry(epsilon=2, categories=9, order=8),
    ProjectiveGeometry(epsilon=3, categories=12, order=9),
    HadamardResponse(epsilon=Fraction(1, 2), categories=2, blocks=1),
    HadamardResponse(epsilon=1, categories=7, blocks=1),
    HadamardResponse(epsilon=2, categories=8, blocks=3),
    HadamardResponse(epsilon=3, categories=5, blocks=5),
    *(OLH(epsilon=1, categories=k, groups=g, trivial=False) for k, g in ((2, 2), (7, 3), (4, 4), (11, 9))),
    *(HadamardResponse(epsilon=e, categories=k, blocks=1, trivial=False) for e, k in ((1, 2), (2, 7))),
    HadamardResponse(epsilon=2, categories=8, blocks=3, trivial=False),
    *(kind(epsilon=1, categories=6) for kind in KINDS),  # every other one too
]
every_oracle = pytest.mark.parametrize("oracle", ORACLES, ids=str)


@cache
def laws(oracle: CodedOracle) -> np.ndarray:
    """The probability of each report, a row a category."""
    rows = [law_of(oracle, x) for x in range(oracle.categories)]
    return np.array([[row[code] for code in range(oracle.codes)] for row in rows])


@cache
def estimates(oracle: CodedOracle) -> np.ndarray:
    """What is estimated from each report alone, a row a report."""
    return np.array([oracle.estimate(oracle.tally(np.array([code]))).value for code in range(oracle.codes)])


@every_oracle
def test_no_report_tells_more_than_epsilon_and_some_tell_all_of_it(oracle: CodedOracle) -> None:
    law = laws(oracle)
    assert law.shape == (oracle.categories, oracle.codes)
    worst = max((one / other).max() for one, other in itertools.permutations(law, 2))
    assert worst == pytest.approx(
        float(mpmath.exp(mpmath.mpf(oracle.epsilon.numerator) / oracle.epsilon.denominator))
    )


@every_oracle
def test_the_loss_is_that_of_the_worst_pair(oracle: CodedOracle) -> None:
    law = laws(oracle)
    loss = oracle.loss(Distance.hamming())
    for epsilon in (0.0, 0.2, float(oracle.epsilon) / 2):
        factor = math.exp(epsilon)
        worst = max(np.maximum(p - factor * q, 0).sum() for p, q in itertools.permutations(law, 2))
        assert float(loss.profile(epsilon)) == pytest.approx(worst)
    assert loss.epsilon == oracle.epsilon
    assert oracle.loss(Distance.hamming(3)).epsilon == 3 * oracle.epsilon


@every_oracle
def test_estimates_are_unbiased_with_the_stated_variance(oracle: CodedOracle) -> None:
    law, values = laws(oracle), estimates(oracle)
    assert law @ values == pytest.approx(np.eye(oracle.categories), abs=1e-12)
    variance = law @ values**2 - np.eye(oracle.categories)
    for truth, x in itertools.product(range(oracle.categories), repeat=2):
        share = float(truth == x)
        if isinstance(oracle, HadamardResponse):
            stated = oracle.variance(share, 1, mass=truth % oracle.blocks == x % oracle.blocks)
        else:
            stated = oracle.variance(share, 1)
        assert variance[truth, x] == pytest.approx(float(stated))
    if not isinstance(oracle, HadamardResponse) or oracle.categories % oracle.blocks == 0:
        together = variance.mean(axis=1)  # over all categories, whatever the truth
        assert together == pytest.approx(float(oracle.variance(1 / oracle.categories, 1)))


@every_oracle
def test_estimates_of_many_reports_are_the_mean_of_one_each(oracle: CodedOracle) -> None:
    codes = np.random.default_rng(1).integers(0, oracle.codes, 40)
    whole = oracle.estimate(oracle.tally(codes[:15]) + oracle.tally(codes[15:]))
    assert whole.value == pytest.approx(estimates(oracle)[codes].mean(axis=0))
    assert whole.reports == 40


@every_oracle
def test_supports_count_the_reports_that_a_category_favours(oracle: CodedOracle) -> None:
    law = laws(oracle)
    counts = oracle.tally(np.random.default_rng(2).integers(0, oracle.codes, 1000))
    favoured = law > (law.max() + law.min()) / 2
    assert oracle.supports(counts).tolist() == (favoured @ counts.sums).tolist()


@every_oracle
def test_samples_of_every_category_follow_its_law(oracle: CodedOracle) -> None:
    for x in range(oracle.categories):
        samples = oracle.sample(np.full(20_000, x), SeededBits(x))
        true, other = (dict(enumerate(laws(oracle)[each])) for each in (x, x - 1))
        assert fit(samples, true) > ALARM / 100
        assert fit(samples, other) < ALARM


@every_oracle
def test_reports_survive_packing_and_oracles_json(oracle: CodedOracle) -> None:
    codes = np.arange(oracle.codes)
    rows = oracle.pack(codes)
    assert rows.shape == (oracle.codes, oracle.width)
    assert np.array_equal(oracle.unpack(rows), codes)
    assert Mechanism.from_json(json.loads(json.dumps(oracle.to_json()))) == oracle
    with pytest.raises(InvalidParameter, match="Report 2 is none"):
        oracle.tally(np.array([0, oracle.codes]))


@every_oracle
def test_any_value_gives_a_report_of_the_same_kind(oracle: CodedOracle) -> None:
    values: list[Any] = [0, -1, 10**30, -(2**70), True, oracle.categories]
    for each in values:
        report = oracle.sample(each, SeededBits(3))
        assert report.shape == ()
        assert report.dtype == np.int64
        assert 0 <= report < oracle.codes
    last = oracle.sample(np.full(50, oracle.categories - 1), SeededBits(4))
    assert np.array_equal(oracle.sample(np.full(50, 2**62), SeededBits(4)), last)
    assert oracle.sample(np.zeros((0, 3), np.int64)).shape == (0, 3)
    assert oracle.sample(np.zeros((2, 3), np.int64)).shape == (2, 3)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("epsilon", [Fraction(1, 1 << 20), Fraction(1, 3), 30, 512])
def test_extreme_parameters_work(kind: Callable[..., CodedOracle], epsilon: Fraction) -> None:
    for categories in (2, 3, 40 if epsilon > 1 else 700):
        oracle = kind(epsilon=epsilon, categories=categories)
        values = np.arange(2000) % categories
        found = oracle.estimate(oracle.tally(oracle.sample(values, SeededBits(5))))
        assert np.isfinite(found.value).all()
        assert (found.variance >= 0).all()
        assert (found.lower <= found.upper).all()
        assert math.isfinite(oracle.error(0.95, 1000))
        if epsilon == 512:
            truth = np.bincount(values, minlength=categories) / 2000
            assert np.abs(found.value - truth).max() < 0.1


@pytest.mark.parametrize("kind", KINDS)
def test_bad_parameters_are_refused(kind: Callable[..., CodedOracle]) -> None:
    for bad in ({"epsilon": 0}, {"epsilon": 513}, {"categories": 1}, {"categories": 2.5}):
        with pytest.raises(InvalidParameter, match=f"'{next(iter(bad))}' of {kind.__name__}"):
            kind(**{"epsilon": 1, "categories": 5, **bad})


def test_counts_of_another_oracle_are_refused() -> None:
    oracle = ProjectiveGeometry(epsilon=1, categories=9)
    other = replace(oracle, epsilon=Fraction(2))
    with pytest.raises(InvalidParameter, match="other parameters"):
        oracle.estimate(other.tally(other.sample([1, 2])))


def spread(oracle: CodedOracle | GRR, people: int, rounds: int) -> tuple[float, float]:
    """The mean squared error over its formula, and how often intervals hold the truth."""
    k = oracle.categories
    ranks = np.arange(1, k + 1)
    truth = np.floor(people * (1 / ranks) / (1 / ranks).sum()).astype(np.int64)
    truth[0] += people - truth.sum()
    values, shares = np.repeat(np.arange(k), truth), truth / people
    squares, held = np.zeros(k), 0
    for i in range(rounds):
        found = oracle.estimate(oracle.tally(oracle.sample(values, SeededBits(i))))
        squares += (found.value - shares) ** 2
        held += int(((found.lower <= shares) & (shares <= found.upper)).sum())
    formula = oracle.variance(shares, people)
    if isinstance(oracle, HadamardResponse):
        masses = np.bincount(np.arange(k) % oracle.blocks, shares)
        formula = oracle.variance(shares, people, masses[np.arange(k) % oracle.blocks])
    return float((squares / rounds / formula).mean()), held / (k * rounds)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("epsilon", [Fraction(1, 2), 1, 4])
@pytest.mark.parametrize(("categories", "people", "rounds"), [(16, 4000, 5000), (1000, 20_000, 100)])
def test_errors_are_as_large_as_stated(
    kind: Callable[..., CodedOracle], epsilon: Fraction, categories: int, people: int, rounds: int
) -> None:
    oracle = kind(epsilon=epsilon, categories=categories)
    ratio, coverage = spread(oracle, people, rounds)
    assert 0.97 < ratio < 1.03
    shared = isinstance(oracle, HadamardResponse) and 1 < oracle.blocks < categories
    assert 0.945 < coverage < (0.97 if shared else 0.96)  # who else is in a shared block is bounded too


@pytest.mark.parametrize("epsilon", [1, Fraction(7, 3), 512])
@pytest.mark.parametrize("kind", contract.oracles(TellingOracle))
def test_no_mass_of_a_loss_is_negative(kind: type[FrequencyOracle], epsilon: Fraction) -> None:
    for categories in (2, 3):
        law = kind(epsilon=epsilon, categories=categories).loss(Distance.hamming()).remove  # type: ignore[call-arg]
        assert isinstance(law, AtomLaw)
        assert min(law.atoms[1].p.min(), law.atoms[1].q.min()) >= 0
        assert law.atoms[1].p.sum() == pytest.approx(1, abs=1e-15)
