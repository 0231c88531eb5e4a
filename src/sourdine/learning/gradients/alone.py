"""Clipped sums of gradients by running each example alone, for models whose batches cannot be taken apart.

Nothing has to be known of a model: the gradient of an example is that of a run which saw no other. It is
slower, as a batch of one does not fill a machine, and right for every use of a parameter.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from sourdine.learning.data.trees import Tree, count_of, part_of
from sourdine.learning.gradients.calls import wide
from sourdine.learning.gradients.clipping import Clipping
from sourdine.learning.gradients.engine import Sums
from sourdine.learning.gradients.owners import layers_of
from sourdine.learning.gradients.per_example import GradientRows


class Alone:
    """Clipped sums of the gradients of one model, one unit at a time.

    >>> from sourdine.learning import Flat
    >>> model = nn.Linear(3, 1, bias=False)
    >>> x = torch.tensor([[3.0, 0, 0], [0, 0.5, 0]])
    >>> sums = Alone(model, Flat(norm=1.0)).clipped_sum(lambda x: model(x).squeeze(1), (x,))
    >>> [round(float(each), 3) for each in sums["weight"][0]]
    [1.0, 0.5, 0.0]
    """

    def __init__(self, model: nn.Module, clipping: Clipping) -> None:
        self.model, self.clipping = model, clipping
        self._layers = layers_of(model)
        self._values = dict(model.named_parameters())

    def clipped_sum(
        self,
        losses: Callable[..., Tensor],
        batch: Tree,
        *,
        examples_per_unit: int = 1,
        strict: bool = True,
    ) -> Sums:
        """The clipped gradients of the units of a batch, added up, by the names of the parameters.

        `losses` runs the model on the parts of a batch. A unit whose gradient is not finite adds exactly
        nothing, and unless `strict` so does one on which the model fails: an error would tell of it.
        """
        sums: Sums = {
            name: torch.zeros_like(self._values[name], dtype=wide(self._values[name]).dtype)
            for name in self._layers
        }
        for start in range(0, count_of(batch), examples_per_unit):
            try:
                gradients = self._gradients(losses, part_of(batch, start, start + examples_per_unit))
            except Exception as problem:  # a model may say anything of an example
                if strict or lacks_memory(problem):
                    raise
                continue
            self._add(sums, gradients)
        return sums

    def _gradients(self, losses: Callable[..., Tensor], unit: Tree) -> Sums:
        with torch.enable_grad():
            total = losses(*unit).sum()
        values = [self._values[name] for name in self._layers]
        gradients: tuple[Tensor | None, ...] = torch.autograd.grad(total, values, allow_unused=True)
        return {
            name: wide(one.to_dense())
            for name, one in zip(self._layers, gradients, strict=True)
            if one is not None
        }

    def _add(self, sums: Sums, gradients: Sums) -> None:
        with torch.no_grad():
            like = next(iter(sums.values()))
            squares = dict.fromkeys(self._layers.values(), like.new_zeros(1))
            for name, one in gradients.items():
                layer = self._layers[name]
                squares[layer] = squares[layer] + GradientRows(one.unsqueeze(0)).squares().to(like)
            for name, count in self.clipping.counts(squares).items():
                sums[name] = sums[name] + count if name in sums else count
            if not bool(torch.isfinite(torch.stack(list(squares.values()))).all()):
                return
            weights = self.clipping.weights(squares)
            for name, one in gradients.items():
                sums[name].add_(one * weights[self._layers[name]][0].to(one))


def lacks_memory(problem: Exception) -> bool:
    """Whether a run failed since there is too little memory: what that holds is no secret of an example.

    >>> lacks_memory(RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried 8 bytes"))
    True
    >>> lacks_memory(KeyError("allocate"))
    False
    """
    if isinstance(problem, MemoryError | torch.OutOfMemoryError):
        return True
    text = str(problem) if isinstance(problem, RuntimeError) else ""
    return "can't allocate memory" in text or "DefaultCPUAllocator" in text  # torch has no class for it
