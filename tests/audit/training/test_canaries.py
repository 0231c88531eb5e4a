import numpy as np
import pytest
import torch

from sourdine.audit.training import Canaries, pixel_canaries
from sourdine.audit.training.canaries import WithCanaries
from sourdine.core.errors import InvalidParameter
from sourdine.learning.data.examples import Tensors
from tests.errors import refusal_of


def test_no_two_are_alike_however_many_fit() -> None:
    made = pixel_canaries((2, 3), 4, 24)
    assert made.inputs.shape == (24, 2, 3)
    assert (made.inputs.flatten(1) != 0).sum(1).tolist() == [1] * 24
    pairs = {(int(x.flatten().argmax()), int(y)) for x, y in zip(made.inputs, made.targets, strict=True)}
    assert len(pairs) == 24
    with refusal_of("count", "pixel_canaries"):
        pixel_canaries((2, 3), 4, 25)


def test_canaries_come_after_the_data_in_their_types() -> None:
    data = Tensors(torch.zeros(3, 2, dtype=torch.float64), torch.tensor([5, 6, 7], dtype=torch.int32))
    added = Canaries(torch.ones(2, 2), torch.tensor([8, 9]))
    joined = WithCanaries(data, added)
    assert joined.size == 5
    for places, labels in (([0, 4, 2, 3], [5, 7, 9, 8]), ([1], [6]), ([3], [8]), ([], [])):
        inputs, targets = joined.batch(np.array(places, dtype=np.int64))
        assert targets.tolist() == labels
        assert inputs.dtype == torch.float64
        assert inputs[:, 0].tolist() == [float(label > 7) for label in labels]


def test_what_does_not_go_together_is_refused() -> None:
    with pytest.raises(InvalidParameter, match="as many targets as inputs"):
        Canaries(torch.zeros(3, 2), torch.zeros(2))
    three = Tensors(torch.zeros(3, 2), torch.zeros(3, 2), torch.zeros(3))
    with pytest.raises(InvalidParameter, match="one input and one target"):
        WithCanaries(three, Canaries(torch.zeros(2, 2), torch.zeros(2)))
