"""Correlated training is told by its canaries as well as its claim allows, and broken noise is caught."""

import pytest
from torch import Tensor

from sourdine.audit.training import audit_correlated
from sourdine.audit.training.correlated import BrokenCorrelation
from sourdine.core.errors import InvalidParameter
from sourdine.learning import BLT, Banded, BinaryTree, TrainingPlan
from sourdine.learning.correlation.declared import GradientCorrelation
from sourdine.learning.correlation.stream import Draw, NoiseStream, stream_of
from sourdine.learning.pricing import PricedPlan
from sourdine.testing import SeededBits

FIXED: dict[str, GradientCorrelation] = {
    "banded": Banded(bands=4, sampling=False),
    "buffered": BLT(buffers=2),
    "tree": BinaryTree(),
}
PARTS = Banded(bands=4)


def wanted(
    correlation: GradientCorrelation, size: int = 4000, *, batches: int = 8, epochs: int = 3
) -> TrainingPlan:
    return TrainingPlan(
        epsilon=3,
        delta=1e-5,
        epochs=epochs,
        batch_size=size // batches,
        size=size,
        correlation=correlation,
    )


@pytest.mark.slow
def test_a_small_run_is_told_at_its_claim_and_with_half_its_noise() -> None:
    plan = wanted(Banded(bands=2, sampling=False), 600, batches=4)
    assert not audit_correlated(plan, bits=SeededBits(1)).refuted
    half = BrokenCorrelation(fault="half of the noise", stream=_half)
    assert audit_correlated(plan, broken=half, bits=SeededBits(1)).refuted


def _half(priced: PricedPlan) -> NoiseStream:
    assert priced.factor is not None
    stream = stream_of(priced.factor, priced.every)
    stream.stretch /= 2
    return stream


@pytest.mark.slow
@pytest.mark.parametrize("name", FIXED)
def test_a_fixed_order_is_audited_at_its_claim(name: str) -> None:
    found = audit_correlated(wanted(FIXED[name]), bits=SeededBits(3))
    assert not found.refuted, found.verdict
    assert found.audited <= found.claimed
    assert found.audited > 0.8 * found.claimed  # nothing is lost on the way


@pytest.mark.slow
def test_parts_with_coins_are_audited_at_their_claim() -> None:
    found = audit_correlated(wanted(PARTS), bits=SeededBits(3))
    assert not found.refuted, found.verdict
    assert 0.6 * found.claimed < found.audited <= found.claimed


def _for_one_use(priced: PricedPlan) -> NoiseStream:
    assert priced.factor is not None
    return stream_of(priced.factor, priced.steps)


def _unstretched(priced: PricedPlan) -> NoiseStream:
    assert priced.factor is not None
    stream = stream_of(priced.factor, priced.every)
    stream.stretch = 1.0
    return stream


class _Taken(NoiseStream):
    """The noise of a step is taken back whole in the next: sums have the noise of one step."""

    def __init__(self, priced: PricedPlan) -> None:
        assert priced.factor is not None
        super().__init__(priced.factor, priced.factor.stretch(priced.every))
        self._last: Tensor | None = None

    def _row(self, draw: Draw) -> Tensor:
        fresh, last = draw(), self._last
        self._last = fresh
        return fresh if last is None else fresh - last

    def secrets(self) -> list[Tensor]:
        return []

    def _recall(self, secrets: list[Tensor]) -> None: ...


BROKEN = {
    "one use": (
        BinaryTree(),
        BrokenCorrelation(fault="noise for a unit that comes once", stream=_for_one_use),
    ),
    "unstretched": (
        FIXED["banded"],
        BrokenCorrelation(fault="noise for columns of length 1", stream=_unstretched),
    ),
    "taken back": (FIXED["buffered"], BrokenCorrelation(fault="noise of another matrix", stream=_Taken)),
    "no coins": (PARTS, BrokenCorrelation(fault="a fixed order at the price of coins", everybody=True)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", BROKEN)
def test_broken_correlation_is_caught(name: str) -> None:
    correlation, broken = BROKEN[name]
    often = {"batches": 2, "epochs": 8} if name == "one use" else {}
    found = audit_correlated(wanted(correlation, **often), broken=broken, bits=SeededBits(5))
    assert found.refuted, found.verdict


def test_what_it_cannot_audit_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="correlation"):
        audit_correlated(TrainingPlan(epsilon=1, delta=1e-5, steps=3, batch_size=10, size=100))
