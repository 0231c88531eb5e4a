"""Random expressions and random SQL over declared columns: everything that a record can be asked about."""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sourdine.audit.plans.cells import Dice
from sourdine.frames import Category, Integer, Real, Schema
from sourdine.frames.cells import literal, quoted
from sourdine.frames.times import Date, Datetime

_CONSTANTS = (0, 1, -2, 0.5, 7)
_SIGNS = {"equal": "=", "not_equal": "<>", "less": "<", "at_most": "<=", "greater": ">", "at_least": ">="}
_PARTS = {"day_of_month": "DAY", "month_of_year": "MONTH", "day_of_week": "ISODOW", "year_number": "YEAR"}
_PERIODS = ("day", "week", "month", "quarter", "year")
_DEEP = 2  # levels of an expression


@dataclass(frozen=True)
class RandomForms:
    """Expressions in the form of files, over the columns of a schema.

    Some are refused, since their bounds admit what cannot be computed: whoever draws them draws again.
    """

    schema: Schema
    dice: Dice

    def named(self, *kinds: type) -> list[str]:
        """The columns of these kinds."""
        return [name for name, column in self.schema.columns.items() if isinstance(column, kinds)]

    def number(self, deep: int = _DEEP) -> Any:
        """A number computed of others."""
        dice = self.dice
        if deep == 0 or dice.one_in(4):
            return dice.one(self.named(Integer, Real)) if not dice.one_in(4) else dice.one(_CONSTANTS)
        one, other = self.number(deep - 1), self.number(deep - 1)
        forms: list[Any] = [
            {dice.one(["add", "subtract", "multiply", "nullif"]): [one, other]},
            {"divide": [one, {"nullif": [other, 0]}]},
            {dice.one(["least", "greatest", "coalesce"]): [one, other, dice.one(_CONSTANTS)]},
            {dice.one(["negate", "abs", "floor", "ceil"]): one},
            {"sqrt": {"abs": one}},
            {"ln": {"greatest": [one, 1]}},
            {"power": [one, 1 + dice.below(3)]},
            {"clamp": one, "lower": -3, "upper": 9.5},
            {"case": [[self.truth(deep - 1), one]], **({"else": other} if dice.one_in(2) else {})},
        ]
        if times := self.named(Date, Datetime):
            forms += [{dice.one(list(_PARTS)): dice.one(times)}]
            forms += [{"days": [dice.one(times), {"date": self.day(dice.one(times))}]}] * 2
        return dice.one(forms)

    def truth(self, deep: int = _DEEP) -> Any:
        """A condition: true, false, or missing."""
        dice = self.dice
        if deep > 0 and dice.one_in(2):
            one, other = self.truth(deep - 1), self.truth(deep - 1)
            return dice.one([{"any": [one, other]}, {"all": [one, other]}, {"not": one}])
        forms: list[Any] = [{dice.one(list(_SIGNS)): [self.number(deep and 1), self.number(0)]}] * 2
        forms += [{"missing": self.number(deep and 1)}]
        if keys := self.named(Category):
            name = dice.one(keys)
            forms += [{"in": name, "keys": dice.shuffled(self.schema.keys(name))[: 1 + dice.below(2)]}]
        if times := self.named(Date, Datetime):
            name = dice.one(times)
            forms += [{dice.one(list(_SIGNS)[2:]): [name, {"date": self.day(name)}]}]
        return dice.one(forms)

    def key(self) -> Any:
        """A key computed of other columns."""
        dice = self.dice
        forms: list[Any] = [
            {"bins": self.number(1), "edges": [-1, 0, 0.5, 18]},
            {"case": [[self.truth(1), {"text": "more"}]], "else": {"text": "less"}},
            {"case": [[self.truth(0), {"text": "a"}], [self.truth(1), {"text": "b"}]]},
            self.truth(),
        ]
        texts = [name for name in self.named(Category) if isinstance(self.schema.keys(name)[0], str)]
        if texts:
            of = dice.one(texts)
            forms += [{"substring": of, "start": 1, "length": 1}, {dice.one(["upper", "lower"]): of}]
        if times := self.named(Date, Datetime):
            forms += [{dice.one([*_PERIODS, "weekday"]): dice.one(times)}] * 2
        return dice.one(forms)

    def day(self, name: str) -> str:
        """A day between the first and the last of a column."""
        column = self.schema.columns[name]
        assert isinstance(column, Date | Datetime)
        return (column.first + (column.last - column.first) / 2).isoformat()[:10]


