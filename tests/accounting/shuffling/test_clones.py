import math

import mpmath as mp
import numpy as np
import pytest
from scipy.stats import binom

from sourdine.accounting import shuffle_model, shuffle_model_bound
from sourdine.accounting.shuffling.clones import _clones, _profile, log_binomial
from sourdine.core.errors import InvalidParameter


def pair_delta(local: float, reports: int, epsilon: float) -> float:
    """The clones' pair, outcome by outcome (Feldman, McMillan, Talwar 2021)."""
    p, total = 1 / (1 + math.exp(-local)), 0.0
    for c in range(reports):
        weight = binom.pmf(c, reports - 1, math.exp(-local))
        if weight > 1e-17:
            b = binom.pmf(np.arange(-1, c + 2), c, 0.5)
            first, second = p * b[:-1] + (1 - p) * b[1:], (1 - p) * b[:-1] + p * b[1:]
            total += weight * np.maximum(first - math.exp(epsilon) * second, 0).sum()
    return float(total)


@pytest.mark.parametrize(
    ("local", "reports"), [(0.2, 50), (1.0, 100), (3.0, 400), (2.0, 1000), (5.0, 2), (1.0, 1)]
)
@pytest.mark.parametrize("delta", [1e-2, 1e-6])
def test_the_answer_is_where_the_pair_crosses_delta(local: float, reports: int, delta: float) -> None:
    epsilon = shuffle_model(local, reports, delta)
    assert pair_delta(local, reports, epsilon) <= delta * (1 + 1e-12)
    if epsilon < local:
        assert pair_delta(local, reports, epsilon * 0.999) > 0.99 * delta * (1 - 1e-3)


def test_a_million_reports() -> None:
    """The pair's exact value; the authors' program, which stops early, says .0502."""
    assert shuffle_model_bound(4, 10**6, 1e-6) == pytest.approx(0.2010, abs=5e-5)
    epsilon = shuffle_model(4, 10**6, 1e-6)
    assert epsilon == pytest.approx(0.0493, abs=5e-5)
    assert epsilon < 0.0502


def test_a_million_reports_outcome_by_outcome() -> None:
    epsilon, local = shuffle_model(4, 10**6, 1e-6), 4.0
    p, c = 1 / (1 + math.exp(-local)), np.arange(17_700, 19_000, 10)  # every tenth number of clones
    weights = binom.pmf(c, 10**6 - 1, math.exp(-local))
    x = c[:, None] // 2 + np.arange(-700, 700)
    b, before = binom.pmf(x, c[:, None], 0.5), binom.pmf(x - 1, c[:, None], 0.5)
    first, second = p * before + (1 - p) * b, (1 - p) * before + p * b
    deltas = np.maximum(first - math.exp(epsilon) * second, 0).sum(axis=1)
    assert (weights @ deltas) / weights.sum() == pytest.approx(1e-6, rel=1e-3)


def test_more_reports_hide_more_and_louder_ones_less() -> None:
    by_reports = [shuffle_model(2, n, 1e-6) for n in (10, 100, 10**4, 10**6)]
    assert by_reports == sorted(by_reports, reverse=True)
    by_local = [shuffle_model(e, 10**5, 1e-6) for e in (0.1, 0.5, 2, 5, 9)]
    assert by_local == sorted(by_local)
    by_delta = [shuffle_model(2, 10**5, d) for d in (1e-3, 1e-6, 1e-12)]
    assert by_delta == sorted(by_delta)


@pytest.mark.parametrize(
    ("local", "reports", "delta"), [(1.0, 1000, 0.0), (60.0, 10**6, 1e-6), (1.0, 1, 1e-300)]
)
def test_shuffling_never_costs_more(local: float, reports: int, delta: float) -> None:
    assert shuffle_model(local, reports, delta) == pytest.approx(local, abs=1e-6)
    assert shuffle_model_bound(local, reports, delta) == local


def test_ranges_of_clones_only_ever_add() -> None:
    """Where there are too many numbers of clones, a range counts as its least."""
    clones, weights, _ = _clones(10**9, math.exp(-1), 1e-8)
    assert len(clones) < 10_000
    assert weights.sum() == pytest.approx(1, abs=1e-6)
    few, light, _ = _clones(10**6, math.exp(-1), 1e-8)
    exact = _profile(0.004, 1.0, few, light)
    first = np.arange(0, len(few), 20)
    assert exact < _profile(0.004, 1.0, few[first], np.add.reduceat(light, first)) < 1.01 * exact


@pytest.mark.parametrize(
    ("n", "share"), [(5, 0.5), (40, 0.1), (10**4, 0.5), (10**6, 0.018), (3 * 10**8, 0.37)]
)
def test_binomial_masses_keep_their_digits(n: int, share: float) -> None:
    spread = math.sqrt(n * share * (1 - share))
    k = np.unique(np.clip(np.rint(n * share + spread * np.linspace(-9, 9, 13)), 0, n))
    found = log_binomial(k, n, share)
    with mp.workdps(50):
        true = [
            mp.log(mp.binomial(n, int(i))) + int(i) * mp.log(share) + (n - int(i)) * mp.log(1 - mp.mpf(share))
            for i in k
        ]
    assert found == pytest.approx([float(t) for t in true], abs=1e-10)


@pytest.mark.parametrize("bad", [(0, 10, 1e-6), (-1, 10, 1e-6), (1, 0, 1e-6), (1, 10, 1), (1, 2.5, 0.1)])
def test_bad_input_is_refused(bad: tuple[float, int, float]) -> None:
    for function in (shuffle_model, shuffle_model_bound):
        with pytest.raises(InvalidParameter, match=f"of {function.__name__} must"):
            function(*bad)
