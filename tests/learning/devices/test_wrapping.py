from collections.abc import Callable
from typing import cast

import pytest
import torch
from torch import Tensor, nn

from sourdine.core.errors import InvalidParameter
from sourdine.learning import ALONE, Execution, Step, TrainingPlan, fit
from sourdine.learning.devices.wrapping import plain_calls, unwrap
from sourdine.learning.task import cross_entropy
from sourdine.testing import SeededBits
from tests.narrow import some

X = torch.randn(12, 4, generator=torch.Generator().manual_seed(3))
Y = (X[:, 0] > 0).long()


def network() -> nn.Sequential:
    torch.manual_seed(2)
    return nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 2))


def gradient(model: nn.Module) -> Tensor:
    step = Step(model, noise_multiplier=1.0, batch_size=12, steps=1, bits=SeededBits(4))
    step.add(lambda x, y: cross_entropy(model(x), y), X, Y)
    step.close()
    return torch.cat([some(value.grad).flatten() for value in model.parameters() if value.requires_grad])


def test_what_is_not_wrapped_stays_as_it_is() -> None:
    model = network()
    assert unwrap(model) == (model, ALONE)
    before = dict(model.__dict__)
    with plain_calls(model):
        pass
    assert model.__dict__ == before


def test_copies_on_other_devices_are_refused_with_what_to_do() -> None:
    with pytest.raises(InvalidParameter, match=r"Pass model\.module"):
        unwrap(nn.DataParallel(network()))


def compiled(model: nn.Module, backend: str) -> nn.Module:
    return cast("nn.Module", torch.compile(model, backend=backend))


def in_place(model: nn.Module, backend: str) -> nn.Module:
    model.compile(backend=backend)
    return model


def with_a_compiled_part(model: nn.Module, backend: str) -> nn.Module:
    assert isinstance(model, nn.Sequential)
    model[2] = compiled(model[2], backend)
    return model


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*is deprecated:DeprecationWarning")  # of torch's own compiler
@pytest.mark.parametrize("backend", ["eager", "inductor"])
@pytest.mark.parametrize("wrap", [compiled, in_place, with_a_compiled_part])
def test_a_compiled_model_is_trained_layer_by_layer(
    wrap: Callable[[nn.Module, str], nn.Module], backend: str
) -> None:
    model = wrap(network(), backend)
    with torch.no_grad():
        assert torch.allclose(model(X), network()(X), atol=1e-6)  # it is compiled now
    assert torch.equal(gradient(model), gradient(network()))
    with torch.no_grad():
        assert torch.allclose(model(X), network()(X), atol=1e-6)
    plan = TrainingPlan(noise_multiplier=2, delta=1e-2, epochs=2, batch_size=6)
    few = Execution(physical_batch_size=4)
    trained = fit(wrap(network(), backend), (X, Y), plan, execution=few, bits=SeededBits(1)).model
    plain = fit(network(), (X, Y), plan, execution=few, bits=SeededBits(1)).model
    for mine, theirs in zip(trained.parameters(), plain.parameters(), strict=True):
        assert torch.allclose(mine, theirs, atol=1e-6)


@pytest.mark.slow
def test_a_frozen_part_stays_compiled() -> None:
    torch._dynamo.reset()  # which compiles a function a few times only, in all tests together
    calls = []

    def backend(graph: torch.fx.GraphModule, inputs: list[Tensor]) -> Callable[..., object]:
        def run(*args: object) -> object:
            calls.append(len(args))
            return graph.forward(*args)

        return run

    frozen = nn.Sequential(nn.Linear(4, 4), nn.Tanh()).requires_grad_(False)
    model = nn.Sequential(cast("nn.Module", torch.compile(frozen, backend=backend)), network())
    assert gradient(model).abs().sum() > 0
    assert calls
