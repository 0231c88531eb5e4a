"""Random questions in SQL over random tables, answered without noise beside DuckDB's answer to the same text.

A question is refused before a charge, or its answer is DuckDB's. Two things are no difference: a group of
declared keys that no record has is shown here, and DuckDB has a group NULL for records that lack a key. What
DuckDB gives as NULL, a statistic of no values, is any number here.
"""

import json
import math
import random
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from itertools import pairwise
from typing import Any
from unittest.mock import patch

import duckdb
import numpy as np
import pyarrow as pa

import sourdine as sd
from sourdine.core.errors import InvalidParameter
from sourdine.mechanisms import Gaussian, Laplace
from sourdine.tables.query import Query
from sourdine.tables.release import _carry_out
from sourdine.testing import SeededBits

Cell = Any
Shown = tuple[float, float]
Row = dict[str, Cell]
_EPSILON = 1 << 20  # at which nothing is left of the noise of those mechanisms that are not switched off
_EPSILON_OF_TOP = 1000
_FIRST, _LAST = date(2024, 1, 1), date(2024, 3, 31)
_ROUGH = ("LN(", "SQRT(", "/ NULLIF", "CORR(", "REGR_", "POWER(")  # computed on a grid


@contextmanager
def without_noise() -> Iterator[None]:
    def sample(self: Any, values: Any, bits: Any) -> Any:
        return np.asarray(values)

    with patch.object(Laplace, "sample", sample), patch.object(Gaussian, "sample", sample):
        yield


@dataclass
class Tables:
    """A private table as it is, and as it is declared, with a public one beside it."""

    table: sd.Table
    plain: duckdb.DuckDBPyConnection
    columns: Mapping[str, Mapping[str, Any]]
    key: str  # of the public table
    by_units: bool

    @classmethod
    def of(cls, dice: random.Random) -> "Tables":
        """Random records with NULLs, ties and keys that need quotes or are not declared."""
        columns = _columns(dice)
        name, by_units = dice.choice(["name", "name", "town"]), dice.random() < 0.3
        rows = [
            {name: _cell(name, declared, dice) for name, declared in columns.items() if name not in BROUGHT}
            for _ in range(dice.choice([0, 3, 40, 120]))
        ]
        public = _public(columns, dice)
        people = [place % 40 for place, _ in enumerate(rows)]  # few rows each, so that none is left out
        declared = [{name: _declared(cell, columns[name]) for name, cell in row.items()} for row in rows]
        brought = [
            {name: _declared(cell, columns[name]) if name in columns else cell for name, cell in row.items()}
            for row in public
        ]
        table = sd.Table(
            _arrow(rows, columns, people),
            unit=sd.PrivacyUnit("person", column="pid", max_rows=16, max_groups=16)
            if by_units
            else sd.PrivacyUnit("person"),
            columns=columns,
            joins={
                "r": {"table": _public_arrow(public, name), "on": {"town": name}, "columns": list(BROUGHT)}
            },
            size=max(len(rows), 1),
        )
        plain = duckdb.connect()
        plain.register("p", _arrow(declared, columns, people))
        plain.register("r", _public_arrow(brought, name))
        return cls(table, plain, columns, name, by_units)


BROUGHT = ("region", "size")


def _columns(dice: random.Random) -> dict[str, dict[str, Any]]:
    def missing(*choices: Any) -> dict[str, Any]:
        return {"missing": dice.choice(choices)} if dice.random() < 0.5 else {}

    numbers = dice.sample([1, 2, 3, dice.choice([10, -1])], 4)
    odd = dice.sample(["it's", "B", "a", "10", "9", "ß", "a b", "NULL"], 4)
    return {
        "sex": {"type": "category", "keys": ["m", "f"], **missing("m", "f")},
        "educ": {"type": "category", "keys": numbers, **missing(*numbers)},
        "odd": {"type": "category", "keys": odd, **missing(*odd)},
        "ok": {"type": "flag", **missing(True, False)},
        "age": {"type": "integer", "lower": 0, "upper": 40, **missing(0, 7)},
        "w": {"type": "integer", "lower": 0, "upper": 5},
        "pay": {"type": "real", "lower": -50.0, "upper": 100.0, "granularity": 0.5, **missing(0.0)},
        "b": {"type": "real", "lower": 1.0, "upper": 9.0, "granularity": 0.25},
        "day": {"type": "date", "first": str(_FIRST), "last": str(_LAST)},
        "seen": {"type": "datetime", "first": f"{_FIRST} 00:00:00", "last": f"{_LAST} 23:59:59"},
        "town": {"type": "category", "keys": ["Lille", "Nice", "o'n", "Brest"]},
        "region": {"type": "category", "keys": ["south", "north"], **missing("north")},
        "size": {"type": "integer", "lower": 0, "upper": 20},
    }


def _cell(name: str, declared: Mapping[str, Any], dice: random.Random) -> Cell:
    if dice.random() < 0.12:
        return None
    far = dice.random() < 0.05  # not as it is declared
    match declared["type"]:
        case "category":
            keys = declared["keys"]
            return ("zz" if isinstance(keys[0], str) else 77) if far else dice.choice(keys)
        case "flag":
            return dice.random() < 0.4
        case "integer":
            return dice.randint(declared["lower"] - 9 * far, declared["upper"] + 9 * far)
        case "real":
            step, low, high = declared["granularity"], declared["lower"], declared["upper"]
            return dice.randint(round(low / step), round(high / step) + 50 * far) * step
        case "date":
            return _FIRST + timedelta(days=dice.choice([0, 30, 31, 60, dice.randint(0, 90)]) + 200 * far)
    seconds = dice.choice([0, 86400 * 31, dice.randint(0, 91 * 86400 - 1), 3600 * dice.randint(0, 2000)])
    return datetime(2024, 1, 1) + timedelta(seconds=seconds + 86400 * 200 * far)


