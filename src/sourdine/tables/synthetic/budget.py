"""How the budget of a synthetic table is divided: among columns, the choice of edges, and pairs."""

from collections.abc import Sequence
from fractions import Fraction

from sourdine.core.distance import root_above
from sourdine.core.errors import InvalidParameter
from sourdine.mechanisms import Exponential, Gaussian
from sourdine.mechanisms.gaussian import LEAST_SIGMA, MOST_SIGMA
from sourdine.tables.synthetic.part import SynthesisNoise
from sourdine.tables.synthetic.tree import FINENESS

SHARES = (Fraction(21, 50), Fraction(1, 10), Fraction(12, 25))
"""Of the budget: for columns, for the choice of edges, for pairs.

Chosen on Adult, as `benchmarks/README.md` tells.
"""
OF_KEYS = Fraction(1, 10)
"""Of the budget, where there are texts that nobody listed: for the choice of their keys."""
OPEN_CELLS = 64
"""Cells that a column of such texts is taken to have, for the division alone."""
_MOST_EPSILON = Fraction(1 << 10)


def divide_budget(rho: Fraction, cells: Sequence[int], rounds: int, moved: int) -> SynthesisNoise:
    """As little noise as rho pays for: for columns of so many cells, `rounds` choices, and a tree of pairs.

    A unit moves `moved` counts of a table by 1 each. What is not needed is not paid for.

    >>> noise = divide_budget(Fraction(1, 50), [2, 16], 0, 1)
    >>> [round(float(each.sigma), 1) for each in (*noise.columns, noise.pairs)]
    [17.2, 8.6, 6.6]
    """
    columns, edges, pairs = (share * rho for share in SHARES)
    if not rounds:
        pairs, edges = pairs + edges, Fraction(0)
    if len(cells) == 1:
        columns, pairs = columns + pairs, Fraction(0)
    weights = [_weight(each) for each in cells]
    per_column = [root_above(moved * sum(weights) / (2 * columns * weight)) for weight in weights]
    per_pair = root_above(moved * (len(cells) - 1) / (2 * pairs)) if pairs else LEAST_SIGMA
    if max(*per_column, per_pair) > MOST_SIGMA:
        raise InvalidParameter(
            "The budget is so small that the noise would drown everything. Nothing was spent. Ask with "
            "a larger epsilon."
        )
    epsilon = 1 / root_above(rounds / (8 * edges)) if rounds else Fraction(1)
    return SynthesisNoise(
        columns=tuple(Gaussian(sigma=max(each, LEAST_SIGMA)) for each in per_column),
        edges=Exponential(
            epsilon=min(epsilon, _MOST_EPSILON),
            sensitivity=Fraction(FINENESS * moved),
            candidates=max(1, len(cells) * (len(cells) - 1) // 2),
        ),
        pairs=Gaussian(sigma=max(per_pair, LEAST_SIGMA)),
    )


def _weight(cells: int) -> Fraction:
    """The part of a column of so many cells in what counts of columns cost.

    Errors of a column add up over its cells, so columns of many cells have less noise. The sum of all is
    least, at the same cost, where 1/sigma^2 is in proportion to cells^(2/3).
    """
    return Fraction(round(64 * cells ** (2 / 3)), 64)
