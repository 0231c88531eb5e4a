"""Which records a query is about, or what share of them is asked for: a condition over declared columns."""

import difflib
from collections.abc import Mapping

from sourdine.core.errors import InvalidParameter
from sourdine.core.format import block, either, setting
from sourdine.frames.expressions import (
    Among,
    ColumnValue,
    Expression,
    KeyKind,
    NumberKind,
    TruthKind,
    read_expression,
)
from sourdine.frames.expressions.form import WORDS
from sourdine.frames.schema import Schema

_MOST_NAMES = 8  # of columns, in a sentence
_OF_COLUMN = ("at_least", "below", "keys")


def check_condition(tree: Expression, schema: Schema, owner: str) -> None:
    """Refuse a condition that the declared columns cannot meet, or that can never be true."""
    for name in tree.columns:
        check_column(name, schema, owner)
    try:
        kind = tree.kind(schema.kinds)
    except InvalidParameter as problem:
        match tree:
            case Among(ColumnValue(name), (True,)) if isinstance(schema.kinds[name], KeyKind):
                raise InvalidParameter(
                    f"The query '{owner}' does not say which keys of the column '{name}' it is about. "
                    f"Name them, as in {_proportion()}."
                ) from None
            case Among(ColumnValue(name), (True,)) if isinstance(schema.kinds[name], NumberKind):
                raise InvalidParameter(
                    f"The query '{owner}' does not say which numbers of the column '{name}' it is about. "
                    f"State at_least or below, such as {either('at_least=18', 'at_least = 18')}."
                ) from None
        raise InvalidParameter(
            f"The query '{owner}' has a condition that does not fit its columns. {problem}"
        ) from None
    if not isinstance(kind, TruthKind):
        raise InvalidParameter(
            f"The query '{owner}' has the condition '{tree.text}', which is {kind.words}, neither true nor "
            f"false. Compare it with something, as in {setting('where', {'age': {'at_least': 18}})}."
        )
    if True not in tree.possible(schema.kinds):
        raise InvalidParameter(
            f"The query '{owner}' has the condition '{tree.words}', which can never be true: conditions see "
            "values as they are counted, within the declared bounds. Change it, or the bounds."
        )


def read_where(where: object, owner: str) -> tuple[object, ...]:
    """Conditions as they stand in a file, of which all must hold.

    They are a list of expressions, or one, or in short { age = { at_least = 18 }, region = ["north"] }.
    """
    if isinstance(where, Expression):
        return (where,)
    if isinstance(where, list | tuple):
        return tuple(where)
    if not isinstance(where, Mapping):
        raise InvalidParameter(
            f"The declaration '{owner}.where' is wrong: it must be a table. "
            f"Write it as {setting('where', {'age': {'at_least': 18}})}."
        )
    if next(iter(where), None) in WORDS and not all(map(_is_short, where.values())):
        return (read_expression(where),)
    if isinstance(where.get("column"), str):
        return (where,)
    return tuple(
        {"column": name, **bounds} if isinstance(bounds, Mapping) else {"column": name, "keys": bounds}
        for name, bounds in where.items()
    )


def _is_short(bounds: object) -> bool:
    """Whether what stands behind a name are keys, or bounds of a column of that name."""
    if isinstance(bounds, Mapping):
        return bool(bounds) and all(name in _OF_COLUMN for name in bounds)
    listed = bounds if isinstance(bounds, list | tuple) else [bounds]
    return not any(isinstance(each, Mapping | list | tuple | Expression) for each in listed)


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
