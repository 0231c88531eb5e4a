from collections import UserDict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import kstest
from torch import nn

from sourdine import learning
from sourdine.accounting.ledger import Ledger
from sourdine.core.errors import BudgetExceeded, InvalidParameter
from sourdine.learning import Flat, Step
from sourdine.learning.task import Losses
from sourdine.testing import SeededBits
from tests.narrow import some

QUIET = 2.0**-30


def small() -> nn.Sequential:
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))


def losses(model: nn.Module) -> Losses:
    return lambda x, y: nn.functional.cross_entropy(model(x), y, reduction="none")


def clipped_by_hand(
    model: nn.Module, x: torch.Tensor, y: torch.Tensor, norm: float, of: Losses | None = None
) -> list[torch.Tensor]:
    total = [torch.zeros_like(value) for value in model.parameters()]
    for i in range(len(x)):
        loss = (of or losses(model))(x[i : i + 1], y[i : i + 1]).sum()
        found = torch.autograd.grad(loss, list(model.parameters()))
        length = torch.sqrt(sum(((each**2).sum() for each in found), torch.zeros(())))
        for so_far, add in zip(total, found, strict=True):
            so_far.add_(add * min(1.0, norm / float(length)))
    return total


@pytest.mark.parametrize("cuts", [[20], [1, 19], [7, 7, 6]])
def test_physical_batches_of_any_size_add_up(cuts: list[int]) -> None:
    model, x, y = small(), torch.randn(20, 4), torch.randint(0, 3, (20,))
    step = Step(model, noise_multiplier=QUIET, batch_size=32, steps=9, clipping=Flat(norm=0.3))
    for xs, ys in zip(x.split(cuts), y.split(cuts), strict=True):
        step.add(losses(model), xs, ys)
    step.close()
    for value, expected in zip(model.parameters(), clipped_by_hand(model, x, y, 0.3), strict=True):
        assert torch.allclose(some(value.grad), expected / 32, atol=1e-6)


def test_steps_do_not_remember_each_other() -> None:
    model, x, y = small(), torch.randn(5, 4), torch.randint(0, 3, (5,))
    step = Step(model, noise_multiplier=QUIET, batch_size=5, steps=9)
    step.add(losses(model), x, y)
    step.close()
    first = [some(value.grad).clone() for value in model.parameters()]
    step.add(losses(model), x, y)
    step.close()
    for value, before in zip(model.parameters(), first, strict=True):
        assert torch.allclose(some(value.grad), before, atol=1e-6)


def test_an_empty_batch_is_noise_of_the_right_law() -> None:
    model = nn.Linear(200, 100)
    step = Step(
        model, noise_multiplier=1.5, batch_size=10, steps=9, clipping=Flat(norm=2.0), bits=SeededBits(1)
    )
    step.close()
    found = torch.cat([some(value.grad).flatten() for value in model.parameters()]).numpy()
    assert kstest(found, "norm", args=(0, 1.5 * 2.0 / 10)).pvalue > 1e-6
    assert kstest(found, "norm", args=(0, 1.1 * 1.5 * 2.0 / 10)).pvalue < 1e-6


def test_noise_is_drawn_once_a_batch_and_afresh_each_time() -> None:
    model, x, y = nn.Linear(50, 100), torch.zeros(6, 50), torch.zeros(6, dtype=torch.int64)
    step = Step(
        model, noise_multiplier=1.0, batch_size=1, steps=9, clipping=Flat(norm=1.0), bits=SeededBits(2)
    )
    spreads, first = [], None
    for parts in (1, 6):
        for part in torch.arange(6).chunk(parts):
            step.add(losses(model), x[part], y[part])
        step.close()
        grad = some(model.weight.grad).numpy().copy()
        spreads.append(grad.std())  # the weight's own gradient is 0 where the input is
        assert first is None or not np.array_equal(first, grad)
        first = grad
    assert spreads == pytest.approx([1.0, 1.0], rel=0.05)


def test_nothing_is_left_on_the_model_and_frozen_parts_stay() -> None:
    model = small()
    model[0].requires_grad_(False)
    before = set(model.__dict__), [set(layer.__dict__) for layer in model]
    step = Step(model, noise_multiplier=1.0, batch_size=4, steps=9)
    step.add(losses(model), torch.randn(4, 4), torch.zeros(4, dtype=torch.int64))
    step.close()
    assert before == (set(model.__dict__), [set(layer.__dict__) for layer in model])
    assert not model._forward_hooks
    assert not model[2]._forward_hooks
    assert model[0].weight.grad is None
    assert model[2].weight.grad is not None


