"""Whether what is compared and shown fits what is asked: seen before anything is paid for."""

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Protocol, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from sourdine.core.errors import InvalidParameter
from sourdine.core.format import value
from sourdine.frames.declared import Declared, by_hand, declare
from sourdine.frames.keys import KeyColumn, Keys
from sourdine.frames.schema import Schema
from sourdine.tables.answers import Answer
from sourdine.tables.intervals import Floats, GroupEstimate
from sourdine.tables.shown_rows import RowFilter, RowKeys, Show
from sourdine.tables.statistics import Statistic

# Intervals of differences and ratios from the intervals of what is compared, at the same confidence.
#
# The method of variance estimates recovery: where two errors are independent, the distances of a difference
# from the ends of its interval are the roots of the sums of squares of those of its parts (Zou, Donner
# 2008, Statistics in Medicine 27), and a ratio r is in its interval if 0 is in that of first - r second
# (Donner, Zou 2012, Statistics in Medicine 31). No shape is lost: a lopsided interval stays so, and one
# without end, where an estimate is lost in noise, makes the result one without end.
#
# Errors that are not independent can at worst add up: then distances are added. For standard deviations
# that is Minkowski's inequality, so for Gaussian noise the interval holds at least as often as its parts'.


def difference(first: GroupEstimate, second: GroupEstimate, *, independent: bool = True) -> GroupEstimate:
    """first - second.

    >>> one, two = (GroupEstimate(*np.array([[x], [x - r], [x + r]])) for x, r in [(9.0, 3.0), (5.0, 4.0)])
    >>> difference(one, two).lower, difference(one, two, independent=False).upper
    (array([-1.]), array([11.]))
    """
    value = first.value - second.value
    below = _together(first.value - first.lower, second.upper - second.value, independent)
    above = _together(first.upper - first.value, second.value - second.lower, independent)
    return GroupEstimate(value, value - below, value + above)


def total(each: GroupEstimate, *, independent: bool = True) -> GroupEstimate:
    """The sum over the groups, as one."""
    value = each.value.sum(keepdims=True)
    sides = each.value - each.lower, each.upper - each.value
    below, above = (
        np.sqrt(np.square(side).sum(keepdims=True)) if independent else side.sum(keepdims=True)
        for side in sides
    )
    return GroupEstimate(value, value - below, value + above)


def ratio(first: GroupEstimate, second: GroupEstimate, *, independent: bool = True) -> GroupEstimate:
    """first / second; from minus to plus infinity where the second may be 0.

    >>> one, two = (GroupEstimate(*np.array([[x], [x - 1.0], [x + 1.0]])) for x in (10.0, 5.0))
    >>> ratio(one, two).lower.round(3), ratio(one, two).upper.round(3)
    (array([1.619]), array([2.547]))
    """
    negative = second.upper < 0
    top, bottom = _turned(first, negative), _turned(second, negative)
    unknown = ~(bottom.lower > 0) | ~np.isfinite(top.lower) | ~np.isfinite(top.upper)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        value = np.where(second.value == 0, 0.0, first.value / np.where(second.value == 0, 1.0, second.value))
        lower = _lower(top, bottom, independent)
        upper = -_lower(_turned(top, np.ones_like(negative, dtype=bool)), bottom, independent)
    return GroupEstimate(
        value,
        np.where(unknown | np.isnan(lower), -np.inf, np.minimum(lower, value)),
        np.where(unknown | np.isnan(upper), np.inf, np.maximum(upper, value)),
    )


def share(part: GroupEstimate, rest: GroupEstimate, *, independent: bool = True) -> GroupEstimate:
    """part / (part + rest), none of them truly below 0: between 0 and 1, which rises with part over rest.

    What cannot be told apart from 0 over 0 is between both ends.
    """
    part, rest = (each.within(0.0) for each in (part, rest))
    blind = (part.lower <= 0) & (rest.lower <= 0)
    over = ratio(rest, part, independent=independent)
    under = ratio(part, rest, independent=independent)
    with np.errstate(divide="ignore", invalid="ignore"):
        both = part.value + rest.value
        value = np.where(both > 0, part.value / np.where(both > 0, both, 1.0), 0.5)
        upper = np.where(rest.lower > 0, 1 - 1 / (1 + under.upper), 1 / (1 + np.maximum(over.lower, 0)))
        lower = np.where(part.lower > 0, 1 / (1 + over.upper), 1 - 1 / (1 + np.maximum(under.lower, 0)))
    return GroupEstimate(
        value,
        np.where(blind, 0.0, np.clip(np.nan_to_num(lower, nan=0.0), 0, value)),
        np.where(blind, 1.0, np.clip(np.nan_to_num(upper, nan=1.0), value, 1)),
    )


