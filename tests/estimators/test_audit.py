"""Every estimator audited at its claim: from what a fit releases it is guessed whether a canary was among
its rows, and with noise of half the deviation the guesses are better than the claim allows."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from sourdine.audit import binomial
from sourdine.core.random.bits import SYSTEM, Bits
from sourdine.estimators.payment import FitPlan
from sourdine.mechanisms import Gaussian
from sourdine.testing import SeededBits
from tests.estimators.cases import BOUNDS, ESTIMATORS

EPSILON, FITS, FALSE_ALARM = 8.0, 1000, 1e-6
_DRAW = Gaussian.sample
Numbers = NDArray[np.int64]
Release = list[tuple[Gaussian, Numbers]]


@dataclass
class Tape:
    """Stands in the place of a mechanism's draws: keeps what is drawn, or plays what was drawn before."""

    monkeypatch: pytest.MonkeyPatch
    shrunk: Fraction = Fraction(1)
    drawn: Release = field(default_factory=list)
    played: Release | None = None
    exact: list[Numbers] = field(default_factory=list)

    def __post_init__(self) -> None:
        tape = self

        def sample(mechanism: Gaussian, values: Any, bits: Bits = SYSTEM) -> Any:
            whole = np.array(values, np.int64)
            if tape.played is not None:
                tape.exact.append(whole)
                return tape.played[len(tape.exact) - 1][1]
            out = _DRAW(Gaussian(sigma=mechanism.sigma * tape.shrunk), whole, bits)
            tape.drawn.append((mechanism, np.asarray(out)))
            return out

        self.monkeypatch.setattr(Gaussian, "sample", sample)

    def release(self, run: Callable[[], object]) -> Release:
        """All that a fit releases."""
        self.drawn, self.played = [], None
        run()
        return self.drawn

    def values(self, release: Release, run: Callable[[], object]) -> list[Numbers]:
        """The exact numbers that a fit to other rows would have had beneath the same release."""
        self.exact, self.played = [], release
        run()
        return self.exact


def neighbours(name: str) -> tuple[NDArray[Any], NDArray[Any]]:
    """A table whose last row is the canary: all others are alike, and it is as far from them as can be."""
    lower, upper = np.array(BOUNDS).T
    classes = np.array([0] * 30 + [1 if name in ("least squares", "with a norm", "logistic") else 2])
    rows = np.tile(upper, (31, 1))
    if name == "k-means":
        rows[-1] = lower
    return rows, classes


def log_ratio(plan: FitPlan, tape: Tape, name: str, canary: bool, bits: Bits) -> float:
    """How much more likely a release is with the canary than without: no test tells them apart better."""
    rows, targets = neighbours(name)
    less = rows[:-1], targets[:-1]
    release = tape.release(lambda: plan.run(*((rows, targets) if canary else less), bits))
    more = tape.values(release, lambda: plan.run(rows, targets, bits))
    without = tape.values(release, lambda: plan.run(*less, bits))
    return math.fsum(
        float((np.square((out - one).astype(float)) - np.square((out - other).astype(float))).sum())
        / (2 * float(mechanism.sigma) ** 2)
        for (mechanism, out), one, other in zip(release, without, more, strict=True)
    )


def audited_rho(hits: int, alarms: int, fits: int) -> float:
    """The least rho that so many right guesses leave, wrong with chance `FALSE_ALARM` at most.

    rho-zCDP bounds the Renyi divergence of every order a by a rho, also of what is guessed from a release; so
    rho is at least that of two coins with the least chance of a hit and the greatest of a false alarm.
    """
    p, q = (
        binomial.least(hits, fits, FALSE_ALARM / 2),
        binomial.most(alarms, fits, FALSE_ALARM / 2),
    )
    if p <= q:
        return 0.0
    kl = p * math.log(p / q) + (1 - p) * math.log((1 - p) / (1 - q))
    found = [kl]
    for order in (1.25, 1.5, 2.0, 3.0, 4.0, 8.0):
        both = p**order * q ** (1 - order) + (1 - p) ** order * (1 - q) ** (1 - order)
        found.append(math.log(both) / (order - 1) / order)
    return max(found)


def audit(name: str, monkeypatch: pytest.MonkeyPatch, shrunk: Fraction) -> tuple[float, float]:
    """The rho that is found, and that which is paid."""
    tape, bits = Tape(monkeypatch, shrunk), SeededBits(33)
    plan = ESTIMATORS[name](epsilon=EPSILON).plan(len(BOUNDS))
    hits, alarms = (
        sum(log_ratio(plan, tape, name, canary, bits) > 0 for _ in range(FITS)) for canary in (True, False)
    )
    paid = sum((Fraction(spend.loss().rho) for spend in plan.spends), Fraction(0))
    print(f"{name}: {hits} of {FITS} hits, {alarms} false alarms")
    return audited_rho(hits, alarms, FITS), float(paid)


@pytest.mark.slow
@pytest.mark.parametrize("name", ESTIMATORS)
def test_no_audit_refutes_a_claim(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found, paid = audit(name, monkeypatch, Fraction(1))
    print(f"{name}: rho {found:.4f} of {paid:.4f}")
    assert 0.1 * paid < found <= paid  # and the canary is no blind one


@pytest.mark.slow
@pytest.mark.parametrize("name", ESTIMATORS)
def test_half_the_noise_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found, paid = audit(name, monkeypatch, Fraction(1, 2))
    print(f"{name}: rho {found:.4f} of {paid:.4f}")
    assert found > paid


def test_two_coins_by_a_closed_form() -> None:
    """Without doubt about the chances, divergences of two coins: order 2 is the largest share here."""
    assert audited_rho(500, 500, 1000) == 0
    p, q = binomial.least(900, 1000, FALSE_ALARM / 2), binomial.most(100, 1000, FALSE_ALARM / 2)
    assert audited_rho(900, 100, 1000) >= math.log(p**2 / q + (1 - p) ** 2 / (1 - q)) / 2