@pytest.mark.parametrize("kind", [torch.optim.SGD, torch.optim.Adam, torch.optim.RMSprop, torch.optim.AdamW])
def test_any_optimizer_steps_on_it(kind: type) -> None:
    model = small()
    before = [value.detach().clone() for value in model.parameters()]
    step = Step(model, noise_multiplier=1.0, batch_size=4, steps=9)
    optimizer = kind(model.parameters(), lr=0.01)
    step.close()
    optimizer.step()
    assert all(not torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))


def test_half_precision_gets_noise_in_single() -> None:
    model = nn.Linear(3, 2).to(torch.bfloat16)
    step = Step(model, noise_multiplier=1.0, batch_size=1, steps=9)
    step.close()
    assert some(model.weight.grad).dtype == torch.bfloat16


@pytest.mark.parametrize(
    ("field", "bad"),
    [("noise_multiplier", 0), ("noise_multiplier", -1), ("batch_size", 0), ("batch_size", 2.5), ("steps", 0)],
)
def test_bad_parameters_name_themselves(field: str, bad: Any) -> None:
    with pytest.raises(InvalidParameter, match=f"'{field}' of Step"):
        Step(small(), **{"noise_multiplier": 1.0, "batch_size": 4, "steps": 1, field: bad})


def test_a_mean_over_the_batch_is_refused() -> None:
    model = small()
    step = Step(model, noise_multiplier=1.0, batch_size=4, steps=9)
    with pytest.raises(InvalidParameter, match="one number for each example"):
        step.add(
            lambda x, y: nn.functional.cross_entropy(model(x), y), torch.randn(4, 4), torch.zeros(4).long()
        )


def test_noise_hides_all_digits_of_a_double() -> None:
    # float32 noise on a float64 sum would leave the sum's last digits to be read off
    model = nn.Linear(3, 2).double()
    step = Step(model, noise_multiplier=1.0, batch_size=1, steps=9)
    step.add(lambda x: model(x).sum(1), torch.rand(5, 3, dtype=torch.float64))
    step.close()
    for value in model.parameters():
        grad = some(value.grad)
        assert grad.dtype == torch.float64
        assert torch.equal(grad, grad.float().double())


def test_losses_that_were_computed_before_are_refused() -> None:
    model, x, y = small(), torch.randn(5, 4), torch.zeros(5, dtype=torch.int64)
    computed = losses(model)(x, y)
    with pytest.raises(InvalidParameter, match="lambda"):
        Step(model, noise_multiplier=1.0, batch_size=5, steps=9).add(computed, x, y)  # type: ignore[arg-type]


def test_losses_without_their_examples_are_refused() -> None:
    model, x, y = small(), torch.randn(5, 4), torch.zeros(5, dtype=torch.int64)
    step = Step(model, noise_multiplier=1.0, batch_size=5, steps=9)
    with pytest.raises(InvalidParameter, match=r"step\.add\(losses, inputs, targets\)"):
        step.add(lambda: losses(model)(x, y))
    with pytest.raises(InvalidParameter, match="failed in a rehearsal"):
        step.add(lambda x: losses(model)(x, y), x)  # the targets are not among the parts


class Mixed(nn.Module):
    """Takes the mean of a batch off, in plain sight or detached, and in training alone."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind, self.drop, self.inner = kind, nn.Dropout(0.5), nn.Linear(4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.kind == "input":
            x = x - x.mean(0)
        if self.kind == "while training":
            x = self.drop(x) - x.mean(0) * self.training
        out = self.inner(x)
        if self.kind == "output":
            out = out - out.mean(0)
        if self.kind == "detached":
            out = out - out.detach().mean(0)
        return out


class Remembered(nn.Module):
    """Mixes through what it keeps of the last batch, in a buffer or beside all buffers."""

    last: torch.Tensor

    def __init__(self, *, buffer: bool) -> None:
        super().__init__()
        self.inner = nn.Linear(4, 3)
        if buffer:
            self.register_buffer("last", torch.zeros(4))
        else:
            self.last = torch.zeros(4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.inner(x - self.last)
        self.last = x.detach().mean(0)
        return out


class Functional(nn.Module):
    """Uses the table of an embedding as the matrix of its head, as many language models do."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(7, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.linear(self.table(x).mean(1), self.table.weight)


def penalised(model: nn.Module, over: nn.Module) -> Callable[[torch.Tensor, torch.Tensor], torch.Tensor]:
    return lambda x, y: losses(model)(x, y) + 0.1 * sum(each.square().sum() for each in over.parameters())


ATTACKS: list[tuple[Callable[[], nn.Module], str]] = [
    (lambda: Mixed("input"), "mixes examples"),
    (lambda: Mixed("output"), "moves the loss of another"),
    (lambda: Mixed("detached"), "mixes examples"),
    (lambda: Mixed("while training"), "mixes examples"),
    (lambda: Remembered(buffer=True), "buffer 'last'"),
    (lambda: Remembered(buffer=False), "mixes examples"),
]


