import copy
import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from sourdine.accounting import Sampler
from sourdine.accounting.ledger import ConcentratedBudget, Ledger, RenyiBudget, Terms
from sourdine.core.distance import Neighbours
from sourdine.core.errors import BudgetExceeded, InvalidParameter, LedgerError, UnsupportedLoss
from sourdine.learning import (
    Checkpoint,
    Execution,
    Flat,
    Progress,
    Trained,
    TrainingPlan,
    UnitIds,
    card_of,
    fit,
    plan,
    repeat,
)
from sourdine.testing import SeededBits
from tests.narrow import some

SOURCE = torch.Generator().manual_seed(7)
X = torch.randn(400, 6, generator=SOURCE)
Y = (X @ torch.tensor([1.0, -1, 0.5, 0, 0, 2]) > 0).long()
# too little noise to matter: for comparing gradients
quiet_plan = partial(TrainingPlan, noise_multiplier=2.0**-20, delta=1e-3)
paid_plan = partial(TrainingPlan, noise_multiplier=0.8, delta=1e-3)
budget_plan = partial(TrainingPlan, epsilon=8, delta=1e-3)
FEW = Execution(physical_batch_size=64)


def linear() -> nn.Module:
    torch.manual_seed(5)
    return nn.Linear(6, 2)


def deep() -> nn.Module:
    torch.manual_seed(5)
    return nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 2))


def sgd(lr: float) -> partial[torch.optim.SGD]:
    return partial(torch.optim.SGD, lr=lr)


def ledger_at(path: Path, limit: float = 1000, neighbours: Neighbours = Neighbours.ADD_REMOVE) -> Ledger:
    budget = RenyiBudget(limit=limit, order=4)
    return Ledger.create(path, Terms(budget=budget, unit="person", neighbours=neighbours, delta=1e-5))


def test_it_learns_and_leaves_the_model_as_it_was() -> None:
    model = linear()
    before = copy.deepcopy(model.state_dict())
    trained = fit(model, (X, Y), budget_plan(epochs=10, batch_size=50), public=(X, Y), execution=FEW)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert some(trained.accuracy) > 0.85
    assert trained.epsilon.upper <= 8
    plain = nn.Linear(6, 2)
    plain.load_state_dict(trained.model.state_dict())
    assert type(trained.model) is nn.Linear
    assert not trained.model._forward_hooks
    assert all(value.grad is None for value in trained.model.parameters())


@pytest.mark.parametrize("physical", [pytest.param(1, marks=pytest.mark.slow), 33, 1000])
def test_one_full_step_is_clipped_descent(physical: int) -> None:
    model = deep()
    trained = fit(
        model,
        (X, Y),
        quiet_plan(steps=1, batch_size=400),
        execution=Execution(physical_batch_size=physical),
        clipping=Flat(norm=0.2),
        optimizer=sgd(1.0),
    )
    total = [torch.zeros_like(value) for value in model.parameters()]
    for i in range(400):
        loss = nn.functional.cross_entropy(model(X[i : i + 1]), Y[i : i + 1])
        found = torch.autograd.grad(loss, list(model.parameters()))
        length = float(torch.sqrt(sum(((each**2).sum() for each in found), torch.zeros(()))))
        for so_far, add in zip(total, found, strict=True):
            so_far.add_(add * min(1.0, 0.2 / length))
    for after, value, each in zip(trained.model.parameters(), model.parameters(), total, strict=True):
        assert torch.allclose(after, value - each / 400, atol=1e-6)


@pytest.mark.parametrize(
    "data",
    [
        (X.numpy().astype(np.float64), Y.numpy().astype(np.int32)),
        TensorDataset(X, Y),
        DataLoader(TensorDataset(X, Y), batch_size=400, shuffle=True),
    ],
    ids=["arrays", "dataset", "loader"],
)
def test_every_form_of_data_trains_alike(data: object) -> None:
    expected = fit(
        linear(),
        (X, Y),
        quiet_plan(steps=3, batch_size=400),
        execution=Execution(physical_batch_size=64),
    ).model
    found = fit(
        linear(),
        data,
        quiet_plan(steps=3, batch_size=400),
        execution=Execution(physical_batch_size=64),
    ).model
    assert torch.allclose(found.get_parameter("weight"), expected.get_parameter("weight"), atol=1e-4)


