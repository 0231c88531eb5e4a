"""How the epsilon of a person is divided over the columns of a record."""

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from sourdine.core import check
from sourdine.core.errors import InvalidParameter

_MOST = Fraction(1 << 20)


def divided(
    names: Sequence[str],
    epsilon: Fraction | float | None,
    each: Fraction | float | None,
    own: Mapping[str, Fraction | float],
    rows: int,
) -> dict[str, Fraction]:
    """The epsilon of one cell of each column."""
    owner = "a cleaning"
    costs = {
        name: check.positive(f"the column '{name}'", "epsilon", value, _MOST)
        for name, value in known("epsilons", own, names).items()
    }
    rest = [name for name in names if name not in costs]
    if epsilon is not None and each is not None:
        raise check.fail(owner, "epsilon", "be that of a person or of each column, not both", float(epsilon))
    if each is not None:
        return {**dict.fromkeys(names, check.positive(owner, "each", each, _MOST)), **costs}
    if epsilon is None:
        if rest:
            raise InvalidParameter(
                f"The column '{rest[0]}' has no epsilon. Give one for each person (epsilon), for every "
                "column (each), or for this one."
            )
        return costs
    total = check.positive(owner, "epsilon", epsilon, _MOST)
    left = total / rows - sum(costs.values())
    if left < 0 or (rest and left == 0):
        raise check.fail(
            owner,
            "epsilon",
            f"be more than what {rows} x {', '.join(costs)} cost, {float(rows * sum(costs.values())):g}",
            float(total),
        )
    if not rest and left > 0:
        raise check.fail(
            owner,
            "epsilon",
            "be what its columns cost together",
            float(total),
            "Leave it out, or one of theirs.",
        )
    return {**dict.fromkeys(rest, left / max(1, len(rest))), **costs}


def known(what: str, options: Mapping[str, object], names: Iterable[str]) -> dict[str, Any]:
    """What is given for single columns; one that is not declared is refused."""
    for name in options:
        if name not in names:
            raise InvalidParameter(
                f"The {what} name a column '{name}' that is not declared. Declare it, or leave it out."
            )
    return dict(options)
