"""Every refusal's advice, followed: what was refused then passes."""

from collections.abc import Callable
from contextlib import suppress

import pytest
import torch
from torch import Tensor, nn

from sourdine import learning
from sourdine.core.errors import InvalidParameter
from sourdine.learning.task import Losses, cross_entropy
from tests.learning.zoo.case import Written

Y = torch.zeros(1, dtype=torch.int64)
IMAGE, WORDS, ROW = torch.zeros(1, 4, 6), torch.zeros(1, 3, dtype=torch.int64), torch.zeros(1, 4)


def _table(**options: object) -> nn.Module:
    return nn.Sequential(nn.Embedding(5, 4, **options), nn.Flatten(), nn.Linear(12, 2))  # type: ignore[arg-type]


def _normed(**options: bool) -> nn.Module:
    return nn.Sequential(nn.InstanceNorm1d(4, affine=True, **options), nn.Flatten(), nn.Linear(24, 2))


def _batch_normed() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Linear(4, 2))


def _idle(frozen: bool) -> nn.Module:
    model = Written(lambda m, x: m.used(x), used=nn.Linear(4, 2), idle=nn.Linear(4, 2))
    model.idle.requires_grad_(not frozen)
    return model


def _centred(over: int) -> nn.Module:
    return Written(lambda m, x: m.inner(x - x.mean(over, keepdim=True)), inner=nn.Linear(4, 2))


class Noting(nn.Module):
    seen: Tensor

    def __init__(self, *, notes: bool) -> None:
        super().__init__()
        self.inner, self.notes = nn.Linear(4, 2), notes
        self.register_buffer("seen", torch.zeros(4))

    def forward(self, x: Tensor) -> Tensor:
        if self.notes:
            self.seen = x.detach().mean(0)
        out: Tensor = self.inner(x)
        return out


def _squared(out: Tensor, y: Tensor) -> Tensor:
    return (out[:, 0] - y).square()


def _squeezed(out: Tensor, y: Tensor) -> Tensor:
    return (out[:, :1].squeeze() - y).square().squeeze()


def _judged(frozen: bool) -> Losses:
    judge = nn.Linear(2, 2).requires_grad_(not frozen)
    return lambda out, y: cross_entropy(judge(out), y)


Side = tuple[Callable[[], nn.Module], Losses | None]


def _model(make: Callable[[], nn.Module]) -> Side:
    return make, None


def _loss(loss: Losses) -> Side:
    return lambda: nn.Linear(4, 2), loss


@pytest.mark.parametrize(
    ("example", "refused", "message", "advised"),
    [
        (
            ROW,
            _model(_batch_normed),
            "with_group_norm",
            _model(lambda: learning.with_group_norm(_batch_normed())),
        ),
        (
            IMAGE,
            _model(lambda: _normed(track_running_stats=True)),
            "track_running_stats=False",
            _model(_normed),
        ),
        (WORDS, _model(lambda: _table(max_norm=1.0)), "Make it without", _model(_table)),
        (WORDS, _model(lambda: _table(scale_grad_by_freq=True)), "scale_grad_by_freq=False", _model(_table)),
        (
            ROW,
            _model(lambda: nn.Linear(4, 2).requires_grad_(False)),
            "Unfreeze",
            _model(lambda: nn.Linear(4, 2)),
        ),
        (ROW, _model(lambda: _idle(False)), "or freeze it", _model(lambda: _idle(True))),
        (ROW, _model(lambda: _centred(0)), "mixes examples", _model(lambda: _centred(1))),
        (ROW, _model(lambda: Noting(notes=True)), "Take it out", _model(lambda: Noting(notes=False))),
        (ROW, _loss(nn.CrossEntropyLoss()), "reduction='none'", _loss(nn.CrossEntropyLoss(reduction="none"))),
        (ROW, _loss(lambda out, y: _squared(out, y).mean()), "reduction='none'", _loss(_squared)),
        (ROW, _loss(_squeezed), r"squeeze\(1\)", _loss(lambda out, y: (out[:, :1].squeeze(1) - y).square())),
        (ROW, _loss(lambda out, y: _squared(out, y).repeat(2)), "Take the mean", _loss(_squared)),
        (ROW, _loss(lambda out, y: _squared(out.detach(), y)), "any trainable", _loss(_squared)),
        (ROW, _loss(_judged(False)), "freeze it", _loss(_judged(True))),
    ],
)
def test_the_advice_works(example: Tensor, refused: Side, message: str, advised: Side) -> None:
    make, loss = refused
    with pytest.raises(InvalidParameter, match=message):
        learning.check(make(), loss, (example, Y))
    make, loss = advised
    learning.check(make(), loss, (example, Y))


@pytest.mark.parametrize("first", [True, False])
def test_time_on_the_first_axis_is_right_and_the_advice_is_quick(first: bool) -> None:
    def run(m: Written, x: Tensor) -> Tensor:
        told = m.inner(x if first else x.transpose(0, 1))[0]
        return m.last(told.mean(1 if first else 0))

    model = Written(run, inner=nn.GRU(4, 4, batch_first=first), last=nn.Linear(4, 2))
    example = torch.zeros(1, 3, 4), Y
    if first:
        learning.check(model, None, example)
    else:
        with pytest.warns(UserWarning, match="batch_first=True"):
            learning.check(model, None, example)


@pytest.mark.filterwarnings("ignore")
def test_a_recurrent_layer_in_bfloat16_where_the_processor_has_none() -> None:
    class Last(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.states, self.head = nn.LSTM(4, 3, batch_first=True), nn.Linear(3, 2)

        def forward(self, x: Tensor) -> Tensor:
            last: Tensor = self.head(self.states(x)[0][:, -1])
            return last

    def run(model: nn.Module, **more: str) -> None:
        data = (torch.zeros(4, 2, 4), torch.zeros(4, dtype=torch.int64))
        wanted = learning.TrainingPlan(noise_multiplier=1, delta=1e-3, steps=1, batch_size=2)
        learning.fit(model, data, wanted, execution=learning.Execution(physical_batch_size=2, **more))  # type: ignore[arg-type]

    with suppress(RuntimeError), torch.autocast("cpu", dtype=torch.bfloat16):
        Last()(torch.zeros(4, 2, 4))
        pytest.skip("this processor has such a form")
    with pytest.raises(InvalidParameter, match="Leave dtype='bfloat16'"):
        run(Last(), dtype="bfloat16")
    run(Last())
    run(Last().bfloat16())
