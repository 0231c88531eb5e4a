"""Mechanisms on disjoint parts of the data: one unit touches one part, or two when it is replaced."""

from collections.abc import Sequence
from functools import reduce
from itertools import combinations_with_replacement

from sourdine.accounting.accountant import same_relation
from sourdine.accounting.rounding import exactly
from sourdine.accounting.together import Together
from sourdine.accounting.worst import unlike, worst
from sourdine.core import check
from sourdine.core.distance import Neighbours
from sourdine.core.loss import Loss

_MOST_PAIRS = 8  # different parts whose pairs are looked at one by one


def parallel(parts: Sequence[Loss], crossing: Sequence[Loss] = ()) -> Loss:
    """The loss of mechanisms that each see one of several parts, disjoint in units.

    *Add-remove and zero-out*: a unit lies in one part, so the cost is that of the worst part (McSherry 2009,
    theorem 4).

    *Replace*: a unit that is replaced may leave one part and enter another, so the cost is that of the worst
    pair of parts, each at its loss for replacement in the whole data, where a unit may also enter or leave
    that part: the distance of a sum must count a record that is gone, not only one that changed. Where it
    is known what a unit costs that only enters or leaves a part, give those losses, stated for add-remove,
    as `crossing`, in the same order: then the cost is the worse of one part under replacement and a pair
    under crossing.

    >>> from fractions import Fraction
    >>> count = Loss.pure(Fraction(1, 2), neighbours=Neighbours.REPLACE)
    >>> parallel([count, count, count]).epsilon
    Fraction(1, 1)
    """
    if not parts:
        raise check.fail("parallel", "parts", "hold at least one loss", list(parts))
    relation = reduce(same_relation, [part.neighbours for part in parts])
    alone = Loss(
        remove=worst([part.remove for part in parts]),
        add=worst([part.add for part in parts]),
        neighbours=relation,
        epsilon=max(part.epsilon for part in parts),
        rho=max(part.rho for part in parts),
        delta=max(part.delta for part in parts),
    )
    if relation is not Neighbours.REPLACE:
        if crossing:
            raise check.fail("parallel", "crossing", f"be left out for {relation} neighbours", len(crossing))
        return alone
    if len(parts) == 1:
        return alone
    if not crossing:
        return _pairs(parts)
    if len(crossing) != len(parts):
        raise check.fail("parallel", "crossing", f"hold {len(parts)} losses, one a part", len(crossing))
    if any(loss.neighbours is not Neighbours.ADD_REMOVE for loss in crossing):
        got = sorted({str(loss.neighbours) for loss in crossing})
        raise check.fail("parallel", "crossing", "be stated for add-remove neighbours", got)
    both = _pairs(crossing)
    law = worst([alone.remove, alone.add, both.remove])
    return Loss.symmetric(
        law,
        neighbours=relation,
        epsilon=max(alone.epsilon, both.epsilon),
        rho=max(alone.rho, both.rho),
        delta=max(alone.delta, both.delta),
    )


def _pairs(parts: Sequence[Loss]) -> Loss:
    """The worst pair of different parts, in whichever order."""
    laws = [worst([part.remove, part.add]) for part in parts]
    different = unlike(laws)
    if len(different) > _MOST_PAIRS:
        different = [worst(different)]
    pairs = [
        Together(((one, 1), (other, 1))) if one is not other else Together(((one, 2),))
        for one, other in combinations_with_replacement(different, 2)
        if one is not other or len(different) == 1 or sum(law == one for law in laws) > 1
    ]
    return Loss.symmetric(
        worst(pairs),
        neighbours=Neighbours.REPLACE,
        epsilon=sum(sorted((exactly(part.epsilon) for part in parts), reverse=True)[:2]),
        rho=sum(sorted((exactly(part.rho) for part in parts), reverse=True)[:2]),
        delta=min(1, sum(sorted((exactly(part.delta) for part in parts), reverse=True)[:2])),
    )
