"""What is declared of a table's columns: kinds, bounds, keys, and what counts as missing.

Declarations come from people who know the data's meaning, never from the data. They are read from the
`[columns]` block of a TOML file, or given as plain objects.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property

from pydantic import ValidationError, model_validator

from sourdine.core.errors import InvalidParameter
from sourdine.core.format import block, either, entry, value
from sourdine.frames.columns import Category, Column, Flag, Integer, Number, Real, Text, kind_of
from sourdine.frames.derived import DERIVED, derivation, derived_column, is_derived
from sourdine.frames.expressions.calendar import names_of
from sourdine.frames.expressions.dates import moments_of
from sourdine.frames.expressions.kinds import Kind
from sourdine.frames.expressions.tree import Expression
from sourdine.frames.mistakes import Declared, mistake, python_values
from sourdine.frames.times.dates import Date, Datetime

_MOST_KEYS = 1 << 22


class Schema(Declared):
    """The declared columns of a table, and those that are derived from them.

    >>> Schema.read({"age": {"type": "integer", "lower": 0, "upper": 120}}).columns["age"].upper
    120
    """

    columns: Mapping[str, Column]

    @model_validator(mode="after")
    def _called(self) -> "Schema":
        if any(not name or "\0" in name for name in self.columns):
            raise ValueError("a column's name must not be empty, nor hold the character 0")
        return self

    @classmethod
    def read(cls, columns: Mapping[str, object]) -> "Schema":
        """The schema of a `[columns]` block; a mistake is named by its field."""
        blocks: object = columns
        if not isinstance(blocks, Mapping):
            column = {"type": "integer", "lower": 0, "upper": 120}
            raise InvalidParameter(
                "The columns must be declared by their names: what each holds is never taken from the data. "
                f"Write them like {value({'age': column})}."
            )
        derived = {name: each for name, each in columns.items() if is_derived(each)}
        plain = {name: each for name, each in columns.items() if name not in derived}
        try:
            schema = cls.model_validate({"columns": python_values(plain)})
        except ValidationError as problem:
            raise mistake(problem, "columns") from None
        if not derived:
            return schema
        trees = {name: derivation(name, each) for name, each in derived.items()}
        complete = schema.with_derived(trees).columns
        return cls(columns={name: complete[name] for name in columns})

    def with_derived(self, trees: Mapping[str, Expression]) -> "Schema":
        """The schema with more columns, each computed of a record; one may be computed of another."""
        columns, left = dict(self.columns), dict(trees)
        while left:
            known = {name: kind_of(each) for name, each in columns.items()}
            ready = [name for name, tree in left.items() if not set(tree.columns) & set(left)]
            if not ready:
                raise InvalidParameter(
                    f"The derived columns {', '.join(sorted(left))} are computed of each other. Compute one "
                    "of them of columns that the table has."
                )
            for name in ready:
                column = derived_column(name, left.pop(name), known)
                if columns.setdefault(name, column) != column:
                    raise InvalidParameter(
                        f"The column '{name}' is declared, and an expression is called so too. Rename one."
                    )
        return Schema(columns=columns)

    @cached_property
    def kinds(self) -> Mapping[str, Kind]:
        """What expressions know of the columns."""
        return {name: kind_of(column) for name, column in self.columns.items()}

    @property
    def base(self) -> "Schema":
        """The columns that a table must hold: those that are not derived."""
        derived = any(isinstance(each, DERIVED) for each in self.columns.values())
        return self._without_derived if derived else self  # not kept: a schema must not hold itself

    @cached_property
    def _without_derived(self) -> "Schema":
        return Schema(
            columns={name: each for name, each in self.columns.items() if not isinstance(each, DERIVED)}
        )

    def extends(self, other: "Schema") -> bool:
        """Whether this is another schema with derived columns more, or just that."""
        shared = {name: self.columns.get(name) for name in other.columns}
        return shared == dict(other.columns) and self.base == other.base

    def sources(self, names: Sequence[str]) -> tuple[str, ...]:
        """The columns of the table that some columns are, or are computed of."""
        names_in_table: dict[str, None] = {}
        for name in names:
            column = self.columns[name]
            if isinstance(column, DERIVED):
                names_in_table.update(dict.fromkeys(self.sources(column.expression.columns)))
            else:
                names_in_table[name] = None
        return tuple(names_in_table)

    def number(self, owner: str, name: str) -> Number:
        """A column that holds numbers."""
        column = self.columns.get(name)
        if not isinstance(column, Integer | Real):
            raise InvalidParameter(
                f"{owner} needs numbers, and the column '{name}' is not declared as integer or real. "
                f"Declare it with bounds, as in {block('columns', name, type='real', lower=0, upper=100)}."
            )
        return column

    def keys(self, name: str) -> tuple[str, ...] | tuple[int, ...] | tuple[bool, ...]:
        """The known keys of a column to group by."""
        column = self.columns.get(name)
        if isinstance(column, Category):
            return column.keys
        if isinstance(column, Flag):
            return (False, True)
        if isinstance(column, Text):
            raise InvalidParameter(
                f"The keys of the column '{name}' are chosen privately, which only 'by' and 'top' allow. "
                "Group by it, or declare it as a category with its keys."
            )
        if isinstance(column, Integer):
            if column.upper - column.lower < _MOST_KEYS:
                return tuple(range(column.lower, column.upper + 1))
            raise InvalidParameter(
                f"Grouping needs known keys, and the column '{name}' has more than {_MOST_KEYS:,} of them "
                f"between its bounds. Ask for {_histogram(name)}, or declare narrower bounds."
            )
        if isinstance(column, Date | Datetime):
            if column.period is not None:
                return tuple(names_of(column.period, *moments_of(column.kind)))
            raise InvalidParameter(
                f"Dates are grouped by periods, and the column '{name}' has none declared. Declare one, as "
                f"in {block('columns', name, period='month')}, or group by an expression such as "
                f"{value({'month': name})}."
            )
        if isinstance(column, Real):
            raise InvalidParameter(
                f"Grouping needs known keys, and the column '{name}' is declared to hold numbers. Ask for "
                f"{_histogram(name)}, or declare it as a category with its keys."
            )
        raise InvalidParameter(
            f"Grouping needs known keys, and the column '{name}' has none declared. "
            f"Declare them, as in {block('columns', name, type='category', keys=['a', 'b'])}, or let them be "
            f"chosen privately with {entry('type', 'text')}."
        )

    def open(self, names: Sequence[str]) -> tuple[str, ...]:
        """Which of these columns have keys that are chosen privately."""
        return tuple(name for name in names if isinstance(self.columns.get(name), Text))

    def text(self, name: str) -> Text:
        """A column whose keys are chosen privately."""
        column = self.columns[name]
        assert isinstance(column, Text)
        return column


def expression_of(schema: Schema, name: str) -> Expression:
    """What a derived column is computed by."""
    column = schema.columns[name]
    assert isinstance(column, DERIVED)
    return column.expression


def _histogram(name: str) -> str:
    edges = [0, 20, 40]
    return either(f"Histogram({value(name)}, {edges})", value({"histogram": name, "edges": edges}))
