"""What a ledger has revealed so far."""

import math
from fractions import Fraction
from pathlib import Path

from sourdine.accounting.explain.explanation import Explanation, explain_cost, explain_guarantee
from sourdine.accounting.ledger import ConcentratedBudget, GaussianBudget, Ledger, PureBudget
from sourdine.accounting.ledger.opened import opened
from sourdine.accounting.pld import PLD
from sourdine.accounting.rounding import float_above
from sourdine.core.laws import GaussianLaw, Law, RhoLaw
from sourdine.core.leak import LeakyLaw
from sourdine.core.loss import Loss


def explain_ledger(ledger: Ledger | Path | str) -> Explanation:
    """What everything paid from a ledger means together for one unit.

    A sum of rhos or of squared mus has a whole curve; a pure sum and a divergence at one order are known by
    one epsilon. What keys took of the reserve is a leak in each.
    """
    with opened(ledger) as held:
        status, terms = held.status(), held.terms
    leaked = status.reserve_spent or Fraction(0)
    if status.spent == 0 or isinstance(terms.budget, PureBudget):
        return explain_guarantee(status.spent, leaked, unit=terms.unit, neighbours=terms.neighbours)
    assert terms.delta is not None
    if isinstance(terms.budget, GaussianBudget):
        mu = math.sqrt(float_above(status.spent)) * (1 + 2**-50)
        return explain_cost(
            PLD().lift(Loss.symmetric(GaussianLaw(mu), neighbours=terms.neighbours)),
            terms.delta,
            subject=f"all that a ledger has paid, in {_charges(status.blocks)}",
            unit=terms.unit,
        )
    if not isinstance(terms.budget, ConcentratedBudget):
        return explain_guarantee(status.epsilon, terms.delta, unit=terms.unit, neighbours=terms.neighbours)
    law: Law = RhoLaw(float_above(status.spent))
    if leaked:
        law = LeakyLaw(law, float_above(leaked))
    loss = Loss.symmetric(law, neighbours=terms.neighbours, rho=status.spent, delta=leaked)
    return explain_cost(
        PLD().lift(loss),
        terms.delta,
        subject=f"all that a ledger has paid, in {_charges(status.blocks)}",
        unit=terms.unit,
    )


def _charges(blocks: int) -> str:
    return "one charge" if blocks == 1 else f"{blocks} charges"
