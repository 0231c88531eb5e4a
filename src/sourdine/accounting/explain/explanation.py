"""All there is to say about one guarantee, or about what a ledger has revealed so far, as data."""

import math
from dataclasses import asdict, dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path

from sourdine.accounting.accountant import Bracket, check_delta
from sourdine.accounting.approximate import known
from sourdine.accounting.dpsgd.training import Sampler, Training
from sourdine.accounting.explain.curve import EPSILONS, PRIORS, Curve, posterior_bounds, posterior_table
from sourdine.accounting.explain.deployments import DEPLOYMENTS
from sourdine.accounting.ledger import ConcentratedBudget, GaussianBudget, Ledger, PureBudget
from sourdine.accounting.ledger.ledger import opened
from sourdine.accounting.pld.accountant import PLD, PldCost
from sourdine.core import check
from sourdine.core.display import Viewable
from sourdine.core.distance import Neighbours
from sourdine.core.distributions import GaussianLaw, LossDistribution, RhoLaw, float_above
from sourdine.core.format import counted, plain, shorten_up
from sourdine.core.loss import LeakyLaw, PrivacyLoss

FALSE_POSITIVES = (0.0001, 0.001, 0.01, 0.05, 0.1, 0.25, 0.5)
_BATCHES = {
    Sampler.POISSON: "Poisson batches",
    Sampler.FIXED: "batches",
    Sampler.SHUFFLE: "shuffled batches",
    Sampler.TRUNCATED: "truncated Poisson batches",
    Sampler.ALLOCATION: "randomly allocated batches",
    Sampler.CYCLIC: "batches in a fixed order",
}
PREMIUM, COVER = 2000, 100_000
"""The source's example: a yearly premium that the results alone justify, and the sum insured."""


@dataclass(frozen=True, kw_only=True)
class Explanation(Viewable):
    """What a guarantee lets somebody learn about one unit.

    >>> explanation = explain_guarantee(1.17)
    >>> round(explanation.posterior(0.5).upper, 3), round(explanation.curve.accuracy(), 3)
    (0.763, 0.763)
    """

    subject: str
    epsilon: Bracket
    delta: float
    unit: str
    neighbours: Neighbours
    curve: Curve
    whole: bool = False  # whether the curve says more than one epsilon and one delta
    assumptions: tuple[str, ...] = ()

    def __repr__(self) -> str:
        delta = f", delta {plain(self.delta)}" if self.delta else ""
        return f"<Explanation of epsilon {shorten_up(self.epsilon.upper)}{delta} for one {self.unit}>"

    @property
    def chance(self) -> float:
        """How seldom an answer may leave the bounds on beliefs: never without a delta, else above delta.

        At 100 delta the bounds are those of epsilon + 0.01, or less where the whole curve is known.
        """
        return min(100 * self.delta, math.sqrt(self.delta))

    @cached_property
    def reach(self) -> float:
        """The epsilon that bounds beliefs, except with that chance."""
        if self.delta == 0:
            return self.epsilon.upper
        from_point = self.epsilon.upper - math.log1p(-self.delta / self.chance)
        return min(self.curve.reach(self.chance), from_point)

    def posterior(self, prior: Fraction | float) -> Bracket:
        """Between which beliefs an answer leaves somebody, except with that chance."""
        return posterior_bounds(prior, self.reach)

    @property
    def premium(self) -> float:
        """The largest mean premium with the unit in the data, if it is 2,000 of at most 100,000 without."""
        return self.curve.expected(PREMIUM, COVER)

    def to_json(self) -> dict[str, object]:
        """Everything, for machines."""
        return {
            "subject": self.subject,
            "epsilon": {name: _finite(end) for name, end in asdict(self.epsilon).items()},
            "delta": self.delta,
            "unit": self.unit,
            "neighbours": self.neighbours.value,
            "assumptions": list(self.assumptions),
            "beliefs": {
                "except_with_probability": self.chance,
                "epsilon": _finite(self.reach),
                "probability_of_loss_above_epsilon": self.curve.exceeding(self.epsilon.upper),
                "bounds": [{"prior": float(p), **asdict(self.posterior(p))} for p in PRIORS],
            },
            "attack": {
                "accuracy": self.curve.accuracy(),
                "advantage": self.curve.advantage,
                "rates": [
                    {
                        "false_positives": rate,
                        "true_positives": float(self.curve.true_positives(rate)),
                        "precision": self.curve.precision(0.5, rate),
                    }
                    for rate in FALSE_POSITIVES
                ],
            },
            "premium": {"without": PREMIUM, "cover": COVER, "with_at_most": self.premium},
            "table": {
                "epsilons": list(EPSILONS),
                "rows": [
                    {"prior": float(prior), "bounds": [asdict(bounds) for bounds in row]}
                    for prior, row in zip(PRIORS, posterior_table(), strict=True)
                ],
            },
            "deployed": [asdict(deployment) for deployment in DEPLOYMENTS],
        }


