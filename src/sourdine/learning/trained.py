"""What training gives: a model, what it cost, and what may be told of how it went."""

from dataclasses import dataclass, field

from torch import nn

from sourdine.accounting.bracket import Bracket
from sourdine.accounting.release import Release
from sourdine.learning.planning import Plan


@dataclass(frozen=True, kw_only=True)
class Progress:
    """How far a run is. Nothing of it comes from private data but through the noisy model.

    `epsilon` is what so many steps cost at most. `loss` and `accuracy` are those on data that were declared
    public; the loss on the training data is never told, since it was not paid for.
    """

    step: int
    steps: int
    epoch: int
    epsilon: float
    loss: float | None = None
    accuracy: float | None = None


@dataclass(frozen=True, kw_only=True)
class Trained(Release):
    """A trained model with its certificate; `values` is the model, an ordinary one of torch."""

    plan: Plan
    clipping: str
    history: tuple[Progress, ...] = ()
    unit: str = "example"
    examples_per_unit: int = 1
    resumed: bool = field(default=False, compare=False)

    @property
    def model(self) -> nn.Module:
        """The model, ready to use (in eval mode); `state_dict` is plain."""
        found: nn.Module = self.values
        return found

    @property
    def epsilon(self) -> Bracket:
        """What the run cost; the upper end is the claim."""
        return self.plan.epsilon

    @property
    def accuracy(self) -> float | None:
        """The accuracy of the finished model on public data, if there were some."""
        return self.history[-1].accuracy if self.history else None

    def words(self) -> dict[str, str]:
        """The run as people read it, line by line."""
        return self.plan.words()

    def _repr_html_(self) -> str:
        rows = "".join(f"<tr><th>{name}</th><td>{value}</td></tr>" for name, value in self.words().items())
        return f"<table>{rows}</table>" + super()._repr_html_()
