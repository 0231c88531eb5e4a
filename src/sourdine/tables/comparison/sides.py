"""Which values of an answer are compared with which: those of two groups, of two answers, or of a total."""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sourdine.core.errors import InvalidParameter
from sourdine.frames.keys import KeyColumn, Keys
from sourdine.tables.answers.answer import Answer
from sourdine.tables.answers.estimate import Floats, GroupEstimate
from sourdine.tables.comparison.intervals import share, total

Key = str | int | bool


class TwoSided(Protocol):
    """A difference or a ratio of estimates."""

    def __call__(
        self, first: GroupEstimate, second: GroupEstimate, *, independent: bool = True
    ) -> GroupEstimate: ...


@dataclass(frozen=True)
class ComparedSide:
    """One of two that are compared, and what its values may be."""

    estimate: GroupEstimate
    span: tuple[float, float] | None

    @property
    def cut(self) -> NDArray[np.bool_]:
        """Where an interval ends at what is possible: its noise goes further, so it is no measure of it."""
        low, high = (-np.inf, np.inf) if self.span is None else self.span
        ends: NDArray[np.bool_] = (self.estimate.lower <= low) | (self.estimate.upper >= high)
        return ends


def joined(make: TwoSided, one: ComparedSide, two: ComparedSide, *, independent: bool) -> GroupEstimate:
    """Two sides compared; where an interval was cut off, by its ends alone, as if noise were in common."""
    apart = make(one.estimate, two.estimate, independent=False)
    if not independent:
        return apart
    near, cut = make(one.estimate, two.estimate, independent=True), one.cut | two.cut
    lower, upper = np.where(cut, apart.lower, near.lower), np.where(cut, apart.upper, near.upper)
    return GroupEstimate(near.value, lower, upper)


def values_at(estimate: GroupEstimate, places: NDArray[Any]) -> GroupEstimate:
    """The values of some groups."""
    return GroupEstimate(estimate.value[places], estimate.lower[places], estimate.upper[places])


def key_column(answer: Answer, name: str) -> KeyColumn:
    """The keys of a column of an answer."""
    if name not in answer.columns:
        raise InvalidParameter(
            f"The answer '{answer.statistic}' of '{answer.query}' has no column '{name}' among its keys. "
            f"Its keys are for {', '.join(answer.columns) or 'the whole table'}."
        )
    return answer.keys.columns[answer.columns.index(name)]


def groups_of(answer: Answer, name: str | None) -> NDArray[np.int64]:
    """A number for each group that is the same where all columns but one are; without one, for all."""
    groups = np.zeros(len(answer.keys), np.int64)
    if name is None:
        return groups
    key_column(answer, name)
    for column, each in zip(answer.keys.columns, answer.columns, strict=True):
        if each != name:
            groups = groups * max(1, column.values.size) + column.places
    return groups


def sides_of(
    answer: Answer, name: str, first: Key | None, second: Key | None
) -> tuple[dict[str, Any], GroupEstimate, GroupEstimate]:
    """What the rest of an answer is called, and its values for one key and for another."""
    column, outer = key_column(answer, name), groups_of(answer, name)
    places = []
    for key in (first, second):
        here = np.flatnonzero(column.holds(key))
        if not here.size and len(answer.keys):  # there may be none where keys are chosen privately
            raise InvalidParameter(
                f"The answer '{answer.statistic}' of '{answer.query}' has no group whose '{name}' is "
                f"{key!r}. "
                "Compare keys that it shows."
            )
        places.append(here[np.argsort(outer[here], kind="stable")])
    one, two = places
    both, at_one, at_two = np.intersect1d(outer[one], outer[two], return_indices=True)
    one, two = one[at_one], two[at_two]
    order = np.argsort(one)
    one, two = one[order], two[order]
    others = [place for place, each in enumerate(answer.columns) if each != name]
    keys = answer.keys.take(one)
    rest = {
        "columns": tuple(answer.columns[place] for place in others),
        "keys": Keys(tuple(keys.columns[place] for place in others), both.size),
    }
    return rest, values_at(answer.estimate, one), values_at(answer.estimate, two)


def values_like(source: Answer, other: Answer) -> GroupEstimate:
    """The values of another answer for the groups of this one: the same, or one for all of them."""
    if source.keys == other.keys:
        return other.estimate
    if len(other.keys) == 1:
        return GroupEstimate(*(np.broadcast_to(end, source.estimate.value.shape) for end in _ends(other)))
    raise InvalidParameter(
        f"'{source.statistic}' and '{other.statistic}' of '{source.query}' have other keys. "
        "Compare statistics that have the same."
    )


def _ends(answer: Answer) -> tuple[Floats, Floats, Floats]:
    return answer.estimate.value, answer.estimate.lower, answer.estimate.upper


def shares_of(parts: GroupEstimate, independent: bool) -> tuple[Floats, Floats, Floats]:
    """Each part over the sum of all: that of the others is what is left of all, its noise without its own."""
    whole = total(parts, independent=independent)
    sides = [parts.value - parts.lower, parts.upper - parts.value]
    below, above = (
        np.sqrt(np.maximum(np.square(side).sum() - np.square(side), 0.0))
        if independent
        else side.sum() - side
        for side in sides
    )
    value = whole.value - parts.value
    rest = GroupEstimate(value, value - below, value + above)
    estimate = share(parts, rest, independent=independent)
    return estimate.value, estimate.lower, estimate.upper