def _together(one: Floats, other: Floats, independent: bool) -> Floats:
    both: Floats = np.hypot(one, other) if independent else one + other
    return both


def _turned(each: GroupEstimate, negative: NDArray[np.bool_]) -> GroupEstimate:
    """The same times -1 where asked for, the ends exchanged."""
    return GroupEstimate(
        np.where(negative, -each.value, each.value),
        np.where(negative, -each.upper, each.lower),
        np.where(negative, -each.lower, each.upper),
    )


def _lower(top: GroupEstimate, bottom: GroupEstimate, independent: bool) -> Floats:
    """The least ratio, of a bottom that is above 0.

    It solves (t - r b)² = (t - lower t)² + r² s², s being the side of the bottom's interval that makes the
    ratio small: the upper one where the ratio is not negative.
    """
    positive = top.lower >= 0
    if not independent:
        least: Floats = top.lower / np.where(positive, bottom.upper, bottom.lower)
        return least
    side = np.where(positive, bottom.upper - bottom.value, bottom.value - bottom.lower)
    square = bottom.value**2 - side**2
    rest = top.lower * (2 * top.value - top.lower)
    product = top.value * bottom.value
    root = np.sqrt(np.maximum(product**2 - square * rest, 0.0))
    end: Floats = np.where(positive, rest / (product + root), (product - root) / square)
    return np.where(positive & (product + root == 0), 0.0, end)


# Which values of an answer are compared with which: those of two groups, of two answers, or of a total.


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


# What can be computed from the answers of a query, with intervals, at no further cost.
#
# Each step is declared beside what is asked. It reads noisy answers alone, so it is post-processing.


Shared = Callable[[str, str, tuple[str, ...] | None], bool]
"""Whether two answers, by their labels, have noise in common; or groups of one that differ in columns."""
MOST_FACTOR = 10**100
NO_ENDS = (-sys.float_info.max, sys.float_info.max)
"""What stands for no end of an interval, so that every file of numbers can hold it."""


class AnswerStep(Declared, ABC):
    """Something computed from the answers of a query. `of` is the label of a statistic."""

    kind: str
    of: str

    @property
    @abstractmethod
    def label(self) -> str:
        """What it is, in a few words."""

    @property
    def uses(self) -> tuple[str, ...]:
        """The labels that it is computed from."""
        return (self.of,)

    @property
    def over(self) -> tuple[str, ...]:
        """The columns whose keys it compares."""
        return ()

    @property
    def keys(self) -> tuple[Key, ...]:
        """The keys of that column, where it names them; its answer then has the column no more."""
        return ()

    def mixes(self, columns: tuple[str, ...]) -> tuple[str, ...]:
        """Those columns of its answer whose keys have noise in common after it."""
        return ()

    @abstractmethod
    def apply(self, answers: Mapping[str, Answer], shared: Shared) -> Answer:
        """The answer, from those of the query by their labels."""

    def _like(self, source: Answer, estimate: GroupEstimate, **changes: Any) -> Answer:
        """An answer like its source, with other values."""
        named = {"span": NO_ENDS, "whole": False, **changes}
        return replace(
            source,
            statistic=self.label,
            kind=self.kind,
            estimate=estimate.rounded().within(*named["span"]),
            **named,
        )