def test_a_loader_declares_the_batch() -> None:
    loader = DataLoader(TensorDataset(X, Y), batch_size=40, shuffle=True)
    assert (
        fit(
            linear(),
            loader,
            TrainingPlan(epochs=1, noise_multiplier=1, delta=1e-3),
            execution=Execution(physical_batch_size=64),
        ).plan.batch_size
        == 40
    )


@pytest.mark.parametrize(
    "sampler",
    [
        pytest.param(each, marks=pytest.mark.slow)
        if each is Sampler.ALLOCATION
        else each  # its cost takes long
        for each in Sampler
    ],
)
def test_every_sampler_runs_its_epochs(sampler: Sampler) -> None:
    seen: list[int] = []
    trained = fit(
        linear(),
        (X, Y),
        budget_plan(epochs=2, batch_size=150, sampler=sampler),
        progress=lambda now: seen.append(now.step),
        execution=FEW,
    )
    assert seen == [1, 2, 3, 4, 5, 6]
    assert trained.epsilon.upper <= 8
    assert trained.plan.sampler is sampler


def test_progress_tells_a_growing_epsilon_and_public_numbers_only() -> None:
    told: list[Progress] = []
    trained = fit(linear(), (X, Y), paid_plan(epochs=4, batch_size=100), progress=told.append, execution=FEW)
    epsilons = [now.epsilon for now in told]
    assert epsilons == sorted(epsilons)
    assert epsilons[0] < 0.9 * epsilons[-1]
    assert epsilons[-1] == trained.epsilon.upper
    assert all(now.loss is None and now.accuracy is None for now in told)
    assert [now.epoch for now in trained.history] == [1, 2, 3, 4]
    judged = fit(
        linear(),
        (X, Y),
        paid_plan(epochs=2, batch_size=100),
        public=(X[:50], Y[:50]),
        execution=FEW,
    )
    assert all(0 <= some(now.accuracy) <= 1 and some(now.loss) > 0 for now in judged.history)


def test_training_stops_at_the_budget() -> None:
    trained = fit(
        linear(),
        (X, Y),
        TrainingPlan(epsilon=2, delta=1e-3, noise_multiplier=2.0, epochs=1000, batch_size=40),
        execution=Execution(physical_batch_size=64),
    )
    assert trained.epsilon.upper <= 2
    assert trained.plan.steps < 10_000
    assert trained.history[-1].step == trained.plan.steps


def test_the_ledger_pays_before_data_are_touched(tmp_path: Path) -> None:
    class Watched(torch.utils.data.Dataset[tuple[Tensor, Tensor]]):
        touched: list[int] = []  # noqa: RUF012

        def __len__(self) -> int:
            return 400

        def __getitem__(self, at: int) -> tuple[Tensor, Tensor]:
            self.touched.append(ledger.status().blocks)
            return X[at], Y[at]

    ledger = ledger_at(tmp_path / "l")
    trained = fit(linear(), Watched(), paid_plan(epochs=1, batch_size=50), ledger=ledger, execution=FEW)
    shapes, rest = [n for n in Watched.touched if n == 0], [n for n in Watched.touched if n]
    assert set(rest) == {1}
    assert len(shapes) == 1  # for its shape
    assert some(trained.receipt).number == 1
    certificate = trained.certificate(ledger)
    assert certificate.verify(ledger) == ()
    assert certificate.secure
    assert certificate.declared["batch"] == "50"
    assert ledger.history()[0].spends == trained.spends


