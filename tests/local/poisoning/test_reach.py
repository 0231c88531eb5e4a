"""How far attackers can move an estimate: closed forms, and every report that there is."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

from sourdine.core.errors import InvalidParameter
from sourdine.local import (
    GRR,
    OLH,
    OUE,
    SUE,
    BoundedLaplaceOracle,
    Duchi,
    HadamardResponse,
    Hybrid,
    Oracle,
    Piecewise,
    ProjectiveGeometry,
    SubsetSelection,
)
from sourdine.local.oracle import BitReports, CodeReports
from sourdine.local.poisoning import attackers_reach
from sourdine.local.poisoning.reach import report_range
from sourdine.local.rappor import BasicRappor
from sourdine.testing import SeededBits
from tests.errors import refusal_of

ORACLES: list[Oracle] = [
    GRR(epsilon=1, categories=5),
    OUE(epsilon=1, categories=5),
    SUE(epsilon=2, categories=4),
    SubsetSelection(epsilon=1, categories=7),
    OLH(epsilon=1, categories=7, groups=3),
    OLH(epsilon=1, categories=7, groups=3, trivial=False),
    HadamardResponse(epsilon=1, categories=6, blocks=1),
    HadamardResponse(epsilon=1, categories=6, blocks=1, trivial=False),
    HadamardResponse(epsilon=3, categories=8, blocks=3),
    ProjectiveGeometry(epsilon=1, categories=9, order=3),
    BasicRappor(categories=5, f=Fraction(1, 2), p=Fraction(1, 4), q=Fraction(3, 4)),
    Duchi(epsilon=1, lower=-3, upper=5),
    Piecewise(epsilon=1, lower=0, upper=10, cells=8),
    Hybrid(epsilon=2, lower=0, upper=1, cells=8),
]


def every_report(oracle: Oracle) -> np.ndarray:
    """All reports there are."""
    if isinstance(oracle, CodeReports):
        return np.arange(oracle.codes)
    assert isinstance(oracle, BitReports)
    rows = np.array(list(itertools.product([0, 1], repeat=oracle.bits)), np.uint8)
    if isinstance(oracle, SubsetSelection):
        rows = rows[rows.sum(axis=1) == oracle.size]
    return np.packbits(rows, axis=1)


@pytest.mark.parametrize("oracle", ORACLES, ids=str)
def test_no_report_alone_gives_more_and_some_gives_as_much(oracle: Oracle) -> None:
    """By brute force: the estimate from each report that there is."""
    found = np.array([oracle.estimate(oracle.tally(one[None])).value for one in every_report(oracle)])
    least, most, *_ = report_range(oracle)
    assert found.max(axis=0) == pytest.approx(np.full(found.shape[1:], most))
    assert found.min(axis=0) == pytest.approx(np.full(found.shape[1:], least))


@pytest.mark.parametrize("oracle", ORACLES, ids=str)
def test_attackers_who_send_the_worst_move_it_as_far_as_stated(oracle: Oracle) -> None:
    values = np.zeros(950) if oracle.__class__ in (Duchi, Piecewise, Hybrid) else np.arange(950) % 3
    honest = oracle.sample(values, SeededBits(1))
    alone = oracle.estimate(oracle.tally(honest))
    best = max(every_report(oracle), key=lambda one: oracle.estimate(oracle.tally(one[None])).value.flat[0])
    attacked = oracle.estimate(oracle.tally(np.concatenate([honest, np.repeat(best[None], 50, axis=0)])))
    moved = (attacked.value - alone.value).flat[0]
    most = report_range(oracle)[1]
    assert moved == pytest.approx(0.05 * (most - alone.value.flat[0]))
    reach = attackers_reach(oracle, attacked, Fraction(1, 20))
    if report_range(oracle)[2] <= attacked.value.flat[0] <= report_range(oracle)[3]:
        assert reach.up.flat[0] == pytest.approx(moved)  # from the spoiled estimate alone
    assert (reach.up >= 0).all()
    assert (reach.down >= 0).all()
    assert (reach.lower <= reach.upper).all()
    assert (
        reach.lower.flat[0] <= np.clip(alone.value.flat[0], *report_range(oracle)[2:]) <= reach.upper.flat[0]
    )


@pytest.mark.parametrize(
    ("oracle", "up", "down"),
    [
        (GRR(epsilon=1, categories=10), 6.24, 0.58),
        (GRR(epsilon=1, categories=100), 58.6, 0.58),
        (OUE(epsilon=1, categories=100), 3.16, 1.16),
        (SUE(epsilon=1, categories=100), 2.54, 1.54),
        (OLH(epsilon=1, categories=100), 3.33, 1.11),
        (HadamardResponse(epsilon=1, categories=100), 2.16, 2.16),
        (GRR(epsilon=4, categories=100), 2.85, 0.02),
        (OUE(epsilon=4, categories=100), 2.04, 0.04),
        (HadamardResponse(epsilon=4, categories=100), 2.01, 2.01),
    ],
    ids=str,
)
def test_the_figures_for_an_empty_category(oracle: GRR, up: float, down: float) -> None:
    least, most, *_ = report_range(oracle)
    assert most == pytest.approx(up, abs=0.006 if up < 50 else 0.06)
    assert -least == pytest.approx(down, abs=0.006)


def test_the_interval_holds_the_honest_share_whatever_others_send() -> None:
    """60 surveys with 5 % who raise an empty category: its interval without them misses, and theirs holds."""
    oracle = OUE(epsilon=2, categories=4)
    values = np.arange(1900) % 3
    best = oracle.sample(np.full(100, 3), SeededBits(0))
    best[:] = 0b00010000
    held = plain = 0
    for seed in range(60):
        reports = np.concatenate([oracle.sample(values, SeededBits(seed)), best])
        estimate = oracle.estimate(oracle.tally(reports))
        reach = attackers_reach(oracle, estimate, 0.05)
        held += bool(reach.lower[3] <= 0 <= reach.upper[3])
        plain += bool(estimate.lower[3] <= 0 <= estimate.upper[3])
    assert held >= 0.95 * 60 - 5 * (60 * 0.05 * 0.95) ** 0.5
    assert plain < 6


def test_shares_that_are_none_are_refused() -> None:
    oracle = GRR(epsilon=1, categories=3)
    estimate = oracle.estimate(oracle.tally(np.array([0, 1, 2])))
    for share in (-0.1, 0.6, float("nan")):
        with refusal_of("share", "attackers_reach"):
            attackers_reach(oracle, estimate, share)
    none = attackers_reach(oracle, estimate, 0)
    assert (none.lower == estimate.lower).all()
    with pytest.raises(InvalidParameter, match="not for BoundedLaplaceOracle"):
        report_range(BoundedLaplaceOracle(epsilon=1, lower=0, upper=1))