class _OfTwoSides(AnswerStep):
    """Two groups of a column compared, or one statistic with another, whose label `other` is."""

    column: str | None = None
    first: Key | None = None
    second: Key | None = None

    word: ClassVar[str]  # the field that names another statistic
    between: ClassVar[str]  # two keys, in its label
    compute: ClassVar[TwoSided]

    @property
    def other(self) -> str | None:
        """The label of the other statistic, if it is not about two groups of one."""
        label: str | None = getattr(self, self.word)
        return label

    @model_validator(mode="after")
    def _stated(self) -> Self:
        _check_sides(self.column, self.first, self.second, self.other, of=self.of, word=self.word)
        return self

    @property
    def label(self) -> str:
        if self.other is not None:
            return f"{self.of} {self.word} {self.other}"
        return f"{self.of}, {self.first} {self.between} {self.second}"

    @property
    def uses(self) -> tuple[str, ...]:
        return (self.of,) if self.other is None else (self.of, self.other)

    @property
    def over(self) -> tuple[str, ...]:
        return () if self.column is None else (self.column,)

    @property
    def keys(self) -> tuple[Key, ...]:
        return tuple(each for each in (self.first, self.second) if each is not None)

    @abstractmethod
    def _changes(self, source: Answer, other: Answer | None) -> dict[str, Any]:
        """What is unlike its source, besides the values."""

    def apply(self, answers: Mapping[str, Answer], shared: Shared) -> Answer:
        source, other = answers[self.of], None
        changes: dict[str, Any] = {}
        if self.other is not None:
            other = answers[self.other]
            pair = (
                ComparedSide(source.estimate, source.span),
                ComparedSide(values_like(source, other), other.span),
            )
            alone = not shared(self.of, self.other, ())
        else:
            changes, one, two = sides_of(source, str(self.column), self.first, self.second)
            pair = ComparedSide(one, source.span), ComparedSide(two, source.span)
            alone = not shared(self.of, self.of, self.over or None)
        estimate = joined(type(self).compute, *pair, independent=alone)
        return self._like(source, estimate, **self._changes(source, other), **changes)


class AnswerDifference(_OfTwoSides):
    """The difference between two groups of a column, or of one statistic less another.

    >>> AnswerDifference("mean of pay", column="sex", first="m", second="f").label
    'mean of pay, m less f'
    """

    kind: Literal["difference"] = "difference"
    less: str | None = None
    word, between, compute = "less", "less", staticmethod(difference)

    @by_hand
    def __init__(
        self,
        of: str,
        *,
        column: str | None = None,
        first: Key | None = None,
        second: Key | None = None,
        less: str | None = None,
    ) -> None:
        declare(
            super().__init__, "AnswerDifference", of=of, column=column, first=first, second=second, less=less
        )

    def _changes(self, source: Answer, other: Answer | None) -> dict[str, Any]:
        return {}


class AnswerRatio(_OfTwoSides):
    """The ratio of two groups of a column, or of one statistic to another.

    >>> AnswerRatio("sum of spend", per="units").label
    'sum of spend per units'
    """

    kind: Literal["ratio"] = "ratio"
    per: str | None = None
    word, between, compute = "per", "over", staticmethod(ratio)

    @by_hand
    def __init__(
        self,
        of: str,
        *,
        per: str | None = None,
        column: str | None = None,
        first: Key | None = None,
        second: Key | None = None,
    ) -> None:
        declare(super().__init__, "AnswerRatio", of=of, per=per, column=column, first=first, second=second)

    def _changes(self, source: Answer, other: Answer | None) -> dict[str, Any]:
        return {"measure": "ratio" if other is None else f"{source.measure} per {other.measure}"}


class AnswerShare(AnswerStep):
    """What part of a total each group is: of all groups, or of those alike in every other column.

    >>> AnswerShare("count", column="sex").label
    'share of count by sex'
    """

    kind: Literal["share"] = "share"
    column: str | None = None

    @by_hand
    def __init__(self, of: str, *, column: str | None = None) -> None:
        declare(super().__init__, "AnswerShare", of=of, column=column)

    @property
    def label(self) -> str:
        return f"share of {self.of}" + ("" if self.column is None else f" by {self.column}")

    @property
    def over(self) -> tuple[str, ...]:
        return () if self.column is None else (self.column,)

    def mixes(self, columns: tuple[str, ...]) -> tuple[str, ...]:
        return self.over or columns

    def apply(self, answers: Mapping[str, Answer], shared: Shared) -> Answer:
        source = answers[self.of]
        independent, estimate = not shared(self.of, self.of, self.over or None), source.estimate
        parts = groups_of(source, self.column)
        ends = [np.empty(estimate.value.shape) for _ in range(3)]
        for part in np.unique(parts):
            places = np.flatnonzero(parts == part)
            for end, values in zip(ends, shares_of(values_at(estimate, places), independent), strict=True):
                end[places] = values
        return self._like(source, GroupEstimate(*ends), measure="share", span=(0.0, 1.0))


