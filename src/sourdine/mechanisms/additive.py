"""Noise that is added to numbers, to many at once or, by a quicker way, to one."""

from abc import abstractmethod
from collections.abc import Mapping
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sourdine.core import grid
from sourdine.core.mechanism import Mechanism
from sourdine.core.random.bits import SYSTEM, Bits
from sourdine.core.random.samplers import Noise


class AdditiveNoise(Mechanism):
    """A mechanism that adds independent noise in whole steps of a grid to every number."""

    granularity: Fraction | None = None

    @abstractmethod
    def _make_noise(self) -> Noise:
        """Return the sampler of the noise, in steps of the grid."""

    @cached_property
    def _noise(self) -> Noise:
        return self._make_noise()

    @cached_property
    def _step(self) -> float | None:
        return None if self.granularity is None else float(self.granularity)

    def __getstate__(self) -> Mapping[str, object]:
        """Return what a copy needs: not the tables of the noise, which it makes for itself."""
        return {name: value for name, value in vars(self).items() if name not in ("_noise", "_step")}

    def sample(self, values: ArrayLike, bits: Bits = SYSTEM) -> NDArray[Any]:
        # arrays take longer to make than one draw takes; the words, and so the answer, are the same
        unit = grid.unit(values, self._step)
        if unit is not None:
            total = grid.within(unit + grid.within(self._noise.draw(bits)))
            return np.array(total) if self._step is None else np.float64(total * self._step)  # type: ignore[return-value]
        units = grid.to_units(type(self).__name__, values, self.granularity)
        noise = self._noise.sample(units.size, bits).reshape(units.shape)
        return grid.from_units(grid.plus(units, noise), self.granularity)
