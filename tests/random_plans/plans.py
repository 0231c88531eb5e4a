"""Random plans over random declarations, of every kind of query there is.

Expressions, dates, public tables and questions in SQL are kinds of their own, and come along with others.
"""

from fractions import Fraction
from typing import Any

from hypothesis import strategies as st

from sourdine.audit.plans.cells import Dice
from sourdine.core.distance import Neighbours
from sourdine.core.errors import InvalidParameter
from sourdine.frames import PrivacyUnit, Schema
from sourdine.frames.expressions import read_expression
from sourdine.frames.quality import mock_source
from sourdine.frames.times import Date, Datetime
from sourdine.tables import Privacy, Query, ReleasePlan
from sourdine.tables.privacy import NoiseChoice
from sourdine.tables.release import check_source
from sourdine.tables.sql import SqlTable, read_block
from sourdine.tables.statistics import STATISTICS
from sourdine.testing import SeededBits
from tests.random_plans.columns import BROUGHT, DATES, KEYS, NUMBERS, TEXTS, TOWN, public_tables
from tests.random_plans.forms import RandomForms, RandomSql

_LETTERS = "xyz"
_EVERY = Schema.read({f"{each['type']} {i}": each for i, each in enumerate((*NUMBERS[1:3], *KEYS[2:5]))})
FORMS = {each.form: kind for kind in STATISTICS for each in kind.examples(_EVERY)}
_KEYED, _TOP_OF_KEYS = "keys", "top of keys"
_EXPRESSIONS, _TIMES, _JOINS, _SQL = "expressions", "dates", "joins", "sql"
KINDS = (*FORMS, _KEYED, _TOP_OF_KEYS, _EXPRESSIONS, _TIMES, _JOINS, _SQL)
_OPEN = {_KEYED: ("count", "units", "mean", "quantiles, auto"), _TOP_OF_KEYS: ("top",)}
_BESIDE = [form for form in FORMS if "," not in form]
_ABOUT = {_EXPRESSIONS: "computed", _TIMES: "time", _JOINS: "brought"}  # part of a column's name
_STATISTICS = (
    "count",
    "units",
    "sum",
    "mean",
    "variance",
    "proportion",
    "histogram",
    "quantiles, auto",
    "covariance",
)


class DrawnDice(Dice):
    """Choices of Hypothesis, which shrinks them."""

    def __init__(self, draw: st.DrawFn) -> None:
        self._draw = draw

    def below(self, size: int) -> int:
        return self._draw(st.integers(0, size - 1))


@st.composite
def plans(draw: st.DrawFn, kind: str) -> ReleasePlan:
    """A plan with a query of this kind, called by it, and perhaps others beside it."""
    return _sound_plan(kind, DrawnDice(draw))


def random_plan(kind: str, seed: int) -> ReleasePlan:
    """A plan with a query of this kind, by a seed."""
    return _sound_plan(kind, Dice(SeededBits(seed * len(KINDS) + KINDS.index(kind))))


def _sound_plan(kind: str, dice: Dice) -> ReleasePlan:
    while True:
        try:
            plan = _draw(kind, dice)
            check_source(plan, mock_source(plan.schema, plan.unit, 1))
            return plan
        except InvalidParameter:  # some methods need more than a grid or an epsilon gives
            continue


def _draw(kind: str, dice: Dice) -> ReleasePlan:
    columns = {
        **{f"number {letter}": dice.one(NUMBERS) for letter in _LETTERS[: 1 + dice.below(2)]},
        **{f"key {letter}": dice.one(KEYS) for letter in _LETTERS[: 2 + dice.below(2)]},
    }
    if kind in _OPEN:
        columns["text"] = dice.one(TEXTS)
    if kind == _TIMES or dice.one_in(3):
        columns["key time"] = dice.one(DATES)
    if kind == _JOINS or dice.one_in(6):
        columns |= BROUGHT
    schema = Schema.read(columns)
    if kind in (_EXPRESSIONS, _TIMES) or dice.one_in(2):
        forms = RandomForms(schema, dice)
        computed = {"number computed": forms.number(), "key computed": forms.key()}
        schema = Schema.read({**columns, **{name: {"expression": form} for name, form in computed.items()}})
    unit = _unit(schema, dice)
    queries = [_in_sql(schema, unit, dice) if kind == _SQL else _query(kind, kind, schema, dice)]
    if dice.one_in(2):
        queries.append(_query("beside", dice.one(_BESIDE), schema, dice))
    delta = dice.one([1e-6] if kind in _OPEN else [None, 1e-6])
    return ReleasePlan(
        schema=schema,
        queries=tuple(dice.shuffled(queries)),
        privacy=Privacy(epsilon=Fraction(2), delta=delta),
        noise=None if delta is None else dice.one([NoiseChoice.NEAREST, NoiseChoice.GAUSSIAN]),
        unit=unit,
        neighbours=dice.one([Neighbours.ADD_REMOVE, Neighbours.REPLACE]),
        quality=not dice.one_in(4),
    )


def _in_sql(schema: Schema, unit: PrivacyUnit, dice: Dice) -> Query:
    """A question in SQL; those that are refused are drawn again."""
    joins = public_tables(schema) if dice.one_in(2) else ()
    on = {each.name: f"{TOWN} = {each.name}.{TOWN}" for each in joins}
    text = RandomSql(RandomForms(schema, dice), unit.column, on).question()
    table = SqlTable(schema=schema, unit=unit, joins=joins)
    return read_block({"name": _SQL, "sql": text, "weight": dice.one([1, 3])}, table).query


def _unit(schema: Schema, dice: Dice) -> PrivacyUnit:
    turn = dice.below(8)
    if turn < 3:
        return PrivacyUnit()
    column = dice.one([name for name in schema.base.columns if name not in BROUGHT]) if turn == 3 else "who"
    return PrivacyUnit(column=column, max_rows=1 + dice.below(4), max_groups=1 + dice.below(4))


def _query(name: str, kind: str, schema: Schema, dice: Dice) -> Query:
    form = dice.one(_STATISTICS if kind in _ABOUT else _OPEN.get(kind, (kind,)))
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
    where: list[Any] = [_condition(each, schema, dice) for each in dice.some([*numbers, *keys], 2)]
    if kind in _ABOUT:
        about = [each for each in keys if _ABOUT[kind] in each and each not in (*by, *statistic.adds)]
        by += dice.some(about, 1)
    if kind == _EXPRESSIONS or dice.one_in(6):
        where.append(RandomForms(schema, dice).truth())
    used = {*by, *statistic.about, *(name for each in where for name in read_expression(each).columns)}
    if kind in _ABOUT and not any(_ABOUT[kind] in name for name in used):
        raise InvalidParameter(f"This asks nothing about {kind}. Draw again.")
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
