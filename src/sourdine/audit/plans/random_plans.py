"""Random plans over random declarations, of every kind of query there is."""

from fractions import Fraction
from typing import Any

from sourdine.audit.plans.cells import Dice
from sourdine.core.distance import Neighbours
from sourdine.core.errors import InvalidParameter
from sourdine.frames.mock import mock_source
from sourdine.frames.privacy_unit import PrivacyUnit
from sourdine.frames.schema import Schema
from sourdine.frames.times.dates import Date, Datetime
from sourdine.tables.plan import ReleasePlan
from sourdine.tables.privacy import Privacy
from sourdine.tables.query import Query
from sourdine.tables.release import check_source
from sourdine.tables.statistics import STATISTICS
from sourdine.testing import SeededBits

_NUMBERS: tuple[dict[str, Any], ...] = (
    {"type": "integer", "lower": 0, "upper": 1},
    {"type": "integer", "lower": -3, "upper": 20},
    {"type": "integer", "lower": 5, "upper": 130, "missing": 40},
    {"type": "integer", "lower": -(1 << 40), "upper": -(1 << 40) + 300},
    {"type": "real", "lower": -0.7, "upper": 2.0, "granularity": 0.3},
    {"type": "real", "lower": 0.0, "upper": 1.0, "granularity": 0.01, "missing": 0.5},
    {"type": "real", "lower": -1e-9, "upper": 1e-9},
)
_KEYS: tuple[dict[str, Any], ...] = (
    {"type": "category", "keys": ["a", "b"]},
    {"type": "category", "keys": ["a", "A", "b", ""], "missing": "b"},
    {"type": "category", "keys": ["north", "south", "it's", 'a "b"', "nobody"]},
    {"type": "category", "keys": [0, 1, -7]},
    {"type": "category", "keys": [1 << 53, (1 << 53) + 1], "missing": 1 << 53},
    {"type": "flag"},
    {"type": "flag", "missing": True},
)
_TEXTS: tuple[dict[str, Any], ...] = (
    {"type": "text"},
    {"type": "text", "other": "others"},
    {"type": "text", "other": "b", "missing": "other", "at_least": 3},
)
_DATES: tuple[dict[str, Any], ...] = (
    {"type": "date", "first": "2024-02-27", "last": "2024-03-02", "period": "day"},
    {"type": "date", "first": "1969-11-30", "last": "1970-02-01", "period": "month"},
    {"type": "datetime", "first": "2024-12-30", "last": "2025-01-02", "period": "week"},
)
_COMPUTED: tuple[Any, ...] = (  # of two numbers a and b, as further numbers
    {"add": ["a", "b"]},
    {"subtract": ["a", {"multiply": [2, "b"]}]},
    {"multiply": ["a", "b"]},
    {"divide": ["a", {"nullif": ["b", 0]}]},
    {"least": ["a", "b", 7]},
    {"coalesce": [{"nullif": ["a", 0]}, "b"]},
    {"case": [[{"less": ["a", "b"]}, {"abs": "a"}]], "else": -3},
    {"sqrt": {"abs": "a"}},
    {"clamp": {"power": ["a", 2]}, "lower": 0, "upper": 50},
)
_CHOICES: tuple[Any, ...] = (  # further keys
    {"bins": "a", "edges": [-1, 0, 0.5, 18]},
    {"case": [[{"at_least": ["a", "b"]}, {"text": "more"}]], "else": {"text": "less"}},
    {"any": [{"greater": ["a", 0]}, {"not": {"missing": "b"}}]},
)
_LETTERS = "xyz"
_EVERY = Schema.read({f"{each['type']} {i}": each for i, each in enumerate((*_NUMBERS[1:3], *_KEYS[2:5]))})
FORMS = {each.form: kind for kind in STATISTICS for each in kind.examples(_EVERY)}
_KEYED, _TOP_OF_KEYS = "keys", "top of keys"
KINDS = (*FORMS, _KEYED, _TOP_OF_KEYS)
_OPEN = {_KEYED: ("count", "units", "mean", "quantiles, auto"), _TOP_OF_KEYS: ("top",)}
_BESIDE = [form for form in FORMS if "," not in form]


