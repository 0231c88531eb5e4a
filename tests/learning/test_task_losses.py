import pytest
import torch
from torch import nn

from sourdine.core.errors import InvalidParameter
from sourdine.learning.task import check_loss, cross_entropy
from tests.narrow import some


def test_it_is_cross_entropy_example_by_example() -> None:
    outputs, targets = torch.randn(7, 4), torch.randint(0, 4, (7,))
    expected = nn.functional.cross_entropy(outputs, targets, reduction="none")
    assert torch.equal(cross_entropy(outputs, targets), expected)


def test_of_pixels_the_mean_is_taken_within_an_example() -> None:
    outputs, targets = torch.randn(3, 4, 5, 5), torch.randint(0, 4, (3, 5, 5))
    expected = nn.functional.cross_entropy(outputs, targets, reduction="none").flatten(1).mean(1)
    assert torch.allclose(cross_entropy(outputs, targets), expected)


def test_labels_of_no_class_count_nothing_and_raise_nothing() -> None:
    outputs = torch.randn(4, 3, requires_grad=True)
    found = cross_entropy(outputs, torch.tensor([-1, 3, 2**40, 1]))
    found.sum().backward()
    assert found[:3].tolist() == [0, 0, 0]
    assert not some(outputs.grad)[:3].any()
    assert some(outputs.grad)[3].any()


@pytest.mark.parametrize("bad", [nn.CrossEntropyLoss(), nn.MSELoss(reduction="sum"), "mse", 3])
def test_a_loss_over_the_batch_is_refused(bad: object) -> None:
    with pytest.raises(InvalidParameter, match="loss"):
        check_loss(bad)


def test_a_loss_without_reduction_passes() -> None:
    check_loss(nn.CrossEntropyLoss(reduction="none"))
