"""From the words of SQL to expressions of one record. What is not listed here is refused."""

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Any

from sqlglot import exp

from sourdine.core.errors import InvalidParameter
from sourdine.frames.expressions import (
    All,
    Among,
    AnyOf,
    Case,
    Coalesce,
    Comparison,
    Constant,
    DatePart,
    DayKind,
    Expression,
    InPeriod,
    IsMissing,
    KeyKind,
    Kinds,
    Letters,
    Like,
    Matched,
    MomentKind,
    Not,
    NumberKind,
    PartOf,
    Power,
    Substring,
    TimeBetween,
    TimePeriod,
    check_tree,
    may_be_missing,
)
from sourdine.frames.expressions.times import compare_period, parse_time
from sourdine.tables.shown_rows import COMPARE
from sourdine.tables.sql.vocabulary import (
    BINARY,
    DATE_FUNCTIONS,
    DATE_PARTS,
    DATES,
    INSTEAD,
    SIGNS,
    TIME_UNITS,
    TIMES,
    TURNED,
    UNARY,
    VARIADIC,
    SqlText,
)


@dataclass(frozen=True)
class SqlRecords:
    """What the words of a question mean for one record: the columns it may name, and what they can be."""

    text: SqlText
    columns: Mapping[str, Expression]
    kinds: Kinds
    tables: frozenset[str] = frozenset()
    unit: str | None = None
    brought: Mapping[str, Mapping[str, Expression]] = field(default_factory=dict)
    matched: Mapping[tuple[str, str], Matched] = field(default_factory=dict)
    present: frozenset[Expression] = frozenset()
    lacking: frozenset[str] = frozenset()

    def lacks(self, tree: Expression) -> bool:
        """Return whether an expression may be missing in a record that counts."""
        match tree:
            case Case(((Matched() as matched, value),), None) if matched in self.present:
                return self.lacks(value)
        return Not(IsMissing(tree)) not in self.present and may_be_missing(tree, self.lacking.__contains__)

    def has_value(self, node: exp.Expr) -> Expression:
        """The condition that a node has a value; that of a public table's key is a match."""
        column = node.unnest()
        if isinstance(column, exp.Column):
            matched = self.matched.get((column.table.casefold(), column.name.casefold()))
            if matched is not None:
                self.check_table(column)
                return matched
        return Not(IsMissing(self.read(node)))

    def column(self, node: exp.Column) -> Expression:
        """The column of a name; capitals matter only where two names differ by them alone."""
        self.text.only(node, "this", "table")
        name, table = node.name, node.table
        if isinstance(node.this, exp.Star):
            raise self.text.refuse(node, "This would show records. Ask for an aggregate, such as COUNT(*).")
        self.check_table(node)
        if table.casefold() in self.brought:
            names = self.brought[table.casefold()]
            if name.casefold() not in names:
                raise self.text.refuse(node, f"The public table '{table}' brings no column '{name}'.")
            return names[name.casefold()]
        if name in self.columns:
            return self.columns[name]
        like = [each for each in self.columns if each.casefold() == name.casefold()]
        if len(like) == 1:
            return self.columns[like[0]]
        if self.unit is not None and name.casefold() == self.unit.casefold():
            raise self.text.refuse(
                node,
                f"'{self.unit}' tells whom records are about, and only COUNT(DISTINCT {self.unit}) may be "
                "asked "
                "of it.",
            )
        near = difflib.get_close_matches(name, self.columns, n=1)
        meant = f" Did you mean '{near[0]}'?" if near else ""
        raise self.text.refuse(
            node, f"The column '{name}' is not declared.{meant} Declare it to ask about it."
        )

    def check_table(self, node: exp.Column) -> None:
        """Refuse a column of a table that is not read."""
        if node.table and node.table.casefold() not in self.tables:
            raise self.text.refuse(node, f"There is no table '{node.table}' in FROM. Check its name.")

    def read(self, node: exp.Expr) -> Expression:
        """The expression of a node, checked by the kinds of its columns."""
        try:
            tree = self._read(node)
            check_tree(tree)
            tree.kind(self.kinds)
        except RecursionError:
            raise self.text.refuse(node, "This is nested too deeply. Write it flatter.") from None
        except InvalidParameter as problem:
            if "\n" in str(problem):
                raise
            raise self.text.refuse(node, str(problem)) from None
        return tree

    def _read(self, node: exp.Expr) -> Expression:
        kind = type(node)
        if isinstance(node, exp.Column):
            return self.column(node)
        if isinstance(node, exp.Paren):
            self.text.only(node, "this")
            return self._read(node.this)
        if isinstance(node, exp.Literal | exp.Boolean):
            return Constant(value_of(node))
        if isinstance(node, exp.Neg) and (number := number_of(node)) is not None:
            return Constant(number)
        if kind in SIGNS:
            return self._compared(node)
        if isinstance(node, exp.And | exp.Or):
            return self._joined(node)
        if kind in BINARY:
            return self._two(node)
        if kind in UNARY:
            self.text.only(node, "this")
            inner = self._read(node.this)
            if isinstance(node, exp.Not) and isinstance(inner, Not) and isinstance(inner.of, Matched):
                return inner.of  # r.name IS NOT NULL
            return UNARY[kind](inner)
        if kind in VARIADIC:
            self.text.only(node, "this", "expressions", "ignore_nulls")
            return VARIADIC[kind](tuple(map(self._read, (node.this, *node.expressions))))
        if (special := _SPECIAL.get(kind)) is not None:
            return special(self, node)
        if kind in DATE_FUNCTIONS:
            self.text.only(node, "this")
            return PartOf(self._read(node.this), DATE_FUNCTIONS[kind])
        if isinstance(node, exp.AggFunc):
            raise self.text.refuse(
                node, "An aggregate stands in SELECT, HAVING or ORDER BY, and never inside another."
            )
        raise self.text.refuse(node, INSTEAD.get(kind, f"'{_word(node)}' is not understood here."))

    def _two(self, node: exp.Expr) -> Expression:
        self.text.only(node, "this", "expression", "typed", "safe")
        left, right = self._dated(self._read(node.this), self._read(node.expression))
        if isinstance(node, exp.Sub) and isinstance(left.kind(self.kinds), DayKind | MomentKind):
            return TimeBetween(start=right, end=left)
        return BINARY[type(node)](left, right)

    def _compared(self, node: exp.Expr) -> Expression:
        self.text.only(node, "this", "expression")
        if _is_null(node.this) or _is_null(node.expression):
            raise self.text.refuse(
                node, "Nothing equals NULL, nor differs from it. Write IS NULL or IS NOT NULL."
            )
        left, right = self._dated(self._read(node.this), self._read(node.expression))
        return self._compare(left, SIGNS[type(node)], right)

    def _compare(self, left: Expression, sign: str, right: Expression) -> Expression:
        """Compare two values as SQL does: dates with dates, and keys with those that are declared."""
        if isinstance(left, Constant):
            left, right = right, left
            sign = TURNED.get(sign, sign)
        if isinstance(left, InPeriod) and (at := _date_of(right)) is not None:
            return compare_period(left, sign, at, self.kinds)
        kind = left.kind(self.kinds)
        if isinstance(kind, KeyKind) and isinstance(right, Constant) and sign not in ("=", "<>"):
            return _ordered_keys(left, kind, sign, right)
        # a key is told apart from others as the declaration has it
        keys = isinstance(right, Constant) and not isinstance(right.value, date)
        if sign in ("=", "<>") and keys and not _is_number(left, self.kinds):
            assert isinstance(right, Constant)
            among = Among(left, (right.value,))  # type: ignore[arg-type]
            return among if sign == "=" else Not(among)
        return Comparison(left, sign, right)

    def _dated(self, left: Expression, right: Expression) -> tuple[Expression, Expression]:
        """Texts beside dates are dates: SQL is mostly written so."""
        return self._date_like(left, right), self._date_like(right, left)

    def _date_like(self, tree: Expression, other: Expression) -> Expression:
        if not isinstance(tree, Constant) or not isinstance(tree.value, str) or isinstance(other, Constant):
            return tree
        kind = other.kind(self.kinds)
        if isinstance(kind, DayKind | MomentKind):
            return Constant(parse_time(tree.value, isinstance(kind, MomentKind)))
        return tree

    def _unlike(self, node: exp.Expr) -> Expression:
        """IS DISTINCT FROM, for which NULL is like NULL, and its opposite."""
        self.text.only(node, "this", "expression")
        for one, other in ((node.this, node.expression), (node.expression, node.this)):
            if _is_null(one):
                lacks = IsMissing(self._read(other))
                return lacks if isinstance(node, exp.NullSafeEQ) else Not(lacks)
        left, right = self._dated(self._read(node.this), self._read(node.expression))
        alike: Expression = Coalesce((self._compare(left, "=", right), Constant(False)))
        if not (isinstance(left, Constant) or isinstance(right, Constant)):
            alike = AnyOf((alike, All((IsMissing(left), IsMissing(right)))))
        return alike if isinstance(node, exp.NullSafeEQ) else Not(alike)

    def _joined(self, node: exp.Expr) -> Expression:
        self.text.only(node, "this", "expression")
        make = All if isinstance(node, exp.And) else AnyOf
        parts: list[Expression] = []
        for each in (self._read(node.this), self._read(node.expression)):
            parts += each.of if type(each) is make else [each]
        return make(tuple(parts))

    def _between(self, node: exp.Expr) -> Expression:
        self.text.only(node, "this", "low", "high")
        tree, low, high = (self._read(node.args[name]) for name in ("this", "low", "high"))
        return All(
            (
                self._compare(tree, ">=", self._date_like(low, tree)),
                self._compare(tree, "<=", self._date_like(high, tree)),
            )
        )

    def _among(self, node: exp.Expr) -> Expression:
        self.text.only(node, "this", "expressions")
        for each in filter(_is_null, node.expressions):
            raise self.text.refuse(
                node if each.meta.get("start") is None else each,
                "Nothing equals NULL, so that it adds nothing to IN, and NOT IN holds for no record. Leave "
                "it out of the list, and write OR x IS NULL for records where x is missing.",
            )
        keys = [self._read(each) for each in node.expressions]
        tree = self._read(node.this)
        if not all(isinstance(each, Constant) for each in keys):
            raise self.text.refuse(node, "IN takes a list of constants. Write OR for others.")
        if isinstance(tree.kind(self.kinds), DayKind | MomentKind) or any(
            isinstance(tree, InPeriod) and _date_of(each) is not None for each in keys
        ):
            return AnyOf(tuple(self._compare(tree, "=", self._date_like(each, tree)) for each in keys))
        return Among(tree, tuple(each.value for each in keys))  # type: ignore[attr-defined]

    def _like(self, node: exp.Expr) -> Expression:
        self.text.only(node, "this", "expression", "negate")
        if not (isinstance(node.expression, exp.Literal) and node.expression.is_string):
            raise self.text.refuse(node, "LIKE takes a pattern in quotes.")
        like = Like(self._read(node.this), node.expression.name)
        return Not(like) if node.args.get("negate") else like

    def _is(self, node: exp.Expr) -> Expression:
        self.text.only(node, "this", "expression")
        if isinstance(node.expression, exp.Null):
            present = self.has_value(node.this)
            return present.of if isinstance(present, Not) else Not(present)
        tree = self._read(node.this)
        if isinstance(node.expression, exp.Boolean):
            like = tree if node.expression.this else Not(tree)
            return Coalesce((like, Constant(False)))
        raise self.text.refuse(node, "IS takes NULL, TRUE or FALSE.")

    def _case(self, node: exp.Expr) -> Expression:
        self.text.only(node, "this", "ifs", "default")
        subject = node.args.get("this")
        whens = []
        for each in node.args["ifs"]:
            self.text.only(each, "this", "true")
            condition = exp.EQ(this=subject, expression=each.this) if subject is not None else each.this
            whens.append((condition, each.args["true"]))
        return self._chosen(node, whens, node.args.get("default"))

    def _if(self, node: exp.Expr) -> Expression:
        self.text.only(node, "this", "true", "false")
        return self._chosen(node, [(node.this, node.args["true"])], node.args.get("false"))

    def _chosen(
        self, node: exp.Expr, whens: Sequence[tuple[exp.Expr, exp.Expr]], other: exp.Expr | None
    ) -> Expression:
        """A choice; where it is THEN NULL, the values after it are for records of which that is not true."""
        chosen: list[tuple[Expression, Expression]] = []
        otherwise: list[Expression] = []
        for when, value in whens:
            condition = self._read(when)
            if _is_null(value):
                otherwise.append(Not(Coalesce((condition, Constant(False)))))
                continue
            chosen.append((All((*otherwise, condition)) if otherwise else condition, self._read(value)))
        last = None if other is None or _is_null(other) else self._read(other)
        if not chosen and last is None:
            raise self.text.refuse(node, "This is always missing. Give a value for some records.")
        if otherwise and last is not None:
            chosen.append((All(tuple(otherwise)) if len(otherwise) > 1 else otherwise[0], last))
            last = None
        return Case(tuple(chosen), last)

    def _power(self, node: exp.Expr) -> Expression:
        self.text.only(node, "this", "expression")
        exponent = number_of(node.expression)
        if exponent is None or exponent.denominator != 1:
            raise self.text.refuse(node.expression, "A power is a whole number that is written out.")
        return Power(self._read(node.this), int(exponent))

    def _cast(self, node: exp.Expr) -> Expression:
        self.text.only(node, "this", "to", "_type")
        target = node.args["to"].this
        if isinstance(node.this, exp.Literal) and node.this.is_string and target in (*DATES, *TIMES):
            return Constant(parse_time(node.this.name, target in TIMES))
        tree = self._read(node.this)
        if target in DATES and isinstance(tree.kind(self.kinds), MomentKind):
            return InPeriod(tree, TimePeriod.DAY)
        if target in DATES and isinstance(tree.kind(self.kinds), DayKind):
            return tree
        raise self.text.refuse(
            node, "A column has the type that is declared of it. Declare another, and leave the cast out."
        )

    def _truncated(self, node: exp.Expr) -> Expression:
        self.text.only(node, "this", "unit")
        unit = node.args["unit"].name.lower()
        if unit not in tuple(TimePeriod):
            raise self.text.refuse(node, "A period is hour, day, week, month, quarter or year.")
        return InPeriod(self._time(node.this, cut=unit != "hour"), TimePeriod(unit))

    def _time(self, node: exp.Expr, *, cut: bool) -> Expression:
        """Read a date or time; where its day is enough, also one that was cast to a date."""
        tree = self._read(node)
        return tree.of if cut and isinstance(tree, InPeriod) and tree.period is TimePeriod.DAY else tree

    def _extract(self, node: exp.Expr) -> Expression:
        self.text.only(node, "this", "expression")
        return self._part(node, node.this.name, node.expression)

    def _part(self, node: exp.Expr, name: str, of: exp.Expr) -> Expression:
        if name.upper() not in DATE_PARTS:
            raise self.text.refuse(node, f"A part of a date is one of {', '.join(DATE_PARTS)}.")
        part = DATE_PARTS[name.upper()]
        return PartOf(self._time(of, cut=part not in (DatePart.HOUR, DatePart.MINUTE)), part)

    def _date_difference(self, node: exp.Expr) -> Expression:
        self.text.only(node, "this", "expression", "unit", "date_part_boundary")
        unit = node.args["unit"].name.upper() if node.args.get("unit") else "DAY"
        if unit not in TIME_UNITS:
            raise self.text.refuse(node, f"A difference of dates is in one of {', '.join(TIME_UNITS)}.")
        start, end = self._dated(self._read(node.expression), self._read(node.this))
        clocks = any(isinstance(each.kind(self.kinds), MomentKind) for each in (start, end))
        if clocks and unit != "SECOND":
            raise self.text.refuse(
                node,
                f"Of times this counts how often a new {unit.lower()} begins, and not how long it is. Write "
                "end - start, in days and parts of them, or DATE_DIFF('second', start, end).",
            )
        return TimeBetween(start=start, end=end, unit=TIME_UNITS[unit])

    def _substring(self, node: exp.Expr) -> Expression:
        self.text.only(node, "this", "start", "length", "expression")
        start = Fraction(1) if isinstance(node, exp.Left) else number_of(node.args.get("start"))
        length = number_of(node.expression if isinstance(node, exp.Left) else node.args.get("length"))
        if start is None or length is None or start.denominator != 1 or length.denominator != 1:
            raise self.text.refuse(node, "The start and the length of a part are whole numbers, written out.")
        return Substring(self._read(node.this), int(start), int(length))

    def _weekday(self, node: exp.Expr) -> Expression:
        self.text.only(node, "this")
        return InPeriod(self._time(node.this, cut=True), TimePeriod.WEEKDAY)

    def _letters(self, node: exp.Expr) -> Expression:
        self.text.only(node, "this")
        return Letters(self._read(node.this), "UPPER" if isinstance(node, exp.Upper) else "LOWER")

    def _named(self, node: exp.Expr) -> Expression:
        """Functions that SQL has no type of its own for."""
        self.text.only(node, "this", "expressions")
        name, arguments = node.name.upper(), node.expressions
        if name == "WEEKDAY" and len(arguments) == 1:
            raise self.text.refuse(
                node, "Databases count weekdays from unlike days. Write DAYNAME(x) or ISODOW(x)."
            )
        if name == "HOUR_OF_DAY" and len(arguments) == 1:
            return InPeriod(self._read(arguments[0]), TimePeriod.HOUR_OF_DAY)
        if name == "DATE_PART" and len(arguments) == 2 and isinstance(arguments[0], exp.Literal):
            return self._part(node, arguments[0].name, arguments[1])
        raise self.text.refuse(node, f"The function '{node.name}' is unknown here.")


