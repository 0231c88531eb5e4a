import torch
from torch import Tensor, nn

from sourdine.learning.gradients.recurrent.lstm import lstm_steps


def numbers(*shape: int, wanted: bool = True) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64).requires_grad_(wanted)


def test_outputs_are_those_of_torch() -> None:
    torch.manual_seed(1)
    layer = nn.LSTM(3, 4).double()
    x, h, c = numbers(5, 2, 3), numbers(1, 2, 4), numbers(1, 2, 4)
    weight, across, shift, later = (each for _, each in layer.named_parameters())
    found, cell = lstm_steps(nn.functional.linear(x, weight, shift + later), h[0], c[0], across)
    expected, (_, last) = layer(x, (h, c))
    assert torch.allclose(found, expected, atol=1e-12)
    assert torch.allclose(cell, last[0], atol=1e-12)


def test_its_backward_pass_is_the_derivative() -> None:
    torch.manual_seed(2)
    across = numbers(8, 2, wanted=False)
    given = (numbers(3, 2, 8), numbers(2, 2), numbers(2, 2))
    assert torch.autograd.gradcheck(lambda inner, h, c: lstm_steps(inner, h, c, across), given)


def test_a_graph_that_is_kept_can_be_asked_again() -> None:
    torch.manual_seed(3)
    inner, across = numbers(4, 3, 8), numbers(8, 2, wanted=False)
    outputs, _ = lstm_steps(inner, numbers(3, 2), numbers(3, 2), across)
    first = torch.autograd.grad(outputs.square().sum(), inner, retain_graph=True)[0]
    assert torch.equal(first, torch.autograd.grad(outputs.square().sum(), inner)[0])
