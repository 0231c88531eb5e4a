from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import (
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    TensorDataset,
    WeightedRandomSampler,
)

from sourdine.core.errors import InvalidParameter
from sourdine.learning.data.examples import RepeatedExamples, batch_of, examples_of

X, Y = np.arange(12.0).reshape(6, 2), np.arange(6) % 2


Item = tuple[torch.Tensor, int]


class Pairs(Dataset[Item]):
    def __len__(self) -> int:
        return 6

    def __getitem__(self, at: int) -> tuple[torch.Tensor, int]:
        return torch.from_numpy(X[at]), int(Y[at])


class Stream(IterableDataset[tuple[object, object]]):
    def __iter__(self) -> Iterator[tuple[object, object]]:
        yield from zip(X, Y, strict=True)


FORMS = {
    "arrays": (X, Y),
    "tensors": (torch.from_numpy(X), torch.from_numpy(Y)),
    "lists": [X.tolist(), Y.tolist()],
    "dataset": Pairs(),
    "tensor dataset": TensorDataset(torch.from_numpy(X), torch.from_numpy(Y)),
    "loader": DataLoader(Pairs(), batch_size=2, shuffle=True),
    "ordered loader": DataLoader(TensorDataset(torch.from_numpy(X), torch.from_numpy(Y)), batch_size=2),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_examples(form: str) -> None:
    examples = examples_of(FORMS[form])
    assert examples.size == 6
    inputs, targets = examples.batch(np.array([4, 1]))
    assert inputs.tolist() == X[[4, 1]].tolist()
    assert targets.tolist() == [0, 1]


@pytest.mark.parametrize(
    "form",
    [
        lambda each: (each, [0, 1] * 4),
        lambda each: ([row.tolist() for row in each], [0, 1] * 4),
        lambda each: {"x": each, "labels": [0, 1] * 4},
    ],
)
def test_inputs_of_unequal_length_are_refused_without_their_number(form: Any) -> None:
    """numpy's own message has the number of examples."""
    with pytest.raises(InvalidParameter, match="one shape") as refused:
        examples_of(form([torch.zeros(3 + place % 2) for place in range(8)]))
    assert "8" not in str(refused.value)


def test_a_list_of_pairs_is_a_list_of_examples() -> None:
    pairs = [(torch.full((3,), float(place)), place % 2) for place in range(8)]
    inputs, targets = examples_of(pairs).batch(np.array([2, 5]))
    assert inputs.tolist() == [[2.0] * 3, [5.0] * 3]
    assert targets.tolist() == [0, 1]


def test_a_loaders_own_way_to_collate_is_kept() -> None:
    def doubled(items: list[Item]) -> list[torch.Tensor]:
        return [2 * torch.stack([x for x, _ in items]), torch.tensor([y for _, y in items])]

    found = examples_of(DataLoader(Pairs(), batch_size=3, collate_fn=doubled)).batch(np.array([1]))
    assert found[0].tolist() == [[4.0, 6.0]]


def test_a_loader_declares_its_batch() -> None:
    assert batch_of(FORMS["loader"]) == 2
    assert batch_of((X, Y)) is None


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (Stream(), "own order"),
        (DataLoader(Stream(), batch_size=2), "decides itself"),
        (DataLoader(Pairs(), batch_sampler=[[0, 1], [2, 3]]), "decides itself"),
        (DataLoader(Pairs(), sampler=WeightedRandomSampler([1.0] * 6, 6)), "WeightedRandomSampler"),
        (DataLoader(Pairs(), sampler=RandomSampler(Pairs(), replacement=True)), "RandomSampler"),
        (X, "cannot be a ndarray"),
        ((X, Y[:3]), "equally many"),
        ((X[:0], Y[:0]), "at least one"),
        ((np.array(["a", "b"]), Y[:2]), "hold numbers"),
    ],
)
def test_what_cannot_be_drawn_from_is_refused_with_the_reason(data: object, reason: str) -> None:
    with pytest.raises(InvalidParameter, match=reason):
        examples_of(data)


def test_made_up_examples_have_the_shapes_and_nothing_else() -> None:
    inputs, targets = examples_of((X, Y)).made_up(5)
    assert inputs.shape == (5, 2)
    assert inputs.dtype == torch.float64
    assert targets.dtype == torch.int64
    assert set(targets.tolist()) <= {0, 1}
    same = examples_of((X + 100, Y + 100)).made_up(5)
    assert torch.equal(same[0], inputs)
    assert torch.equal(same[1], targets)


def test_a_rehearsal_repeats_public_examples() -> None:
    inputs, _ = RepeatedExamples(examples_of((X, Y))).made_up(8)
    assert inputs.tolist() == X[[0, 1, 2, 3, 4, 5, 0, 1]].tolist()


class Lines(Dataset[Item]):
    def __init__(self, *lengths: int) -> None:
        self._lengths = lengths

    def __len__(self) -> int:
        return len(self._lengths)

    def __getitem__(self, place: int) -> tuple[torch.Tensor, int]:
        return torch.ones(self._lengths[place]), 0


def padded(items: list[Item]) -> list[torch.Tensor]:
    longest = max(len(x) for x, _ in items)
    rows = [torch.nn.functional.pad(x, (0, longest - len(x))) for x, _ in items]
    return [torch.stack(rows), torch.tensor([y for _, y in items])]


def test_no_example_is_collated_with_others() -> None:
    def centred(items: list[Item]) -> list[torch.Tensor]:
        x = torch.stack([x for x, _ in items])
        return [x - x.mean(0), torch.tensor([y for _, y in items])]

    examples = examples_of(DataLoader(Pairs(), batch_size=3, collate_fn=centred))
    together, alone = examples.batch(np.array([0, 4])), examples.batch(np.array([4]))
    assert torch.equal(together[0][1:], alone[0])


def test_padding_to_the_longest_of_a_batch_is_refused() -> None:
    examples = examples_of(DataLoader(Lines(3, 5), batch_size=2, collate_fn=padded))
    with pytest.raises(InvalidParameter, match="one shape"):
        examples.batch(np.array([0, 1]))
