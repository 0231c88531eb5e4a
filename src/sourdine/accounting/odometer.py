"""How much was lost so far, where no limit was fixed: a bound that holds at all times at once.

A sum of rhos that stops before a limit is a filter. Read off without a limit, at a time that may depend on
the answers, its usual epsilon is no bound (Rogers, Roth, Ullman, Vadhan 2016). An odometer's is: see
docs/guarantees/ledger.md.
"""

import math
from fractions import Fraction

from sourdine.core import check
from sourdine.core.distributions import float_above

ROUGHLY = tuple(4.0**power for power in range(-12, 8))
"""Sums of rho at which the bound is sharpest, fixed for ever: each has an order and a share of delta."""


def odometer_epsilon(spent: Fraction | float, delta: float) -> float:
    """With probability 1 - delta the loss never exceeds this, whenever so much rho was spent; rounded up.

    For orders a_k fixed beforehand and any adaptive choice of mechanisms, all t at once satisfy
    L_t <= a_k rho_t + log(n/delta)/(a_k - 1) for all n orders, by Ville's inequality; the least of them is
    taken (Whitehouse, Ramdas, Rogers, Wu 2023, use the same supermartingale).

    >>> round(odometer_epsilon(Fraction(1, 2), 1e-6), 2)
    6.65
    """
    rho = check.rational("odometer_epsilon", "spent", spent)
    if rho < 0:
        raise check.fail("odometer_epsilon", "spent", "be at least 0", spent)
    share = float(check.inside("odometer_epsilon", "delta", delta, 0, 1))
    if rho == 0:
        return 0.0
    total = float_above(rho)
    surprise = math.log(len(ROUGHLY)) - math.log(share)
    bounds = [total + math.sqrt(surprise) * (total / math.sqrt(at) + math.sqrt(at)) for at in ROUGHLY]
    return min(bounds) * (1 + 1e-12)