def _declared(cell: Cell, declared: Mapping[str, Any]) -> Cell:
    """A cell as its declaration has it, worked out apart from the code under test."""
    kind, rule = declared["type"], declared.get("missing")
    if kind == "category" and cell not in declared["keys"]:
        cell = None
    if kind == "date" and cell is not None and not _FIRST <= cell <= _LAST:
        cell = None
    if kind == "datetime" and cell is not None and not _FIRST <= cell.date() <= _LAST:
        cell = None
    if cell is None:
        return rule
    return min(max(cell, declared["lower"]), declared["upper"]) if "lower" in declared else cell


def _public(columns: Mapping[str, Mapping[str, Any]], dice: random.Random) -> list[Row]:
    """A row for some towns, and for none; what is brought first is NULL in some rows."""
    names = dice.sample([*columns["town"]["keys"], "Elsewhere"], dice.randint(2, 5))
    rows = [{"name": name, **{each: _cell(each, columns[each], dice) for each in BROUGHT}} for name in names]
    rows[0]["region"] = None
    return [*rows, *({"name": None, "region": "north", "size": 3} for _ in range(dice.randint(0, 2)))]


_ARROW = {
    "flag": pa.bool_(),
    "integer": pa.int64(),
    "real": pa.float64(),
    "date": pa.date32(),
    "datetime": pa.timestamp("us"),
}


def _arrow(rows: Sequence[Row], columns: Mapping[str, Mapping[str, Any]], people: Sequence[int]) -> pa.Table:
    def kind(declared: Mapping[str, Any]) -> Any:
        if declared["type"] != "category":
            return _ARROW[declared["type"]]
        return pa.string() if isinstance(declared["keys"][0], str) else pa.int64()

    names = [name for name in columns if name not in BROUGHT]
    held = {name: pa.array([row[name] for row in rows], kind(columns[name])) for name in names}
    return pa.table({"pid": pa.array(people, pa.int64()), **held})


def _public_arrow(rows: Sequence[Row], key: str) -> pa.Table:
    kinds = {"name": pa.string(), "region": pa.string(), "size": pa.int64()}
    held = {name: pa.array([row[name] for row in rows], kind) for name, kind in kinds.items()}
    return pa.table({key if name == "name" else name: cells for name, cells in held.items()})


@dataclass
class Asked:
    """A question: its text, and what of it is compared."""

    text: str = ""
    items: list[tuple[str, str]] = field(default_factory=list)  # expression and name, keys first
    keys: int = 0
    groups: list[str] = field(default_factory=list)  # expressions in GROUP BY, in its order
    periods: list[str | None] = field(default_factory=list)
    source: str = ""
    having: list[str] = field(default_factory=list)  # aggregates that HAVING compares
    where_of_having: str = ""
    order: list[tuple[str, bool]] = field(default_factory=list)
    limit: int | None = None
    form: str = "rows"  # rows, top or rolled
    forms: set[str] = field(default_factory=set)


