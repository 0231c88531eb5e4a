import itertools
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from sourdine.learning import Engine, Flat
from sourdine.learning.gradients.recurrent.walk import can_walk, walked
from tests.learning import reference

KINDS = (nn.RNN, nn.LSTM, nn.GRU)


class Heard(nn.Module):
    """A recurrent layer from a given state, of which all outputs and all last states are used."""

    def __init__(self, layer: nn.RNNBase, *, started: bool) -> None:
        super().__init__()
        self.layer, self.head, self.started = layer, nn.LazyLinear(2), started
        self.before = nn.Linear(3, 3)

    def forward(self, x: Tensor) -> Tensor:
        x = self.before(x)
        outputs, last = self.layer(x, self._start(x)) if self.started else self.layer(x)
        ends = torch.cat([last] if isinstance(last, Tensor) else list(last), dim=2)
        whole: Tensor = self.head(torch.cat((outputs.mean(1), ends.transpose(0, 1).flatten(1)), dim=1))
        return whole

    def _start(self, x: Tensor) -> Tensor | tuple[Tensor, Tensor]:
        count = self.layer.num_layers * (2 if self.layer.bidirectional else 1)
        start = x.sum((1, 2)).view(1, -1, 1).expand(count, -1, self.layer.hidden_size).tanh()
        return (start, 2 * start) if self.layer.mode == "LSTM" else start


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("both", [False, True])
def test_clipped_sums_are_those_of_plain_backward_passes(kind: Any, layers: int, both: bool) -> None:
    torch.manual_seed(1)
    for bias, started in itertools.product((False, True), (False, True)):
        layer = kind(3, 4, layers, bidirectional=both, bias=bias, batch_first=True)
        model, x = Heard(layer, started=started), torch.randn(5, 6, 3)
        model(x)

        def losses(x: Tensor, model: nn.Module = model) -> Tensor:
            out: Tensor = model(x).square().sum(1)
            return out

        each = reference.gradients(model, losses, x)
        engine, clipping = Engine(model, Flat(norm=0.5)), Flat(norm=0.5)
        layers_of = {name: name.rpartition(".")[0] for name, _ in model.named_parameters()}
        found = engine.clipped_sum(lambda x=x, losses=losses: losses(x))  # type: ignore[misc]
        assert reference.distance(found, reference.clipped(each, clipping, layers_of)) < 2e-5


def test_what_a_layer_gives_is_what_it_gave() -> None:
    torch.manual_seed(2)
    cases: list[tuple[Any, dict[str, str]]] = [
        (nn.LSTM, {}),
        (nn.GRU, {}),
        (nn.RNN, {}),
        (nn.RNN, {"nonlinearity": "relu"}),
    ]
    for kind, activation in cases:
        layer = kind(3, 4, 2, bidirectional=True, batch_first=True, **activation)
        x = torch.randn(2, 5, 3)
        (outputs, last), walks = walked(layer, x)
        expected, ends = layer(x)
        assert torch.allclose(outputs, expected, atol=1e-6)
        pairs = zip(last, ends, strict=True) if isinstance(last, tuple) else [(last, ends)]
        assert all(torch.allclose(one, other, atol=1e-6) for one, other in pairs)
        assert [walk.suffix for walk in walks] == ["_l0", "_l0_reverse", "_l1", "_l1_reverse"]


def test_only_plain_layers_on_plain_tensors_are_run_here() -> None:
    x = torch.ones(2, 3, 3)
    assert can_walk(nn.LSTM(3, 2, batch_first=True), (x,), {})
    assert can_walk(nn.GRU(3, 2, batch_first=True), (), {"input": x})
    assert not can_walk(nn.GRU(3, 2), (x,), {})
    assert not can_walk(nn.GRU(3, 2, batch_first=True), (x[0],), {})
    assert not can_walk(nn.LSTM(3, 4, batch_first=True, proj_size=2), (x,), {})
    packed = nn.utils.rnn.pack_padded_sequence(x, torch.tensor([3, 2]), batch_first=True)
    assert not can_walk(nn.LSTM(3, 2, batch_first=True), (packed,), {})
    assert not can_walk(nn.Linear(3, 2), (x,), {})


def test_masks_between_layers_are_drawn() -> None:
    torch.manual_seed(3)
    layer, x = nn.GRU(3, 4, 2, dropout=0.5, batch_first=True), torch.randn(2, 5, 3)
    assert not torch.equal(walked(layer, x)[0][0], walked(layer, x)[0][0])
    assert torch.allclose(walked(layer.eval(), x)[0][0], layer(x)[0], atol=1e-6)
