"""Examples by their places, from whatever holds them; a foreign loader never draws the batches."""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeGuard

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor
from torch.utils.data import (
    DataLoader,
    Dataset,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    TensorDataset,
    default_collate,
)

from sourdine.core import check
from sourdine.core.errors import InvalidParameter
from sourdine.learning.data.batches import Indices
from sourdine.learning.data.named import Collate, halved, named_tensors, one_of

Batch = tuple[Tensor, ...]
Data = Sequence[ArrayLike | Tensor] | Dataset[Any] | DataLoader[Any]
_FORM = (
    "It must be (inputs, targets), a dict of tensors with the targets as 'labels', a Dataset with a length, "
    "or a DataLoader over one."
)


class SizedItems(Protocol):
    """What has a length and gives items by number, as data sets of other libraries do."""

    def __len__(self) -> int: ...
    def __getitem__(self, place: int, /) -> object: ...


class Examples(ABC):
    """Examples that can be asked for by place. The last tensor of a batch holds the targets."""

    size: int
    names: tuple[str, ...] | None = None  # of all but the last tensor, where examples are dicts

    @abstractmethod
    def batch(self, places: Indices) -> Batch:
        """The examples at some places, in order."""

    def fitting(self, places: Indices) -> tuple[Batch, Tensor | None]:
        """The same, with made-up examples for those that are not like the first, and which are; None if all.

        An error would tell that somebody's example is odd.
        """
        return self.batch(places), None

    @abstractmethod
    def like(self) -> Batch:
        """Tensors of one example, to look at their shapes and types, which count as public."""

    def made_up(self, count: int) -> Batch:
        """Random examples of the same shapes and types, made from no data: whole numbers are 0 or 1."""
        source = torch.Generator().manual_seed(count)
        return tuple(_random((count, *each.shape[1:]), each.dtype, source) for each in self.like())


_ONE_SHAPE = (
    "The examples of the data must all have one shape. Pad or cut each to a stated length, and not to that "
    "of others in its batch, which would make one depend on them."
)


class Tensors(Examples):
    """Examples in tensors or arrays of equal length."""

    def __init__(self, *tensors: ArrayLike | Tensor, names: tuple[str, ...] | None = None) -> None:
        self.names = names
        self._tensors = tuple(each if isinstance(each, Tensor) else _tensor(each) for each in tensors)
        sizes = {len(each) if each.ndim else 0 for each in self._tensors}
        if len(sizes) != 1 or sizes == {0}:
            raise InvalidParameter(
                "The data must hold equally many inputs and targets, at least one of each."
            )
        self.size = sizes.pop()

    def batch(self, places: Indices) -> Batch:
        at = torch.from_numpy(places)
        return tuple(each[at] for each in self._tensors)

    def like(self) -> Batch:
        return tuple(each[:1] for each in self._tensors)


class Items(Examples):
    """Examples of a Dataset, fetched and collated one by one, as pairs or as dicts.

    A function that collates many may make one depend on the others, as when all are padded to the longest.
    """

    def __init__(self, dataset: "SizedItems | Dataset[Any]", collate: Collate | None = None) -> None:
        self._dataset, self._collate = dataset, collate
        self.size = len(dataset)  # type: ignore[arg-type]
        if self.size < 1:
            raise InvalidParameter("The data must hold at least one example.")
        item: object = dataset[0]  # once: its shapes and types count as public, and nothing else is looked at
        first = self._collated(item)
        if isinstance(first, Mapping):
            self.names = named_tensors(first)[0]
        self._first = self._checked(first)
        if isinstance(item, Mapping):
            self._warn_of_lengths(item)

    def batch(self, places: Indices) -> Batch:
        each = [self._one(int(place)) for place in places]
        if len({tuple(part.shape for part in one) for one in each}) != 1:
            raise InvalidParameter(_ONE_SHAPE)
        return tuple(torch.cat(parts) for parts in zip(*each, strict=True))

    def fitting(self, places: Indices) -> tuple[Batch, Tensor | None]:
        spare, like = self.made_up(1), [(each.shape, each.dtype) for each in self.like()]
        each = []
        for place in places:
            try:
                one = self._one(int(place))
            except MemoryError:
                raise
            except Exception:  # whatever a Dataset says of an example must not be heard
                one = ()
            each.append(one if [(part.shape, part.dtype) for part in one] == like else spare)
        fits = torch.tensor([one is not spare for one in each])
        batch = tuple(torch.cat(parts) for parts in zip(*each, strict=True))
        return batch, None if bool(fits.all()) else fits

    def _collated(self, item: object) -> object:
        if self._collate is not None:
            return self._collate([item])
        return one_of(item) if isinstance(item, Mapping) else default_collate([item])

    def _warn_of_lengths(self, item: Mapping[str, object]) -> None:
        """Say beforehand that a collator leaves lengths as they are; made from the first example alone."""
        if self._collate is None:
            return
        try:
            shorter = named_tensors(_mapping(self._collate([halved(item)])))[1]
        except Exception:  # it takes no other lengths: so there are none
            return
        if [each.shape for each in shorter] != [each.shape for each in self.like()]:
            warnings.warn(
                "The 'collate' of fit leaves each example at a length of its own. Examples of another length "
                "than the first add nothing to the training. Pad all to one stated length, for instance with "
                "padding='max_length' and max_length=.",
                stacklevel=4,
            )

    def _one(self, place: int) -> Batch:
        return self._checked(self._collated(self._dataset[place]))

    def _checked(self, batch: object) -> Batch:
        if self.names is not None:
            names, batch = named_tensors(_mapping(batch))
            if names != self.names:
                raise InvalidParameter("The examples of the data must all be dicts with the same keys.")
        if not isinstance(batch, list | tuple) or not all(
            isinstance(each, Tensor) and each.shape[:1] == (1,) for each in batch
        ):
            raise InvalidParameter(
                "An example of the data must be a pair of an input and a target, each a tensor or a number, "
                "or a dict of those with the target as 'labels'. Wrap the Dataset so that it gives such ones."
            )
        return tuple(batch)

    def like(self) -> Batch:
        return self._first


