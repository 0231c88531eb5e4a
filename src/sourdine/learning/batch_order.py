"""Batches that were drawn for one run: each is given out once, in order, and a step takes each once.

The price of a run holds if the batch of step t is the t-th that the plan drew, whole or in parts, and nothing
else. So the tensors that a loader gives out are remembered, with their rows, as long as they exist. Only
where they were copied, to another device for example, does a step go by the order of the batches.
"""

import weakref
from collections.abc import Iterator, MutableMapping
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray
from torch import Tensor
from torch.utils._pytree import tree_leaves
from torch.utils.weak import WeakIdKeyDictionary

from sourdine.core.errors import BudgetExceeded, InvalidParameter
from sourdine.learning.data.batches import Batches, Indices
from sourdine.learning.data.trees import Tree, count_of, tree_of

_DRAWN: MutableMapping[object, "DrawnBatches"] = WeakIdKeyDictionary()  # the last drawing of each plan
_ORDERS: MutableMapping[object, "BatchOrder"] = WeakIdKeyDictionary()  # of the last step of each plan
# of tensors that were given out, by the tensor that owns their memory
_ORIGINS: MutableMapping[Tensor, "_Origin"] = WeakIdKeyDictionary()
_AGAIN = (
    "An example of the open batch was added twice, and would count twice. Add each part of a batch once; "
    "several versions of an example are one unit with examples_per_unit."
)

Rows = NDArray[np.int64]


@dataclass(frozen=True)
class _Origin:
    """The rows of a drawn batch that a tensor was made of."""

    drawn: "DrawnBatches"
    number: int
    start: int
    count: int
    offset: int
    stride: int

    def rows(self, part: Tensor) -> Rows | None:
        """Return the rows of the batch that a tensor in the same memory has; None where it has others."""
        rows = (_addresses(part) - self.offset) // max(self.stride, 1)
        if len(rows) and not (rows.min() >= 0 and rows.max() < self.count):
            return None
        return rows + self.start


class DrawnBatches:
    """The batches of one run in their order, and which of them were given out.

    `parts` is the most units of a part, where batches are given out in parts.
    """

    def __init__(self, plan: object, batches: Batches, steps: int, source: Iterator[Indices]) -> None:
        self.drawn_as = batches, steps
        self.parts: int | None = None
        self.given = 0
        self.sizes: dict[int, dict[int, int]] = {}  # rows of each part, by batch and by its first row
        self.whole: set[int] = set()  # batches of which all parts were given out
        self.order: BatchOrder | None = None  # of the step that takes them
        self._source, self._drawn, self._places = source, 0, dict[int, Indices]()
        self._plan = weakref.ref(plan)
        _DRAWN[plan] = self

    def __reduce_ex__(self, protocol: object) -> str:
        raise InvalidParameter(
            "A loader cannot be copied or pickled, since each of its batches is drawn and paid for once. "
            "Make another plan and another loader for another run."
        )

    def left(self) -> Iterator[tuple[int, int, Indices, bool]]:
        """Draw what is left: the number of a batch, where a part of it begins, its places, if it is the last.

        What was drawn and not taken is given out again, and never drawn again.
        """
        order = self._step_order()
        number = self.given if order is None else order.number
        steps = self.drawn_as[1]
        if number >= steps:
            raise BudgetExceeded(
                f"All {steps:,} batches of the plan were given out. Plan a run with more epochs, and pay for "
                "that.",
                amount=Fraction(1),
                left=Fraction(0),
            )
        self.given = number
        while number < steps:
            while self._drawn <= number:
                self._places[self._drawn] = next(self._source)
                self._drawn += 1
            places = self._places[number]
            size = self.parts or max(len(places), 1)
            starts = range(0, max(len(places), 1), size)
            for start in starts:
                if order is None or not order.has(number, start, start + size):
                    yield number, start, places[start : start + size], start == starts[-1]
            number += 1

    def give(self, number: int, start: int, count: int, *, last: bool, batch: object = None) -> None:
        """Note that a part of a batch is given out now."""
        self.given = max(self.given, number + 1)
        self.sizes.setdefault(number, {})[start] = count
        if last:
            self.whole.add(number)
        for leaf in tree_leaves(tree_of((batch,))):
            if isinstance(leaf, Tensor) and leaf.ndim:
                first = int(leaf.storage_offset())
                origin = _Origin(self, number, start, len(leaf), first, leaf.stride(0))
                _ORIGINS[_owner(leaf)] = origin
        order = self._step_order()
        self._forget(self.given - 1 if order is None else order.number)

    def each(self) -> Iterator[Indices]:
        """Give out the places of each batch that is left."""
        for number, start, places, last in self.left():
            self.give(number, start, len(places), last=last)
            yield places

    def _step_order(self) -> "BatchOrder | None":
        """The order of the step that takes these batches, or will."""
        if self.order is not None or (plan := self._plan()) is None:
            return self.order
        waiting: BatchOrder | None = _ORDERS.get(plan)
        return waiting if waiting is not None and waiting.waits else None

    def _forget(self, number: int) -> None:
        for kept in (self._places, self.sizes):
            for old in [each for each in kept if each < number]:
                del kept[old]
        self.whole = {each for each in self.whole if each >= number}


