from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import nn

from sourdine.accounting.ledger import Ledger
from sourdine.core.errors import InvalidParameter
from sourdine.learning import Banded, EarlyStopping, Execution, Progress, Trained, TrainingPlan, fit
from sourdine.testing import SeededBits
from tests.narrow import some

X = torch.randn(40, 3, generator=torch.Generator().manual_seed(1))
Y = (X[:, 0] > 0).long()
WANTED = TrainingPlan(noise_multiplier=4, delta=1e-3, epochs=6, batch_size=20)
ALL_AT_ONCE = Execution(physical_batch_size=40)


def told(*values: float) -> list[Progress]:
    return [
        Progress(step=i, steps=9, epoch=i, epsilon=1.0, loss=each, accuracy=each, metrics={"recall": each})
        for i, each in enumerate(values)
    ]


@pytest.mark.parametrize(
    ("rule", "values", "ends"),
    [
        (EarlyStopping(patience=2), (3, 2, 2, 2), True),
        (EarlyStopping(patience=2), (3, 2, 2, 1), False),
        (EarlyStopping(patience=1, least=0.5), (3, 2.6), True),
        (EarlyStopping(patience=1, measure="accuracy"), (0.5, 0.6), False),
        (EarlyStopping(patience=1, measure="accuracy"), (0.6, 0.5), True),
        (EarlyStopping(patience=2, measure="recall", larger=True), (0.6, float("nan"), 0.6), True),
        (EarlyStopping(patience=1), (), False),
    ],
)
def test_it_ends_when_nothing_improves(rule: EarlyStopping, values: tuple[float, ...], ends: bool) -> None:
    assert rule.ends(told(*values)) is ends


def trained(path: Path, ledger: Path, *, killed: bool = False, correlation: Banded | None = None) -> Trained:
    def watch(now: Progress) -> None:
        if killed and now.step == 3:
            raise KeyboardInterrupt

    return fit(
        nn.Linear(3, 2),
        (X, Y),
        replace(WANTED, correlation=correlation, sampler=None) if correlation else WANTED,
        public=(X, Y),
        metrics={"nothing": lambda outputs, targets: 1.0},
        stopping=EarlyStopping(measure="nothing", larger=True, patience=2),
        checkpoint=path,
        ledger=ledger,
        execution=ALL_AT_ONCE,
        progress=watch,
        bits=SeededBits(3),
    )


def test_a_run_ends_by_its_rule_and_is_paid_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "one.ledger"
    Ledger.create(path, divergence=60, delta=1e-3, order=8).close()
    with pytest.raises(KeyboardInterrupt):
        trained(tmp_path / "run.pt", path, killed=True)
    first = trained(tmp_path / "run.pt", path)
    assert first.resumed
    assert [each.epoch for each in first.history] == [1, 2, 3]
    assert first.plan.steps == 12
    assert some(first.declarations)["stopping"].startswith("after 2 epochs")
    again = trained(tmp_path / "run.pt", path)  # it is over, and stays so
    assert torch.equal(*(next(each.model.parameters()) for each in (first, again)))
    with Ledger.open(path) as ledger:
        assert ledger.status().blocks == 1


def test_noise_that_was_kept_is_gone_with_the_end_of_a_run(tmp_path: Path) -> None:
    ledger, path, noise = tmp_path / "one.ledger", tmp_path / "run.pt", Banded(bands=2)
    Ledger.create(ledger, divergence=60, delta=1e-3, order=8, neighbours="zero-out").close()
    with pytest.raises(KeyboardInterrupt):
        trained(path, ledger, killed=True, correlation=noise)
    assert len(list(tmp_path.glob("run.pt.noise-*"))) == 1
    first = trained(path, ledger, correlation=noise)
    assert [each.epoch for each in first.history] == [1, 2, 3]
    assert not list(tmp_path.glob("run.pt.noise-*"))
    again = trained(path, ledger, correlation=noise)  # it needs none to stay as it is
    assert torch.equal(*(next(each.model.parameters()) for each in (first, again)))


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"stopping": EarlyStopping()}, "needs 'public'"),
        ({"stopping": 3, "public": (X, Y)}, "be an EarlyStopping"),
        ({"stopping": EarlyStopping(measure="f1", larger=True), "public": (X, Y)}, "one of the 'metrics'"),
    ],
)
def test_a_rule_that_cannot_be_followed_is_refused(more: dict[str, object], reason: str) -> None:
    with pytest.raises(InvalidParameter, match=reason):
        fit(nn.Linear(3, 2), (X, Y), WANTED, execution=ALL_AT_ONCE, **more)  # type: ignore[arg-type]


def test_what_is_better_must_be_clear() -> None:
    with pytest.raises(InvalidParameter, match="larger=True"):
        EarlyStopping(measure="f1")
    with pytest.raises(InvalidParameter, match="left out"):
        EarlyStopping(measure="loss", larger=True)
