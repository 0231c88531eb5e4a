import numpy as np
import pytest
import torch

from sourdine.core.errors import InvalidParameter
from sourdine.learning.data.examples import examples_of

ROWS = [{"input_ids": [i, 1, 2], "mask": [1, 1, 0], "label": i % 2} for i in range(6)]


class Table:
    """As a data set of another library: a length and items by number, and no Dataset of torch."""

    def __len__(self) -> int:
        return len(ROWS)

    def __getitem__(self, place: int) -> dict[str, object]:
        return dict(ROWS[place])


COLUMNS = {
    "mask": torch.tensor([[1, 1, 0]] * 6),
    "input_ids": np.array([[i, 1, 2] for i in range(6)]),
    "labels": [i % 2 for i in range(6)],
}


@pytest.mark.parametrize("data", [ROWS, Table(), COLUMNS], ids=["list", "table", "columns"])
def test_dicts_give_tensors_by_name(data: object) -> None:
    examples = examples_of(data)
    assert examples.names == ("input_ids", "mask")
    words, mask, targets = examples.batch(np.array([4, 1]))
    assert words.tolist() == [[4, 1, 2], [1, 1, 2]]
    assert mask.tolist() == [[1, 1, 0]] * 2
    assert targets.tolist() == [0, 1]
    assert words.dtype == targets.dtype == torch.int64


def test_an_item_unlike_the_first_adds_nothing() -> None:
    odd = [*ROWS, {"input_ids": [1], "mask": [1, 1, 0], "label": 0}, {"text": "x"}, None]
    (words, *_), fits = examples_of(odd).fitting(np.array([0, 6, 7, 8]))
    assert fits is not None
    assert fits.tolist() == [True, False, False, False]
    assert words.shape == (4, 3)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ([{"input_ids": [1, 2]}], "'labels'"),
        ([{"x": [1.0], "label": 1, "labels": 1}], "have one of them"),
        ([{"labels": 1}], "an input beside"),
        ([{"text": "some words", "labels": 1}], "'text' of the data holds no numbers"),
        ([{"x": [[1], [1, 2]], "labels": 1}], "'x' of the data holds no numbers"),
        ({"train": Table(), "test": Table()}, "one split"),
    ],
)
def test_what_cannot_be_taken_is_refused_with_a_remedy(data: object, reason: str) -> None:
    with pytest.raises(InvalidParameter, match=reason):
        examples_of(data)


def padded(items: list[dict[str, list[int]]], length: int | None = 5) -> dict[str, torch.Tensor]:
    long = length or max(len(item["input_ids"]) for item in items)
    rows = [item["input_ids"] + [0] * (long - len(item["input_ids"])) for item in items]
    return {"input_ids": torch.tensor(rows), "labels": torch.tensor([item["label"] for item in items])}


def test_a_collator_is_asked_for_one_at_a_time() -> None:
    unlike = [{"input_ids": [1] * (1 + i), "label": i} for i in range(3)]
    words, targets = examples_of(unlike, padded).batch(np.arange(3))
    assert words.sum(1).tolist() == [1, 2, 3]
    assert targets.tolist() == [0, 1, 2]


def test_a_collator_that_leaves_lengths_is_told_of_beforehand() -> None:
    with pytest.warns(UserWarning, match="add nothing"):
        examples_of([{"input_ids": [1, 2], "label": 0}], lambda items: padded(items, None))