class BatchOrder:
    """The order in which a step takes logical batches, and what was added of the open one.

    With a plan they are the batches that it draws and no others.
    """

    def __init__(self, plan: object = None, drawn_as: tuple[Batches, int] | None = None) -> None:
        self.number = 0
        self._plan = None if plan is None else weakref.ref(plan)
        self._drawn_as = drawn_as
        self._drawn: DrawnBatches | None = None
        self._open()
        if plan is not None:
            _ORDERS[plan] = self

    def _open(self) -> None:
        self.begun = False
        self._rows: set[int] = set()
        self._units = 0
        # rows that were added, by the tensor that owns their memory, and its version then
        self._memory: MutableMapping[Tensor, tuple[int, Rows]] = WeakIdKeyDictionary()

    @property
    def waits(self) -> bool:
        """Whether it takes the batches of no drawing yet."""
        return self._drawn is None

    def has(self, number: int, start: int, stop: int) -> bool:
        """Whether some of these rows of a batch were added."""
        return number == self.number and any(start <= row < stop for row in self._rows)

    def check(self, parts: Tree, examples_per_unit: int) -> "BatchPart":
        """Refuse what is not a part of the batch whose turn it is, or was added before."""
        count = count_of(parts)
        if count % examples_per_unit:
            raise InvalidParameter(
                f"The batch must hold {examples_per_unit} examples for each person. Fill it up."
            )
        leaves = [each for each in tree_leaves(parts) if isinstance(each, Tensor) and each.ndim]
        part = BatchPart(count // examples_per_unit, leaves)
        if self._is_known(part, examples_per_unit):
            raise InvalidParameter(_AGAIN)
        if part.origin is not None:
            self._check_turn(*part.origin)
            assert part.rows is not None
            units = part.rows.reshape(-1, examples_per_unit)
            units = units[:, :1] if (units == units[:, :1]).all() else units
            if len(np.unique(units)) < units.size or not self._rows.isdisjoint(part.rows.tolist()):
                raise InvalidParameter(_AGAIN)
        else:
            self._check_copy()
        drawn = self.drawn if part.origin is None else part.origin[0]
        if drawn is not None and self._units + part.units > sum(drawn.sizes.get(self.number, {}).values()):
            raise InvalidParameter(
                "Step.add was given more units than the batch has whose turn it is. Add each part of a batch "
                "once, and close it before the next."
            )
        return part

    def note(self, part: "BatchPart") -> bool:
        """Note what was added, and tell whether the batch closes by itself."""
        if part.origin is not None:
            self._bind(part.origin[0])
        drawn = self.drawn
        self.begun = True
        self._units += part.units
        if part.rows is not None:
            self._rows.update(part.rows.tolist())
        for owner, version, rows in part.memory:
            before = self._memory.get(owner)
            if before is not None and before[0] == version:
                self._memory[owner] = version, np.concatenate([before[1], rows])
            else:
                self._memory[owner] = version, rows
        if drawn is None:
            return False
        self._bind(drawn)
        size = sum(drawn.sizes.get(self.number, {}).values())
        return drawn.parts is not None and self.number in drawn.whole and self._units == size

    def check_close(self) -> None:
        """Refuse to close a batch that was not given out, or of which a part is missing."""
        drawn = self.drawn
        if drawn is None:
            return
        if not self.begun and drawn.given <= self.number:
            raise InvalidParameter(
                "Step.close was called when no batch was open. Call it once for each batch of the loader; "
                "the parts of a batch close by themselves."
            )
        if self.begun and drawn.parts is not None:
            raise InvalidParameter(
                "Step.close was called before all parts of the batch were added. Add the others, after which "
                "it closes by itself, or call step.drop()."
            )

    def end(self) -> None:
        """Go on to the next batch: the open one was closed or dropped."""
        if (drawn := self.drawn) is not None:
            self._bind(drawn)
        self.number += 1
        self._open()

    @property
    def drawn(self) -> DrawnBatches | None:
        """The drawing whose batches are taken, or the last one of the plan."""
        if self._drawn is not None or self._plan is None:
            return self._drawn
        latest: DrawnBatches | None = _DRAWN.get(self._plan())
        return latest if latest is not None and latest.order is None else None

    def _bind(self, drawn: DrawnBatches) -> None:
        self._drawn, drawn.order = drawn, self

    def _check_turn(self, drawn: DrawnBatches, number: int) -> None:
        if drawn.order not in (None, self) or self._drawn not in (None, drawn):
            raise InvalidParameter(
                "The batch is of another loader than those before it, or of one whose batches another Step "
                "takes. Make one loader and one Step for a plan, before the loop."
            )
        if self._drawn_as not in (None, drawn.drawn_as):
            raise InvalidParameter(
                "The batch was drawn by another plan than the one that this Step was made of. Give both the "
                "same plan."
            )
        if self._drawn is None and self._plan is None and not self.begun:
            self.number = number
        if number < self.number:
            raise InvalidParameter(
                f"Batch {number + 1:,} was closed before, and each batch is added to one step. Go on with "
                "the next one of the loader."
            )
        if number > self.number:
            begun = "was begun and not closed" if self.begun else "was neither added nor closed"
            raise InvalidParameter(
                f"Batch {number + 1:,} is out of turn, since batch {self.number + 1:,} {begun}. Call "
                "step.close() after every batch, also an empty one, or step.drop(); to accumulate gradients "
                "for memory, state a physical_batch_size."
            )

    def _check_copy(self) -> None:
        """Refuse tensors that show no batch of the loader, unless exactly one can be meant."""
        drawn = self.drawn
        if drawn is None:
            if self._plan is not None:
                raise InvalidParameter(
                    "The batches of a Step made of a plan must be those that the plan draws, since no others "
                    "were paid for. Loop over sourdine.learning.loader(data, plan), or over plan.draw()."
                )
            return
        waiting = drawn.given - self.number
        if waiting != 1:
            raise InvalidParameter(
                f"The batch that was added cannot be recognized while {waiting:,} batches of the loader are "
                "open. Add and close, or drop, each batch before the next one is drawn; to accumulate "
                "gradients for memory, state a physical_batch_size."
            )

    def _is_known(self, part: "BatchPart", examples_per_unit: int) -> bool:
        """Whether a row, in the memory of every tensor, was added before, or is added several times now."""
        again = np.ones(part.units * examples_per_unit, bool)
        for owner, version, rows in part.memory:
            before = self._memory.get(owner)
            again &= np.isin(rows, before[1]) if before is not None and before[0] == version else False
        still = all(
            len(rows) > examples_per_unit and bool((rows == rows[0]).all()) for *_, rows in part.memory
        )
        return bool(part.memory) and (bool(again.any()) or still)


class BatchPart:
    """What is about to be added: how many units, in which memory, and of which rows of which batch."""

    def __init__(self, units: int, leaves: list[Tensor]) -> None:
        self.units = units
        self.memory = [(_owner(leaf), _owner(leaf)._version, _addresses(leaf)) for leaf in leaves]
        self.origin: tuple[DrawnBatches, int] | None = None
        self.rows: Rows | None = None
        for leaf in leaves:
            known: _Origin | None = _ORIGINS.get(_owner(leaf))
            if known is not None and (rows := known.rows(leaf)) is not None:
                self._note(known, rows)

    def _note(self, known: _Origin, rows: Rows) -> None:
        origin = known.drawn, known.number
        if self.origin not in (None, origin):
            raise InvalidParameter(
                "Step.add was given parts of two logical batches at once. Add each batch by itself, and "
                "close it before the next."
            )
        if self.rows is not None and not np.array_equal(self.rows, rows):
            raise InvalidParameter(
                "Step.add was given tensors with different rows of a batch, so that an example would be made "
                "of two units. Cut all tensors of a batch at the same rows."
            )
        self.origin, self.rows = origin, rows


def _owner(tensor: Tensor) -> Tensor:
    """The tensor that owns the memory of another, or of itself."""
    return tensor if tensor._base is None else tensor._base


def _addresses(tensor: Tensor) -> Rows:
    """Where each row begins in memory."""
    first: Rows = int(tensor.storage_offset()) + tensor.stride(0) * np.arange(len(tensor), dtype=np.int64)
    return first
