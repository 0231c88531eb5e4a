"""From what somebody believed before to what they may believe after, for a pure epsilon."""

import math
from collections.abc import Sequence
from fractions import Fraction

from sourdine.accounting.bracket import Bracket
from sourdine.core import check

# the rows and columns of the source's table
PRIORS = tuple(Fraction(percent, 100) for percent in (1, 2, 5, 10, 25, 50, 75, 90, 95, 98, 99))
EPSILONS = (0.01, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 3.0)


def posterior_bounds(prior: Fraction | float, epsilon: Fraction | float) -> Bracket:
    """Between which beliefs an answer can leave somebody who held `prior` before.

    p/(p + e^epsilon (1-p)) <= p' <= p/(p + e^-epsilon (1-p)): the odds p'/(1-p') are the old odds times the
    ratio of the likelihoods, which epsilon bounds (Bayes' rule; Kasiviswanathan and Smith 2014, section 2).
    Both ends are reached, by randomized response. With a delta they do not hold: see `Curve.reach`.

    >>> bounds = posterior_bounds(0.5, 1.17)
    >>> round(100 * bounds.lower, 1), round(100 * bounds.upper, 1)
    (23.7, 76.3)
    """
    p = float(check.between("posterior_bounds", "prior", prior, Fraction(0), Fraction(1)))
    if not epsilon >= 0:
        raise check.fail("posterior_bounds", "epsilon", "be at least 0", epsilon)
    if p in (0.0, 1.0):
        return Bracket(p, p)
    factor = math.exp(-float(epsilon))
    return Bracket(p * factor / (p * factor + (1 - p)), p / (p + factor * (1 - p)))


def posterior_table(
    priors: Sequence[Fraction | float] = PRIORS, epsilons: Sequence[Fraction | float] = EPSILONS
) -> tuple[tuple[Bracket, ...], ...]:
    """Both bounds for each prior (a row) and each epsilon (a column).

    >>> [round(100 * bounds.upper, 2) for bounds in posterior_table()[0]]
    [1.01, 1.05, 1.1, 1.22, 1.64, 2.67, 6.95, 16.87]
    """
    return tuple(tuple(posterior_bounds(prior, epsilon) for epsilon in epsilons) for prior in priors)
