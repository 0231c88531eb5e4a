"""What training gives: a model, what it cost, what may be told of how it went, and a card that says so."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from torch import nn

from sourdine.accounting.accountant import Bracket
from sourdine.accounting.certificate.card import Card
from sourdine.accounting.ledger import Ledger
from sourdine.accounting.release import Release
from sourdine.core.format import plain
from sourdine.learning.pricing import PricedPlan


@dataclass(frozen=True, kw_only=True)
class Progress:
    """How far a run is. Nothing of it comes from private data but through the noisy model.

    `epsilon` is what so many steps cost at most. `loss`, `accuracy` and `metrics` are those on data that were
    declared public; the loss on the training data is never told, since it was not paid for.
    """

    step: int
    steps: int
    epoch: int
    epsilon: float
    loss: float | None = None
    accuracy: float | None = None
    metrics: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Trained(Release):
    """A trained model with its certificate; `values` is the model, an ordinary one of torch."""

    plan: PricedPlan
    clipping: str
    history: tuple[Progress, ...] = ()
    unit: str = "example"
    max_examples_per_unit: int = 1
    resumed: bool = field(default=False, compare=False)

    @property
    def model(self) -> nn.Module:
        """The model, ready to use (in eval mode); `state_dict` is plain."""
        model: nn.Module = self.values
        return model

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


_LIMITS = (
    "Noise and sums are in 32-bit floating point; the proof is for real numbers.",
    "Settings that were tuned on the same data, and other runs on them, cost extra and are not counted here.",
    "The guarantee is about one unit. What is true of a whole group may be learnt, and should be.",
)

_EXACT = (
    "Sums and noise are whole numbers. That a batch is computed place by place was tried on made-up "
    "examples, and is not proven."
)


def card_of(trained: Trained, ledger: Ledger | Path | str | None = None, *, name: str | None = None) -> Card:
    """The card of a trained model; with the ledger that paid, its certificate is part of it."""
    plan, model = trained.plan, trained.model
    each = trained.max_examples_per_unit
    most = "" if each == 1 else f", at most {each} examples of each at a time"
    facts = plan.words() | {
        "model": type(model).__name__,
        "trained parameters": f"{sum(v.numel() for v in model.parameters() if v.requires_grad):,}",
        "epsilon": f"{plan.epsilon.upper:.6g} (at least {plan.epsilon.lower:.6g} by this accounting)",
        "delta": plain(plan.delta),
        "unit": trained.unit + most,
        "neighbours": str(plan.neighbours),
        "clipping": trained.clipping,
        "noise bits": "secure" if trained.secure else "SEEDED: this model protects nobody",
    }
    if trained.accuracy is not None:
        facts["accuracy on public data"] = f"{100 * trained.accuracy:.2f} %"
    return Card(
        name=name or f"{type(model).__name__}, trained with differential privacy",
        facts=facts,
        assumptions=trained.notes,
        limits=(_EXACT, *_LIMITS[1:]) if plan.exact else _LIMITS,
        certificate=None if ledger is None or trained.receipt is None else trained.certificate(ledger),
    )