class AnswerChange(AnswerStep):
    """The change from one key of a column to the next, as from month to month; `relative` to the earlier.

    >>> AnswerChange("count", column="month of seen", relative=True).label
    'relative change of count by month of seen'
    """

    kind: Literal["change"] = "change"
    column: str
    relative: bool = False

    @by_hand
    def __init__(self, of: str, *, column: str, relative: bool = False) -> None:
        declare(super().__init__, "AnswerChange", of=of, column=column, relative=relative)

    @property
    def label(self) -> str:
        return f"{'relative ' if self.relative else ''}change of {self.of} by {self.column}"

    @property
    def over(self) -> tuple[str, ...]:
        return (self.column,)

    def mixes(self, columns: tuple[str, ...]) -> tuple[str, ...]:
        return self.over

    def apply(self, answers: Mapping[str, Answer], shared: Shared) -> Answer:
        source = answers[self.of]
        independent, estimate = not shared(self.of, self.of, self.over or None), source.estimate
        outer, inner = groups_of(source, self.column), key_column(source, self.column).places
        order = np.lexsort((inner, outer))
        follows = np.flatnonzero(outer[order][1:] == outer[order][:-1]) + 1
        later, earlier = order[follows], order[follows - 1]
        places = np.argsort(later)  # as the answer is sorted
        later, earlier = later[places], earlier[places]
        now, before = (ComparedSide(values_at(estimate, places), source.span) for places in (later, earlier))
        if not self.relative:
            result, changes = joined(difference, now, before, independent=independent), {}
        else:
            result = joined(ratio, now, before, independent=independent)
            result = GroupEstimate(result.value - 1, result.lower - 1, result.upper - 1)
            changes = {"measure": "relative change"}
        return self._like(source, result, keys=source.keys.take(later), **changes)


class AnswerFormula(AnswerStep):
    """A released number, shifted, scaled and raised to a power: factor * value^power + offset.

    `whole` makes a whole number of it. `otherwise` stands for a value of which noise leaves nothing to tell:
    one whose interval is all that is possible, as that of a mean of no values is.
    It rises or falls all along where the power is odd, or where no value is negative, so ends go to ends.

    >>> AnswerFormula("mean of age", power=2).label
    '(mean of age)^2'
    """

    kind: Literal["formula"] = "formula"
    factor: int | float = Field(default=1, ge=-MOST_FACTOR, le=MOST_FACTOR)
    power: int = Field(default=1, ge=-1, le=8)
    offset: int | float = Field(default=0, ge=-MOST_FACTOR, le=MOST_FACTOR)
    name: str | None = Field(default=None, max_length=200)
    whole: Literal["floor", "ceil", "nearest"] | None = Field(
        default=None, exclude_if=lambda value: value is None
    )
    otherwise: int | float | None = Field(
        default=None, ge=-MOST_FACTOR, le=MOST_FACTOR, exclude_if=lambda value: value is None
    )

    @by_hand
    def __init__(
        self,
        of: str,
        *,
        factor: float = 1,
        power: int = 1,
        offset: float = 0,
        name: str | None = None,
        whole: Literal["floor", "ceil", "nearest"] | None = None,
        otherwise: float | None = None,
    ) -> None:
        fields = {"factor": factor, "power": power, "offset": offset, "name": name, "whole": whole}
        fields["otherwise"] = otherwise
        declare(super().__init__, "AnswerFormula", of=of, **fields)

    @model_validator(mode="after")
    def _stated(self) -> "AnswerFormula":
        if self.factor == 0:
            raise ValueError("its factor must not be 0, which tells nothing")
        if self.power == 0:
            raise ValueError("its power must not be 0, which tells nothing")
        return self

    @property
    def label(self) -> str:
        if self.name is not None:
            return self.name
        of = self.of if self.otherwise is None else f"COALESCE({self.of}, {self.otherwise:g})"
        raised = of if self.power == 1 else f"({of})^{self.power}"
        scaled = raised if self.factor == 1 else f"{self.factor:g} * {raised}"
        if self.power < 0:
            scaled = f"{self.factor:g} / {of}"
        moved = scaled if self.offset == 0 else f"{scaled} + {self.offset:g}"
        return moved if self.whole is None else f"{_WHOLE[self.whole][0]}({moved})"

    def apply(self, answers: Mapping[str, Answer], shared: Shared) -> Answer:
        source = answers[self.of]
        estimate = source.estimate if self.otherwise is None else _filled(source, self.otherwise)
        raised = _reciprocal(estimate) if self.power < 0 else estimate
        value, *ends = (
            self.offset + self.factor * each ** max(self.power, 1)
            for each in (raised.value, raised.lower, raised.upper)
        )
        lower, upper = np.minimum(*ends), np.maximum(*ends)
        if self.power % 2 == 0:  # which is least at 0
            turn = (estimate.lower < 0) & (estimate.upper > 0)
            lower = np.where(turn, np.minimum(lower, self.offset), lower)
            upper = np.where(turn & (self.factor < 0), np.maximum(upper, self.offset), upper)
        if self.whole is not None:  # which never turns the order of two numbers
            value, lower, upper = map(_WHOLE[self.whole][1], (value, lower, upper))
        return self._like(source, GroupEstimate(value, lower, upper), measure=self.label)


