"""Correlated training is told by its canaries as well as its claim allows, and broken noise is caught."""

from collections.abc import Callable, Iterator
from itertools import cycle, islice
from typing import Any

import pytest
from torch import Tensor, nn

from sourdine.audit.training import audit_correlated
from sourdine.audit.training.correlated import _pieces
from sourdine.core.errors import InvalidParameter
from sourdine.core.random.bits import Bits
from sourdine.learning import BLT, Banded, BinaryTree, PricedPlan, Step, TrainingPlan
from sourdine.learning.correlation.declared import GradientCorrelation
from sourdine.learning.correlation.stream import Draw, NoiseStream, stream_of
from sourdine.learning.data.batches import Indices
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
def test_a_small_run_is_told_at_its_claim_and_with_half_its_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = wanted(Banded(bands=2, sampling=False), 600, batches=4)
    assert not audit_correlated(plan, bits=SeededBits(1)).refuted
    _plant(_half, monkeypatch)
    assert audit_correlated(plan, bits=SeededBits(1)).refuted


def _plant(stream: Callable[[PricedPlan], NoiseStream], monkeypatch: pytest.MonkeyPatch) -> None:
    """Give every step noise of this stream, while the audit looks for that of the plan."""
    honest = Step.of.__func__  # type: ignore[attr-defined]

    def step_of(cls: type[Step], /, model: nn.Module, plan: PricedPlan, **settings: Any) -> Step:
        step: Step = honest(cls, model, plan, **settings)
        step.correlation = stream(plan)
        return step

    monkeypatch.setattr(Step, "of", classmethod(step_of))


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


BROKEN: dict[str, tuple[GradientCorrelation, Callable[[PricedPlan], NoiseStream]]] = {
    "noise for a unit that comes once": (BinaryTree(), _for_one_use),
    "noise for columns of length 1": (FIXED["banded"], _unstretched),
    "noise of another matrix": (FIXED["buffered"], _Taken),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", BROKEN)
def test_broken_correlation_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    correlation, stream = BROKEN[name]
    _plant(stream, monkeypatch)
    often = {"batches": 2, "epochs": 8} if stream is _for_one_use else {}
    found = audit_correlated(wanted(correlation, **often), bits=SeededBits(5))
    assert found.refuted, found.verdict


@pytest.mark.slow
def test_a_fixed_order_at_the_price_of_coins_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def everybody(plan: PricedPlan, bits: Bits) -> Iterator[Indices]:
        return islice(cycle(_pieces(plan)), plan.steps)

    monkeypatch.setattr(PricedPlan, "draw", everybody)
    found = audit_correlated(wanted(PARTS), bits=SeededBits(5))
    assert found.refuted, found.verdict


def test_what_it_cannot_audit_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="correlation"):
        audit_correlated(TrainingPlan(epsilon=1, delta=1e-5, steps=3, batch_size=10, size=100))