def _finite(number: float) -> float | None:
    """JSON has no infinity."""
    return number if math.isfinite(number) else None


def explain_guarantee(
    epsilon: Fraction | float,
    delta: Fraction | float = 0,
    *,
    unit: str = "person",
    neighbours: Neighbours = Neighbours.ADD_REMOVE,
) -> Explanation:
    """What an epsilon means, or one epsilon with one delta, when nothing else is known."""
    exact = check.between("explain", "epsilon", epsilon, Fraction(0), Fraction(1 << 20))
    chance = check.rational("explain", "delta", delta)
    level, rest = float(exact), check_delta("explain", float_above(chance))
    return Explanation(
        subject="a guarantee of which only " + ("ε is known" if rest == 0 else "one ε and one δ are known"),
        epsilon=Bracket(level, level),
        delta=rest,
        unit=unit,
        neighbours=neighbours,
        curve=Curve.of_loss(known(exact, chance, neighbours=neighbours)),
        assumptions=()
        if rest == 0
        else (
            "Of the mechanism nothing is known but one ε and one δ. Where its whole curve of losses is "
            "known, the bounds are often much tighter.",
        ),
    )


def explain_cost(
    cost: PldCost, delta: float, *, subject: str, unit: str, assumptions: tuple[str, ...] = ()
) -> Explanation:
    """What losses mean whose whole laws are known: a plan fixed beforehand, or the total of a ledger."""
    return Explanation(
        subject=subject,
        epsilon=PLD().epsilon(cost, delta),
        delta=check_delta("explain", delta),
        unit=unit,
        neighbours=cost.neighbours,
        curve=Curve.of_cost(cost),
        whole=True,
        assumptions=assumptions,
    )


def explain_training(training: Training, delta: float) -> Explanation:
    """What a run of private training means for one example."""
    # loaded here: releases of tables are explained without it
    from sourdine.accounting.dpsgd.cost import cost_of_training, loss_of_training

    cost = cost_of_training(training, delta)
    loss, count = loss_of_training(training)
    return Explanation(
        subject=(
            f"a training run: {counted(training.size, 'example')}, {_BATCHES[training.sampler]} of "
            f"{training.batch_size:,}, noise {float(training.noise_multiplier):g}, "
            f"{counted(training.steps, 'step')}"
        ),
        epsilon=cost.epsilon,
        delta=cost.delta,
        unit="example" if training.group == 1 else f"group of {training.group:,} examples",
        neighbours=cost.neighbours,
        curve=Curve.of_cost(PLD().repeat(PLD().lift(loss), count)),
        whole=True,
        assumptions=cost.assumptions,
    )


def explain_ledger(ledger: Ledger | Path | str) -> Explanation:
    """What everything paid from a ledger means together for one unit.

    A sum of rhos or of squared mus has a whole curve; a pure sum and a divergence at one order are known by
    one epsilon. What keys took of the selection delta is a leak in each.
    """
    with opened(ledger) as book:
        status, terms = book.status(), book.terms
    leaked = status.selection_delta_spent or Fraction(0)
    if status.spent == 0 or isinstance(terms.budget, PureBudget):
        return explain_guarantee(status.spent, leaked, unit=terms.unit, neighbours=terms.neighbours)
    assert terms.delta is not None
    if isinstance(terms.budget, GaussianBudget):
        mu = math.sqrt(float_above(status.spent)) * (1 + 2**-50)
        return explain_cost(
            PLD().lift(PrivacyLoss.symmetric(GaussianLaw(mu), neighbours=terms.neighbours)),
            terms.delta,
            subject=f"all that a ledger has paid, in {_charges(status.blocks)}",
            unit=terms.unit,
        )
    if not isinstance(terms.budget, ConcentratedBudget):
        return explain_guarantee(status.epsilon, terms.delta, unit=terms.unit, neighbours=terms.neighbours)
    law: LossDistribution = RhoLaw(float_above(status.spent))
    if leaked:
        law = LeakyLaw(law, float_above(leaked))
    loss = PrivacyLoss.symmetric(law, neighbours=terms.neighbours, rho=status.spent, delta=leaked)
    return explain_cost(
        PLD().lift(loss),
        terms.delta,
        subject=f"all that a ledger has paid, in {_charges(status.blocks)}",
        unit=terms.unit,
    )


def _charges(blocks: int) -> str:
    return "one charge" if blocks == 1 else f"{blocks} charges"