def test_the_path_of_a_ledger_pays_as_well(tmp_path: Path) -> None:
    ledger_at(tmp_path / "l").close()
    trained = fit(linear(), (X, Y), paid_plan(epochs=1, batch_size=50), ledger=tmp_path / "l", execution=FEW)
    assert card_of(trained, str(tmp_path / "l")).certificate is not None
    with pytest.raises(LedgerError):
        fit(
            linear(),
            (X, Y),
            paid_plan(epochs=1, batch_size=50),
            ledger=tmp_path / "none",
            execution=FEW,
        )
    assert not (tmp_path / "none").exists()


def test_a_budget_that_is_spent_says_so(tmp_path: Path) -> None:
    price = ledger_at(tmp_path / "any").price(
        plan(TrainingPlan(size=400, epochs=1, batch_size=50, noise_multiplier=0.8, delta=1e-3)).spend()
    )
    ledger = ledger_at(tmp_path / "l", limit=1.5 * float(price))
    fit(linear(), (X, Y), paid_plan(epochs=1, batch_size=50), ledger=ledger, execution=FEW)
    with pytest.raises(BudgetExceeded, match="Nothing was spent"):
        fit(linear(), (X, Y), paid_plan(epochs=1, batch_size=50), ledger=ledger, execution=FEW)
    assert ledger.status().blocks == 1


def test_a_ledger_of_another_kind_says_so(tmp_path: Path) -> None:
    terms = Terms(
        budget=ConcentratedBudget(limit=9), unit="person", neighbours=Neighbours.ADD_REMOVE, delta=1e-5
    )
    with pytest.raises(UnsupportedLoss, match=r'Ledger\.create\(path, epsilon=.*composition="basic"'):
        fit(
            linear(),
            (X, Y),
            paid_plan(epochs=1, batch_size=50),
            ledger=Ledger.create(tmp_path / "z", terms),
            execution=FEW,
        )
    replacing = ledger_at(tmp_path / "r", neighbours=Neighbours.REPLACE)
    with pytest.raises(InvalidParameter, match="replace neighbours"):
        fit(linear(), (X, Y), paid_plan(epochs=1, batch_size=50), ledger=replacing, execution=FEW)
    assert fit(
        linear(),
        (X, Y),
        paid_plan(epochs=1, batch_size=50, sampler="fixed"),
        ledger=replacing,
        execution=FEW,
    ).receipt


BAD = [float("nan"), float("inf"), -float("inf"), 1e38]


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("make", [linear, deep])
def test_examples_that_are_not_finite_count_nothing(bad: float, make: Callable[[], nn.Module]) -> None:
    spoiled = X.clone()
    spoiled[::4, 2] = bad
    kept = torch.ones(400, dtype=torch.bool)
    kept[::4] = False
    run = partial(fit, optimizer=sgd(1.0), execution=Execution(physical_batch_size=400))
    found = run(make(), (spoiled, Y), quiet_plan(steps=1, batch_size=400)).model
    without = run(make(), (X[kept], Y[kept]), quiet_plan(steps=1, batch_size=300)).model
    start = make()
    for a, b, c in zip(found.parameters(), without.parameters(), start.parameters(), strict=True):
        assert torch.isfinite(a).all()
        if bad != 1e38:  # large and finite: clipped, not dropped
            assert torch.allclose((a - c) * 400, (b - c) * 300, atol=2e-3)


def test_targets_that_are_not_finite_count_nothing() -> None:
    targets = X[:, :1].clone()
    targets[:100] = float("nan")

    def squared(outputs: Tensor, wanted: Tensor) -> Tensor:
        return (outputs - wanted).square().sum(1)

    trained = fit(
        nn.Linear(6, 1),
        (X, targets),
        quiet_plan(steps=3, batch_size=400),
        execution=Execution(physical_batch_size=100),
        loss=squared,
    )
    assert all(torch.isfinite(value).all() for value in trained.model.parameters())


