"""Batches as the accounting needs them, by torch's own DataLoader."""

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_flatten, tree_leaves, tree_map_only, tree_unflatten
from torch.utils.data import DataLoader, Dataset, TensorDataset, default_collate

from sourdine.core import check
from sourdine.core.errors import InvalidParameter
from sourdine.core.random.bits import SYSTEM, Bits
from sourdine.learning.batch_order import DrawnBatches
from sourdine.learning.data.trees import tree_of
from sourdine.learning.devices.processes import ALONE, Processes
from sourdine.learning.pricing import PricedPlan


def loader(
    data: object,
    plan: PricedPlan,
    *,
    collate_fn: Callable[[list[Any]], Any] = default_collate,
    num_workers: int = 0,
    physical_batch_size: int | None = None,
    processes: Processes = ALONE,
    bits: Bits = SYSTEM,
) -> DataLoader[Any]:
    """A DataLoader that gives the batches of a plan, as many as it has steps, for a loop of one's own.

    `data` is a Dataset with a length, tensors of equal length, or a list of dicts. A batch in which nobody
    was drawn comes as tensors without rows, and takes a step like any other. Each batch is drawn once, and
    belongs to one `Step`: after a `break` the loader goes on with the first batch that the step has not
    taken. With a `physical_batch_size` it gives each batch in parts of at most so many examples, and the step
    closes when the last part was added. An example that cannot be read, or that is not of the first
    one's shape and type, is left out of its batch without a word: an error would tell that it is there.
    `collate_fn` sees the examples of a batch together: where it pads all to the longest, one example moves
    others by that, so let it pad to a fixed length. With `processes` each gets its share of every batch, and
    all draw from one secret of the first.

    >>> import torch
    >>> from sourdine.learning import TrainingPlan, plan
    >>> priced = plan(TrainingPlan(epsilon=3, delta=1e-4, epochs=2, batch_size=5), size=20)
    >>> len(list(loader((torch.zeros(20, 3), torch.zeros(20)), priced)))
    8
    """
    dataset = _dataset(data)
    if len(dataset) != plan.size and not plan.batches.hides_size:  # type: ignore[arg-type]
        must = f"be drawn for the {len(dataset):,} examples of the data"  # type: ignore[arg-type]
        raise check.fail("loader", "plan", must, plan.size, "Make it with size=len(dataset).")
    drawn = plan.drawing(processes.shared_bits(bits), present=len(dataset))  # type: ignore[arg-type]
    if physical_batch_size is not None:
        most = check.integer("loader", "physical_batch_size", physical_batch_size, 1, 1 << 30)
        drawn.parts = most * processes.count
    return _Loader(
        _Readable(dataset),
        batch_sampler=_Sampler(drawn, plan.steps, processes),
        collate_fn=_Collate(dataset[0], collate_fn),
        num_workers=check.integer("loader", "num_workers", num_workers, 0, 1 << 12),
    )


class _Sampler:
    """The places of every batch that is left of a drawing."""

    def __init__(self, drawn: DrawnBatches, steps: int, processes: Processes) -> None:
        self.drawn, self._steps, self._processes = drawn, steps, processes
        self.parts = deque[tuple[int, int, bool]]()  # that were asked for and not given out yet

    def __len__(self) -> int:
        return self._steps

    def __iter__(self) -> Iterator[list[int]]:
        self.parts = deque()
        return self._ask(self.parts)

    def _ask(self, parts: deque[tuple[int, int, bool]]) -> Iterator[list[int]]:
        for number, start, places, last in self.drawn.left():
            parts.append((number, start, last))  # workers ask for several batches ahead
            yield self._processes.share(places).tolist()


