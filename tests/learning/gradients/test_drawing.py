"""What draws at random while it trains is tried as it trains, and what cannot be tried is refused."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from sourdine import learning
from sourdine.core.errors import InvalidParameter
from sourdine.learning.task import cross_entropy
from tests.learning.zoo.case import Written

X = torch.randn(8, 4, generator=torch.Generator().manual_seed(1))
Y = (X[:, 0] > 0).long()


def _in_training(change: Callable[[nn.Module, Tensor], Tensor]) -> nn.Module:
    def run(model: Written, x: Tensor) -> Tensor:
        out: Tensor = model.inner(change(model, x) if model.training else x)
        return out

    return Written(run, inner=nn.Linear(4, 2), drop=nn.Dropout(0.2))


def _mixup(model: nn.Module, x: Tensor) -> Tensor:
    return 0.5 * x + 0.5 * x[torch.randperm(len(x))]


def _centred(model: nn.Module, x: Tensor) -> Tensor:
    return x - x.detach().mean(0) + 0.01 * torch.rand(len(x), 1)


class _Keeping(nn.Module):
    """Notes what it saw where nobody looks: neither a parameter nor a buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.seen = nn.Linear(4, 2), torch.zeros(4)

    def forward(self, x: Tensor) -> Tensor:
        if self.training:
            self.seen = 0.99 * self.seen + 0.01 * x.detach().mean(0)
        out: Tensor = self.inner(x - self.seen)
        return out


class _BackwardMixing(torch.autograd.Function):
    @staticmethod
    def forward(ctx: object, x: Tensor) -> Tensor:
        return x + 0.1 * torch.rand_like(x)

    @staticmethod
    def backward(ctx: object, *gradients: Tensor) -> Tensor:
        return gradients[0] - gradients[0].mean(0)


def _backward(model: nn.Module, x: Tensor) -> Tensor:
    out: Tensor = _BackwardMixing.apply(model.get_submodule("inner")(x.repeat(1, 1)))
    return torch.cat([out, out], 1)


def _by_numpy(model: nn.Module, x: Tensor) -> Tensor:
    return x * torch.from_numpy(np.random.default_rng().random(x.shape) > 0.5)


def _own_generator() -> nn.Module:
    source = torch.Generator().manual_seed(1)
    return _in_training(lambda model, x: x * (torch.rand(x.shape, generator=source) > 0.3))


def _always() -> nn.Module:
    return Written(lambda m, x: m.inner(functional.dropout(x)), inner=nn.Linear(4, 2))


def _by_step(model: nn.Module) -> None:
    step = learning.Step(model.train(), noise_multiplier=1.0, batch_size=8, steps=1)
    step._pay = lambda: pytest.fail("paid")
    step.add(lambda x, y: cross_entropy(model(x), y), X, Y)


def _by_fit(model: nn.Module) -> None:
    wanted = learning.TrainingPlan(noise_multiplier=1, delta=1e-3, steps=1, batch_size=4)
    learning.fit(model, (X, Y), wanted, execution=learning.Execution(physical_batch_size=8))


@pytest.mark.parametrize("train", [_by_step, _by_fit])
@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda: _in_training(_mixup), "depends on the others"),
        (lambda: _in_training(_centred), "depends on the others"),
        (lambda: _in_training(_backward), "depends on the others|mov"),
        (_Keeping, "keeps something"),
        (lambda: _in_training(_by_numpy), "draws from numpy"),
        (_own_generator, "a generator of its own"),
        (_always, "training=self.training"),
    ],
)
def test_what_is_random_does_not_hide_what_mixes(
    train: Callable[[nn.Module], None], make: Callable[[], nn.Module], reason: str
) -> None:
    with pytest.raises(InvalidParameter, match=reason):
        train(make())


@pytest.mark.parametrize(
    "change",
    [
        lambda model, x: x + torch.randn_like(x),  # as a variational model draws
        lambda model, x: x * (torch.rand(len(x), 1) > 0.2),  # as stochastic depth
        lambda model, x: x * (torch.rand(()) > 0.05),  # a layer left out for all
        lambda model, x: model.drop(x) * torch.bernoulli(torch.full_like(x, 0.9)),
    ],
)
def test_what_draws_for_each_by_itself_is_trained(change: Callable[[nn.Module, Tensor], Tensor]) -> None:
    model, before = _in_training(change), torch.get_rng_state()
    learning.check(model, None, (X, Y))
    assert torch.equal(torch.get_rng_state(), before)
    _by_fit(model)


def test_the_advice_for_dropout_by_a_function_works() -> None:
    advised = _in_training(lambda model, x: functional.dropout(x, training=model.training))
    learning.check(advised, None, (X, Y))