def test_labels_of_no_class_raise_nothing() -> None:
    labels = Y.clone()
    labels[:9] = 77
    fit(
        linear(),
        (X, labels),
        quiet_plan(steps=2, batch_size=400),
        execution=Execution(physical_batch_size=100),
    )


def test_people_are_clipped_whole() -> None:
    ids = np.arange(400) // 8  # eight examples each
    planned = quiet_plan(steps=1, batch_size=50)
    found = fit(
        linear(),
        (X, Y),
        planned,
        units=UnitIds(ids, max_examples=8),
        execution=Execution(physical_batch_size=7),
        optimizer=sgd(1.0),
        clipping=Flat(norm=0.1),
    )
    model = linear()
    total = [torch.zeros_like(value) for value in model.parameters()]
    for one in range(50):
        at = slice(8 * one, 8 * one + 8)
        each = torch.autograd.grad(nn.functional.cross_entropy(model(X[at]), Y[at]), list(model.parameters()))
        length = float(torch.sqrt(sum(((g**2).sum() for g in each), torch.zeros(()))))
        for so_far, add in zip(total, each, strict=True):
            so_far.add_(add * min(1.0, 0.1 / length))
    for after, value, moved in zip(found.model.parameters(), model.parameters(), total, strict=True):
        assert torch.allclose(after, value - moved / 50, atol=1e-6)
    assert found.plan.size == 50
    assert any("one person" in note for note in found.notes)
    assert not any("one example" in note for note in found.notes)


def test_one_person_moves_the_sum_by_one_norm() -> None:
    ids = np.where(np.arange(400) < 200, 0, np.arange(400))  # somebody has half of the data
    with_them = fit(
        linear(),
        (X, Y),
        quiet_plan(steps=1, batch_size=201),
        units=UnitIds(ids, max_examples=50),
        execution=Execution(physical_batch_size=500),
        clipping=Flat(norm=0.5),
        optimizer=sgd(201.0),
    ).model
    without = fit(
        linear(),
        (X[200:], Y[200:]),
        quiet_plan(steps=1, batch_size=200),
        units=UnitIds(ids[200:], max_examples=50),
        execution=Execution(physical_batch_size=500),
        clipping=Flat(norm=0.5),
        optimizer=sgd(200.0),
    ).model
    pairs = zip(with_them.parameters(), without.parameters(), strict=True)
    moved = math.sqrt(sum(float(((a - b).detach() ** 2).sum()) for a, b in pairs))
    assert 0.01 < moved <= 0.5 + 1e-3


def test_a_declared_size_fixes_the_rate() -> None:
    trained = fit(
        linear(),
        (X, Y),
        TrainingPlan(size=1000, epochs=1, batch_size=100, noise_multiplier=1.0, delta=1e-3),
        execution=Execution(physical_batch_size=64),
    )
    assert trained.plan.sampling_rate == 0.1
    assert trained.plan.steps == 10
    with pytest.raises(InvalidParameter, match="'size'"):
        fit(
            linear(),
            (X, Y),
            TrainingPlan(
                size=1000, epochs=1, batch_size=100, noise_multiplier=1.0, delta=1e-3, sampler="shuffle"
            ),
        )


def test_averaging_and_schedule_are_used() -> None:
    steady = fit(
        linear(),
        (X, Y),
        quiet_plan(steps=20, batch_size=400),
        execution=Execution(physical_batch_size=400),
        optimizer=sgd(0.1),
    ).model
    averaged = fit(
        linear(),
        (X, Y),
        quiet_plan(steps=20, batch_size=400),
        execution=Execution(physical_batch_size=400),
        averaging=0.9,
        optimizer=sgd(0.1),
    ).model
    stopped = fit(
        linear(),
        (X, Y),
        quiet_plan(steps=20, batch_size=400),
        execution=Execution(physical_batch_size=400),
        optimizer=sgd(0.1),
        schedule=lambda made: torch.optim.lr_scheduler.LambdaLR(made, lambda step: 0.0),
    ).model
    start = linear().get_parameter("weight")
    found = (steady, averaged, stopped)
    moved = [float((each.get_parameter("weight") - start).detach().norm()) for each in found]
    assert moved[2] == pytest.approx(0, abs=1e-6)
    assert 0.3 * moved[0] < moved[1] < 0.95 * moved[0]


