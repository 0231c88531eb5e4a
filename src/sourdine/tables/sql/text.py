"""The text of an SQL question, and refusals that point at the words they are about."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, SqlglotError

from sourdine.core.errors import InvalidParameter
from sourdine.core.text import tame

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
