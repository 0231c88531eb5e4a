"""Which rows of noisy answers are shown, and in which order. All of it sees released numbers alone."""

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, field_validator, model_validator

from sourdine.core.errors import InvalidParameter
from sourdine.frames.declared import Declared
from sourdine.frames.schema import as_tuples
from sourdine.tables.answers import Answer
from sourdine.tables.intervals import GroupEstimate

Sign = Literal["=", "<>", "<", "<=", ">", ">="]
COMPARE: Mapping[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


ValuesOf = Callable[[str, object], NDArray[Any]]
"""The values of an answer or a column for each row, as they compare with a constant."""
MOST_TERMS = 64  # of HAVING, and of ORDER BY
_FARTHEST = 10**100


class RowFilter(Declared):
    """Rows whose answer, or key, compares so with a constant. `of` is the label of an answer or a column."""

    of: str
    sign: Sign
    value: int | float | str | bool

    @field_validator("value")
    @classmethod
    def _sized(cls, value: int | float | str | bool) -> int | float | str | bool:
        if not isinstance(value, str) and not abs(value) <= _FARTHEST:
            raise ValueError("it must be a number up to 1e100 in size")
        return value

    @property
    def filters(self) -> tuple["RowFilter", ...]:
        """The comparisons in it."""
        return (self,)

    def keeps(self, values: Any) -> Any:
        """Which of these values it keeps."""
        return COMPARE[self.sign](values, self.value)

    def test(self, values_of: ValuesOf) -> NDArray[np.bool_]:
        """Which rows it keeps."""
        return np.asarray(self.keeps(values_of(self.of, self.value)), dtype=bool)


class RowKeys(Declared):
    """Rows whose key is one of a list. `of` is a column that is grouped by, of declared keys."""

    of: str
    keys: tuple[str | int | bool, ...]

    @model_validator(mode="before")
    @classmethod
    def _listed(cls, fields: Any) -> Any:
        return as_tuples(fields, "keys")

    @property
    def filters(self) -> tuple[RowFilter, ...]:
        """The comparisons in it: none is of an answer."""
        return ()

    def test(self, values_of: ValuesOf) -> NDArray[np.bool_]:
        """Which rows it keeps."""
        keys = set(self.keys)
        return np.array([key in keys for key in values_of(self.of, "").tolist()], dtype=bool)


class AnyFilter(Declared):
    """Rows that at least one of some filters keeps."""

    any: tuple[RowFilter | RowKeys, ...] = Field(min_length=1, max_length=MOST_TERMS)

    @model_validator(mode="before")
    @classmethod
    def _listed(cls, fields: Any) -> Any:
        return as_tuples(fields, "any")

    @property
    def filters(self) -> tuple[RowFilter, ...]:
        """The comparisons in it."""
        return tuple(part for each in self.any for part in each.filters)

    def test(self, values_of: ValuesOf) -> NDArray[np.bool_]:
        """Which rows it keeps."""
        kept: NDArray[np.bool_] = np.any([each.test(values_of) for each in self.any], axis=0)
        return kept


class RowOrder(Declared):
    """Rows by an answer or a key; keys are in their declared order, or by letters and size."""

    of: str
    descending: bool = False
    by_value: bool = Field(default=False, exclude_if=lambda value: not value)


class Show(Declared):
    """Which rows are shown, in which order, and how many at most; `names` are what answers are called."""

    having: tuple[RowFilter | RowKeys | AnyFilter, ...] = Field(default=(), max_length=MOST_TERMS)
    order: tuple[RowOrder, ...] = Field(default=(), max_length=MOST_TERMS)
    limit: int | None = Field(default=None, ge=1, le=1 << 40)
    names: Mapping[str, str] = Field(default_factory=dict, exclude_if=lambda names: not names)

    @model_validator(mode="before")
    @classmethod
    def _listed(cls, rows: Any) -> Any:
        return as_tuples(rows, "having", "order")

    @property
    def filters(self) -> tuple[RowFilter | RowKeys, ...]:
        """Every filter of HAVING, also those of which one is enough."""
        return tuple(
            part for each in self.having for part in (each.any if isinstance(each, AnyFilter) else (each,))
        )

    @property
    def uses(self) -> tuple[str, ...]:
        """The answers and the columns that it looks at."""
        return (*(each.of for each in self.filters), *(each.of for each in self.order))

    @property
    def hides(self) -> bool:
        """Whether some rows may not be shown."""
        return bool(self.having) or self.limit is not None

    def limits(self, rows: int) -> bool:
        """Whether LIMIT leaves out some of so many rows."""
        return self.limit is not None and self.limit < rows

    def __bool__(self) -> bool:
        return bool(self.having or self.order or self.names or self.limit is not None)

    def apply(self, answers: Sequence[Answer]) -> list[Answer]:
        """The same answers with some rows in some order: those of them that have the same keys as the first.

        Rows are chosen by noisy values, so that those near a threshold may be on either side of it.
        """
        if not self or not answers:
            return list(answers)
        first = answers[0]
        alike = [each.columns == first.columns and each.keys == first.keys for each in answers]
        rows = self._rows(
            {each.statistic: each for each, like in zip(answers, alike, strict=True) if like}, first
        )
        taken = [_taken(each, rows) if like else each for each, like in zip(answers, alike, strict=True)]
        return [replace(each, statistic=self.names.get(each.statistic, each.statistic)) for each in taken]

    def _rows(self, answers: Mapping[str, Answer], first: Answer) -> NDArray[np.int64]:
        rows = np.arange(len(first.keys))
        for each in self.having:
            rows = rows[each.test(lambda of, like: _values(of, answers, first, like))[rows]]
        for order in reversed(self.order):
            sort_values = _values(order.of, answers, first, "" if order.by_value else 0)[rows]
            if order.by_value or sort_values.dtype == bool:  # which numpy does not negate
                sort_values = np.unique(sort_values, return_inverse=True)[1]
            places = np.argsort(sort_values, kind="stable")
            if order.descending:  # what is alike stays as it was
                places = np.argsort(-sort_values, kind="stable")
            rows = rows[places]
        return rows if self.limit is None else rows[: self.limit]


EVERYTHING = Show()


def _values(of: str, answers: Mapping[str, Answer], first: Answer, like: object = 0) -> NDArray[Any]:
    """The values of an answer, or the places of a column's keys; its keys where a text is compared with."""
    if of in answers:
        return answers[of].estimate.value
    if of in first.columns:
        column = first.keys.columns[first.columns.index(of)]
        if isinstance(like, str) or column.values.dtype.kind in "biuf":
            return column.cells()
        return column.places.astype(np.int64)
    raise InvalidParameter(
        f"The rows of '{first.query}' have no '{of}' to be shown by. Use one of "
        f"{', '.join([*answers, *first.columns])}."
    )


def _taken(answer: Answer, rows: NDArray[np.int64]) -> Answer:
    estimate = answer.estimate
    return replace(
        answer,
        keys=answer.keys.take(rows),
        estimate=GroupEstimate(estimate.value[rows], estimate.lower[rows], estimate.upper[rows]),
    )
