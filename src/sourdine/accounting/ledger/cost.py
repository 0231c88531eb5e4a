"""What a block of spends costs a ledger."""

from fractions import Fraction
from typing import NamedTuple

from sourdine.accounting.ledger.amount import add
from sourdine.accounting.ledger.terms import Terms
from sourdine.accounting.spend import Spend
from sourdine.core.distance import Neighbours
from sourdine.core.errors import InvalidParameter, UnsupportedLoss


class Cost(NamedTuple):
    """In the ledger's currency, and of its reserve."""

    price: Fraction
    delta: Fraction


def cost_of(terms: Terms, spends: tuple[Spend, ...]) -> Cost:
    """The cost of a block under the terms of a ledger; spends that it cannot pay for raise."""
    if not spends:
        raise InvalidParameter("A charge must hold at least one spend. Pass what the release will use.")
    each = [_cost_one(terms, spend) for spend in spends]
    price = _block(spends, [cost.price for cost in each])
    return Cost(price, _block(spends, [cost.delta for cost in each]))


def _cost_one(terms: Terms, spend: Spend) -> Cost:
    relation = spend.distance.neighbours
    if relation is not terms.neighbours:
        raise InvalidParameter(
            f"The ledger is for {terms.neighbours} neighbours and the spends for {relation} ones. "
            f"Their costs do not add up. State the distances for {terms.neighbours} neighbours."
        )
    if spend.part is not None and relation is Neighbours.REPLACE:
        raise UnsupportedLoss(
            "Parts cost as much as their worst only when a unit touches one of them, and a unit that is "
            "replaced may leave one part and enter another. Charge the parts as spends without a part."
        )
    loss = spend.one_loss()
    if loss.delta and terms.reserve is None:
        raise UnsupportedLoss(
            "A spend chooses keys privately, which takes a delta of its own, and this ledger keeps none "
            "for that. Nothing was spent. Declare the keys, or make a ledger with a reserve, such as "
            "`sourdine ledger create NEW --epsilon 3 --delta 1e-6 --reserve 5e-7`."
        )
    return Cost(spend.count * terms.budget.price(loss), spend.count * Fraction(loss.delta))


def _block(spends: tuple[Spend, ...], costs: list[Fraction]) -> Fraction:
    """The sum over a block, of a family of parts only the largest."""
    alone, families = Fraction(0), dict[str, dict[str, Fraction]]()
    for spend, cost in zip(spends, costs, strict=True):
        if spend.part is None:
            alone = add(alone, cost)
        else:
            keys = families.setdefault(spend.part.family, {})
            keys[spend.part.key] = add(keys.get(spend.part.key, Fraction(0)), cost)
    for keys in families.values():
        alone = add(alone, max(keys.values()))
    return alone
