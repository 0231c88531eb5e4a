import pytest
import torch
from torch import Tensor, nn

from sourdine.learning import Engine, Flat
from sourdine.learning.gradients.entangled import Entangled
from sourdine.learning.gradients.layout import shared_layers


class Placed(nn.Module):
    """Words and their places, which are given with an axis of length 1 for the examples, or with none."""

    def __init__(self, *, axis: bool) -> None:
        super().__init__()
        self.words, self.places, self.axis = nn.Embedding(9, 4), nn.Embedding(12, 4), axis

    def forward(self, x: Tensor) -> Tensor:
        at = torch.arange(x.shape[1])
        return self.words(x) + self.places(at.unsqueeze(0) if self.axis else at)


def found(model: nn.Module, x: Tensor) -> frozenset[str]:
    return shared_layers(Engine(model, Flat()).owners, lambda x: model(x).flatten(1).sum(1), (x,))


@pytest.mark.parametrize("axis", [True, False])
@pytest.mark.parametrize("length", [1, 5, 6, 12])
def test_places_are_shared_even_where_there_are_as_many_as_examples(axis: bool, length: int) -> None:
    assert found(Placed(axis=axis), torch.zeros(6, length, dtype=torch.int64)) == {"places"}


def test_rows_that_grow_with_the_examples_are_not_shared() -> None:
    class Folded(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Linear(3, 2)

        def forward(self, x: Tensor) -> Tensor:
            return self.inner(x.flatten(0, 1)).unflatten(0, x.shape[:2])

    assert found(Folded(), torch.randn(6, 4, 3)) == frozenset()


def test_what_is_given_both_is_entangled() -> None:
    class Both(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Bilinear(3, 3, 2)

        def forward(self, x: Tensor) -> Tensor:
            return self.inner(x, torch.ones(6, 3)[: len(x)])

    assert found(Both(), torch.randn(6, 3)) == frozenset()

    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Linear(3, 2)

        def forward(self, x: Tensor) -> Tensor:
            return self.inner(x) + self.inner(torch.ones(1, 3))

    with pytest.raises(Entangled, match="'inner'"):
        found(Twice(), torch.randn(6, 3))
