"""Which records a query is about, or what share of them is asked for, by a declared column."""

import difflib
from collections.abc import Mapping
from typing import Any

from pydantic import model_validator

from sourdine.core.errors import InvalidParameter
from sourdine.core.notation import block, either, setting, value
from sourdine.frames.filter import among, between
from sourdine.frames.schema import LONGEST_KEY, Column, Declared, Flag, Integer, Real, Schema, Text, sensible
from sourdine.frames.source import Source

_MOST_NAMES = 8  # of columns, in a sentence
_FLAGS = {"true": True, "false": False, "yes": True, "no": False}


class Condition(Declared):
    """Records whose column holds one of some keys, or a number from `at_least` up to and without `below`.

    >>> Condition(column="age", at_least=18, below=65).words
    'age from 18 to below 65'
    """

    column: str
    keys: tuple[str | int | bool, ...] | None = None
    at_least: int | float | None = None
    below: int | float | None = None

    @model_validator(mode="before")
    @classmethod
    def _listed(cls, given: Any) -> Any:
        if not isinstance(given, Mapping):
            return given
        keys = given.get("keys")
        if isinstance(keys, list):
            return {**given, "keys": tuple(keys)}
        return {**given, "keys": (keys,)} if isinstance(keys, str | int) else given

    @model_validator(mode="after")
    def _stated(self) -> "Condition":
        numbers = [bound for bound in (self.at_least, self.below) if bound is not None]
        if (self.keys is None) == (not numbers) or self.keys == ():
            raise ValueError("a condition needs keys, or else at_least or below")
        if not all(map(sensible, numbers)):
            raise ValueError("bounds must be numbers up to 1e100 in size")
        if len(numbers) == 2 and not numbers[0] < numbers[1]:
            raise ValueError("at_least must be below 'below'")
        return self

    @property
    def words(self) -> str:
        """The condition as people say it."""
        if self.keys is not None:
            named = (str(key).lower() if isinstance(key, bool) else str(key) for key in self.keys)
            return f"{self.column} {' or '.join(named)}"
        if self.below is None:
            return f"{self.column} at least {self.at_least:g}"
        if self.at_least is None:
            return f"{self.column} below {self.below:g}"
        return f"{self.column} from {self.at_least:g} to below {self.below:g}"

    def check(self, schema: Schema, owner: str) -> None:
        """Refuse a condition that the declared column can not meet."""
        check_column(self.column, schema, owner)
        found = schema.columns[self.column]
        if isinstance(found, Integer | Real) != (self.keys is None):
            right = "at_least or below" if isinstance(found, Integer | Real) else "some of its keys"
            raise InvalidParameter(
                f"The condition of '{owner}' on the column '{self.column}' does not fit its type. "
                f"State {right}."
            )
        if isinstance(found, Text):
            self._check_texts(owner)
            return
        unknown = [key for key in self._known(found) if key not in schema.keys(self.column)]
        if unknown and self.keys == (True,):
            raise InvalidParameter(
                f"The query '{owner}' does not say which keys of the column '{self.column}' it is about. "
                f"Name them, as in {_proportion()}."
            )
        if unknown:
            raise InvalidParameter(
                f"The query '{owner}' has a condition with the key {unknown[0]!r}, which the column "
                f"'{self.column}' does not declare. Use one of its keys, or declare it."
            )

    def _check_texts(self, owner: str) -> None:
        """Any text may be asked about that could be a key: it is named here, so it is known."""
        for key in self.keys or ():
            if not isinstance(key, str) or not 0 < len(key) <= LONGEST_KEY:
                raise InvalidParameter(
                    f"The query '{owner}' has a condition on the column '{self.column}' with a key that is "
                    f"no text of 1 to {LONGEST_KEY} characters. Name such texts, as in "
                    f"{value({self.column: ['a']})}."
                )

    def _known(self, column: Column) -> tuple[str | int | bool, ...]:
        """The keys as the column has them: "true" and "false" are those of a flag."""
        keys = self.keys or ()
        return tuple(_FLAGS.get(str(key).lower(), key) for key in keys) if isinstance(column, Flag) else keys

    def sql(self, source: Source) -> str:
        """True, false, or NULL where the column is missing and dropped."""
        if self.keys is None:
            return between(source, self.column, self.at_least, self.below)
        return among(source, self.column, self._known(source.schema.columns[self.column]))


def check_column(name: str, schema: Schema, owner: str) -> None:
    """Refuse a column that is not declared, and name the one that was perhaps meant."""
    if name in schema.columns:
        return
    near = difflib.get_close_matches(name, schema.columns, n=1)
    if near:
        remedy = f"Did you mean '{near[0]}'? If not, declare"
    elif name == "column":
        remedy = f"Conditions have names of columns first: {setting('where', {'sex': ['f']})}. Or declare"
    else:
        remedy = f"Declared are {_some(list(schema.columns))}. Take one of them, or declare"
    how = block("columns", name, type="category", keys=["a", "b"])
    raise InvalidParameter(
        f"In the query '{owner}' the column '{name}' is not declared. {remedy} it, as in {how}."
    )


def _some(names: list[str]) -> str:
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(f"'{name}'" for name in names[:_MOST_NAMES]) + more


def _proportion() -> str:
    return either('Proportion("region", of=["north"])', '{ proportion = "region", of = ["north"] }')