class Dialogue:
    """Draws questions of everything that is read."""

    def __init__(self, tables: Tables, dice: random.Random) -> None:
        self.dice, self.columns, self.joined = dice, tables.columns, ""
        self.key, self.by_units = tables.key, tables.by_units
        self.start = ""
        self.forms: set[str] = set()
        self.groups: list[str] = []

    def _form(self, name: str) -> None:
        self.forms.add(name)

    def _one(self, *choices: Any) -> Any:
        return self.dice.choice(choices)

    # what a record is asked

    def _number(self, depth: int = 0) -> str:
        dice = self.dice
        if depth > 1 or dice.random() < 0.5:
            return self._one("age", "pay", "b", "w", *(["size"] if self.joined else []))
        inner = self._number(depth + 1)
        match dice.randrange(16):
            case 0:
                return f"({inner} + {self._number(depth + 1)})"
            case 1:
                return f"({inner} - {self._number(depth + 1)})"
            case 2:
                return f"({inner} * {self._one(2, -3, 0.5)})"
            case 3:
                return f"(age * {self._one('w', 'b', 'pay', '2')})"
            case 4:
                return f"({inner} / NULLIF({self._one('age', 'w', 'pay')}, 0))"
            case 5:
                return f"{self._one('FLOOR', 'CEIL', 'ABS')}({inner})"
            case 6:
                return f"{self._one('LEAST', 'GREATEST')}({inner}, {self._one('7', 'w', 'pay')})"
            case 7:
                return f"COALESCE({inner}, {self._one(0, 3)})"
            case 8:
                return f"CASE WHEN {self._condition(depth + 1)} THEN {inner} ELSE {self._one(0, 1, 'w')} END"
            case 9:
                return self._one("SQRT(ABS(pay))", "LN(b)", "POWER(age, 2)", "-(-2) * b", "- age")
            case 10 | 12 | 13 | 14:
                self._form("date part")
                if self.dice.random() < 0.3:
                    return str(self._one("EXTRACT(month FROM day)", "HOUR(seen)", "DATE_PART('week', day)"))
                return f"{self._one('YEAR', 'MONTH', 'DAY', 'QUARTER', 'ISODOW')}({self._one('day', 'seen')})"
            case 11:
                return self._one("(day - DATE '2024-01-10')", "DATE_DIFF('day', DATE '2024-02-01', day)")
        return f"CASE WHEN {self._condition(depth + 1)} THEN {inner} END"

    def _key(self) -> str:
        names = ["sex", "educ", "odd", "town", "ok", *(["region"] if self.joined else [])]
        return str(self.dice.choice(names))

    def _literal(self, name: str) -> str:
        keys = self.columns[name].get("keys", [True, False])
        key = self.dice.choice(keys)
        return "'" + key.replace("'", "''") + "'" if isinstance(key, str) else str(key).upper()

    def _date(self) -> str:
        day = self._one("2024-02-01", "2024-01-01", "2024-03-15", "2024-01-29", "2024-02-10")
        self._form("date literal")
        return str(self._one(f"'{day}'", f"DATE '{day}'"))

    def _sign(self) -> str:
        return str(self._one("=", "<>", "<", "<=", ">", ">="))

    def _condition(self, depth: int = 0) -> str:
        dice = self.dice
        if depth < 2 and dice.random() < 0.3:
            one, other = self._condition(depth + 1), self._condition(depth + 1)
            return str(self._one(f"({one} AND {other})", f"({one} OR {other})", f"NOT ({one})"))
        key = self._key()
        if self.joined and dice.random() < 0.06:
            self._form("public key in a condition")
            test = self._one("IS NULL", "IS NOT NULL", f"<> {self._literal('town')}")
            return f"{self.joined}.{self.key} {test}"
        match dice.randrange(20):
            case 18:
                self._form("dates and times compared")
                others = [f"day {self._sign()} TIMESTAMP '2024-02-01 12:00:00'", f"day {self._sign()} seen"]
                others.append(f"seen {self._sign()} {self._date()}")
                others.append(f"DATE_TRUNC('month', seen) {self._sign()} TIMESTAMP '2024-02-01 00:30:00'")
                others.append(f"DATE_TRUNC('month', day) = DATE_TRUNC('month', {self._one('seen', 'day')})")
                return str(self._one(*others))
            case 19:
                self._form("functions of keys")
                others = [f"UPPER(sex) {self._sign()} 'M'", "SUBSTRING(sex, 1, 1) = 'm'"]
                others += [
                    f"LOWER(town) {self._one('=', '<>', '<=')} 'nice'",
                    "NULLIF(age, 3) > 2",
                    "DAYNAME(day) = 'Monday'",
                ]
                return str(self._one(*others))
            case 0:
                return f"{self._number(1)} {self._sign()} {self._one(3, 2, 1.5, 7.5, 4, '- (-2)')}"
            case 1:
                return f"{self._number(1)} BETWEEN {self._one(-1, 0, 2)} AND {self._one(3, 20.5)}"
            case 2:
                self._form("IN (3, -1)")
                return f"{self._one('age', 'pay', 'w')} {self._one('IN', 'NOT IN')} (3, -1, 7)"
            case 3:
                return f"{key} {self._one('=', '<>')} {self._literal(key)}"
            case 4:
                return f"{key} {self._one('IN', 'NOT IN')} ({self._literal(key)}, {self._literal(key)})"
            case 5 | 16:
                self._form("LIKE")
                word = self._one("LIKE", "NOT LIKE", "NOT LIKE")
                self._form(word)
                return f"{self._one('odd', 'town', 'sex')} {word} {self._one(*PATTERNS)}"
            case 6:
                self._form("IS DISTINCT FROM")
                other = self._one(self._literal(key), key)
                return f"{key} IS {self._one('', 'NOT ')}DISTINCT FROM {other}"
            case 7:
                self._form("IS DISTINCT FROM")
                return (
                    f"{self._one('age', 'pay')} IS {self._one('', 'NOT ')}DISTINCT FROM {self._one('w', 3)}"
                )
            case 8:
                return f"{self._one(key, 'age', 'day', 'pay')} IS {self._one('', 'NOT ')}NULL"
            case 9:
                return f"day {self._sign()} {self._date()}"
            case 10:
                self._form("cast to a date")
                return f"{self._one('seen::date', 'CAST(seen AS DATE)')} {self._sign()} {self._date()}"
            case 11 | 17:
                self._form("date_trunc in WHERE")
                of, period = self._one("day", "seen"), self._one("week", "month", "quarter", "year", "day")
                return f"DATE_TRUNC('{period}', {of}) {self._sign()} {self._date()}"
            case 12:
                return f"seen {self._sign()} TIMESTAMP '2024-02-0{self._one(1, 2)} 0{self._one(0, 7)}:00:00'"
            case 13:
                self._form("order of keys")
                name = self._one("sex", "educ", "odd")
                return f"{name} {self._one('<', '<=', '>', '>=')} {self._literal(name)}"
            case 14:
                return f"ok IS {self._one('', 'NOT ')}{self._one('TRUE', 'FALSE')}"
        if self.joined or key == "sex":
            if not self.joined:
                return "sex IS NOT NULL"
            self._form("public key in a condition")
            return f"{self.joined}.{self.key} {self._one('IS NULL', 'IS NOT NULL')}"
        return "ok"

    # what a group is asked

    def _aggregate(self) -> str:
        number = self._number()
        match self.dice.randrange(16):
            case 0 | 1 | 2:
                return "COUNT(*)"
            case 3:
                return f"COUNT({self._one('age', 'pay', self._key(), 'day')})"
            case 4 | 5:
                return f"SUM({number})"
            case 6 | 7:
                return f"AVG({number})"
            case 8 | 14 | 15:
                self._form("FILTER")
                what = self._one("COUNT(*)", f"SUM({number})", "COUNT(age)", f"AVG({self._number()})")
                return f"{what} FILTER (WHERE {self._condition()})"
            case 9:
                return f"COUNT_IF({self._condition()})"
            case 10:
                return str(self._one("VAR_POP(age)", "STDDEV_POP(pay)", "VAR_POP(w)"))
            case 11 | 13:
                return str(self._one("COVAR_POP(age, w)", "CORR(age, b)", "COVAR_POP(pay, b)"))
            case 12:
                return str(
                    self._one(
                        "MEAN(b)",
                        "MEAN(age)",
                        *("MIN(age)", "STDDEV(pay)", "ROUND(AVG(b))")[: self.dice.randrange(3)],
                    )
                )
        return "COUNT(*)"

    def _computed(self, grouped: bool) -> str:
        if self.by_units and self.dice.random() < 0.12:
            self._form("COUNT(DISTINCT unit)")
            return "COUNT(DISTINCT pid)"
        if self.joined and self.dice.random() < 0.12:
            self._form("COUNT(r.name)")
            return f"COUNT({self.joined}.{self.key})"
        one = self._one("SUM(age)", "AVG(b)", "COUNT(*)", "SUM(w)", "AVG(age)")
        match self.dice.randrange(16):
            case 15:
                self._form("quantile")
                return f"{self._one('MEDIAN(b)', 'QUANTILE_CONT(b, 0.25)', 'QUANTILE_DISC(pay, 0.9)')}"
            case 0:
                self._form("1 / AVG")
                return f"{self._one(1, 2, 0.5)} / {self._one('AVG(b)', 'SUM(b)', 'AVG(b + 1)')}"
            case 1:
                self._form("FLOOR(AVG)")
                return f"{self._one('FLOOR', 'CEIL')}({one} {self._one('', '* 2', '+ 0.37')})"
            case 2:
                self._form("CAST(AVG AS INTEGER)")
                return f"CAST({one} AS {self._one('INTEGER', 'BIGINT', 'DOUBLE')})"
            case 3:
                self._form("weighted mean")
                value = self._one("pay", "age", "b")
                return f"SUM(w * {value}) / SUM(w)"
            case 4 | 5 if grouped:
                what = self._one("COUNT(*)", "SUM(b)", "SUM(age)")
                self._form("share")
                over = "()"
                if len(self.groups) > 1 and self.dice.random() < 0.85:
                    self._form("share within")
                    over = f"(PARTITION BY {', '.join(self.groups[1:])})"
                return f"{self._one('', '100 * ')}{what} / SUM({what}) OVER {over}"
            case 6:
                self._form("COALESCE of an answer")
                return f"COALESCE({self._one('SUM(age)', 'COUNT(*)', 'AVG(b)', 'AVG(age)', 'SUM(pay)')}, 0)"
            case 7:
                return f"{one} / {self._one('COUNT(*)', 'COUNT(age)', 'SUM(b)')}"
            case 8:
                return f"SUM({self._number()}) - SUM({self._one('pay', 'age')})"
            case 9:
                return f"COUNT(*) FILTER (WHERE {self._condition()}) * 1.0 / COUNT(*)"
            case 10:
                return f"{one} * {self._one(2, '(-1)', 0.25)} + {self._one(1, -3)}"
            case 11:
                return f"POWER({one}, 2)"
            case 12 | 13:
                self._form("FILTER")
                return f"SUM(age) FILTER (WHERE {self._condition()})"
            case 14:
                return str(self._one("REGR_SLOPE(pay, age)", "REGR_INTERCEPT(b, age)", "- SUM(pay)"))
        return self._aggregate()

    # keys

    def _group(self) -> tuple[str, str | None, str]:
        """An expression to group by, its period, and what it is compared with."""
        match self.dice.randrange(13):
            case 0 | 1 | 9:
                self._form("date_trunc as a key")
                period = self._one("week", "month", "quarter", "day")
                return f"DATE_TRUNC('{period}', {self._one('day', 'seen')})", period, "date"
            case 2:
                self._form("CASE as a key")
                whole = self._one("ELSE 'old'", "")
                return f"CASE WHEN {self._condition(1)} THEN 'young' {whole} END", None, "text"
            case 3:
                self._form("CASE that merges keys")
                return "CASE educ WHEN 1 THEN 'low' WHEN 2 THEN 'low' ELSE 'high' END", None, "text"
            case 4:
                return str(self._one("UPPER(town)", "LEFT(odd, 1)", "UPPER(odd)")), None, "text"
            case 5:
                return str(self._one("age", "FLOOR(age / 10)", "w")), None, "number"
            case 6:
                self._form("day as a key")
                return str(self._one("day", "seen::date")), "day", "date"
            case 7 if self.joined:
                self._form("public key as a key")
                return f"{self.joined}.{self.key}", None, "text"
            case 8:
                return "DAYNAME(day)", None, "text"
            case 10:
                self._form("date part")
                return str(self._one("MONTH(day)", "ISODOW(seen)", "DATE_PART('week', day)")), None, "number"
        key = self._key()
        kind = "flag" if key == "ok" else "number" if key == "educ" else "text"
        return key, None, kind

    def _source(self, keys: Sequence[str], present: bool = False) -> str:
        """FROM, JOIN and WHERE."""
        conditions = [self._condition()] if self.dice.random() < 0.4 else []
        if present or self.dice.random() < 0.2:
            conditions += [f"{key} IS NOT NULL" for key in (*keys, "town")]
        if self.joined and self.dice.random() < 0.25:
            self._form("r.name IS NULL")
            conditions.append(f"{self.joined}.{self.key} IS {self._one('', 'NOT ')}NULL")
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        return f"{self.start}{where}"

    def _begin(self) -> None:
        """FROM with a join of one kind, or with none."""
        self.joined, self.start = "", "FROM p"
        chance = self.dice.random()
        if chance < 0.5:
            kind = self._one("JOIN", "LEFT JOIN", "INNER JOIN", "LEFT OUTER JOIN")
            self._form("LEFT JOIN" if "LEFT" in kind else "JOIN")
            self.joined = self._one("r", "q")
            if dice_inside := self.dice.random() < 0.1:
                self._form("SELECT inside")
            private = "(SELECT * FROM p WHERE w < 5) AS t" if dice_inside else "p"
            on = f"ON {'t' if dice_inside else 'p'}.town = {self.joined}.{self.key}"
            if self.key == "town":
                self._form("USING")
                on = "USING (town)"
            self.start = f"FROM {private} {kind} r{' AS q' if self.joined == 'q' else ''} {on}"
        elif chance < 0.6:
            self._form("SELECT inside")
            names = ", ".join(["sex, educ, odd, ok, town, w, pay, b, day, seen", "age + 1 AS age"])
            inner = self._one("*", names if not self.by_units else "*")
            self.start = f"FROM (SELECT {inner} FROM p WHERE age >= 5) AS t"
        elif chance < 0.65:
            self._form("WITH")
            self.start = "FROM t"

    def ask(self) -> Asked:
        """A random question."""
        self.forms = set()
        self._begin()
        dice, asked = self.dice, Asked(forms=self.forms)
        rolled = dice.random() < 0.15
        chosen = [self._group() for _ in range(self._one(*([1, 1, 2, 2] if rolled else [0, 1, 1, 1, 2, 2])))]
        chosen = list({_same_key(each[0]): each for each in chosen}.values())
        self.groups = [each[0] for each in chosen]
        asked.keys, asked.groups, asked.periods = len(chosen), self.groups, [each[1] for each in chosen]
        if rolled:
            return self._rolled(asked)
        if len(chosen) == 1 and dice.random() < 0.28:
            return self._listed(asked)
        many = self._one(1, 1, 2, 3)
        aggregates = list(dict.fromkeys(self._computed(bool(chosen)) for _ in range(many)))
        names = [f"k{i}" if dice.random() < 0.5 else "" for i in range(len(chosen))]
        for place, (key, _, _) in enumerate(chosen):
            if names[place] and dice.random() < 0.1 and "w" not in re.findall(r"\w+", key):
                names[place] = "w"  # an alias that is the name of another column
        asked.items = [
            *zip(self.groups, names, strict=True),
            *((each, f"a{i}") for i, each in enumerate(aggregates)),
        ]
        shares = any(" OVER (" in each for each in aggregates)
        asked.source = self._source(self.groups, present=shares and dice.random() < 0.95)
        by = [
            str(place + 1)
            if dice.random() < 0.2
            else name
            if name and name != "w" and dice.random() < 0.5
            else key
            for place, (key, name) in enumerate(asked.items[: asked.keys])
        ]
        if any(each == name and name for each, (_, name) in zip(by, asked.items, strict=False)):
            self._form("GROUP BY an alias")
        shown = ", ".join(f"{each} AS {name}" if name else each for each, name in asked.items)
        head = "SELECT DISTINCT" if dice.random() < 0.03 else "SELECT"
        tail = f" GROUP BY {', '.join(by)}" if by else ""
        if not chosen and dice.random() < 0.05:
            asked.having.append("COUNT(*)")
            tail = f" HAVING COUNT(*) {self._sign()} {self._one(0, 3, 40)}"
        # these have rows that HAVING and ORDER BY do not choose
        alone = shares or any(word in each for each in aggregates for word in ("MEDIAN", "QUANTILE", "REGR"))
        if chosen and (not alone or dice.random() < 0.05):
            tail += self._having(asked, chosen) + self._ordered(asked)
        self._finish(asked, f"{head} {shown} {asked.source}{tail}")
        return asked

    def _finish(self, asked: Asked, text: str) -> None:
        before = "WITH t AS (SELECT * FROM p WHERE w < 5) " if "FROM t" in asked.source else ""
        asked.source = f"{asked.source}"
        asked.text = before + text
        asked.where_of_having = before

    def _rolled(self, asked: Asked) -> Asked:
        word = self._one("ROLLUP", "CUBE")
        self._form(word if asked.keys > 1 else f"{word} of one key")
        asked.form = "rolled"
        asked.items = [*((key, "") for key in asked.groups), ("COUNT(*)", "n")]
        asked.source = self._source(asked.groups)
        if self.dice.random() < 0.97:
            start = " AND " if " WHERE " in asked.source.split(") AS t")[-1] else " WHERE "
            asked.source += start + " AND ".join(f"{key} IS NOT NULL" for key in (*asked.groups, "town"))
        shown = ", ".join([*asked.groups, "COUNT(*) AS n"])
        text = f"SELECT {shown} {asked.source} GROUP BY {word} ({', '.join(asked.groups)})"
        self._finish(asked, text)
        return asked

    def _listed(self, asked: Asked) -> Asked:
        """Keys alone: the most frequent, or those that occur."""
        (key,) = asked.groups
        asked.source = self._source([key])
        asked.items = [(key, "")]
        if self.dice.random() < 0.5:
            self._form("top")
            asked.form, asked.limit = "top", self._one(1, 1, 2)
            counted = "COUNT(DISTINCT pid)" if self.by_units else "COUNT(*)"
            asked.order = [(counted, True)]
            text = f"SELECT {key} {asked.source} GROUP BY {key} ORDER BY {counted} DESC LIMIT {asked.limit}"
        else:
            self._form("SELECT DISTINCT")
            asked.form = "distinct"
            text = f"SELECT DISTINCT {key} {asked.source}"
        self._finish(asked, text)
        return asked

    def _having(self, asked: Asked, chosen: Sequence[tuple[str, str | None, str]]) -> str:
        if self.dice.random() > 0.45:
            return ""

        def atom() -> str:
            if self.dice.random() < 0.5:
                of = self._one("COUNT(*)", "SUM(age)", "AVG(b)", "COUNT(age)")
                named = [(each, name) for each, name in asked.items[asked.keys :] if not _blurred(each)]
                if named and self.dice.random() < 0.4:
                    self._form("HAVING by an alias")
                    of, name = self._one(*named)
                    asked.having.append(of)
                    return f"{name} {self._sign()} {self._one('3.37', '-5.11', '40.77')}"
                asked.having.append(of)
                if of != "AVG(b)":
                    low = self._one(1, 3, 10)
                    between = f"{of} {self._one('', 'NOT ')}BETWEEN {low} AND {low + self._one(0, 4, 50)}"
                    if self.dice.random() < 0.2:
                        return between
                    if self.dice.random() < 0.2:
                        self._form("IN in HAVING")
                        return f"{of} {self._one('IN', 'NOT IN')} (1, 3, {low})"
                constants = ("4.87", "1.13") if of == "AVG(b)" else (1, 3, 12)
                return f"{of} {self._sign()} {self._one(*constants)}"
            place = self.dice.randrange(len(chosen))
            key, period, kind = chosen[place]
            name = asked.items[place][1]
            if name and name != "w" and self.dice.random() < 0.5:
                self._form("HAVING by an alias")
                key = name
            self._form("HAVING by a key")
            if period is not None:
                self._form("date_trunc in HAVING")
                return f"{key} {self._sign()} {self._date()}"
            if kind == "text":
                values = ["'young'", "'m'", "'Lille'", "'it''s'", "'B'"]
                if self.dice.random() < 0.3:
                    return f"{key} {self._one('LIKE', 'NOT LIKE')} {self._one(*PATTERNS)}"
                if self.dice.random() < 0.5:
                    self._form("IN in HAVING")
                    return f"{key} {self._one('IN', 'NOT IN')} ({', '.join(self.dice.sample(values, 2))})"
                return f"{key} {self._sign()} {self._one(*values)}"
            if kind == "flag":
                return f"{key} = {self._one('TRUE', 'FALSE')}"
            return f"{key} {self._sign()} {self._one(1, 2, 3, -1)}"

        text = atom()
        self._form("HAVING")
        if self.dice.random() < 0.5:
            word = self._one("AND", "OR")
            if word == "OR":
                self._form("OR in HAVING")
            text = f"{text} {word} {atom()}"
        if self.dice.random() < 0.15:
            text = f"NOT ({text})"
        return f" HAVING {text}"

    def _ordered(self, asked: Asked) -> str:
        if self.dice.random() > 0.5:
            return ""
        terms = []
        for place in self.dice.sample(range(len(asked.items)), self._one(1, min(2, len(asked.items)))):
            of, name = asked.items[place]
            if _blurred(of):
                continue
            down = self.dice.random() < 0.5
            written = (
                name
                if name and self.dice.random() < 0.6
                else str(place + 1)
                if self.dice.random() < 0.3
                else of
            )
            if place < asked.keys:
                self._form("ORDER BY a key")
                if name and written == name:
                    self._form("ORDER BY an alias")
                if asked.periods[place]:
                    self._form("date_trunc in ORDER BY")
            else:
                self._form("ORDER BY an answer")
            asked.order.append((of, down))
            terms.append(f"{written}{self._one(' DESC', ' DESC') if down else self._one('', ' ASC')}")
        if not terms:
            return ""
        text = f" ORDER BY {', '.join(terms)}"
        if self.dice.random() < 0.4:
            asked.limit = self._one(1, 1, 2, 5)
            self._form("LIMIT")
            text += f" LIMIT {asked.limit}"
        return text


