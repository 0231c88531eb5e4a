import pytest
import torch
from torch import nn

from sourdine.core.errors import InvalidParameter
from sourdine.learning.running.averaging import Average


def test_it_is_the_recursion() -> None:
    model, expected = nn.Linear(2, 1), None
    average = Average(model, 0.6)
    expected = model.weight.detach().clone()
    for count in range(1, 30):
        with torch.no_grad():
            model.weight.add_(1.0)
        average.take()
        kept = min(0.6, count / (10 + count))
        expected = kept * expected + (1 - kept) * model.weight.detach()
    last = model.weight.detach().clone()
    with average.applied():
        assert torch.allclose(model.weight, expected)
    assert torch.equal(model.weight, last)
    average.keep()
    assert torch.allclose(model.weight, expected)


def test_it_goes_on_from_a_state() -> None:
    model = nn.Linear(2, 1)
    one, other = Average(model, 0.9), Average(model, 0.9)
    with torch.no_grad():
        model.weight.fill_(5.0)
    one.take()
    state = one.state()
    assert isinstance(state["count"], int)
    assert isinstance(state["held"], list)
    other.load(state["count"], state["held"])
    one.take()
    other.take()
    assert all(torch.equal(a, b) for a, b in zip(one.values, other.values, strict=True))


@pytest.mark.parametrize("bad", [0, 1, 1.5, "most"])
def test_a_bad_decay_names_itself(bad: float) -> None:
    with pytest.raises(InvalidParameter, match="'averaging'"):
        Average(nn.Linear(1, 1), bad)
