"""Expressions as people write them in a file, and back: small tables of names and lists.

A text is the name of a column, a number or a date stands for itself, and what is computed is a table with one
word for it: { divide = ["pay", 12] }, { month = "seen" }, { any = [{ at_least = ["age", 18] }, "well"] }.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from fractions import Fraction
from typing import Annotated, Any

import numpy as np
from pydantic import PlainSerializer, PlainValidator

from sourdine.core.errors import InvalidParameter
from sourdine.core.format import setting
from sourdine.frames.expressions.conditions import (
    All,
    Among,
    AnyOf,
    BinOf,
    Case,
    Coalesce,
    Comparison,
    Greatest,
    IsMissing,
    Least,
    Letters,
    Like,
    Matched,
    Not,
    NullIf,
    Substring,
)
from sourdine.frames.expressions.functions import (
    Absolute,
    Add,
    Ceiling,
    Clamp,
    Divide,
    Floor,
    Logarithm,
    Multiply,
    Negate,
    Power,
    Root,
    Subtract,
)
from sourdine.frames.expressions.times import DatePart, InPeriod, PartOf, TimeBetween, TimePeriod
from sourdine.frames.expressions.tree import ColumnValue, Constant, Expression, check_tree, decimal

_TWO: Mapping[str, type[Expression]] = {
    "add": Add,
    "subtract": Subtract,
    "multiply": Multiply,
    "divide": Divide,
    "nullif": NullIf,
}
_ONE: Mapping[str, type[Expression]] = {
    "negate": Negate,
    "abs": Absolute,
    "floor": Floor,
    "ceil": Ceiling,
    "ln": Logarithm,
    "sqrt": Root,
    "missing": IsMissing,
    "not": Not,
}
_MANY: Mapping[str, type[Expression]] = {
    "least": Least,
    "greatest": Greatest,
    "coalesce": Coalesce,
    "all": All,
    "any": AnyOf,
}
_SIGNS = {"equal": "=", "not_equal": "<>", "less": "<", "at_most": "<=", "greater": ">", "at_least": ">="}
_LETTERS = {"upper": "UPPER", "lower": "LOWER"}
_UNITS = ("days", "hours", "minutes", "seconds")
_CONSTANTS = ("text", "date", "datetime", "number", "truth")
_OTHERS = ("clamp", "power", "bins", "substring", "in", "like", "between", "case", "column", "matched")
WORDS = (
    *_TWO,
    *_ONE,
    *_MANY,
    *_SIGNS,
    *_LETTERS,
    *_UNITS,
    *(str(each) for each in TimePeriod),
    *(str(each) for each in DatePart),
    *_OTHERS,
    *_CONSTANTS,
)


def read_expression(form: object) -> Expression:
    """The expression of a form as it stands in a file; a tree is taken as it is.

    >>> read_expression({"subtract": ["pay", {"multiply": [12, "rent"]}]}).text
    'pay - (12 * rent)'
    """
    tree = _read(form)
    check_tree(tree)
    return tree


def _read(form: object) -> Expression:
    if isinstance(form, np.generic):
        form = form.item()
    if isinstance(form, Expression):
        return form
    if isinstance(form, str):
        if not form or "\0" in form:
            raise InvalidParameter("A column in an expression must have a name.")
        return ColumnValue(form)
    if isinstance(form, bool | int | float | Fraction | date):
        return Constant(form)
    if not isinstance(form, Mapping) or not form:
        raise _wrong(form)
    if "column" in form and len(form) > 1:
        return read_condition(form)
    word = next(iter(form))
    rest = {name: value for name, value in form.items() if name != word}
    if word not in WORDS:
        raise _unknown(word)
    return _expression(str(word), form[word], rest)


def _expression(word: str, content: Any, rest: dict[str, Any]) -> Expression:
    special = _with_more(word, content, rest)
    if special is not None:
        return special
    if rest:
        raise InvalidParameter(
            f"In an expression '{word}' stands alone, and here is '{next(iter(rest))}' beside it. "
            "Write one expression inside the other."
        )
    if word == "matched":
        return Matched(*_texts([content]))
    if word in _CONSTANTS or word == "column":
        return _constant(word, content)
    if word in _ONE:
        return _ONE[word](_read(content))  # type: ignore[call-arg]
    if word in _LETTERS:
        return Letters(_read(content), _LETTERS[word])
    if word in tuple(TimePeriod):
        return InPeriod(_read(content), TimePeriod(word))
    if word in tuple(DatePart):
        return PartOf(_read(content), DatePart(word))
    if word in _MANY:
        return _MANY[word](tuple(map(_read, _listed(word, content))))  # type: ignore[call-arg]
    if word == "power":
        of, exponent = _listed(word, content, 2)
        return Power(_read(of), exponent)
    one, two = map(_read, _listed(word, content, 2))
    if word in _SIGNS:
        return Comparison(one, _SIGNS[word], two)
    if word in _UNITS:
        return TimeBetween(start=two, end=one, unit=word)
    return _TWO[word](one, two)  # type: ignore[call-arg]


def _with_more(word: str, content: Any, rest: dict[str, Any]) -> Expression | None:
    """An expression that is made of more than its parts."""
    match word:
        case "bins":
            _only(word, rest, "edges", "labels")
            edges = tuple(_number(edge) for edge in _listed("edges", rest.get("edges")))
            return BinOf(_read(content), edges, tuple(_texts(rest.get("labels", ()))))
        case "clamp":
            _only(word, rest, "lower", "upper")
            return Clamp(_read(content), _number(rest.get("lower")), _number(rest.get("upper")))
        case "substring":
            _only(word, rest, "start", "length")
            return Substring(_read(content), _whole(rest.get("start", 1)), _whole(rest.get("length")))
        case "in":
            _only(word, rest, "keys")
            return Among(_read(content), tuple(map(_key, _listed("keys", rest.get("keys")))))
        case "like":
            _only(word, rest, "pattern")
            return Like(_read(content), *_texts([rest.get("pattern")]))
        case "between":
            _only(word, rest, "from", "to")
            of, ends = _read(content), [_read(rest.get(name)) for name in ("from", "to")]
            return All((Comparison(of, ">=", ends[0]), Comparison(of, "<=", ends[1])))
        case "case":
            _only(word, rest, "else")
            whens = tuple(
                (_read(when), _read(value))
                for when, value in (_listed("case", pair, 2) for pair in _listed(word, content))
            )
            return Case(whens, _read(rest["else"]) if "else" in rest else None)
    return None


def _constant(word: str, content: Any) -> Expression:
    match word:
        case "column":
            if isinstance(content, str) and content:
                return ColumnValue(content)
        case "text":
            return Constant(*_texts([content]))
        case "number":
            return Constant(_number(content))
        case "truth":
            if isinstance(content, bool):
                return Constant(content)
        case "date" | "datetime":
            kind = date if word == "date" else datetime
            if isinstance(content, kind):
                return Constant(content)
            try:
                return Constant(kind.fromisoformat(content))
            except (TypeError, ValueError):
                raise InvalidParameter(
                    f"A {word} in an expression is written like "
                    f"{'2024-12-31' if word == 'date' else '2024-12-31T18:00:00'}."
                ) from None
    raise InvalidParameter(
        f"The '{word}' of an expression is not written rightly. See how expressions are written."
    )


def read_condition(form: Mapping[str, object]) -> Expression:
    """The tree of { column = "age", at_least = 18 } or { column = "region", keys = ["north"] }."""
    rest = {name: value for name, value in form.items() if name != "column" and value is not None}
    of = ColumnValue(str(form["column"]))
    for name in rest:
        if name not in ("keys", "at_least", "below"):
            raise InvalidParameter(
                f"'{name}' is unknown in the condition on '{of.name}', which has keys, at_least or below. "
                f"Write it like {setting('where', {of.name: {'at_least': 18}})}"
            )
    if not rest or ("keys" in rest and len(rest) > 1):
        raise InvalidParameter("a condition needs keys, or else at_least or below")
    if "keys" in rest:
        keys = rest["keys"]
        return Among(of, tuple(map(_key, keys if isinstance(keys, list | tuple) else [keys])))
    parts = [
        Comparison(of, sign, _read(rest[name]))
        for name, sign in (("at_least", ">="), ("below", "<"))
        if name in rest
    ]
    if len(parts) == 1:
        return parts[0]
    match [each.right for each in parts]:
        case Constant(int() | Fraction() as low), Constant(int() | Fraction() as high) if not low < high:
            raise InvalidParameter("at_least must be below 'below'")
    return All(tuple(parts))


def _wrong(form: object) -> InvalidParameter:
    return InvalidParameter(
        f'An expression is the name of a column, a number, or a table such as {{ divide = ["pay", 12] }}. '
        f"Got a {type(form).__name__}."
    )


def _unknown(word: object) -> InvalidParameter:
    import difflib

    near = difflib.get_close_matches(str(word), WORDS, n=1)
    meant = f" Did you mean '{near[0]}'?" if near else f" It knows {', '.join(WORDS)}."
    return InvalidParameter(f"An expression has no '{word}'.{meant}")


def _only(word: str, rest: dict[str, Any], *names: str) -> None:
    for name in rest:
        if name not in names:
            raise InvalidParameter(
                f"In an expression '{word}' has {' and '.join(names)} beside it, not '{name}'."
            )


def _listed(word: str, items: object, many: int | None = None) -> Sequence[Any]:
    if not isinstance(items, list | tuple) or (many is not None and len(items) != many) or not items:
        count = "a list" if many is None else f"a list of {many}"
        raise InvalidParameter(f"In an expression '{word}' is followed by {count}.")
    return items


def _number(content: object) -> Fraction:
    if isinstance(content, str) and re.fullmatch(r"-?[0-9]+/[1-9][0-9]*", content):
        return Fraction(content)
    number = isinstance(content, int | float | Fraction) and not isinstance(content, bool)
    if isinstance(content, int | float | Fraction) and number and -(10**100) <= content <= 10**100:
        return decimal(content)
    raise InvalidParameter("A number is needed in an expression, up to 1e100 in size.")


def _whole(content: object) -> int:
    if isinstance(content, bool) or not isinstance(content, int):
        raise InvalidParameter("A whole number is needed in an expression, as in start = 1, length = 2.")
    return content


def _texts(content: object) -> list[str]:
    if not isinstance(content, list | tuple) or not all(isinstance(each, str) for each in content):
        raise InvalidParameter("A text is needed in an expression, in quotes.")
    return list(content)


def _key(content: object) -> str | int | Fraction | bool:
    if isinstance(content, Mapping) and set(content) == {"number"}:
        content = _number(content["number"])
    if isinstance(content, float):
        content = decimal(content)
    if isinstance(content, Fraction) and content.denominator == 1:
        return content.numerator
    if not isinstance(content, str | int | Fraction):
        raise InvalidParameter("A key in an expression is a text, a number, or true or false.")
    return content


_WRITERS: dict[type[Expression], Callable[[Any], object]] = {
    Power: lambda each: {"power": [write_expression(each.of), each.exponent]},
    Clamp: lambda each: {
        "clamp": write_expression(each.of),
        "lower": _plain_number(each.lower),
        "upper": _plain_number(each.upper),
    },
    InPeriod: lambda each: {each.period.value: write_expression(each.of)},
    PartOf: lambda each: {each.part.value: write_expression(each.of)},
    TimeBetween: lambda each: {each.unit: [write_expression(each.end), write_expression(each.start)]},
    Letters: lambda each: {each.name.lower(): write_expression(each.of)},
    Substring: lambda each: {
        "substring": write_expression(each.of),
        "start": each.start,
        "length": each.length,
    },
    Among: lambda each: {"in": write_expression(each.of), "keys": [_plain(key) for key in each.keys]},
    Like: lambda each: {"like": write_expression(each.of), "pattern": each.pattern},
    BinOf: lambda each: {
        "bins": write_expression(each.of),
        "edges": [_plain_number(edge) for edge in each.edges],
        **({"labels": list(each.labels)} if each.labels else {}),
    },
    Case: lambda each: {
        "case": [[write_expression(when), write_expression(value)] for when, value in each.whens],
        **({} if each.otherwise is None else {"else": write_expression(each.otherwise)}),
    },
    ColumnValue: lambda each: each.name,
    Matched: lambda each: {"matched": each.join},
    Constant: lambda each: _constant_form(each.value),
}


def write_expression(tree: Expression) -> object:
    """The form of an expression, of which `read_expression` makes it again.

    >>> write_expression(read_expression({"at_least": ["age", 18]}))
    {'at_least': ['age', 18]}
    """
    kind = type(tree)
    if kind in _WRITERS:
        return _WRITERS[kind](tree)
    if isinstance(tree, Comparison):
        word = next(name for name, sign in _SIGNS.items() if sign == tree.sign)
        return {word: [write_expression(part) for part in tree.parts]}
    for listed in (_TWO, _MANY):
        for name, each in listed.items():
            if kind is each:
                return {name: [write_expression(part) for part in tree.parts]}
    name = next(name for name, each in _ONE.items() if kind is each)
    return {name: write_expression(tree.parts[0])}


def _plain_number(number: Fraction) -> int | float | str:
    """A number as a file has it: whole, as a float that is read as the same, or as a fraction in text."""
    if number.denominator == 1:
        return number.numerator
    near = float(number)
    return near if decimal(near) == number else str(number)


def _plain(key: str | int | Fraction | bool) -> object:
    if not isinstance(key, Fraction):
        return key
    number = _plain_number(key)
    return {"number": number} if isinstance(number, str) else number


def _constant_form(value: object) -> object:
    match value:
        case str():
            return {"text": value}
        case Fraction():
            number = _plain_number(value)
            return {"number": number} if isinstance(number, str) else number
        case datetime():
            return {"datetime": value.isoformat()}
        case date():
            return {"date": value.isoformat()}
    return value


def _validated(form: object) -> Expression:
    try:
        return read_expression(form)
    except InvalidParameter as problem:
        raise ValueError(str(problem)) from None


ExpressionField = Annotated[Expression, PlainValidator(_validated), PlainSerializer(write_expression)]
"""An expression as a field of a declaration."""