PATTERNS = ("'%a%'", "'_'", "'%'", "'%i%'", "'B%'", "'m'")


def _same_key(text: str) -> str:
    """One text for expressions that are the same key."""
    text = re.sub(r"^[rq]\.\w+$", "town", text)
    return {"DATE_TRUNC('day', day)": "day", "DATE_TRUNC('day', seen)": "seen::date"}.get(text, text)


def _blurred(text: str) -> bool:
    """Whether an answer is only near DuckDB's, so that it may stand on either side of a constant."""
    return any(word in text for word in (*_ROUGH, "MEDIAN", "QUANTILE", "FLOOR", "CEIL(", "OVER", "CAST("))


@dataclass
class Verdict:
    """What became of a question: equal, refused (why), or different (how)."""

    outcome: str
    reason: str = ""


def judge(tables: Tables, asked: Asked) -> Verdict:
    """Ask both."""
    try:
        with without_noise():
            question = tables.table.sql(asked.text)
            kept = Query.read(json.loads(question.query.model_dump_json()))  # as a record keeps it
            plan = tables.table.plan(
                question, epsilon=_EPSILON_OF_TOP if asked.form == "top" else _EPSILON, quality=False
            )
    except InvalidParameter as refused:
        return Verdict("refused", str(refused).split("\n")[0])
    except Exception as problem:
        return Verdict("failed", repr(problem))
    if kept != question.query:
        return Verdict("different", "a record does not keep the query")
    try:
        rows = tables.plain.sql(asked.text).fetchall()
    except duckdb.Error as problem:
        return Verdict("meaningless", str(problem).split("\n")[0])
    try:
        with without_noise():
            answers = _carry_out(plan, tables.table.source, bits=SeededBits(1)).values.each
        wrong = _Comparison(tables, asked, question.query, answers, rows).difference()
    except Exception as problem:
        return Verdict("failed", repr(problem))
    return Verdict("different", wrong) if wrong else Verdict("equal")