@pytest.mark.parametrize(("make", "message"), ATTACKS)
def test_models_that_mix_are_refused_before_an_example_is_seen(
    make: Callable[[], nn.Module], message: str
) -> None:
    torch.manual_seed(1)
    x, y = torch.randn(8, 4), torch.randint(0, 3, (8,))
    model = make()
    step = Step(model, noise_multiplier=1.0, batch_size=8, steps=1)
    with pytest.raises(InvalidParameter, match=message):
        step.add(losses(model), x, y)
    with pytest.raises(InvalidParameter, match=message):
        learning.check(make(), None, (x[:1], y[:1]))
    assert not step._sums


def test_a_weight_used_by_a_function_is_trained_and_the_advice_is_quicker() -> None:
    model, x, y = Functional(), torch.randint(0, 7, (5, 3)), torch.randint(0, 4, (5,))
    step = Step(model, noise_multiplier=QUIET, batch_size=1, steps=1, clipping=Flat(norm=0.3))
    with pytest.warns(UserWarning, match=r"run alone.*'table\.weight' is used outside"):
        step.add(losses(model), x, y)
    step.close()
    (expected,) = clipped_by_hand(model, x, y, 0.3)
    assert torch.allclose(some(model.table.weight.grad), expected, atol=1e-5)

    class Advised(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table, self.head = nn.Embedding(7, 4), nn.Linear(4, 7, bias=False)
            self.head.weight = self.table.weight

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.head(self.table(x).mean(1))

    advised = Advised()
    Step(advised, noise_multiplier=1.0, batch_size=5, steps=1).add(losses(advised), x, y)


def test_a_penalty_over_parameters_counts_or_is_refused() -> None:
    model, x, y = small(), torch.randn(5, 4), torch.zeros(5, dtype=torch.int64)
    step = Step(model, noise_multiplier=QUIET, batch_size=1, steps=1, clipping=Flat(norm=0.3))
    with pytest.warns(UserWarning, match="weight_decay"):
        step.add(penalised(model, model), x, y)
    step.close()
    for value, expected in zip(
        model.parameters(), clipped_by_hand(model, x, y, 0.3, penalised(model, model)), strict=True
    ):
        assert torch.allclose(some(value.grad), expected, atol=1e-5)
    with pytest.raises(InvalidParameter, match=r"not one of the model.*weight_decay"):
        Step(model, noise_multiplier=1.0, batch_size=5, steps=1).add(penalised(model, small()), x, y)
    plan = learning.TrainingPlan(epsilon=3, delta=1e-2, epochs=1, batch_size=5)
    first = model.get_parameter("0.bias")
    plain = lambda out, y: nn.functional.cross_entropy(out, y, reduction="none")
    with pytest.raises(InvalidParameter, match=r"not one of the model.*weight_decay"):
        learning.fit(model, (x, y), plan, loss=lambda out, y: plain(out, y) + first.square().sum())


def test_the_test_leaves_the_model_as_it_was() -> None:
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 3))
    model[2].eval()
    before = {name: value.detach().clone() for name, value in model.named_parameters()}
    modes = [layer.training for layer in model.modules()]
    state = torch.get_rng_state()
    step = Step(model, noise_multiplier=1.0, batch_size=5, steps=1)
    step.add(losses(model), torch.randn(5, 4, generator=torch.Generator()), torch.zeros(5, dtype=torch.int64))
    assert all(torch.equal(value, before[name]) for name, value in model.named_parameters())
    assert [layer.training for layer in model.modules()] == modes
    assert torch.equal(torch.get_rng_state(), state)


def test_masks_of_dropout_do_not_follow_a_seed_that_somebody_knows() -> None:
    model = nn.Sequential(nn.Linear(4, 64), nn.Dropout(0.5), nn.Linear(64, 3))
    found = []
    for _ in range(2):
        torch.manual_seed(1)
        step = Step(model, noise_multiplier=1.0, batch_size=5, steps=1)
        step.add(losses(model), torch.ones(5, 4), torch.zeros(5, dtype=torch.int64))
        found.append(step._sums["0.weight"])
    assert not torch.equal(*found)


def test_no_step_is_taken_that_was_not_paid() -> None:
    model = small()
    step = Step(model, noise_multiplier=1.0, batch_size=4, steps=2)
    step.close()
    step.close()
    before = some(model.get_parameter("0.weight").grad).clone()
    with pytest.raises(BudgetExceeded, match="All 2 steps that were paid for"):
        step.add(losses(model), torch.randn(4, 4), torch.zeros(4, dtype=torch.int64))
    with pytest.raises(BudgetExceeded, match="All 2 steps"):
        step.close()
    assert torch.equal(some(model.get_parameter("0.weight").grad), before)