class RepeatedExamples(Examples):
    """A few public examples, over and over."""

    def __init__(self, examples: Examples) -> None:
        self._examples, self.size, self.names = examples, examples.size, examples.names

    def batch(self, places: Indices) -> Batch:
        return self._examples.batch(places)

    def like(self) -> Batch:
        return self._examples.like()

    def made_up(self, count: int) -> Batch:
        return self._examples.batch(np.arange(count) % self.size)


def examples_of(data: object, collate: Collate | None = None) -> Examples:
    """The examples of anything that `fit` takes, or why they cannot be drawn as the accounting needs.

    `collate` makes tensors of a list of items; it is called for one at a time.

    >>> examples_of((np.zeros((5, 3)), np.zeros(5))).size
    5
    """
    if isinstance(data, Examples):
        return data
    if collate is not None and not callable(collate):
        raise check.fail("fit", "collate", "be a function of a list of items", collate)
    if isinstance(data, DataLoader):
        return _of_loader(data, collate)
    if isinstance(data, IterableDataset):
        raise InvalidParameter(
            "An IterableDataset gives examples in its own order, so none can be drawn with a known chance. "
            "Use a Dataset with a length."
        )
    if isinstance(data, TensorDataset) and collate is None:
        return Tensors(*data.tensors)
    if isinstance(data, Dataset):
        if not hasattr(data, "__len__"):
            raise InvalidParameter(
                "A Dataset must have a length, so that examples can be drawn. Give it one."
            )
        return Items(data, collate)
    if isinstance(data, Mapping):
        names, tensors = named_tensors({name: _column(name, each) for name, each in data.items()})
        return Tensors(*tensors, names=names)
    if _gives_items(data, collate):
        return Items(data, collate)
    if isinstance(data, tuple | list) and len(data) >= 2:
        return Tensors(*data)
    raise InvalidParameter(f"The 'data' of fit cannot be a {type(data).__name__}. {_FORM}")


def batch_of(data: object) -> int | None:
    """The batch that a DataLoader declares."""
    return data.batch_size if isinstance(data, DataLoader) else None


def _gives_items(data: object, collate: Collate | None) -> TypeGuard[SizedItems]:
    """Return whether data are read item by item: a list of dicts or pairs, or a data set of another library.

    A list of tuples is a list of examples, as torch's DataLoader takes it. A tuple of two has all inputs and
    all targets.
    """
    if isinstance(data, tuple | list):
        pairs = isinstance(data, list) and bool(data) and isinstance(data[0], tuple)
        return bool(data) and (collate is not None or pairs or isinstance(data[0], Mapping))
    if isinstance(data, str | bytes | np.ndarray | Tensor):
        return False
    return hasattr(data, "__len__") and hasattr(data, "__getitem__") and not hasattr(data, "dtypes")


def _of_loader(loader: DataLoader[Any], collate: Collate | None = None) -> Examples:
    """The dataset of a loader whose order says nothing; its own batches are not used."""
    if isinstance(loader.dataset, IterableDataset) or loader.batch_size is None:
        raise InvalidParameter(
            "This DataLoader decides itself what comes into a batch, so the chance of an example to be in "
            "one is not known and no epsilon holds. Pass its dataset, and batch=."
        )
    if type(loader.sampler) not in (RandomSampler, SequentialSampler) or getattr(
        loader.sampler, "replacement", False
    ):
        raise InvalidParameter(
            f"This DataLoader draws by a {type(loader.sampler).__name__}, for which no epsilon is known. "
            "Pass its dataset: batches are then drawn as the accounting needs."
        )
    if loader.collate_fn is not default_collate and collate is None:
        return Items(loader.dataset, loader.collate_fn)
    return examples_of(loader.dataset, collate)


def _column(name: object, values: object) -> Tensor:
    """One column of data that are given as a dict."""
    if isinstance(values, Tensor):
        return values
    if isinstance(values, Sequence | np.ndarray) and not isinstance(values, str | bytes):
        return _tensor(values)
    raise InvalidParameter(
        f"The {name!r} of the 'data' of fit is a {type(values).__name__}, and not a tensor. Pass one table "
        "of examples, such as one split of a data set, with columns of numbers alone."
    )


def _mapping(batch: object) -> Mapping[str, object]:
    if not isinstance(batch, Mapping):
        raise InvalidParameter("The examples of the data must all be dicts with the same keys.")
    return batch


def _tensor(values: ArrayLike) -> Tensor:
    try:
        array = np.asarray(values)
    except ValueError:  # numpy's message has the number of examples, which is private
        raise InvalidParameter(_ONE_SHAPE) from None
    if array.dtype.kind not in "biuf":
        raise check.fail("fit", "data", "hold numbers", array.dtype)
    if array.dtype.kind in "iu" and array.dtype != np.uint8:
        array = array.astype(np.int64)
    return torch.from_numpy(np.ascontiguousarray(array))


def _random(shape: tuple[int, ...], dtype: torch.dtype, source: torch.Generator) -> Tensor:
    if dtype.is_floating_point:
        return torch.randn(shape, generator=source).to(dtype)
    return torch.randint(0, 2, shape, generator=source).to(dtype)
