"""Examples taken into a step: clipped sums that no example can break, whatever it is."""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor, nn

from sourdine.core.errors import SourdineError
from sourdine.core.random.bits import Bits
from sourdine.learning.data.trees import Tree, count_of, made_up, part_of
from sourdine.learning.devices.wrapping import plain_calls
from sourdine.learning.exact import WholeSums
from sourdine.learning.gradients.alone import lacks_memory
from sourdine.learning.gradients.clipping import Clipping
from sourdine.learning.gradients.engine import Sums
from sourdine.learning.gradients.self_test import REHEARSED
from sourdine.learning.gradients.way import ClippedSums, GradientWay, way_of


class Intake:
    """Clipped sums of batches for one model, in floats or, with `places`, in whole numbers of a grid.

    Before it is `ready` what is wrong is told: a batch is then nobody's. After it nothing is.
    """

    def __init__(
        self, model: nn.Module, outer: nn.Module, clipping: Clipping, *, places: int | None, bits: Bits
    ) -> None:
        """`outer` is the model as torch wraps it; `places` are those for units in each exact batch."""
        self._model, self._outer, self._clipping = model, outer, clipping
        self._places, self._bits = places, bits
        self._way: GradientWay | None = None
        self._clipped: ClippedSums | None = None
        self._whole: WholeSums | None = None

    def ready(self, way: GradientWay) -> None:
        """Be told how gradients are taken, by a test on made-up examples: no error then depends on one."""
        if way != self._way:
            self.forget()
            self._way = way

    def forget(self) -> None:
        """Look at the model anew: other parameters of it are trained."""
        self._way, self._clipped, self._whole = None, None, None

    def clip_by(self, clipping: Clipping) -> None:
        """Go on with another clipping."""
        self._clipping = clipping
        if self._clipped is not None:
            self._clipped.clip_by(clipping)

    def sums(self, losses: Callable[..., Tensor], batch: Tree, examples_per_unit: int) -> Iterator[Sums]:
        """The clipped sums of a batch, in parts that add up to it.

        Where the model cannot run on a batch it is cut in two, and so on: a unit on which it cannot run alone
        adds exactly nothing. An error would tell that it is there.
        """
        if self._places is not None:
            with plain_calls(self._outer):
                yield from self._whole_sums(losses, batch).sums(losses, batch, examples_per_unit)
            return
        count, tested = count_of(batch), self._way is not None
        try:
            with plain_calls(self._outer):
                sums = self._sums_of(losses, batch).add_up(
                    losses, batch, examples_per_unit=examples_per_unit, strict=not tested
                )
        except Exception as problem:  # whatever a model says of an example must not be heard
            if lacks_memory(problem) or (isinstance(problem, SourdineError) and not tested):
                raise
            units = count // examples_per_unit
            if units < 2:
                return
            half = units // 2 * examples_per_unit
            yield from self.sums(losses, part_of(batch, 0, half), examples_per_unit)
            yield from self.sums(losses, part_of(batch, half, count), examples_per_unit)
            return
        yield {name: total.to(_wide(total.dtype)) for name, total in sums.items()}

    def check_places(self, losses: Callable[..., Tensor], like: Tree, examples_per_unit: int) -> None:
        """In exact steps, test that the examples of a batch do not change each other's last digits."""
        if self._places is not None:
            with plain_calls(self._outer):
                self._whole_sums(losses, like).check(losses, like, examples_per_unit)

    def _whole_sums(self, losses: Callable[..., Tensor], batch: Tree) -> WholeSums:
        if self._whole is None:
            assert self._places is not None
            self._whole = WholeSums(
                self._model, self._clipping, self._way_for(losses, batch), self._places, self._bits
            )
        return self._whole

    def _sums_of(self, losses: Callable[..., Tensor], batch: Tree) -> ClippedSums:
        if self._clipped is None:
            self._clipped = ClippedSums(self._model, self._clipping, self._way_for(losses, batch))
        return self._clipped

    def _way_for(self, losses: Callable[..., Tensor], batch: Tree) -> GradientWay:
        return self._way or way_of(self._model, losses, made_up(batch, REHEARSED))


def _wide(dtype: torch.dtype) -> torch.dtype:
    """Sums are float32 at least, whatever the model computes in."""
    return torch.float64 if dtype == torch.float64 else torch.float32
