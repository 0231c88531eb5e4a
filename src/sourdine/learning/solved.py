"""What least squares gives: a head, what it cost, and how noisy its equations were."""

from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from sourdine.accounting.bracket import Bracket
from sourdine.accounting.ledger import Ledger
from sourdine.accounting.release import Release
from sourdine.core.digits import counted, plain
from sourdine.learning.card import Card

_AT_ONCE = 1000
_LIMITS = (
    "Settings that were tuned on the same data, and other runs on them, cost extra and are not counted here.",
    "The guarantee is about one unit. What is true of a whole group may be learnt, and should be.",
)


@dataclass(frozen=True, kw_only=True)
class Solved(Release):
    """A head by private least squares with its certificate; `values` is the head, a model of torch.

    `epsilon` is what it cost, its upper end the claim. `noise` is the deviation of the noise in the sums,
    where an example counts at most 1 in each. `accuracy` is that on public data, if there were some.
    """

    epsilon: Bracket
    delta: float
    noise: float
    width: int
    classes: int
    accuracy: float | None = None

    @property
    def model(self) -> nn.Module:
        """The head; `state_dict` is plain."""
        found: nn.Module = self.values
        return found

    def words(self) -> dict[str, str]:
        """The release as people read it, line by line."""
        (spend,) = self.spends
        return {
            "equations": f"{counted(self.width, 'feature')} and a constant, {self.classes:,} classes",
            "released": f"{counted(spend.distance.coordinates or 0, 'sum')}, once",
            "noise": f"{self.noise:.6g} in sums where an example counts at most 1",
            "epsilon": f"{self.epsilon.upper:.4g} at delta {plain(self.delta)}, "
            f"{spend.distance.neighbours} neighbours",
        }

    def card(
        self, ledger: Ledger | Path | str | None = None, *, name: str = "A head by private least squares"
    ) -> Card:
        """The card that goes with it; with the ledger that paid, its certificate is part of it."""
        facts = self.words() | {
            "trained parameters": f"{(self.width + 1) * self.classes:,}",
            "unit": "example",
            "noise bits": "secure" if self.secure else "SEEDED: this model protects nobody",
        }
        if self.accuracy is not None:
            facts["accuracy on public data"] = f"{100 * self.accuracy:.2f} %"
        certificate = None if ledger is None or self.receipt is None else self.certificate(ledger)
        return Card(name=name, facts=facts, assumptions=self.notes, limits=_LIMITS, certificate=certificate)


def accuracy_of(model: nn.Module, inputs: Tensor, targets: Tensor) -> float:
    """The share of examples whose class gets the highest score."""
    with torch.no_grad():
        hits = 0
        for start in range(0, len(targets), _AT_ONCE):
            scores = model(inputs[start : start + _AT_ONCE].to(torch.float32))
            hits += int((scores.argmax(1) == targets[start : start + _AT_ONCE]).sum())
    return hits / len(targets)