@dataclass
class _Comparison:
    tables: Tables
    asked: Asked
    query: Any
    answers: Sequence[Any]
    rows: list[tuple[Cell, ...]]

    def difference(self) -> str:
        """How the answer is not DuckDB's; empty where it is."""
        if self.asked.form == "rolled":
            return self._of_table()
        if self.asked.form == "top":
            return self._of_top()
        if self.asked.form == "distinct":
            return self._of_distinct()
        return self._of_rows() or self._of_order()

    def _plain(self, items: Sequence[str]) -> dict[tuple[Cell, ...], tuple[Cell, ...]]:
        """DuckDB's values of some expressions for every group, with HAVING and LIMIT left out."""
        asked = self.asked
        if not (items or asked.groups):
            return {(): ()}
        by = f" GROUP BY {', '.join(asked.groups)}" if asked.groups else ""
        shown = ", ".join([*asked.groups, *items])
        found = self.tables.plain.sql(f"{asked.where_of_having}SELECT {shown} {asked.source}{by}").fetchall()
        return {self._key(row[: asked.keys]): row[asked.keys :] for row in found}

    def _key(self, cells: Sequence[Cell]) -> tuple[Cell, ...]:
        return tuple(_key(cell, period) for cell, period in zip(cells, self.asked.periods, strict=True))

    def _ours(self) -> list[tuple[tuple[Cell, ...], dict[str, Shown]]]:
        """Rows in the order shown: keys as GROUP BY has them, and values with their intervals' widths."""
        rows: dict[tuple[Cell, ...], dict[str, Shown]] = {}
        size = len(self.query.by)
        for answer in self.answers:
            for key, value, lower, upper in answer.rows():
                cells = tuple(_plain_key(cell) for cell in key)
                # a quantile has its level after the keys, and a line the name of its coefficient
                name = "".join([answer.statistic, *map(str, cells[size:])])
                shown = (value, upper - lower)
                rows.setdefault(cells[:size], {})[name] = shown
                rows[cells[:size]].setdefault(answer.statistic, shown)
        return list(rows.items())

    def _values(self, ours: Mapping[str, Shown], name: str, item: str) -> Shown | None:
        if name in ours:
            return ours[name]
        label = self._label(item)
        return ours.get(label) if label is not None else None

    def _label(self, item: str) -> str | None:
        by = f" GROUP BY {', '.join(self.asked.groups)}" if self.asked.groups else ""
        text = f"{self.asked.where_of_having}SELECT {item} AS only, COUNT(*) {self.asked.source}{by}"
        query = self.tables.table.sql(text).query
        label = query.compare[-1].label if query.compare else query.ask[0].label
        part = {"REGR_S": "slope", "REGR_I": "intercept", "MEDIAN": "0.5", "QUANTI": "0.25"}.get(item[:6], "")
        return str(self.query.show.names.get(label, label)) + ("0.9" if "0.9" in item else part)

    def _near(self, item: str, shown: Shown, theirs: Cell, key: tuple[Cell, ...]) -> bool:
        (ours, width), theirs = shown, float(theirs)
        if "MEDIAN" in item or "QUANTILE" in item:
            # the rank is that of DuckDB's; between two records any point has it
            column, level = ("pay", 0.9) if "pay" in item else ("b", 0.25 if "0.25" in item else 0.5)
            (values,) = self._plain([f"LIST({column} ORDER BY {column})"])[key]
            held = [each for each in values if each is not None]
            rank = level * len(held)
            below, up_to = sum(each < ours - 1e-3 for each in held), sum(each <= ours + 1e-3 for each in held)
            return below <= math.ceil(rank) and up_to >= math.floor(rank)
        rounds = item.startswith(("FLOOR(", "CEIL(", "CAST(")) and "DOUBLE" not in item
        if rounds and abs(ours - theirs) <= 1:
            (value,) = self._plain([_inside(item)])[key]
            return ours == theirs or abs(value * 2 - round(value * 2)) < 1e-6  # either side of a step
        # values are rounded to three digits of their intervals, which are narrow here
        rounding = min(width / 20, 0.02 * (1 + abs(theirs)))
        # answers that are read off one measurement share its rounding
        loose = 1e-3 if any(word in self.asked.text for word in _ROUGH) else 1e-6
        return abs(ours - theirs) <= loose * (1 + abs(theirs)) + rounding

    def _of_rows(self) -> str:
        asked, ours = self.asked, self._ours()
        shown = dict(ours)
        everything = self._plain(asked.having)
        seen = set()
        for row in self.rows:
            key = self._key(row[: asked.keys])
            if None in key:
                continue
            seen.add(key)
            if key not in shown:
                if asked.limit is None and not any(map(_unknown, everything[key])):
                    return f"no row {key}"
                continue
            for (item, name), theirs in zip(asked.items[asked.keys :], row[asked.keys :], strict=True):
                if _unknown(theirs):
                    continue
                value = self._values(shown[key], name, item)
                if value is None:
                    return f"no answer {item}"
                if not self._near(item, value, theirs, key):
                    return f"{item} of {key}: {value[0]} and not {theirs}"
        if asked.limit is None:
            for key in shown:
                if key in everything and key not in seen and not any(map(_unknown, everything[key])):
                    return f"a row {key} too many"
        return ""

    def _of_order(self) -> str:
        asked = self.asked
        if not asked.order:
            return ""
        groups = self._plain([of for of, _ in asked.order])
        wanted = self._plain(asked.having)
        ours = [key for key, _ in self._ours() if key in groups]

        def precedes(one: tuple[Cell, ...], other: tuple[Cell, ...]) -> bool | None:
            """Whether DuckDB has one group before the other; None where it is not told, or by rounding."""
            for a, b, (of, down) in zip(groups[one], groups[other], asked.order, strict=True):
                if _unknown(a) or _unknown(b):
                    return None
                if isinstance(a, int | float) and isinstance(b, int | float):
                    blurred = 0.01 * (1 + abs(a)) if "/" in of else 1e-9 * (1 + abs(a))
                    if abs(a - b) <= blurred and (a != b or "/" in of):
                        return None
                if a != b:
                    return bool(b < a if down else a < b)
            return None

        for one, other in pairwise(ours):
            if precedes(other, one):
                return f"{one} before {other}"
        if asked.limit is None or len(ours) < len(self._ours()):  # a group without records took a row
            return ""
        theirs = [key for row in self.rows if None not in (key := self._key(row[: asked.keys]))]
        for key in theirs:
            if key not in ours and ours and not any(map(_unknown, wanted[key])) and precedes(key, ours[-1]):
                return f"{key} is not among the first"
        if len(theirs) == len(self.rows) and len(ours) < len(theirs):
            return "too few rows"
        return ""

    def _of_table(self) -> str:
        (answer,) = self.answers
        ours = {
            tuple(_plain_key(cell) for cell in key): value
            for key, value in zip(answer.keys, answer.estimate.value.tolist(), strict=True)
        }
        # by its names: columns stand as GROUP BY has them
        theirs = {
            tuple(
                "all" if cell is None else _key(cell, period)
                for cell, period in zip(row, self.asked.periods, strict=False)
            ): row[-1]
            for row in self.rows
        }
        for key, count in theirs.items():
            if ours.get(key) != count:
                return f"{key}: {ours.get(key)} and not {count}"
        for key, value in ours.items():
            if key not in theirs and value:
                return f"{key}: {value} too many"
        if "ROLLUP" in self.asked.text and any(
            one == "all" and other != "all" for key in ours for one, other in pairwise(key)
        ):
            return "sums that ROLLUP has not"
        return ""

    def _of_top(self) -> str:
        (answer,) = self.answers
        counts = {
            key[0]: each[0] for key, each in self._plain([self.asked.order[0][0]]).items() if None not in key
        }
        ours = [counts.get(_plain_key(key[-1]), 0) for key in answer.keys]
        best = sorted(counts.values(), reverse=True)[: self.asked.limit]
        return "" if sorted(ours, reverse=True)[: len(best)] == best else f"top {ours} and not {best}"

    def _of_distinct(self) -> str:
        ours = {key for key, _ in self._ours()}
        theirs = {self._key(row) for row in self.rows if None not in row}
        return "" if ours == theirs else f"keys {ours} and not {theirs}"


