"""What an expression is worth, by its definition: exact fractions, dates of the standard library, one record.

It is slow and knows nothing of engines. A number is rounded to the grid that its kind says, once.
"""

import math
import re
from collections.abc import Mapping
from datetime import date, datetime, timedelta
from fractions import Fraction
from typing import Any

from sourdine.frames.expressions import (
    Absolute,
    Add,
    All,
    Among,
    AnyOf,
    BinOf,
    Case,
    Ceiling,
    Clamp,
    Coalesce,
    ColumnValue,
    Comparison,
    Constant,
    DatePart,
    Divide,
    Expression,
    Floor,
    Greatest,
    InPeriod,
    IsMissing,
    KeyKind,
    Kind,
    Least,
    Letters,
    Like,
    Logarithm,
    Multiply,
    Negate,
    Not,
    NullIf,
    NumberKind,
    PartOf,
    Power,
    Root,
    Substring,
    Subtract,
    TimeBetween,
    TimePeriod,
)

Record = Mapping[str, Any]
Kinds = Mapping[str, Kind]


def value_of(tree: Expression, record: Record, kinds: Kinds) -> Any:
    """A number as a fraction, a key, a date, a time, true or false, or None where there is none."""
    match tree:
        case ColumnValue(name):
            return record[name]
        case Constant(value):
            return Fraction(value) if isinstance(value, int) and not isinstance(value, bool) else value
        case All(of) if isinstance(tree, AnyOf):
            found = [value_of(each, record, kinds) for each in of]
            return True if True in found else None if None in found else False
        case All(of):
            found = [value_of(each, record, kinds) for each in of]
            return False if False in found else None if None in found else True
        case Not(of):
            held = value_of(of, record, kinds)
            return None if held is None else not held
        case IsMissing(of):
            return value_of(of, record, kinds) is None
        case Case(whens, otherwise):
            for when, then in whens:
                if value_of(when, record, kinds) is True:
                    return _on_grid(value_of(then, record, kinds), tree, kinds)
            return None if otherwise is None else _on_grid(value_of(otherwise, record, kinds), tree, kinds)
        case Coalesce(of):
            held = (value_of(each, record, kinds) for each in of)
            return _on_grid(next((each for each in held if each is not None), None), tree, kinds)
        case NullIf(of, value):
            one, two = value_of(of, record, kinds), value_of(value, record, kinds)
            return None if one == two else one
        case Least(of):
            some = [each for each in (value_of(each, record, kinds) for each in of) if each is not None]
            pick = max if isinstance(tree, Greatest) else min
            return _on_grid(pick(some), tree, kinds) if some else None
    held = [value_of(part, record, kinds) for part in tree.parts]
    return None if any(each is None for each in held) else _of_parts(tree, held, kinds)


def _on_grid(value: Any, tree: Expression, kinds: Kinds) -> Any:
    """A number rounded to the grid of the expression, of two as near to the upper one."""
    if not isinstance(value, Fraction):
        return value
    kind = tree.kind(kinds)
    assert isinstance(kind, NumberKind)
    return math.floor(value / kind.step + Fraction(1, 2)) * kind.step


