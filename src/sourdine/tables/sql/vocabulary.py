"""The words of SQL that have a meaning for one record, and what to write instead of some others."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, SqlglotError

from sourdine.core.errors import InvalidParameter
from sourdine.core.text import tame
from sourdine.frames.expressions import (
    Absolute,
    Add,
    Ceiling,
    Coalesce,
    DatePart,
    Divide,
    Expression,
    Floor,
    Greatest,
    Least,
    Logarithm,
    Multiply,
    Negate,
    Not,
    NullIf,
    Root,
    Subtract,
)

BINARY: Mapping[type[exp.Expr], Callable[[Expression, Expression], Expression]] = {
    exp.Add: Add,
    exp.Sub: Subtract,
    exp.Mul: Multiply,
    exp.Div: Divide,
    exp.Nullif: NullIf,
}
UNARY: Mapping[type[exp.Expr], Callable[[Expression], Expression]] = {
    exp.Neg: Negate,
    exp.Abs: Absolute,
    exp.Floor: Floor,
    exp.Ceil: Ceiling,
    exp.Ln: Logarithm,
    exp.Sqrt: Root,
    exp.Not: Not,
}
SIGNS: Mapping[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
}
OPPOSITE = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
"""What a comparison is with its sides exchanged, where it is another one."""
VARIADIC: Mapping[type[exp.Expr], Callable[[tuple[Expression, ...]], Expression]] = {
    exp.Least: Least,
    exp.Greatest: Greatest,
    exp.Coalesce: Coalesce,
}
DATE_PARTS = {
    "YEAR": DatePart.YEAR,
    "QUARTER": DatePart.QUARTER,
    "MONTH": DatePart.MONTH,
    "WEEK": DatePart.WEEK,
    "DAY": DatePart.DAY_OF_MONTH,
    "DAYOFMONTH": DatePart.DAY_OF_MONTH,
    "ISODOW": DatePart.DAY_OF_WEEK,
    "HOUR": DatePart.HOUR,
    "MINUTE": DatePart.MINUTE,
}
DATE_FUNCTIONS: Mapping[type[exp.Expr], DatePart] = {
    exp.Year: DatePart.YEAR,
    exp.Quarter: DatePart.QUARTER,
    exp.Month: DatePart.MONTH,
    exp.Week: DatePart.WEEK,
    exp.Day: DatePart.DAY_OF_MONTH,
    exp.DayOfMonth: DatePart.DAY_OF_MONTH,
    exp.DayOfWeekIso: DatePart.DAY_OF_WEEK,
    exp.Hour: DatePart.HOUR,
    exp.Minute: DatePart.MINUTE,
}
TIME_UNITS = {"DAY": "days", "HOUR": "hours", "MINUTE": "minutes", "SECOND": "seconds"}
DATES = (exp.DType.DATE,)
TIMES = (exp.DType.TIMESTAMP, exp.DType.TIMESTAMPNTZ, exp.DType.DATETIME)
OF_OTHERS = (
    "Records would be computed from others, so that one person could move many. Release the inner question, "
    "and compute on its answer."
)
INSTEAD: Mapping[type[exp.Expr], str] = {
    exp.CurrentDate: "The same question would mean another tomorrow. Write the date: DATE '2024-01-31'.",
    exp.CurrentTimestamp: "The same question would mean another later. Write the time.",
    exp.Rand: "Randomness is drawn for the noise alone. Leave it out.",
    exp.Mod: "The remainder of a division is not computed. Group by FLOOR(x / n), or declare a column.",
    exp.IntDiv: "Write FLOOR(a / b).",
    exp.Round: "Write FLOOR(x + 0.5), or declare the column with that granularity.",
    exp.DPipe: "Texts are not joined: nobody could list the keys. Group by both columns.",
    exp.ILike: "Write LIKE, which tells capitals from small letters.",
    exp.Log: "Write LN(x), the natural logarithm; others are multiples of it.",
    exp.Exists: "Records would be chosen by others. Join before, and declare the table that comes of it.",
    exp.Subquery: OF_OTHERS,
    exp.Window: OF_OTHERS,
    exp.TimeToStr: "Write DATE_TRUNC('month', x) or EXTRACT(month FROM x).",
    exp.Placeholder: "Write the value: a question is kept as it was asked.",
}


# The text of an SQL question, and refusals that point at the words they are about.

_LONGEST = 20_000  # characters of a question
_SHOWN = 100  # of the line that a refusal shows
_EXPLAIN = re.compile(r"\s*explain\b", re.IGNORECASE)
_FOREIGN = re.compile(r"\bwith\s+(differential_privacy|anonymization)\b", re.IGNORECASE)


@dataclass(frozen=True)
class SqlText:
    """A question as somebody wrote it."""

    text: str

    def refuse(self, node: exp.Expr | None, sentence: str) -> InvalidParameter:
        """A refusal: what is wrong and what to ask instead, with a caret at the place."""
        span = None if node is None else _span(node)
        return self._pointed(sentence, span)

    def parse(self) -> tuple[exp.Select, bool]:
        """The one SELECT of a text, and whether only its plan is asked for.

        A question is read in DuckDB's dialect, so that `/` divides as numbers do.
        """
        if len(self.text) > _LONGEST:
            raise InvalidParameter(f"An SQL question has at most {_LONGEST:,} characters. Ask in parts.")
        if (foreign := _FOREIGN.search(self.text)) is not None:
            raise self._pointed(
                "This clause is not taken here. Epsilon, delta, the privacy unit and the bounds of columns "
                "are "
                "declared beside the table, where whoever asks cannot change them.",
                foreign.span(),
            )
        start = _EXPLAIN.match(self.text)
        # blanks in its place, so that carets stay where they are
        plain = self.text if start is None else " " * start.end() + self.text[start.end() :]
        try:
            statements = [each for each in sqlglot.parse(plain, read="duckdb") if each is not None]
        except ParseError as problem:
            raise self._unread(problem) from None
        except (SqlglotError, RecursionError):
            raise InvalidParameter("This is not SQL that can be read. Write one SELECT.") from None
        if len(statements) != 1:
            raise InvalidParameter("An SQL question is one SELECT. Ask one at a time.")
        (statement,) = statements
        if isinstance(statement, exp.SetOperation):
            raise self.refuse(
                statement,
                "One SELECT is one question. Ask each of these by itself; one plan takes several, and pays "
                "for all from one epsilon.",
            )
        if not isinstance(statement, exp.Select):
            raise self.refuse(
                statement, "Only SELECT is answered. Nothing is ever changed, and no other is run."
            )
        return statement, start is not None

    def only(self, node: exp.Expr, *names: str) -> None:
        """Refuse a node with any part that is not named: what is ignored would change the question."""
        for name, part in node.args.items():
            if part and name not in names:
                place = next(_nodes(part), node)
                words = name.rstrip("s_").replace("_", " ").upper()
                raise self.refuse(
                    place if _span(place) is not None else node,
                    f"'{words}' is not understood here. Leave it out, or ask in another way.",
                )

    def _unread(self, problem: ParseError) -> InvalidParameter:
        details = problem.errors[0] if problem.errors else {}
        line, column = details.get("line"), details.get("col")
        span = None
        if line and column:
            lines = self.text.splitlines(keepends=True)
            end = sum(map(len, lines[: line - 1])) + column
            span = max(0, end - len(details.get("highlight") or " ")), end
        return self._pointed("This cannot be read as SQL. Check the words near the mark.", span)

    def _pointed(self, sentence: str, span: tuple[int, int] | None) -> InvalidParameter:
        if span is None:
            return InvalidParameter(sentence)
        start, end = span
        first = self.text.rfind("\n", 0, start) + 1
        last = self.text.find("\n", start)
        line = self.text[first : len(self.text) if last < 0 else last]
        left = max(0, start - first - _SHOWN // 2)
        shown = tame(line[left : left + _SHOWN].replace("\t", " "))
        width = max(1, min(end, first + len(line)) - start)
        return InvalidParameter(f"{sentence}\n  {shown}\n  {' ' * (start - first - left)}{'^' * width}")


def _nodes(part: object) -> Iterator[exp.Expr]:
    if isinstance(part, exp.Expr):
        yield part
    elif isinstance(part, list):
        for each in part:
            yield from _nodes(each)


def _span(node: exp.Expr) -> tuple[int, int] | None:
    """From the first letter to the last that a node is known to stand at."""
    places = [each.meta for each in node.walk() if "start" in each.meta]
    if not places:
        return None
    return min(each["start"] for each in places), max(each["end"] for each in places) + 1