def _unknown(cell: Cell) -> bool:
    """Whether there is no number: a statistic of no values, or 0 / 0."""
    return cell is None or (isinstance(cell, float) and not math.isfinite(cell))


def _inside(item: str) -> str:
    """What a function of an answer rounds."""
    item = item[item.index("(") + 1 : -1]
    return item.split(" AS ")[0]


def _plain_key(cell: Cell) -> Cell:
    return cell.item() if isinstance(cell, np.generic) else cell


def _key(cell: Cell, period: str | None) -> Cell:
    """A key of DuckDB as it is called here."""
    if cell is None or period is None:
        whole = isinstance(cell, float) and cell == int(cell)
        return int(cell) if whole or hasattr(cell, "as_tuple") else cell
    day = cell.date() if isinstance(cell, datetime) else cell
    match period:
        case "week":
            year, week, _ = day.isocalendar()
            return f"{year:04}-W{week:02}"
        case "month":
            return f"{day:%Y-%m}"
        case "quarter":
            return f"{day.year}-Q{(day.month + 2) // 3}"
    return day.isoformat()


@dataclass
class Tally:
    """What became of many questions."""

    outcomes: Counter[str] = field(default_factory=Counter)
    answered: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    wrong: list[tuple[int, str, str]] = field(default_factory=list)

    def report(self) -> str:
        """What was asked, answered and refused, in lines."""
        lines = [", ".join(f"{count:,} {outcome}" for outcome, count in self.outcomes.most_common())]
        lines += [f"{count:6,} answered: {form}" for form, count in sorted(self.answered.items())]
        lines += [f"{count:6,} refused: {reason}" for reason, count in self.reasons.most_common(10)]
        return "\n".join([*lines, *(f"{number}: {text}\n  {how}" for number, text, how in self.wrong)])


_EACH = 10  # questions of one table


def ask_many(first: int, last: int) -> Tally:
    """Ask the questions of these numbers, each from the seed of its table."""
    tally = Tally()
    for start in range(first - first % _EACH, last, _EACH):
        dice = random.Random(start)
        tables = Tables.of(dice)
        for number in range(start, start + _EACH):
            asked = Dialogue(tables, random.Random(number + 0.5)).ask()
            if not first <= number < last:
                continue
            verdict = judge(tables, asked)
            tally.outcomes[verdict.outcome] += 1
            if verdict.outcome == "equal":
                tally.answered.update(asked.forms)
            elif verdict.outcome == "refused":
                tally.reasons[
                    re.sub(r"'[^']*'|Records that lack .* belong|WHERE .* NULL", "…", verdict.reason)
                ] += 1
            else:
                tally.wrong.append((number, asked.text, f"{verdict.outcome}: {verdict.reason}"))
    return tally