_WHOLE: Mapping[str, tuple[str, Callable[[Any], Any]]] = {
    "floor": ("FLOOR", np.floor),
    "ceil": ("CEIL", np.ceil),
    "nearest": ("ROUND", np.rint),
}


def _filled(source: Answer, value: float) -> GroupEstimate:
    """The estimate with a value in place of those that say nothing."""
    of, span = source.estimate, source.span or NO_ENDS
    blind = (of.lower <= span[0]) & (of.upper >= span[1])
    ends = np.minimum(of.lower, value), np.maximum(of.upper, value)
    return GroupEstimate(
        np.where(blind, value, of.value),
        np.where(blind, ends[0], of.lower),
        np.where(blind, ends[1], of.upper),
    )


def _reciprocal(of: GroupEstimate) -> GroupEstimate:
    """Return 1 / value; the interval has no ends where the value may be 0."""
    one = np.ones_like(of.value)
    return ratio(GroupEstimate(one, one, one), of, independent=True)


STEPS: tuple[type[AnswerStep], ...] = (
    AnswerDifference,
    AnswerRatio,
    AnswerShare,
    AnswerChange,
    AnswerFormula,
)

BY_STEP = {str(each.model_fields["kind"].default): each for each in STEPS}


def long_step(item: object) -> object:
    """The long form of { difference = "mean of pay", column = "sex", ... }."""
    if not isinstance(item, Mapping) or "kind" in item:
        return item
    kind = next(iter(item), "")
    if kind not in BY_STEP:
        raise InvalidParameter(
            f"There is no comparison '{kind}'. It is one of {', '.join(BY_STEP)}, as in "
            f"{value({'difference': 'mean of pay', 'column': 'sex', 'first': 'm', 'second': 'f'})}."
        )
    return {"kind": kind, "of": item[kind], **{name: each for name, each in item.items() if name != kind}}


def compared(steps: Sequence[AnswerStep], answers: Sequence[Answer], shared: Shared) -> list[Answer]:
    """The answers of a query, and what is computed from them."""
    by_label = {each.statistic: each for each in answers}
    sources = {each.statistic: frozenset({each.statistic}) for each in answers}
    mixed: dict[str, set[str]] = {each.statistic: set() for each in answers}

    def together(one: str, other: str, over: tuple[str, ...] | None) -> bool:
        if one != other:
            both = ((a, b) for a in sources[one] for b in sources[other])
            return any(a == b or shared(a, b, ()) for a, b in both)
        # groups of an answer: a step before this one may have put their noise together
        if mixed[one] if over is None else mixed[one] & set(over):
            return True
        return any(shared(a, a, over) for a in sources[one])

    for step in steps:
        sources[step.label] = frozenset().union(*(sources[each] for each in step.uses))
        by_label[step.label] = step.apply(by_label, together)
        before: set[str] = set().union(*(mixed[each] for each in step.uses))
        mixed[step.label] = before | set(step.mixes(by_label[step.label].columns))
    return list(by_label.values())


