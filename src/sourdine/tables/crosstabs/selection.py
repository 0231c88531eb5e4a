"""Which answer of a release a crosstab shows."""

from collections.abc import Sequence

from sourdine.core.errors import InvalidParameter
from sourdine.tables.answers.answer import Answer
from sourdine.tables.query import Query
from sourdine.tables.statistics import Contingency

_LISTED = 8


def select(
    answers: Sequence[Answer], rows: str, columns: str, query: str | None = None, statistic: str | None = None
) -> Answer:
    """The one answer that has both columns among its keys."""
    if rows == columns:
        raise InvalidParameter(f"Rows and columns are both of '{rows}'. Name two columns.")
    fit = [each for each in answers if {rows, columns} <= set(each.columns)]
    matching = [each for each in fit if query in (None, each.query) and statistic in (None, each.statistic)]
    if len(matching) == 1:
        return matching[0]
    if matching:
        raise InvalidParameter(
            f"Several answers have keys of '{rows}' and '{columns}': {_names(matching)}. "
            "Name one by query= and statistic=."
        )
    if fit:
        raise InvalidParameter(
            f"No answer of that name has keys of '{rows}' and '{columns}'. These have them: {_names(fit)}."
        )
    crossed = [each for each in answers if len(each.columns) > 1]
    have = f" These have two columns or more: {_names(crossed)}." if crossed else ""
    raise InvalidParameter(
        f"No answer has keys of both '{rows}' and '{columns}'.{have} Ask by both, or for their Contingency."
    )


def adds_up(queries: Sequence[Query], answer: Answer) -> bool:
    """Whether the sums of an answer were measured too, by the query that asked for it."""
    statistics = (each for query in queries if query.name == answer.query for each in query.ask)
    return any(
        isinstance(each, Contingency) and each.consistent and each.label == answer.statistic
        for each in statistics
    )


def _names(answers: Sequence[Answer]) -> str:
    listed = [f"{each.statistic!r} of {each.query!r} by {', '.join(each.columns)}" for each in answers]
    return "; ".join(listed[:_LISTED]) + ("; …" if len(listed) > _LISTED else "")