_SPECIAL: Mapping[type[exp.Expr], Callable[[SqlRecords, Any], Expression]] = {
    exp.Between: SqlRecords._between,
    exp.In: SqlRecords._among,
    exp.Like: SqlRecords._like,
    exp.NullSafeEQ: SqlRecords._unlike,
    exp.NullSafeNEQ: SqlRecords._unlike,
    exp.Is: SqlRecords._is,
    exp.Case: SqlRecords._case,
    exp.If: SqlRecords._if,
    exp.Pow: SqlRecords._power,
    exp.Cast: SqlRecords._cast,
    exp.TimestampTrunc: SqlRecords._truncated,
    exp.DateTrunc: SqlRecords._truncated,
    exp.Extract: SqlRecords._extract,
    exp.DateDiff: SqlRecords._date_difference,
    exp.Substring: SqlRecords._substring,
    exp.Left: SqlRecords._substring,
    exp.Dayname: SqlRecords._weekday,
    exp.Upper: SqlRecords._letters,
    exp.Lower: SqlRecords._letters,
    exp.Anonymous: SqlRecords._named,
}


def _date_of(tree: Expression) -> date | None:
    """Return the date or time that a constant is, or that its text reads as."""
    if not isinstance(tree, Constant):
        return None
    found: object = tree.value
    if isinstance(found, str):
        try:
            found = datetime.fromisoformat(found) if len(found) >= len("2024-12-31") else None
        except ValueError:
            return None
        if isinstance(found, datetime) and (found.microsecond or found.tzinfo is not None):
            return None
    return found if isinstance(found, date) else None