class _Loader(DataLoader[Any]):
    """A DataLoader that notes which batch it gives out."""

    batch_sampler: _Sampler

    def __iter__(self) -> Iterator[Any]:  # type: ignore[override]
        batches = super().__iter__()
        parts = self.batch_sampler.parts
        for batch in batches:
            number, start, last = parts.popleft()
            rows = (
                len(each) for each in tree_leaves(tree_of((batch,))) if isinstance(each, Tensor) and each.ndim
            )
            self.batch_sampler.drawn.give(number, start, next(rows, 0), last=last, batch=batch)
            yield batch


class _Unreadable:
    """Stands where an example could not be read."""


class _Readable(Dataset[Any]):
    """A data set that says nothing of examples which cannot be read."""

    def __init__(self, dataset: Dataset[Any]) -> None:
        self._dataset = dataset

    def __len__(self) -> int:
        return len(self._dataset)  # type: ignore[arg-type]

    def __getitem__(self, place: int) -> Any:
        try:
            return self._dataset[place]
        except MemoryError:
            raise
        except Exception:  # whatever a Dataset says of an example must not be heard
            return _Unreadable()

    def __getitems__(self, places: list[int]) -> list[Any]:
        """Several at once, by the data set's own way to read them if it has one."""
        read = getattr(self._dataset, "__getitems__", None)
        if read is not None:
            with suppress(Exception):
                items = list(read(places))
                if len(items) == len(places):
                    return items
        return [self[place] for place in places]


class _Collate:
    """Makes a batch of the examples that fit, also of none."""

    def __init__(self, first: object, collate: Callable[[list[Any]], Any]) -> None:
        self._first, self._collate = first, collate  # its shapes and types count as public
        self._form = _form(first)
        one = collate([first])
        self._alone = _form(one)
        self._nobody = tree_map_only(
            Tensor, lambda each: each[:0], dict(one) if hasattr(one, "keys") else one
        )

    def __call__(self, examples: list[Any]) -> Any:
        # each is looked at by itself, so that none decides whether another is left out
        fitting = [each for each in examples if not isinstance(each, _Unreadable) and self._fits(each)]
        try:
            return self._collate(fitting) if fitting else self._nobody
        except MemoryError:
            raise
        except Exception:  # what cannot be collated with others is collated by itself
            parts = [self._collate([each]) for each in fitting]
            alike = [part for part in parts if _form(part) == self._alone]
            return _joined(alike) if alike else self._nobody

    def _fits(self, example: object) -> bool:
        """Whether it can be collated with the first, and by itself."""
        if self._collate is default_collate:  # it turns a batch into the type of one odd example
            return _form(example) == self._form
        try:
            self._collate([self._first, example])
            self._collate([example])
        except Exception:
            return False
        return True


def _joined(parts: list[Any]) -> Any:
    """Batches of one as a batch of several."""
    form = tree_flatten(parts[0])[1]
    columns = zip(*(tree_flatten(part)[0] for part in parts), strict=True)
    joined = [torch.cat(each) if isinstance(each[0], Tensor) else each[0] for each in columns]
    return tree_unflatten(joined, form)


def _form(example: object) -> object:
    """The shapes and types of an example."""
    leaves, form = tree_flatten(example)
    return form, [(type(each), getattr(each, "shape", None), getattr(each, "dtype", None)) for each in leaves]


def _dataset(data: object) -> Dataset[Any]:
    if isinstance(data, Dataset) and hasattr(data, "__len__"):
        return data
    if isinstance(data, tuple | list) and data and all(isinstance(each, Tensor) for each in data):
        return TensorDataset(*data)
    if isinstance(data, list) and data and all(isinstance(each, Mapping) for each in data):
        return data  # type: ignore[return-value]  # examples with names, as tokenizers give them
    if (
        hasattr(data, "__len__")
        and hasattr(data, "__getitem__")
        and not isinstance(data, tuple | list | dict)
    ):
        return data  # type: ignore[return-value]  # datasets of others
    raise InvalidParameter(
        f"The 'data' of loader cannot be a {type(data).__name__}. It must be a Dataset with a length, or a "
        "tuple of tensors. Of a DataLoader pass its dataset: batches are drawn anew."
    )
