"""Training that is broken on purpose, with the claim of the honest one: an audit must catch it.

Nothing outside the audit uses these. A model that was trained by one of them protects nobody.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from sourdine.learning.clipping import Clipping, Flat

_LOOSE = 10.0


class Unclipped(Clipping):
    """Every gradient counts as it is, however long, beside noise for clipped ones."""

    def weights(self, squares: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        return {name: torch.ones_like(each) for name, each in squares.items()}


class Loose(Flat):
    """Gradients are clipped to ten times the norm that the noise is made for."""

    def weights(self, squares: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        return Flat(norm=_LOOSE * self.norm).weights(squares)


@dataclass(frozen=True)
class BrokenTraining:
    """A way to break training, and what is wrong with it."""

    name: str
    fault: str
    clipping: Clipping


BROKEN = (
    BrokenTraining("unclipped", "gradients are not clipped", Unclipped(norm=1.0)),
    BrokenTraining("loose", "gradients are clipped to ten times the declared norm", Loose(norm=1.0)),
)