def test_seeded_noise_is_marked() -> None:
    first, same = (
        fit(linear(), (X, Y), paid_plan(epochs=1, batch_size=50), bits=SeededBits(1), execution=FEW)
        for _ in range(2)
    )
    assert not first.secure
    assert torch.equal(first.model.get_parameter("weight"), same.model.get_parameter("weight"))
    one, other = (
        fit(linear(), (X, Y), paid_plan(epochs=1, batch_size=50), execution=FEW).model.get_parameter("weight")
        for _ in range(2)
    )
    assert not torch.equal(one, other)


def test_repeats_tell_mean_and_deviation_and_what_all_cost() -> None:
    found = repeat(
        3,
        lambda: fit(linear(), (X, Y), paid_plan(epochs=1, batch_size=50), public=(X, Y), execution=FEW),
    )
    rates = [some(run.accuracy) for run in found.runs]
    assert found.mean == pytest.approx(np.mean(rates))
    assert found.deviation == pytest.approx(np.std(rates, ddof=1))
    assert found.epsilon.upper > 1.2 * found.runs[0].epsilon.upper


def test_dropout_and_embeddings_pass() -> None:
    class Words(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table, self.out = nn.Embedding(10, 4), nn.Linear(4, 2)
            self.drop = nn.Dropout(0.3)

        def forward(self, x: Tensor) -> Tensor:
            return self.out(self.drop(self.table(x).mean(1)))

    tokens = torch.randint(0, 10, (400, 5), generator=SOURCE)
    assert isinstance(
        fit(Words(), (tokens, Y), TrainingPlan(epochs=1, batch_size=50, noise_multiplier=1, delta=1e-3)),
        Trained,
    )


def bad(**given: object) -> dict[str, Any]:
    return {"model": linear(), "data": (X, Y), "plan": budget_plan(epochs=1, batch_size=50), **given}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (bad(model=nn.Sequential(nn.Linear(6, 2), nn.BatchNorm1d(2))), "layer '1' is a BatchNorm1d"),
        (bad(loss=nn.CrossEntropyLoss()), "reduction='none'"),
        (bad(loss=nn.functional.cross_entropy), "one number for each example"),
        (
            bad(plan=budget_plan(epochs=1, batch_size=401)),
            "'batch_size' of TrainingPlan must not be larger than the data, 400",
        ),
        (bad(plan={"epsilon": 3}), "'plan' of fit must be a TrainingPlan"),
        (bad(plan=plan(budget_plan(size=400, epochs=1, batch_size=50))), "must be a TrainingPlan"),
        (bad(units=np.arange(10)), "one id for each of the 400"),
        (bad(units=[None] * 400), "hold no id at all"),
        (bad(optimizer=torch.optim.SGD(linear().parameters(), lr=1)), "function that makes one"),
        (bad(optimizer=torch.optim.LBFGS), "LBFGS"),
        (bad(execution=64), "'execution' of fit must be an Execution"),
        (bad(model=nn.Linear(5, 2)), "failed in a rehearsal"),
        (bad(averaging=2), "'averaging'"),
    ],
)
def test_bad_input_is_told_in_one_message_before_anything_is_paid(
    given: dict[str, Any], message: str, tmp_path: Path
) -> None:
    ledger = ledger_at(tmp_path / "l")
    with pytest.raises(InvalidParameter, match=message) as caught:
        fit(ledger=ledger, **given)
    assert len(str(caught.value)) < 400
    assert ledger.status().blocks == 0