def test_the_steps_of_a_plan_are_paid_once_and_after_the_test(tmp_path: Path) -> None:
    priced = learning.plan(
        learning.TrainingPlan(noise_multiplier=2.0, delta=1e-3, epochs=1, batch_size=10), size=40
    )
    ledger = Ledger.create(tmp_path / "people.ledger", order=8, divergence=4, delta=1e-3)
    x, y = torch.randn(6, 4), torch.zeros(6, dtype=torch.int64)
    mixing = Mixed("input")
    with pytest.raises(InvalidParameter):
        Step.of(mixing, priced, ledger=ledger).add(losses(mixing), x, y)
    assert ledger.status().blocks == 0
    model = small()
    step = Step.of(model, priced, ledger=ledger, clipping=Flat(norm=0.5))
    with pytest.raises(InvalidParameter, match="those that the plan draws"):
        step.add(losses(model), x, y)
    assert step.steps == priced.steps == 4
    assert ledger.status().blocks == 0
    x, y = torch.randn(40, 4), torch.zeros(40, dtype=torch.int64)
    for batch in learning.loader((x, y), priced):
        step.add(losses(model), *batch)
        step.close()
    assert ledger.status().blocks == 1
    with pytest.raises(BudgetExceeded):
        step.close()


def test_an_example_on_which_the_model_cannot_run_adds_exactly_nothing() -> None:
    torch.manual_seed(1)
    model = nn.Sequential(nn.Embedding(5, 4), nn.Flatten(), nn.Linear(12, 3))
    x, y = torch.randint(0, 5, (7, 3)), torch.randint(0, 3, (7,))
    sums = []
    for rows in (torch.arange(7), torch.tensor([0, 1, 3, 4, 5])):
        given = x.clone()
        given[2, 1] = given[6, 0] = 99
        step = Step(model, noise_multiplier=1.0, batch_size=5, steps=1, bits=SeededBits(1))
        step.add(losses(model), given[rows], y[rows])
        sums.append(step._sums)
    for name, each in sums[0].items():
        assert torch.allclose(each, sums[1][name], atol=1e-6)


@pytest.mark.parametrize(
    "problem", [KeyError("allocate"), StopIteration(), AssertionError(), OSError(), Exception("any")]
)
def test_no_error_of_a_model_tells_of_an_example(problem: Exception) -> None:
    model, x, y = small(), torch.randn(5, 4), torch.randint(0, 3, (5,))

    def picky(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        if bool((x > 50).any()):
            raise problem
        return losses(model)(x, y)

    sums = []
    for rows in (slice(0, 5), slice(0, 4)):
        given = x.clone()
        given[4] = 99
        step = Step(model, noise_multiplier=1.0, batch_size=5, steps=1, bits=SeededBits(1))
        step.add(picky, given[rows], y[rows])
        sums.append(step._sums)
    for name, each in sums[0].items():
        assert torch.allclose(each, sums[1][name], atol=1e-6)


def test_dicts_and_parts_that_fit_into_memory() -> None:
    model, x, y = small(), torch.randn(20, 4), torch.randint(0, 3, (20,))
    for at_once in (None, 1, 7):
        step = Step(
            model,
            noise_multiplier=QUIET,
            batch_size=32,
            steps=1,
            clipping=Flat(norm=0.3),
            physical_batch_size=at_once,
        )
        batch = UserDict({"inputs": x, "targets": {"labels": y}})
        step.add(lambda each: losses(model)(each["inputs"], each["targets"]["labels"]), batch)
        step.close()
        for value, expected in zip(model.parameters(), clipped_by_hand(model, x, y, 0.3), strict=True):
            assert torch.allclose(some(value.grad), expected / 32, atol=1e-6)


def test_public_examples_where_made_up_ones_cannot_be_right() -> None:
    model = small()

    def of_pairs(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        if bool((x < 0).any()):
            raise ValueError("a length below 0")
        return losses(model)(x, y)

    x, y = torch.rand(8, 4), torch.randint(0, 3, (8,))
    step = Step(model, noise_multiplier=1.0, batch_size=8, steps=1)
    with pytest.raises(InvalidParameter, match=r"a length below 0.*step\.check\(losses"):
        step.add(of_pairs, x, y)
    step.check(of_pairs, x[:3], y[:3])
    step.add(of_pairs, x, y)
    with pytest.raises(InvalidParameter, match="two examples"):
        step.check(of_pairs, x[:1], y[:1])


def test_the_norm_that_was_paid_for_stays() -> None:
    step = Step(nn.Linear(2, 1), noise_multiplier=1.0, batch_size=4, steps=2, clipping=Flat(norm=0.5))
    with pytest.raises(InvalidParameter, match="'norm' of Step must stay what was paid for"):
        step.norm = 100
    step.norm = 0.5
    assert step.norm == 0.5
