"""Random expressions over declared columns, and records to compute them of."""

import math
from datetime import date, datetime
from fractions import Fraction
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from sourdine.core.errors import InvalidParameter
from sourdine.frames import Schema
from sourdine.frames.expressions import DatePart, TimePeriod, read_expression

COLUMNS: dict[str, Any] = {
    "age": {"type": "integer", "lower": -3, "upper": 120},
    "wide": {"type": "integer", "lower": -(10**9), "upper": 10**9},
    "far": {"type": "integer", "lower": -(1 << 40), "upper": -(1 << 40) + 300},
    "pay": {"type": "real", "lower": -0.7, "upper": 200.0, "granularity": 0.3},
    "fine": {"type": "real", "lower": 0.0, "upper": 1.0},
    "given": {"type": "real", "lower": 0.0, "upper": 9.0, "granularity": 0.5, "missing": 2.5},
    "region": {"type": "category", "keys": ["north", "south", "it's", "North East"]},
    "code": {"type": "category", "keys": [7, 1, -2]},
    "well": {"type": "flag"},
    "town": {"type": "text"},
    "start": {"type": "date", "first": "1968-02-20", "last": "1972-03-05"},
    "end": {"type": "date", "first": "0001-01-01", "last": "9999-12-31"},
    "seen": {"type": "datetime", "first": "1969-12-20", "last": "1970-02-03"},
}
SCHEMA = Schema.read(COLUMNS)
KINDS: dict[str, str] = {
    "age": "BIGINT",
    "wide": "DOUBLE",
    "far": "BIGINT",
    "pay": "DOUBLE",
    "fine": "DOUBLE",
    "given": "VARCHAR",
    "region": "VARCHAR",
    "code": "BIGINT",
    "well": "BOOLEAN",
    "town": "VARCHAR",
    "start": "DATE",
    "end": "DATE",
    "seen": "TIMESTAMP",
}
_LONG = 1 << 63
_ODD = [math.nan, math.inf, -math.inf, -0.0, 1e300, -1e300, 5e-324, 0.1, 0.45, 1.05]
_TEXTS = ["", " ", "nan", "inf", "1e309", "2,5", "2.5", " 3 ", "9" * 40, "true", "x", "0x1"]
CELLS: dict[str, SearchStrategy[Any]] = {
    "age": st.none() | st.integers(-5, 125) | st.sampled_from([_LONG - 1, -_LONG, 0, 1, 2, 119, 120]),
    "wide": st.none() | st.integers(-(10**9) - 5, 10**9 + 5).map(float) | st.sampled_from(_ODD),
    "far": st.none() | st.integers(-(1 << 40) - 2, -(1 << 40) + 302) | st.sampled_from([_LONG - 1, 0]),
    "pay": st.none() | st.floats(-2, 210) | st.sampled_from(_ODD),
    "fine": st.none() | st.floats(-0.1, 1.1) | st.sampled_from(_ODD),
    "given": st.none() | st.floats(0, 9).map(str) | st.sampled_from(_TEXTS),
    "region": st.none() | st.sampled_from(["north", "south", "it's", "North East", "North", "", "x"]),
    "code": st.none() | st.sampled_from([7, 1, -2, 0, _LONG - 1]),
    "well": st.none() | st.booleans(),
    "town": st.none()
    | st.sampled_from(["Kirkham", "Ham", "", "a%b", "two\nlines", "é", "🙂", "x" * 201, "a_c"]),
    "start": st.none()
    | st.dates(date(1968, 2, 1), date(1972, 3, 20))
    | st.sampled_from([date.min, date.max]),
    "end": st.none() | st.dates() | st.sampled_from([date.min, date.max, date(2000, 2, 29)]),
    "seen": st.none()
    | st.datetimes(datetime(1969, 12, 18), datetime(1970, 2, 6))
    | st.sampled_from([datetime.min, datetime.max, datetime(1969, 12, 31, 23, 59, 59, 999999)]),
}
records = st.fixed_dictionaries(CELLS)


def counted(record: dict[str, Any]) -> dict[str, Any]:
    """A record as declarations have it: clamped, rounded to the grid, known, within first and last."""
    return {name: _counted(name, cell) for name, cell in record.items()}


def _counted(name: str, cell: Any) -> Any:
    declared: Any = COLUMNS[name]
    column: Any = SCHEMA.columns[name]
    match declared["type"]:
        case "integer" | "real":
            number = _number(cell)
            if number is None:
                missing = declared.get("missing")
                return None if missing is None else Fraction(str(missing))
            step = SCHEMA.number("", name).step
            within = max(Fraction(str(declared["lower"])), min(Fraction(str(declared["upper"])), number))
            if within != number:  # bounds are rounded outwards
                side = math.floor if number < within else math.ceil
                return side(within / step) * step
            if step == 1 and not isinstance(cell, float):
                return number
            return round(float(number) * float(1 / step)) * step
        case "category":
            return cell if cell in declared["keys"] else None
        case "text":
            good = cell is not None and 0 < len(cell) <= 200 and "\n" not in cell
            return cell if good else None
        case "date":
            return cell if cell is not None and column.first <= cell <= column.last else None
        case "datetime":
            whole = None if cell is None else cell.replace(microsecond=0)
            return whole if whole is not None and column.first <= whole <= column.last else None
    return cell


def _number(cell: Any) -> Fraction | None:
    if isinstance(cell, str):
        if cell == "true":
            return Fraction(1)
        try:
            cell = float(cell) if "x" not in cell and "_" not in cell else math.nan
        except ValueError:
            return None
    if cell is None or not math.isfinite(cell):
        return None
    return Fraction(cell)


