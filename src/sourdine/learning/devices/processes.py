"""Processes that train one model together: each clips its share of a batch, the first adds one noise.

The first process draws the batches and the noise, pays, and writes the checkpoint. The others send it their
clipped sums, without noise, so all processes are trusted alike, and so is what connects them
(docs/guarantees/learning.md).
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray
from torch import Tensor

from sourdine.core.errors import InvalidParameter, SourdineError
from sourdine.core.random.bits import SYSTEM, Bits, keystream
from sourdine.learning.data.batches import Indices

T = TypeVar("T")
_BLOCK = 16  # bytes of the cipher
_KEY = 4  # words


class ProcessGone(SourdineError):
    """Another process of a training ended, failed or did not answer."""


@dataclass(frozen=True)
class Processes:
    """The processes of torch.distributed that train one model together: all, or those of a group.

    Every one of them calls `fit`, or makes the same `Step`, with the same data and settings. Noise is drawn
    once for all and a ledger is charged once, by the first. A process that ends takes the others with it.

    >>> ALONE.rank, ALONE.count, ALONE.share(np.arange(3)).tolist()
    (0, 1, [0, 1, 2])
    """

    group: "dist.ProcessGroup | None" = None
    alone: bool = False

    def __post_init__(self) -> None:
        if not self.alone and not begun():
            raise InvalidParameter(
                "Processes train together by torch.distributed, which was not begun here. Call "
                "torch.distributed.init_process_group('gloo') first, in each process that torchrun starts; "
                "'nccl' where each has a GPU of its own."
            )

    @property
    def count(self) -> int:
        """How many there are."""
        return 1 if self.alone else dist.get_world_size(self.group)

    @property
    def rank(self) -> int:
        """The number of this one, from 0."""
        return 0 if self.alone else dist.get_rank(self.group)

    @property
    def first(self) -> bool:
        """Whether this one draws, pays and writes."""
        return self.rank == 0

    @property
    def several(self) -> bool:
        """Whether there are others."""
        return self.count > 1

    def share(self, places: Indices) -> Indices:
        """What this process takes of a batch; all shares together are the batch."""
        return places[self.rank :: self.count]

    def from_first(self, value: T | None) -> T:
        """What the first process has, in all of them."""
        boxed: list[T | None] = [value if self.first else None]
        if self.several:
            with _answered():
                dist.broadcast_object_list(boxed, src=self._root, group=self.group)
        return boxed[0]  # type: ignore[return-value]

    def places(self, places: Indices | None) -> Indices:
        """The batch that the first process drew."""
        if not self.several:
            assert places is not None
            return places
        size = torch.tensor([-1 if places is None else len(places)])
        size = self.spread(size)
        batch = torch.zeros(int(size), dtype=torch.int64) if places is None else torch.from_numpy(places)
        return self.spread(batch).numpy() if int(size) else np.zeros(0, np.int64)

    def add_up(self, values: Tensor) -> Tensor:
        """The sum over all processes, in the first; in the others nothing that means anything."""
        if not self.several:
            return values
        with _answered():
            moved = values.to(self._place(values))
            dist.reduce(moved, self._root, group=self.group)
            return moved.to(values.device)

    def spread(self, values: Tensor) -> Tensor:
        """The numbers that the first process has, in all of them."""
        if not self.several:
            return values
        with _answered():
            moved = values.to(self._place(values)).contiguous()
            dist.broadcast(moved, self._root, group=self.group)
            return moved.to(values.device)

    @contextmanager
    def all_or_none(self) -> Iterator[None]:
        """Do something before the payment in every process; where it fails in one, none goes on."""
        if not self.several:
            yield
            return
        problem: Exception | None = None
        try:
            yield
        except ProcessGone:
            raise
        except Exception as raised:
            problem = raised
        words = self._from_all(None if problem is None else f"{type(problem).__name__}: {problem}")
        if problem is not None:
            raise problem
        for rank, text in enumerate(words):
            if text is not None:
                raise ProcessGone(f"Process {rank} of the training failed, so that none goes on. {text}")

    def agree(self, facts: Mapping[str, str]) -> None:
        """Refuse to train together what is not the same in all processes, before anything is paid."""
        if not self.several:
            return
        for rank, theirs in enumerate(self._from_all(dict(facts))):
            if differ := [name for name in {**facts, **theirs} if theirs.get(name) != facts.get(name)]:
                raise InvalidParameter(
                    f"The processes of a training must be given the same. Process {rank} has another "
                    f"{differ[0]} than process {self.rank}. Nothing was paid for. Pass the same model, data "
                    "and settings in all of them."
                )

    def shared_bits(self, bits: Bits = SYSTEM) -> Bits:
        """Bits that all processes draw alike, from one secret of the first."""
        if not self.several:
            return bits
        key, secure = self.from_first((bits.words(_KEY).tobytes(), bits.secure) if self.first else None)
        return SharedBits(key, secure=secure)

    def _from_all(self, value: T) -> Sequence[T]:
        boxes: list[T | None] = [None] * self.count
        with _answered():
            dist.all_gather_object(boxes, value, group=self.group)
        return boxes  # type: ignore[return-value]

    @property
    def _root(self) -> int:
        return 0 if self.group is None else dist.get_global_rank(self.group, 0)

    def _place(self, values: Tensor) -> torch.device:
        """Where the processes exchange numbers: nccl knows those of GPUs only, gloo those of memory."""
        if dist.get_backend(self.group) != "nccl":
            return torch.device("cpu")
        return values.device if values.is_cuda else torch.device("cuda", torch.cuda.current_device())


ALONE = Processes(alone=True)


class SharedBits:
    """The words of AES-256 in counter mode under a key that several processes have, and nobody else.

    >>> SharedBits(bytes(32), secure=False).words(2).tolist() == SharedBits(bytes(32), secure=False).words(2)
    array([ True,  True])
    """

    def __init__(self, key: bytes, *, secure: bool) -> None:
        self._key, self._block = key, 0
        self.secure = secure

    def words(self, count: int, /) -> NDArray[np.uint64]:
        """The next words; no block of the cipher is used twice."""
        blocks = -(-8 * count // _BLOCK)
        start, self._block = self._block, self._block + blocks
        return keystream(self._key, blocks * _BLOCK, start).view(np.uint64)[:count]


def begun() -> bool:
    """Whether this process is one of several that know each other."""
    return dist.is_available() and dist.is_initialized()


@contextmanager
def _answered() -> Iterator[None]:
    """Say in our words that another process did not answer; theirs name hosts and ports."""
    try:
        yield
    except RuntimeError as problem:
        raise ProcessGone(
            "Another process of this training ended, or did not answer in time, so this one ends too. What "
            "was paid stays paid. Start all of them again with the same checkpoint, and the run goes on "
            "without a second payment."
        ) from problem