def _of_parts(tree: Expression, held: list[Any], kinds: Kinds) -> Any:
    match tree:
        case Subtract():
            found = held[0] - held[1]
        case Add():
            found = held[0] + held[1]
        case Multiply():
            found = held[0] * held[1]
        case Divide():
            found = held[0] / held[1]
        case Negate():
            found = -held[0]
        case Absolute():
            found = abs(held[0])
        case Floor():
            found = Fraction(math.floor(held[0]))
        case Ceiling():
            found = Fraction(math.ceil(held[0]))
        case Clamp(_, lower, upper):
            kind = tree.kind(kinds)
            assert isinstance(kind, NumberKind)
            found = max(kind.lower, min(kind.upper, held[0]))
            assert lower <= found <= upper
        case Power(_, exponent):
            return _power(tree, held[0], exponent, kinds)
        case Root():
            found = Fraction(math.isqrt(int(held[0] * (1 << 400)))) / (1 << 200)
        case Logarithm():
            found = Fraction(math.log(held[0].numerator) - math.log(held[0].denominator))
        case TimeBetween(unit=unit):
            start, end = (datetime(*each.timetuple()[:6]) for each in held)
            found = Fraction((end - start) // timedelta(seconds=1)) / UNITS[unit]
        case _:
            return _key_or_truth(tree, held, kinds)
    return _on_grid(found, tree, kinds)


UNITS = {"days": 86400, "hours": 3600, "minutes": 60, "seconds": 1}


def _power(tree: Power, base: Fraction, exponent: int, kinds: Kinds) -> Fraction:
    """Each product is rounded to its grid, as it is declared."""
    found = base
    for each in range(2, exponent + 1):
        found = _on_grid(found * base, Power(tree.of, each), kinds)
    return found


def _key_or_truth(tree: Expression, held: list[Any], kinds: Kinds) -> Any:
    match tree:
        case Comparison(sign=sign):
            one, two = held
            if isinstance(one, date) and isinstance(two, date):
                one, two = (datetime(*each.timetuple()[:6]) for each in held)
            return {
                "=": one == two,
                "<>": one != two,
                "<": sign == "<" and one < two,
                "<=": sign == "<=" and one <= two,
                ">": sign == ">" and one > two,
                ">=": sign == ">=" and one >= two,
            }[sign]
        case Among(_, keys):
            flags = {"true": True, "false": False}
            if isinstance(held[0], bool):
                return held[0] in [flags.get(str(key).lower(), key) for key in keys]
            return held[0] in keys
        case Like(_, pattern):
            signs = {"%": ".*", "_": "."}
            regex = "".join(signs.get(letter, re.escape(letter)) for letter in pattern)
            return re.fullmatch(regex, str(held[0]), re.DOTALL) is not None
        case BinOf(_, edges):
            return _bin(held[0], [Fraction(edge) for edge in edges], tree, kinds)
        case Substring(_, start, length):
            return held[0][start - 1 :][:length]
        case Letters(_, name):
            return held[0].upper() if name == "UPPER" else held[0].lower()
        case InPeriod(_, period):
            return _period(held[0], period)
        case PartOf(_, part):
            return Fraction(_part(held[0], part))
    raise AssertionError(f"There is no definition of {type(tree).__name__}.")


def _bin(value: Fraction, edges: list[Fraction], tree: BinOf, kinds: Kinds) -> Any:
    if not edges[0] <= value <= edges[-1]:
        return None
    place = min(sum(edge <= value for edge in edges) - 1, len(edges) - 2)
    kind = tree.kind(kinds)
    assert isinstance(kind, KeyKind)
    return kind.keys[place]


def _period(at: date, period: TimePeriod) -> str:
    hour = at.hour if isinstance(at, datetime) else 0
    match period:
        case TimePeriod.HOUR:
            return f"{at.strftime('%Y-%m-%d').zfill(10)} {hour:02}:00"
        case TimePeriod.DAY:
            return date(at.year, at.month, at.day).isoformat()
        case TimePeriod.WEEK:
            year, week, _ = at.isocalendar()
            return f"{year:04}-W{week:02}"
        case TimePeriod.MONTH:
            return f"{at.year:04}-{at.month:02}"
        case TimePeriod.QUARTER:
            return f"{at.year:04}-Q{(at.month + 2) // 3}"
        case TimePeriod.YEAR:
            return f"{at.year:04}"
        case TimePeriod.WEEKDAY:
            return at.strftime("%A")
    return f"{hour:02}:00"


def _part(at: date, part: DatePart) -> int:
    hour, minute = (at.hour, at.minute) if isinstance(at, datetime) else (0, 0)
    return {
        DatePart.YEAR: at.year,
        DatePart.QUARTER: (at.month + 2) // 3,
        DatePart.MONTH: at.month,
        DatePart.WEEK: at.isocalendar().week,
        DatePart.DAY_OF_MONTH: at.day,
        DatePart.DAY_OF_WEEK: at.isoweekday(),
        DatePart.HOUR: hour,
        DatePart.MINUTE: minute,
    }[part]