_numbers = ["age", "wide", "far", "pay", "fine", "given"]
_constants = st.sampled_from([0, 1, 2, -3, 7, 0.5, 0.1, 1000, -0.25, 1e6])
_dates = st.sampled_from(["start", "end", "seen"])
_day = st.dates(date(1968, 1, 1), date(1973, 1, 1)).map(lambda day: {"date": day.isoformat()})
_moment = st.datetimes(datetime(1969, 12, 1), datetime(1970, 3, 1)).map(
    lambda at: {"datetime": at.replace(microsecond=0).isoformat()}
)


_sometimes = st.sampled_from([{"case": [[{"less": ["age", 30]}, 5]]}, {"nullif": [7, "age"]}])


def _pairs(one: SearchStrategy[Any], two: SearchStrategy[Any]) -> SearchStrategy[list[Any]]:
    return st.tuples(one, two).map(list)


def numbers(deep: int) -> SearchStrategy[Any]:
    """Expressions that are numbers, mostly."""
    leaf = st.sampled_from(_numbers) | _constants
    dated = st.sampled_from(list(DatePart)).flatmap(lambda part: _dates.map(lambda of: {part.value: of}))
    between = st.sampled_from(["days", "hours", "seconds"]).flatmap(
        lambda unit: _pairs(_dates, _dates).map(lambda of: {unit: of})
    )
    if deep == 0:
        return leaf | dated | between
    inner = numbers(deep - 1)
    two = st.sampled_from(["add", "subtract", "multiply", "divide"])
    one = st.sampled_from(["negate", "abs", "floor", "ceil", "sqrt"])
    return st.one_of(
        leaf,
        two.flatmap(lambda word: _pairs(inner, inner).map(lambda of: {word: of})),
        _pairs(inner, inner).map(lambda of: {"divide": [of[0], {"nullif": [of[1], 0]}]}),
        one.flatmap(lambda word: inner.map(lambda of: {word: of})),
        inner.map(lambda of: {"sqrt": {"abs": of}}),
        st.sampled_from(["least", "greatest", "coalesce"]).flatmap(
            lambda word: st.lists(inner, min_size=1, max_size=3).map(lambda of: {word: of})
        ),
        st.tuples(inner, st.integers(1, 3)).map(lambda of: {"power": list(of)}),
        st.tuples(inner, st.integers(-50, 0), st.integers(1, 50)).map(
            lambda of: {"clamp": of[0], "lower": of[1], "upper": of[2]}
        ),
        st.tuples(truths(deep - 1), inner, inner).map(lambda of: {"case": [[of[0], of[1]]], "else": of[2]}),
    )


def keys(deep: int) -> SearchStrategy[Any]:
    """Expressions that are keys."""
    text = st.just("region")
    more = st.sampled_from(
        [{"upper": "region"}, {"lower": "region"}, {"substring": "region", "start": 1, "length": 5}]
    )
    period = st.sampled_from(list(TimePeriod)).flatmap(
        lambda each: st.sampled_from(["start", "seen"]).map(lambda of: {each.value: of})
    )
    bins = numbers(max(0, deep - 1)).map(lambda of: {"bins": of, "edges": [-1, 0, 0.5, 18, 100]})
    chosen = truths(max(0, deep - 1)).map(lambda when: {"case": [[when, {"text": "a"}]], "else": "region"})
    return text | more | period | bins | chosen


def truths(deep: int) -> SearchStrategy[Any]:
    """Conditions."""
    sign = st.sampled_from(["equal", "not_equal", "less", "at_most", "greater", "at_least"])
    inner = numbers(max(0, deep - 1))
    leaf = st.one_of(
        st.just("well"),
        sign.flatmap(lambda word: _pairs(inner, inner | _constants | _sometimes).map(lambda of: {word: of})),
        sign.flatmap(
            lambda word: _pairs(st.sampled_from(["start", "end"]), _day | _dates).map(lambda of: {word: of})
        ),
        sign.flatmap(lambda word: _pairs(_dates, _moment | _day).map(lambda of: {word: of})),
        st.sampled_from([{"missing": name} for name in COLUMNS]),
        st.sampled_from(
            [
                {"in": "region", "keys": ["north", "it's"]},
                {"in": "code", "keys": [7]},
                {"in": "well", "keys": [True]},
                {"in": "age", "keys": [0, 1, 2.5]},
                {"in": "town", "keys": ["Ham", "é"]},
                {"in": {"upper": "region"}, "keys": ["NORTH"]},
                {"like": "town", "pattern": "%ham"},
                {"like": "town", "pattern": "a_%"},
                {"like": "town", "pattern": "a%b"},
                {"like": "region", "pattern": "_o%"},
                {"equal": ["region", {"text": "south"}]},
                {"not_equal": ["region", {"upper": "region"}]},
                {"equal": ["well", True]},
            ]
        ),
    )
    if deep == 0:
        return leaf
    more = truths(deep - 1)
    return st.one_of(
        leaf,
        more.map(lambda of: {"not": of}),
        st.sampled_from(["all", "any"]).flatmap(
            lambda word: st.lists(more, min_size=1, max_size=3).map(lambda of: {word: of})
        ),
    )


def readable(form: Any) -> bool:
    """Whether a form is an expression that bounds allow for."""
    try:
        read_expression(form).kind(SCHEMA.kinds)
    except InvalidParameter:
        return False
    return True
