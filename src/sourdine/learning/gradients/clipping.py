"""How much each example's gradient counts, so that none moves the sum by more than a norm of C."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

import torch
from torch import Tensor

from sourdine.core import check

_LEAST, _MOST = Fraction(1, 2**40), Fraction(2**40)  # beyond, float32 takes squares for 0 or infinity
_MARGIN = 1 - 2.0**-18  # what float32 can be off by in a norm, a product and a sum of them


@dataclass(frozen=True, kw_only=True)
class Clipping(ABC):
    """Weights of examples from the squared norms of their gradients, layer by layer.

    The sum of weighted gradients moves by at most `norm` when an example comes or goes. Examples whose
    gradient is not finite weigh nothing.
    """

    norm: float = 1.0

    def __post_init__(self) -> None:
        check.keep(self, norm=_plain(type(self).__name__, "norm", self.norm))

    @abstractmethod
    def weights(self, squares: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        """The weight of each example, for each layer."""

    def counts(self, squares: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        """What else is added up of the units: nothing, unless the norm follows what is counted."""
        return {}

    def _limited(self, norms: Tensor, most: float) -> Tensor:
        """most/norm where that is below 1, and 0 where the norm is not finite."""
        factor = (most * _MARGIN / norms.clamp(min=1e-30)).clamp(max=1.0)
        return torch.where(torch.isfinite(norms), factor, torch.zeros_like(factor))


@dataclass(frozen=True, kw_only=True)
class Flat(Clipping):
    """All layers together: a gradient longer than the norm is shortened to it (Abadi et al. 2016)."""

    def weights(self, squares: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        norms = torch.stack(list(squares.values())).sum(0).sqrt()
        return dict.fromkeys(squares, self._limited(norms, self.norm))


@dataclass(frozen=True, kw_only=True)
class PerLayer(Clipping):
    """Each of L layers on its own, to norm/sqrt(L), so that all together stay within the norm.

    An example with a layer that is not finite weighs nothing in all of them.
    """

    def weights(self, squares: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        most = self.norm / len(squares) ** 0.5
        finite = torch.isfinite(torch.stack(list(squares.values()))).all(0)
        return {name: self._limited(each.sqrt(), most) * finite for name, each in squares.items()}


@dataclass(frozen=True, kw_only=True)
class Automatic(Clipping):
    """Every gradient is scaled to norm |g|/(|g| + stability): no threshold to tune (Bu et al. 2023)."""

    stability: float = 0.01

    def __post_init__(self) -> None:
        super().__post_init__()
        check.keep(self, stability=_plain("Automatic", "stability", self.stability))

    def weights(self, squares: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        norms = torch.stack(list(squares.values())).sum(0).sqrt()
        factor = self.norm * _MARGIN / (norms + self.stability)
        return dict.fromkeys(squares, torch.where(torch.isfinite(norms), factor, torch.zeros_like(factor)))


def _plain(owner: str, name: str, value: float) -> float:
    """A number as it came, if it is an int or a float: checkpoints hold clippings as they are written."""
    exact = check.between(owner, name, value, _LEAST, _MOST)
    return value if type(value) in (int, float) else float(exact)