def random_plan(kind: str, seed: int) -> ReleasePlan:
    """A plan with a query of this kind, called by it, and perhaps others beside it."""
    dice = Dice(SeededBits(seed * len(KINDS) + KINDS.index(kind)))
    while True:
        try:
            plan = _draw(kind, dice)
            check_source(plan, mock_source(plan.schema, plan.unit, 1))
            return plan
        except InvalidParameter:  # some methods need more than a grid or an epsilon gives
            continue


def _draw(kind: str, dice: Dice) -> ReleasePlan:
    columns = {
        **{f"number {letter}": dice.one(_NUMBERS) for letter in _LETTERS[: 1 + dice.below(2)]},
        **{f"key {letter}": dice.one(_KEYS) for letter in _LETTERS[: 2 + dice.below(2)]},
    }
    if kind in _OPEN:
        columns["text"] = dice.one(_TEXTS)
    if dice.one_in(3):
        columns["key date"] = dice.one(_DATES)
    if dice.one_in(2):
        a, b = (dice.one([name for name in columns if name.startswith("number")]) for _ in "ab")
        columns["number computed"] = {"expression": _of(dice.one(_COMPUTED), a, b)}
        columns["key computed"] = {"expression": _of(dice.one(_CHOICES), a, b)}
    schema = Schema.read(columns)
    queries = [_query(kind, kind, schema, dice)]
    if dice.one_in(2):
        queries.append(_query("beside", dice.one(_BESIDE), schema, dice))
    return ReleasePlan(
        schema=schema,
        queries=tuple(dice.shuffled(queries)),
        privacy=Privacy(epsilon=Fraction(2), delta=dice.one([1e-6] if kind in _OPEN else [None, 1e-6])),
        unit=_unit(schema, dice),
        neighbours=dice.one([Neighbours.ADD_REMOVE, Neighbours.REPLACE]),
        quality=not dice.one_in(4),
    )


def _of(form: Any, a: str, b: str) -> Any:
    """A form with the names of columns in it."""
    if isinstance(form, str):
        return {"a": a, "b": b}.get(form, form)
    if isinstance(form, list):
        return [_of(each, a, b) for each in form]
    return {word: _of(each, a, b) for word, each in form.items()} if isinstance(form, dict) else form


def _unit(schema: Schema, dice: Dice) -> PrivacyUnit:
    turn = dice.below(8)
    if turn < 3:
        return PrivacyUnit()
    column = dice.one(list(schema.held.columns)) if turn == 3 else "who"
    return PrivacyUnit(column=column, max_rows=1 + dice.below(4), max_groups=1 + dice.below(4))


def _query(name: str, kind: str, schema: Schema, dice: Dice) -> Query:
    form = dice.one(_OPEN.get(kind, (kind,)))
    fit = [
        each
        for each in FORMS[form].examples(schema)
        if each.form == form and bool(schema.open(each.opens)) == (kind == _TOP_OF_KEYS)
    ]
    if not fit:
        raise InvalidParameter(f"Random declarations have nothing for {form}. Draw others.")
    statistic = dice.one(fit)
    numbers = [each for each in schema.columns if each.startswith("number")]
    keys = [each for each in schema.columns if each.startswith("key")]
    by = dice.some([each for each in keys if each not in statistic.adds], 2)
    where = [_condition(each, schema, dice) for each in dice.some([*numbers, *keys], 2)]
    return Query(
        name=name,
        ask=(statistic,),
        by=(*by, "text") if kind == _KEYED else tuple(by),
        where=where,
        weight=dice.one([1, 3]),
    )


def _condition(name: str, schema: Schema, dice: Dice) -> dict[str, Any]:
    column = schema.columns[name]
    if isinstance(column, Date | Datetime):
        between = (column.first + (column.last - column.first) / 2).isoformat()[:10]
        return {dice.one(["at_least", "less"]): [name, {"date": between}]}
    if name.startswith("key"):
        keys = schema.keys(name)
        return {"column": name, "keys": dice.shuffled(keys)[: 1 + dice.below(len(keys))]}
    column = schema.number("random_plan", name)
    middle = (column.lower + column.upper) / 2
    below = {"below": dice.one([middle, column.upper])}
    above = {"at_least": dice.one([column.lower, middle - (middle - column.lower) / 2])}
    return {"column": name, **dice.one([below, above, {**below, **above}])}
