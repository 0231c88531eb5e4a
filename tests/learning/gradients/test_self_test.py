import pytest
import torch
from torch import Tensor, nn

from sourdine.core.errors import InvalidParameter
from sourdine.learning.gradients.self_test import self_test
from sourdine.learning.task import Task, cross_entropy


def batch(*shape: int) -> tuple[Tensor, Tensor]:
    source = torch.Generator().manual_seed(1)
    return torch.randn(6, *shape, generator=source), torch.randint(0, 2, (6,), generator=source)


class Mixing(nn.Module):
    """Centres a batch, as BatchNorm does, under another name."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(4))

    def forward(self, x: Tensor) -> Tensor:
        return (x - x.mean(0)) * self.scale


class Noting(nn.Module):
    """Keeps a mean of what it saw."""

    seen: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("seen", torch.zeros(4))
        self.inner = nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        if self.training:
            self.seen = 0.9 * self.seen + 0.1 * x.detach().mean(0)
        return self.inner(x)


class Idle(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.used, self.idle = nn.Linear(4, 2), nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.used(x) + 0 * self.idle(x)


def test_good_models_pass_and_stay_as_they_are() -> None:
    for model in (
        nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.ReLU(), nn.Linear(8, 2)),
        nn.Sequential(nn.Linear(4, 6), nn.GroupNorm(2, 6), nn.Linear(6, 2)),
        nn.Sequential(nn.Unflatten(1, (1, 2, 2)), nn.Conv2d(1, 3, 2), nn.Flatten(), nn.Linear(3, 2)),
    ):
        before = {name: value.clone() for name, value in model.state_dict().items()}
        self_test(Task(model, cross_entropy), batch(4))
        assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
        assert all(value.grad is None for value in model.parameters())


def test_a_head_that_starts_at_zero_passes() -> None:
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
    nn.init.zeros_(model.get_parameter("2.weight"))
    self_test(Task(model, cross_entropy), batch(4))


def test_a_layer_that_mixes_is_named() -> None:
    model = nn.Sequential(nn.Linear(4, 4), Mixing(), nn.Linear(4, 2))
    with pytest.raises(InvalidParameter, match=r"layer '\d' .* mixes examples"):
        self_test(Task(model, cross_entropy), batch(4))


def test_a_loss_that_mixes_is_refused() -> None:
    def scaled(outputs: Tensor, targets: Tensor) -> Tensor:
        found = cross_entropy(outputs, targets)
        return found * found.detach().mean()

    with pytest.raises(InvalidParameter, match="the loss mixes examples"):
        self_test(Task(nn.Linear(4, 2), scaled), batch(4))


def test_a_parameter_that_does_nothing_is_named() -> None:
    with pytest.raises(InvalidParameter, match=r"'idle.weight' does not move the loss"):
        self_test(Task(Idle(), cross_entropy), batch(4))


def test_a_buffer_that_notes_the_data_is_named() -> None:
    with pytest.raises(InvalidParameter, match="buffer 'seen'"):
        self_test(Task(Noting(), cross_entropy), batch(4))


def test_a_model_that_fails_is_told_in_one_sentence() -> None:
    with pytest.raises(InvalidParameter, match=r"failed in a rehearsal: .*[^.]\. Pass rehearsal="):
        self_test(Task(nn.Linear(5, 2), cross_entropy), batch(4))


class Counting(nn.Module):
    """Counts how often it ran, which tells how many examples there were."""

    runs: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("runs", torch.zeros(()))
        self.inner = nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        self.runs += 1
        return self.inner(x)


class Cut(nn.Module):
    """Takes the parts of an example for examples."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(2, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(x.reshape(-1, 2))


class Dropping(nn.Module):
    """Has a parameter of its own, a layer in it, and dropout: it cannot be run again."""

    def __init__(self) -> None:
        super().__init__()
        self.scale, self.inner = nn.Parameter(torch.ones(4)), nn.Linear(4, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(nn.functional.dropout(x * self.scale, training=self.training))


def test_a_buffer_that_counts_batches_is_named() -> None:
    with pytest.raises(InvalidParameter, match="buffer 'runs'"):
        self_test(Task(Counting(), cross_entropy), batch(4))


@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e4])
def test_parts_of_an_example_are_not_taken_for_examples(scale: float) -> None:
    def of_parts(outputs: Tensor, targets: Tensor) -> Tensor:
        return scale * nn.functional.cross_entropy(outputs, targets.flatten(), reduction="none")

    x, _ = batch(3, 2)
    with pytest.raises(InvalidParameter, match="18 numbers for 6 examples"):
        self_test(Task(Cut(), of_parts), (x, torch.zeros(6, 3, dtype=torch.int64)))


@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e4])
def test_a_layer_that_takes_one_example_for_another_is_named_and_examples_are_run_alone(scale: float) -> None:
    class Turned(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.last = nn.Linear(4, 4), nn.Linear(4, 2)

        def forward(self, x: Tensor) -> Tensor:
            order = [0, *range(2, len(x)), 1] if len(x) > 1 else [0]
            back = sorted(range(len(x)), key=order.__getitem__)
            return self.last(self.first(x[order])[back])

    with pytest.warns(UserWarning, match="Each example is run alone.*layer 'first'"):
        way = self_test(Task(Turned(), lambda out, y: scale * cross_entropy(out, y)), batch(4))
    assert way.reason is not None


def test_a_loss_that_loses_its_axis_for_one_example_is_refused() -> None:
    def squeezed(outputs: Tensor, targets: Tensor) -> Tensor:
        return (outputs.squeeze() - targets).square().squeeze()

    with pytest.raises(InvalidParameter, match="batch of one example"):
        self_test(Task(nn.Linear(4, 1), squeezed), batch(4))


def test_where_a_module_cannot_be_run_again_examples_are_run_alone() -> None:
    with pytest.warns(UserWarning, match="Each example is run alone.*dropout"):
        way = self_test(Task(Dropping(), cross_entropy), batch(4))
    assert way.reason is not None


def test_a_test_that_takes_long_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sourdine.learning.gradients.self_test._LARGE", 8)
    with pytest.warns(UserWarning, match="8 trained numbers is tested on made-up examples before anything"):
        self_test(Task(nn.Linear(3, 2), cross_entropy), (torch.randn(6, 3), torch.tensor([0, 1, 1, 0, 0, 1])))