@dataclass(frozen=True)
class RandomSql:
    """Questions in SQL over the columns of a schema, and over what a public table brings."""

    forms: RandomForms
    unit: str | None
    joins: Mapping[str, str]

    def question(self) -> str:
        """A whole SELECT."""
        dice, forms = self.forms.dice, self.forms
        keys = [self._key(forms.key()) for _ in range(dice.below(3))]
        named = [f"{key} AS k{place}" for place, key in enumerate(keys)]
        aggregates = [self._aggregate() for _ in range(1 + dice.below(2))]
        joined = "".join(
            f" {dice.one(['JOIN', 'LEFT JOIN'])} {name} ON {on}" for name, on in self.joins.items()
        )
        text = f"SELECT {', '.join([*named, *aggregates])} FROM people{joined}"
        if dice.one_in(2):
            text += f" WHERE {self._truth(forms.truth())}"
        if keys:
            text += f" GROUP BY {', '.join(f'k{place}' for place in range(len(keys)))}"
            text += dice.one(["", " HAVING COUNT(*) > 3", " ORDER BY COUNT(*) DESC LIMIT 2"])
        return text

    def _aggregate(self) -> str:
        dice, number = self.forms.dice, self._number(self.forms.number())
        aggregates = [
            "COUNT(*)",
            f"COUNT({number})",
            f"SUM({number})",
            f"AVG({number})",
            f"VAR_POP({number})",
        ]
        aggregates += [f"COUNT(*) FILTER (WHERE {self._truth(self.forms.truth())})", f"MEDIAN({number})"]
        aggregates += [f"SUM({number}) / COUNT(*)"]
        if self.unit is not None:
            aggregates += [f"COUNT(DISTINCT {quoted(self.unit)})"] * 2
        return dice.one(aggregates)

    def _number(self, form: Any) -> str:
        """The SQL of an expression in the form of files: an independent way to the same tree."""
        if isinstance(form, str):
            return quoted(form)
        if not isinstance(form, dict):
            return f"({form})"
        word, parts = next(iter(form.items()))
        infix = {"add": "+", "subtract": "-", "multiply": "*", "divide": "/"}
        plain = {"abs": "ABS", "floor": "FLOOR", "ceil": "CEIL", "sqrt": "SQRT", "ln": "LN", "negate": "-"}
        match word:
            case "add" | "subtract" | "multiply" | "divide":
                return f"({self._number(parts[0])} {infix[word]} {self._number(parts[1])})"
            case "nullif" | "least" | "greatest" | "coalesce":
                return f"{word.upper()}({', '.join(map(self._number, parts))})"
            case "power":
                return f"POWER({self._number(parts[0])}, {parts[1]})"
            case "clamp":
                return f"LEAST(GREATEST({self._number(parts)}, {form['lower']}), {form['upper']})"
            case "case":
                return self._case(form, self._number)
            case "days":
                return f"DATE_DIFF('day', DATE '{parts[1]['date']}', CAST({quoted(parts[0])} AS DATE))"
        if word in _PARTS:
            return f"EXTRACT({_PARTS[word]} FROM {quoted(parts)})"
        return f"{plain[word]}({self._number(parts)})"

    def _truth(self, form: Any) -> str:
        word, parts = next(iter(form.items()))
        match word:
            case "any" | "all":
                return f"({(' OR ' if word == 'any' else ' AND ').join(map(self._truth, parts))})"
            case "not":
                return f"NOT ({self._truth(parts)})"
            case "missing":
                return f"{self._number(parts)} IS NULL"
            case "in":
                return f"{quoted(parts)} IN ({', '.join(map(self._literal, form['keys']))})"
        right = parts[1]
        bound = (
            f"DATE '{right['date']}'" if isinstance(right, dict) and "date" in right else self._number(right)
        )
        return f"{self._number(parts[0])} {_SIGNS[word]} {bound}"

    def _key(self, form: Any) -> str:
        word, parts = next(iter(form.items()))
        match word:
            case "bins":
                edges, of = form["edges"], self._number(parts)
                whens = (
                    f"WHEN {of} >= {low} AND {of} < {high} THEN 'from {low}'"
                    for low, high in itertools.pairwise(edges)
                )
                return f"CASE {' '.join(whens)} END"
            case "case":
                return self._case(form, lambda each: literal(each["text"]))
            case "substring":
                return f"SUBSTRING({quoted(parts)}, {form['start']}, {form['length']})"
            case "upper" | "lower":
                return f"{word.upper()}({quoted(parts)})"
            case "weekday":
                return f"WEEKDAY({quoted(parts)})"
        if word in _PERIODS:
            return f"DATE_TRUNC('{word}', {quoted(parts)})"
        return self._truth(form)

    def _case(self, form: Any, write: Any) -> str:
        whens = " ".join(f"WHEN {self._truth(when)} THEN {write(value)}" for when, value in form["case"])
        other = f" ELSE {write(form['else'])}" if "else" in form else ""
        return f"CASE {whens}{other} END"

    @staticmethod
    def _literal(key: Any) -> str:
        return literal(key) if isinstance(key, str) else str(key)
