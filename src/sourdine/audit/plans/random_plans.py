"""Random plans over random declarations, of every kind of query there is."""

from fractions import Fraction
from typing import Any

from sourdine.audit.plans.dice import Dice
from sourdine.core.distance import Neighbours
from sourdine.core.errors import InvalidParameter
from sourdine.frames.schema import Schema
from sourdine.frames.unit import Unit
from sourdine.tables.plan import Plan
from sourdine.tables.privacy import Privacy
from sourdine.tables.quantiles.choice import AUTO, METHODS, TREE
from sourdine.tables.query import Query
from sourdine.testing import SeededBits

_OF_NUMBERS = ("sum", "mean", "variance", "deviation")
KINDS = (
    "count",
    "units",
    *_OF_NUMBERS,
    "proportion",
    "histogram",
    "contingency",
    "keys",
    "top",
    "top of keys",
    "margins",
    "hierarchy",
    *(f"quantiles, {method}" for method in (AUTO, TREE, *METHODS)),
)
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
_BESIDE = KINDS[:9]
_OPEN = ("keys", "top of keys")
_TOWNS = [["north", "a"], ["north", "b"], ["south", "c"]]
_LETTERS = "xyz"


def random_plan(kind: str, seed: int) -> Plan:
    """A plan with a query of this kind, called by it, and perhaps others beside it."""
    dice = Dice(SeededBits(seed * len(KINDS) + KINDS.index(kind)))
    while True:
        try:
            plan = _drawn(kind, dice)
            assert plan.lines
            return plan
        except InvalidParameter:  # some methods need more than a grid or an epsilon gives
            continue


def _drawn(kind: str, dice: Dice) -> Plan:
    columns = {
        **{f"number {letter}": dice.one(_NUMBERS) for letter in _LETTERS[: 1 + dice.below(2)]},
        **{f"key {letter}": dice.one(_KEYS) for letter in _LETTERS[: 2 + dice.below(2)]},
    }
    if kind in _OPEN:
        columns["text"] = dice.one(_TEXTS)
    if kind == "hierarchy":
        columns["town"] = {"type": "category", "keys": [town for _, town in _TOWNS]}
    schema = Schema.read(columns)
    queries = [_query(kind, kind, schema, dice)]
    if dice.one_in(2):
        queries.append(_query("beside", dice.one(_BESIDE), schema, dice))
    return Plan(
        schema=schema,
        queries=tuple(dice.shuffled(queries)),
        privacy=Privacy(epsilon=Fraction(2), delta=dice.one([1e-6] if kind in _OPEN else [None, 1e-6])),
        unit=_unit(schema, dice),
        neighbours=dice.one([Neighbours.ADD_REMOVE, Neighbours.REPLACE]),
        quality=not dice.one_in(4),
    )


def _unit(schema: Schema, dice: Dice) -> Unit:
    turn = dice.below(8)
    if turn < 3:
        return Unit()
    column = dice.one(list(schema.columns)) if turn == 3 else "who"
    return Unit(column=column, rows=1 + dice.below(4), groups=1 + dice.below(4))


def _query(name: str, kind: str, schema: Schema, dice: Dice) -> Query:
    numbers = [each for each in schema.columns if each.startswith("number")]
    keys = [each for each in schema.columns if each.startswith("key")]
    inner = dice.shuffled(keys)[:2] if kind in ("contingency", "margins") else []
    if kind == "top":
        inner = [dice.one(keys)]
    by = dice.some([each for each in keys if each not in inner], 2)
    return Query.read(
        {
            "name": name,
            "ask": [_asked(kind, dice.one(numbers), inner, schema, dice)],
            "by": [*by, "text"] if kind == "keys" else by,
            "where": [_condition(each, schema, dice) for each in dice.some([*numbers, *keys], 2)],
            "weight": dice.one([1, 3]),
        }
    )


def _asked(kind: str, number: str, inner: list[str], schema: Schema, dice: Dice) -> Any:
    if kind in ("count", "units"):
        return kind
    if kind in _OF_NUMBERS:
        return {kind: number}
    if kind == "proportion":
        return {"kind": kind, "of": _condition(dice.one([number, *schema.columns]), schema, dice)}
    if kind == "contingency":
        return {kind: inner}
    if kind == "margins":
        return {"contingency": inner, "consistent": True}
    if kind == "hierarchy":
        return {"kind": kind, "levels": ["region", "town"], "rows": _TOWNS}
    if kind == "keys":
        return dice.one(["count", "units", {"mean": number}, {"quantiles": number, "at": [0.5]}])
    if kind in ("top", "top of keys"):
        return {"top": "text" if kind == "top of keys" else inner[0], "k": 2}
    column = schema.number("random_plan", number)
    low, high, step = float(column.lower), float(column.upper), float(column.step)
    if kind == "histogram":
        places = [low - step, low, low + step, (low + high) / 2, high - step, high, high + step]
        edges = sorted(set(dice.some(places, 5)) | {low, high + 2 * step})
        return {kind: number, "edges": edges}
    return {
        "quantiles": number,
        "at": dice.one([[0.5], [0.25, 0.75]]),
        "method": kind.removeprefix("quantiles, "),
    }


def _condition(name: str, schema: Schema, dice: Dice) -> dict[str, Any]:
    if name.startswith("key"):
        keys = schema.keys(name)
        return {"column": name, "keys": dice.shuffled(keys)[: 1 + dice.below(len(keys))]}
    column = schema.number("random_plan", name)
    middle = (column.lower + column.upper) / 2
    below = {"below": dice.one([middle, column.upper])}
    above = {"at_least": dice.one([column.lower, middle - (middle - column.lower) / 2])}
    return {"column": name, **dice.one([below, above, {**below, **above}])}
