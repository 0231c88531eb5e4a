"""The noise of steps, one after the other, from independent noise and what is kept of earlier steps.

What is kept is as secret as the data: whoever has it can take the noise off the gradients that were shown.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable

import torch
from torch import Tensor

from sourdine.core.errors import InvalidParameter
from sourdine.learning.correlation.factor import BandedFactor, BufferedFactor, Factor, TreeFactor

Draw = Callable[[], Tensor]


class NoiseStream(ABC):
    """The rows of C⁻¹z times a deviation, one for each step; it keeps `copies` vectors in between."""

    def __init__(self, factor: Factor, stretch: float) -> None:
        self.steps, self.stretch, self.step = factor.steps, stretch, 0

    def following(self, draw: Draw) -> Tensor:
        """The noise of the next step; `draw` gives fresh, independent, standard normal numbers."""
        if self.step >= self.steps:
            raise InvalidParameter(
                f"The noise of a run was made for {self.steps:,} steps, and what one unit moves in more of "
                "them was not paid for. Plan a longer run."
            )
        noise = self._row(draw)
        self.step += 1
        return noise * self.stretch

    @abstractmethod
    def _row(self, draw: Draw) -> Tensor:
        """The next row of C⁻¹z, which the caller may not write to."""

    @abstractmethod
    def secrets(self) -> list[Tensor]:
        """What later steps need of earlier ones."""

    @abstractmethod
    def _recall(self, secrets: list[Tensor]) -> None: ...

    def resume(self, step: int, secrets: list[Tensor]) -> None:
        """Go on after so many steps."""
        self._recall(secrets)
        self.step = step


class _BandedStream(NoiseStream):
    """Each row is fresh noise less what the last rows weigh; they lie in a ring."""

    def __init__(self, factor: BandedFactor, stretch: float) -> None:
        super().__init__(factor, stretch)
        self._weights = torch.tensor(factor.coefficients[1:], dtype=torch.float32)
        self._last: Tensor | None = None

    def _row(self, draw: Draw) -> Tensor:
        fresh, copies = draw(), len(self._weights)
        if not copies:
            return fresh
        if self._last is None:
            self._last = torch.zeros(copies, len(fresh))
        place = self.step % copies  # of the oldest row, which goes; the one before it came last
        weights = torch.roll(self._weights.flip(0), place)
        row = fresh - weights @ self._last
        self._last[place] = row
        return row

    def secrets(self) -> list[Tensor]:
        return [] if self._last is None else [self._last]

    def _recall(self, secrets: list[Tensor]) -> None:
        self._last = secrets[0] if secrets else None


class _BufferedStream(NoiseStream):
    """Each row is fresh noise less the weighed buffers, to which it is then added as they fade."""

    def __init__(self, factor: BufferedFactor, stretch: float) -> None:
        super().__init__(factor, stretch)
        self._weights = torch.tensor(factor.weights, dtype=torch.float32)
        self._decays = torch.tensor(factor.decays, dtype=torch.float32)[:, None]
        self._buffers: Tensor | None = None

    def _row(self, draw: Draw) -> Tensor:
        fresh = draw()
        if self._buffers is None:
            self._buffers = torch.zeros(len(self._weights), len(fresh))
        row = fresh - self._weights @ self._buffers
        self._buffers.mul_(self._decays).add_(row)
        return row

    def secrets(self) -> list[Tensor]:
        return [] if self._buffers is None else [self._buffers]

    def _recall(self, secrets: list[Tensor]) -> None:
        self._buffers = secrets[0] if secrets else None


class _TreeStream(NoiseStream):
    """Each row is by how much the noise of the sum so far changes, which is that of the nodes it is made up
    of.

    There is one node for each bit of the number of steps, the widest first.
    """

    def __init__(self, factor: TreeFactor, stretch: float) -> None:
        super().__init__(factor, stretch)
        self._nodes: list[Tensor] = []
        self._total: Tensor | None = None

    def _row(self, draw: Draw) -> Tensor:
        node, closes = draw(), self.step + 1
        width = 2
        while closes % width == 0:  # the node of two halves weighs its own noise beside theirs
            node = torch.lerp(self._nodes.pop() + node, draw(), width / (2 * width - 1))
            width *= 2
        self._nodes.append(node)
        before, self._total = self._total, torch.stack(self._nodes).sum(0)
        return self._total if before is None else self._total - before

    def secrets(self) -> list[Tensor]:
        return [] if self._total is None else [*self._nodes, self._total]

    def _recall(self, secrets: list[Tensor]) -> None:
        *self._nodes, self._total = secrets or (None,)


def stream_of(factor: Factor, every: int) -> NoiseStream:
    """The noise of a run in which a unit comes every so many steps, for a step's deviation of 1."""
    stretch = factor.stretch(every)
    if isinstance(factor, BandedFactor):
        return _BandedStream(factor, stretch)
    if isinstance(factor, BufferedFactor):
        return _BufferedStream(factor, stretch)
    if isinstance(factor, TreeFactor):
        return _TreeStream(factor, stretch)
    raise TypeError(f"no stream of {type(factor).__name__}")