def _ordered_keys(of: Expression, kind: KeyKind, sign: str, constant: Constant) -> Expression:
    """The comparison of a key with a constant by letters or size: which declared keys fulfil it is known."""
    value = constant.value
    fits = isinstance(value, str) == isinstance(kind.keys[0], str) and not isinstance(value, bool | date)
    if not fits:
        raise InvalidParameter(f"'{of.text}' is one of {kind.words}. Compare it with a key of theirs.")
    keys = tuple(key for key in kind.keys if COMPARE[sign](key, value))
    return Among(of, keys) if keys else Not(Among(of, kind.keys))


def _is_null(node: exp.Expr) -> bool:
    return isinstance(node.unnest(), exp.Null)


def _is_number(tree: Expression, kinds: Kinds) -> bool:
    return isinstance(tree.kind(kinds), NumberKind | DayKind | MomentKind)


def _word(node: exp.Expr) -> str:
    return node.key.upper()


# Constants that are written out in a question: numbers and texts.


_FARTHEST = 100  # digits of a number, before its point or after it


def value_of(node: exp.Expr) -> str | bool | Fraction | int:
    """A text, a truth value or a number."""
    if isinstance(node, exp.Boolean):
        return bool(node.this)
    return node.name if node.is_string else _number(node)


def literal_of(node: object) -> str | int | float | None:
    """A constant that is written out."""
    if isinstance(node, exp.Literal) and node.is_string:
        return str(node.name)
    number = number_of(node)
    return None if number is None else int(number) if number.denominator == 1 else float(number)


def number_of(node: object) -> Fraction | None:
    """A number that is written out."""
    if isinstance(node, exp.Neg):
        inner = number_of(node.this)
        return None if inner is None else -inner
    if isinstance(node, exp.Paren):
        return number_of(node.this)
    if isinstance(node, exp.Literal) and not node.is_string:
        return _number(node)
    return None


def _number(node: exp.Expr) -> Fraction:
    """What a number is that is written out; one of endless digits would take as long to read."""
    try:
        number = Decimal(node.name)
    except InvalidOperation:
        raise InvalidParameter("This number cannot be read. Write it like 1500 or 0.15.") from None
    if number and (abs(number.adjusted()) > _FARTHEST or len(number.as_tuple().digits) > _FARTHEST):
        raise InvalidParameter(f"A constant must be a number up to 1e{_FARTHEST} in size, and no longer.")
    return Fraction(number)
