"""What can be computed from the answers of a query, with intervals, at no further cost.

Each step is declared beside what is asked. It reads noisy answers alone, so it is post-processing.
"""

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from sourdine.core.errors import InvalidParameter
from sourdine.core.format import value
from sourdine.frames.declared import Declared, by_hand, declare
from sourdine.tables.answers.answer import Answer
from sourdine.tables.answers.estimate import GroupEstimate
from sourdine.tables.comparison.intervals import difference, ratio
from sourdine.tables.comparison.sides import (
    ComparedSide,
    Key,
    TwoSided,
    groups_of,
    joined,
    key_column,
    shares_of,
    sides_of,
    values_at,
    values_like,
)

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
