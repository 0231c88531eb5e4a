"""Whether what is compared and shown fits what is asked: seen before anything is paid for."""

from collections.abc import Sequence
from dataclasses import dataclass

from sourdine.core.errors import InvalidParameter
from sourdine.frames.schema import Schema
from sourdine.tables.comparison.show import RowFilter, RowKeys, Show
from sourdine.tables.comparison.steps import AnswerChange, AnswerFormula, AnswerShare, AnswerStep
from sourdine.tables.statistics import Statistic

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


__all__ = ["QuerySteps", "is_positive"]
