"""The same training several times, to tell luck from skill."""

import statistics
from collections.abc import Callable
from dataclasses import dataclass

from sourdine.accounting.bracket import Bracket
from sourdine.accounting.pld import PLD
from sourdine.accounting.spend import plan_cost
from sourdine.core import check
from sourdine.learning.trained import Trained


@dataclass(frozen=True)
class Repeats:
    """Several runs. Each has its own epsilon; whoever sees them all has seen `epsilon`."""

    runs: tuple[Trained, ...]

    @property
    def epsilon(self) -> Bracket:
        """What all of them cost together, at the delta of one."""
        spends = [spend for run in self.runs for spend in run.spends]
        return PLD().epsilon(plan_cost(spends, PLD()), self.runs[0].plan.delta)

    @property
    def mean(self) -> float | None:
        """The mean of the accuracies on public data."""
        found = self._accuracies
        return statistics.mean(found) if found else None

    @property
    def deviation(self) -> float | None:
        """The standard deviation of the accuracies on public data."""
        found = self._accuracies
        return statistics.stdev(found) if len(found) > 1 else None

    @property
    def _accuracies(self) -> list[float]:
        return [run.accuracy for run in self.runs if run.accuracy is not None]


def repeat(times: int, train: Callable[[], Trained]) -> Repeats:
    """So many runs, each from a fresh start: `train` makes a model and fits it.

    >>> import torch
    >>> from sourdine.learning import fit
    >>> data = (torch.zeros(50, 2), torch.zeros(50, dtype=torch.int64))
    >>> found = repeat(2, lambda: fit(torch.nn.Linear(2, 2), data, noise=2, delta=1e-3, epochs=1, batch=10))
    >>> len(found.runs), found.epsilon.upper > found.runs[0].epsilon.upper
    (2, True)
    """
    times = check.integer("repeat", "times", times, 1, 1 << 20)
    return Repeats(tuple(train() for _ in range(times)))
