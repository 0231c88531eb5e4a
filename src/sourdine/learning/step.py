"""One step of private training, for people with a loop of their own."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from sourdine.core import check
from sourdine.core.errors import InvalidParameter
from sourdine.core.randomness.bits import SYSTEM, Bits
from sourdine.learning.correlation.stream import NoiseStream
from sourdine.learning.gradients.clipping import Clipping, Flat
from sourdine.learning.gradients.engine import Engine, Sums
from sourdine.learning.gradients.noise import gaussian
from sourdine.learning.gradients.noisy_gradient import NoisyGradient


class Step:
    """The noisy gradient of one logical batch, for any optimizer of torch.

    `add` takes a physical batch, as often as there are some; `close` adds noise once, divides by the declared
    `batch_size`, a public constant, and writes `.grad`. A batch without examples is closed like any other.
    The noise has a standard deviation of `noise_multiplier` clipping norms, so what a step costs is what the
    accounting says of it and of the way the batches were drawn. With a `correlation` the noise of a step
    takes back some of the noise before it, and what a run costs is what a plan with that correlation says.

    >>> model = nn.Linear(3, 1)
    >>> optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    >>> step = Step(model, noise_multiplier=1.1, batch_size=2)
    >>> step.add(lambda: model(torch.ones(2, 3)).squeeze(1))
    >>> step.close()
    >>> optimizer.step()
    """

    def __init__(
        self,
        model: nn.Module,
        *,
        noise_multiplier: float,
        batch_size: int,
        clipping: Clipping | None = None,
        correlation: NoiseStream | None = None,
        bits: Bits = SYSTEM,
    ) -> None:
        self.correlation = correlation
        self.clipping = Flat() if clipping is None else clipping
        deviations = check.positive("Step", "noise_multiplier", noise_multiplier, 1 << 20)
        self.batch_size = check.integer("Step", "batch_size", batch_size, 1, 1 << 40)
        self.mechanism = NoisyGradient(sigma=deviations * check.rational("Step", "norm", self.clipping.norm))
        self._engine = Engine(model, self.clipping)
        self._bits = bits
        self._wanted = {name: value for name, value in model.named_parameters() if value.requires_grad}
        self._sums: Sums = {}

    def add(self, losses: Callable[[], Tensor], *, examples_per_unit: int = 1) -> None:
        """Take some examples in: `losses` runs the model and gives one loss for each.

        With `examples_per_unit` above 1, so many examples in a row belong to one person and are clipped
        together.
        """
        if not callable(losses):
            raise InvalidParameter(
                "The losses given to Step.add must be a function that runs the model, since gradients are "
                "noted while it runs. Write step.add(lambda: ...) around the model's call and the loss."
            )
        for name, total in self._engine.clipped_sum(losses, examples_per_unit=examples_per_unit).items():
            exact = total.to(_wide(total.dtype))
            self._sums[name] = self._sums[name].add_(exact) if name in self._sums else exact

    def close(self) -> None:
        """Draw the noise of the step and write the noisy mean to `.grad`."""
        sums, self._sums = self._sums, {}
        sigma = float(self.mechanism.sigma)
        sizes = [value.numel() for value in self._wanted.values()]
        count = sum(sizes)  # many small draws are slow
        if self.correlation is None:
            whole = self._noise(count)
        else:
            whole = self.correlation.following(lambda: self._noise(count))
        with torch.no_grad():
            for (name, value), noise in zip(self._wanted.items(), torch.split(whole, sizes), strict=True):
                total = sums.pop(name, None)
                # rounded to what the noise is made of: below its last bits nothing would hide a float64
                total = torch.zeros_like(value, dtype=torch.float32) if total is None else total.float()
                total.add_(noise.to(value.device).view_as(value), alpha=sigma)
                value.grad = total.div_(self.batch_size).to(value.dtype)

    def _noise(self, count: int) -> Tensor:
        """Standard normal numbers, one for each parameter."""
        return gaussian(torch.Size((count,)), self._bits)


def _wide(dtype: torch.dtype) -> torch.dtype:
    """Sums are float32 at least, whatever the model computes in."""
    return torch.float64 if dtype == torch.float64 else torch.float32
