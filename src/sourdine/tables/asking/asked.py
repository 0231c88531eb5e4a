"""A statistic as a question in Python asks for it, before it has a query."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from pydantic import ValidationError

from sourdine.core.errors import InvalidParameter
from sourdine.frames.declared import mistake
from sourdine.frames.expressions import ColumnValue, Expression
from sourdine.tables.comparison.steps import (
    AnswerChange,
    AnswerDifference,
    AnswerFormula,
    AnswerRatio,
    AnswerShare,
    AnswerStep,
)
from sourdine.tables.statistics import BY_KIND, Statistic


class Keyed(Protocol):
    """A column to group by."""

    @property
    def tree(self) -> Expression: ...


@dataclass(frozen=True)
class AskedOf:
    """A statistic of some columns, and what is computed from its answers.

    `columns` are the fields of the statistic that name columns, which may be computed.
    """

    kind: str
    columns: Mapping[str, Expression]
    fields: Mapping[str, object] = field(default_factory=dict)
    steps: tuple[AnswerStep, ...] = ()
    groups: tuple[Expression, ...] = ()
    others: tuple["AskedOf | Statistic", ...] = ()

    @property
    def statistic(self) -> Statistic:
        """The statistic itself: what is computed is called by its text."""
        named = {name: name_of(tree) for name, tree in self.columns.items()}
        try:
            return BY_KIND[self.kind].model_validate({"kind": self.kind, **named, **self.fields})
        except ValidationError as problem:
            raise mistake(problem, BY_KIND[self.kind].__name__) from None

    @property
    def derived(self) -> dict[str, Expression]:
        """What is computed for it, by name."""
        trees = (*self.columns.values(), *self.groups)
        return {tree.label: tree for tree in trees if not isinstance(tree, ColumnValue)}

    def __repr__(self) -> str:
        return f"<{', '.join([self.statistic.label, *(step.label for step in self.steps)])}>"

    def difference(self, column: Keyed, first: str | int | bool, second: str | int | bool) -> "AskedOf":
        """How much more it is in one group of a column than in another, with its interval."""
        step = AnswerDifference(self.statistic.label, column=name_of(column.tree), first=first, second=second)
        return self._with(step, column)

    def ratio(self, column: Keyed, first: str | int | bool, second: str | int | bool) -> "AskedOf":
        """How many times it is in one group of a column what it is in another, with its interval."""
        step = AnswerRatio(self.statistic.label, column=name_of(column.tree), first=first, second=second)
        return self._with(step, column)

    def per(self, other: "AskedOf | Statistic") -> "AskedOf":
        """Its ratio to another statistic, as a sum per unit."""
        return self._beside(AnswerRatio(self.statistic.label, per=label_of(other)), other)

    def less(self, other: "AskedOf | Statistic") -> "AskedOf":
        """What it is more than another statistic."""
        return self._beside(AnswerDifference(self.statistic.label, less=label_of(other)), other)

    def share(self, column: Keyed | None = None) -> "AskedOf":
        """What part of the total each group is: of all, or of those alike in every other column."""
        name = None if column is None else name_of(column.tree)
        step = AnswerShare(self.statistic.label, column=name)
        return replace(self, steps=(*self.steps, step)) if column is None else self._with(step, column)

    def change(self, column: Keyed, *, relative: bool = False) -> "AskedOf":
        """Its change from one key of a column to the next, as from month to month."""
        return self._with(
            AnswerChange(self.statistic.label, column=name_of(column.tree), relative=relative), column
        )

    def scaled(self, factor: float = 1, *, offset: float = 0, power: int = 1) -> "AskedOf":
        """The answer raised to a power, times a factor, and shifted."""
        step = AnswerFormula(self.statistic.label, factor=factor, offset=offset, power=power)
        return replace(self, steps=(*self.steps, step))

    def _with(self, step: AnswerStep, column: Keyed) -> "AskedOf":
        groups = self.groups if column.tree in self.groups else (*self.groups, column.tree)
        return replace(self, steps=(*self.steps, step), groups=groups)

    def _beside(self, step: AnswerStep, other: "AskedOf | Statistic") -> "AskedOf":
        return replace(self, steps=(*self.steps, step), others=(*self.others, other))


def name_of(tree: Expression) -> str:
    """What a column, or what is computed, is called."""
    return tree.name if isinstance(tree, ColumnValue) else tree.label


def label_of(statistic: AskedOf | Statistic) -> str:
    """The label of a statistic."""
    if isinstance(statistic, AskedOf):
        return statistic.statistic.label
    if isinstance(statistic, Statistic):
        return statistic.label
    raise InvalidParameter("Compare with a statistic, such as c.pay.sum() or st.Units().")


def flat(statistics: Sequence[AskedOf | Statistic]) -> list[AskedOf | Statistic]:
    """Everything that is asked for, also what others are compared with."""
    one_by_one: list[AskedOf | Statistic] = []
    for each in statistics:
        one_by_one.append(each)
        if isinstance(each, AskedOf):
            one_by_one += flat(each.others)
    return one_by_one
