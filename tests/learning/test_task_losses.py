import pytest
import torch
from torch import nn

from sourdine.core.errors import InvalidParameter
from sourdine.learning import check
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


class Writer(nn.Module):
    """Scores of each token at each place, by name, as a causal language model gives them."""

    def __init__(self, tokens: int) -> None:
        super().__init__()
        self.embed, self.head = nn.Embedding(tokens, 4), nn.Linear(4, tokens)

    def forward(self, input_ids: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"logits": self.head(self.embed(input_ids))}


def next_token(scores: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    each = nn.functional.cross_entropy(scores[:, :-1].transpose(1, 2), tokens[:, 1:], reduction="none")
    return each.mean(1)


@pytest.mark.parametrize("places", [5, 9])  # as many places as tokens would even run
def test_the_default_loss_of_a_language_model_names_the_shifted_one(places: int) -> None:
    tokens = torch.randint(0, 9, (8, places))
    example = {"input_ids": tokens, "labels": tokens}
    with pytest.raises(InvalidParameter, match=r"predict the next token, pass loss=lambda scores, tokens"):
        check(Writer(9), None, example)
    check(Writer(9), next_token, example)


def test_places_before_classes_are_refused_without_names_too() -> None:
    with pytest.raises(InvalidParameter, match="classes on the second axis"):
        cross_entropy(torch.zeros(2, 5, 9), torch.zeros(2, 5, dtype=torch.int64))