def _check_sides(
    column: str | None, first: Key | None, second: Key | None, other: str | None, *, of: str, word: str
) -> None:
    """Two groups of a column, or two statistics."""
    groups = (column, first, second)
    if (other is None) == all(each is None for each in groups) or (
        other is None and any(each is None for each in groups)
    ):
        raise ValueError(
            f"it needs a column with the keys 'first' and 'second', or else '{word}', another statistic"
        )
    if other == of:
        raise ValueError(f"'{word}' must be another statistic")
    if other is None and first == second:
        raise ValueError("first and second must be two keys")


_NUMBERS = (int, float)
_KINDS = {str: "a text", bool: "true or false"}


@dataclass(frozen=True)
class AnswerRows:
    """The rows of an answer: the columns of its keys, and what tells keys that a statistic adds."""

    columns: tuple[str, ...]
    keys: tuple[object, ...] = ()
    single: bool = False  # there is one row
    positive: bool = False  # no true value is below 0


@dataclass(frozen=True)
class QuerySteps:
    """What a query compares and shows, beside what it asks for."""

    query: str
    by: tuple[str, ...]
    ask: Sequence[Statistic]
    compare: Sequence[AnswerStep]
    show: Show

    def check(self, schema: Schema) -> None:
        """Refuse to compare what is not asked for, keys that may not be shown, and rows that are unlike."""
        rows = {each.label: self._rows_of(each, schema) for each in self.ask}
        for step in self.compare:
            for label in step.uses:
                if label not in rows:
                    raise InvalidParameter(
                        f"The query '{self.query}' compares '{label}', which it does not ask for. "
                        f"Ask for it, or compare one of {', '.join(map(repr, rows))}."
                    )
            self._check_columns(step, rows[step.of].columns, schema)
            for label in step.uses[1:]:
                self._check_alike(rows, step.of, label)
            if isinstance(step, AnswerShare) and not rows[step.of].positive:
                raise InvalidParameter(
                    f"The query '{self.query}' asks for shares of '{step.of}', which may be below 0, so that "
                    "no part of a total need be between 0 and 1. Ask for shares of counts, or of sums of "
                    "columns whose lower bound is 0 or more."
                )
            rows[step.label] = _after(step, rows)
        self._check_totals()
        first = rows[self.ask[0].label]
        for name in self.show.uses:
            if name not in rows and name not in first.columns:
                raise InvalidParameter(
                    f"The query '{self.query}' shows its rows by '{name}', which is neither asked for nor "
                    "grouped by. Ask for it too."
                )
            if name in rows and (rows[name].columns, rows[name].keys) != (first.columns, first.keys):
                raise InvalidParameter(
                    f"The query '{self.query}' shows its rows by '{name}', which has other rows than "
                    f"'{self.ask[0].label}'. Ask for it in a query of its own."
                )
        if self.show.order or self.show.hides:
            for label, other in rows.items():
                if (other.columns, other.keys) != (first.columns, first.keys):
                    raise InvalidParameter(
                        f"The query '{self.query}' sorts or hides the rows of '{self.ask[0].label}', and "
                        f"'{label}' has other rows. Ask for it in a query of its own."
                    )
        self._check_names(tuple(rows), first.columns)
        for each in self.show.filters:
            self._check_filter(each, each.of in rows, schema)

    @property
    def chosen(self) -> frozenset[str]:
        """The labels of the answers whose rows HAVING and LIMIT choose: those with the rows of the first."""
        if not self.show.hides:
            return frozenset()
        rows = {each.label: self._rows_of(each, None) for each in self.ask}
        for step in self.compare:
            rows[step.label] = _after(step, rows)
        first = rows[self.ask[0].label]
        return frozenset(
            label for label, each in rows.items() if (each.columns, each.keys) == (first.columns, first.keys)
        )

    def _check_totals(self) -> None:
        """Refuse sums over groups that may not be shown: what is left of them is not their total."""
        if not self.show.hides:
            return
        how = "Ask for it in a query without HAVING and LIMIT."
        for step in self.compare:
            if isinstance(step, AnswerShare):
                raise InvalidParameter(
                    f"The query '{self.query}' asks for shares of a total and hides some of its groups by "
                    f"HAVING or LIMIT. {how}"
                )
        for each in self.ask:
            if each.totals:
                raise InvalidParameter(
                    f"The query '{self.query}' asks for '{each.label}', which has sums over its groups, and "
                    f"hides some of them by HAVING or LIMIT. {how}"
                )

    def _check_names(self, labels: tuple[str, ...], columns: tuple[str, ...]) -> None:
        names = self.show.names
        for label in names:
            if label not in labels:
                raise InvalidParameter(
                    f"The query '{self.query}' names '{label}', which it does not ask for. Ask for it."
                )
        called = [*(names.get(label, label) for label in labels), *columns]
        if len(set(called)) != len(called) or not all(names.values()):
            raise InvalidParameter(f"Two things in '{self.query}' would have one name. Rename one of them.")

    def _rows_of(self, each: Statistic, schema: Schema | None) -> AnswerRows:
        """What tells its keys is everything that is said of it but the columns that it is about."""
        choices = {
            name: choice
            for name, choice in each.model_dump().items()
            if name not in ("column", "other", "weight") and each.adds
        }
        levels = choices.get("levels")
        return AnswerRows(
            columns=(*self.by, *each.adds),
            keys=tuple(map(repr, choices.items())),
            single=not self.by and (not each.adds or (levels is not None and len(levels) == 1)),
            positive=schema is not None and is_positive(each, schema),
        )

    def _check_columns(self, step: AnswerStep, columns: tuple[str, ...], schema: Schema) -> None:
        for name in step.over:
            if name not in columns:
                raise InvalidParameter(
                    f"The query '{self.query}' compares groups of '{name}', by which it does not group. "
                    "Put it into 'by'."
                )
            if step.keys and name not in schema.columns:
                continue  # keys that a statistic adds, such as levels
            if step.keys and schema.open([name]):
                raise InvalidParameter(
                    f"The query '{self.query}' compares keys of '{name}', which are chosen privately, so "
                    "that they may not be shown. Declare the keys of the column to compare them."
                )
            for key in step.keys:
                if key not in schema.keys(name):
                    raise InvalidParameter(
                        f"The query '{self.query}' compares the key {key!r}, which the column '{name}' "
                        "does not declare. Use one of its keys."
                    )

    def _check_alike(self, rows: dict[str, AnswerRows], one: str, other: str) -> None:
        first, second = rows[one], rows[other]
        if not second.single and (first.columns, first.keys) != (second.columns, second.keys):
            raise InvalidParameter(
                f"'{one}' and '{other}' of '{self.query}' have other keys. Compare statistics that have the "
                "same."
            )

    def _check_filter(self, each: RowFilter | RowKeys, answer: bool, schema: Schema) -> None:
        """Refuse to compare numbers with texts."""
        if isinstance(each, RowKeys):
            if answer or not set(each.keys) <= set(schema.keys(each.of)):
                raise InvalidParameter(
                    f"The query '{self.query}' shows rows by keys that '{each.of}' does not declare. Use "
                    "some of its keys."
                )
            return
        if not answer and each.of not in schema.columns:
            return  # keys that a statistic adds
        keys = () if answer or schema.open([each.of]) else schema.keys(each.of)
        known: type = float if answer else type(next(iter(keys), ""))
        numbers = known in _NUMBERS and type(each.value) in _NUMBERS
        if type(each.value) is not known and not numbers:
            raise InvalidParameter(
                f"The query '{self.query}' shows rows where '{each.of}' compares with {each.value!r}, which "
                f"is not of its kind. Compare it with {_KINDS.get(known, 'a number')}."
            )


def _after(step: AnswerStep, rows: dict[str, AnswerRows]) -> AnswerRows:
    """The rows of what a step computes."""
    before = rows[step.of]
    columns = tuple(name for name in before.columns if not step.keys or name not in step.over)
    keys = (*before.keys, ("change", step.over)) if isinstance(step, AnswerChange) else before.keys
    rises = isinstance(step, AnswerFormula) and step.factor > 0 and step.offset >= 0 and before.positive
    ratio = len(step.uses) == 2 and step.kind == "ratio" and all(rows[each].positive for each in step.uses)
    return AnswerRows(
        columns=columns,
        keys=keys,
        single=before.single,
        positive=isinstance(step, AnswerShare) or rises or ratio,
    )


def is_positive(each: Statistic, schema: Schema) -> bool:
    """Whether no true value of it is below 0."""
    if (between := each.span(schema)) is not None:
        return between[0] >= 0
    about = getattr(each, "column", None)
    if each.kind in ("sum", "weighted_sum") and isinstance(about, str):
        return schema.number(each.kind, about).lower >= 0
    return each.kind != "regression"