def test_ids_alone_let_one_example_of_each_count() -> None:
    ids = np.arange(400) // 4
    wanted = paid_plan(epochs=1, batch_size=50)
    stated = fit(
        linear(), (X, Y), wanted, units=UnitIds(ids, max_examples=1), bits=SeededBits(1), execution=FEW
    )
    alone = fit(linear(), (X, Y), wanted, units=ids, bits=SeededBits(1), execution=FEW)
    assert alone.plan.size == 100
    assert alone.max_examples_per_unit == 1
    assert torch.equal(alone.model.get_parameter("weight"), stated.model.get_parameter("weight"))


def test_groups_are_checked_when_they_are_made() -> None:
    with pytest.raises(InvalidParameter, match="'physical_batch_size' of Execution must lie between 1"):
        Execution(physical_batch_size=0)
    with pytest.raises(InvalidParameter, match="'max_examples' of UnitIds must lie between 1"):
        UnitIds([1, 2], max_examples=0)
    with pytest.raises(InvalidParameter, match="'every' of Checkpoint must lie between 1"):
        Checkpoint("run.pt", every=0)


def test_the_example_of_the_readme_runs_as_written(tmp_path: Path) -> None:
    ledger = ledger_at(tmp_path / "l")
    trained = fit(linear(), (X, Y), TrainingPlan(epsilon=3, delta=1e-5, epochs=10), ledger=ledger)
    assert trained.epsilon.upper <= 3
    assert trained.receipt is not None


class Keeping(nn.Module):
    """Keeps what it saw last, as for a picture of it."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(6, 2)
        self.seen: list[int] = []

    def forward(self, x: Tensor) -> Tensor:
        self.last = x.detach()
        self.seen.append(len(x))
        return self.inner(x)


def test_the_model_that_is_handed_out_keeps_nothing_of_the_data() -> None:
    found = fit(Keeping(), (X, Y), paid_plan(epochs=1, batch_size=100), execution=FEW).model
    assert not hasattr(found, "last")
    assert found.seen == []
    assert not found.training
    assert all(value.grad is None for value in found.parameters())


def test_nobody_knows_what_is_dropped() -> None:
    # every unit in every batch and hardly any noise: what differs between two runs is what was dropped
    def run() -> Tensor:
        torch.manual_seed(3)
        model = nn.Sequential(nn.Dropout(0.5), nn.Linear(6, 2))
        whole = Execution(physical_batch_size=400)
        trained = fit(model, (X, Y), quiet_plan(epochs=1, batch_size=400), execution=whole)
        return trained.model.get_parameter("1.weight")

    before = torch.get_rng_state()
    assert (run() - run()).abs().max() > 1e-3
    torch.set_rng_state(before)


class Reader(nn.Module):
    """A model that takes its inputs by name and names what it gives."""

    def __init__(self) -> None:
        super().__init__()
        self.table, self.head = nn.Embedding(9, 4), nn.Linear(4, 2)

    def forward(self, *, input_ids: torch.Tensor, mask: torch.Tensor) -> dict[str, torch.Tensor]:
        rows = self.table(input_ids) * mask.unsqueeze(-1)
        return {"logits": self.head(rows.sum(1)), "states": rows}


def test_dicts_train_what_tensors_do() -> None:
    rows = [{"mask": [1, 1, 1], "labels": i % 2, "input_ids": [i % 2, 3, 4]} for i in range(40)]
    columns = {name: torch.tensor([row[name] for row in rows]) for name in ("input_ids", "mask", "labels")}
    wanted = TrainingPlan(noise_multiplier=1, delta=1e-3, epochs=2, batch_size=20)
    model, values = Reader(), []
    for data in (rows, columns):
        trained = fit(model, data, wanted, public=data, bits=SeededBits(3))
        assert trained.accuracy is not None
        values.append(torch.cat([each.flatten() for each in trained.model.parameters()]))
    assert torch.equal(*values)
    with pytest.raises(InvalidParameter, match="columns of the data"):
        fit(model, rows, wanted, public={"input_ids": [[1, 2, 3]], "labels": [1]})
