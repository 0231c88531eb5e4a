"""A question in Python, built step by step: which records, by which keys, what, and with what weight."""

from dataclasses import dataclass, replace

from sourdine.core.errors import InvalidParameter
from sourdine.frames.expressions import All, ColumnValue, Expression
from sourdine.frames.schema import Schema
from sourdine.tables.asking.asked import AskedOf, flat, name_of
from sourdine.tables.asking.values import AskedColumn, AskedTruth
from sourdine.tables.comparison.show import EVERYTHING, RowOrder, Show
from sourdine.tables.comparison.steps import AnswerStep
from sourdine.tables.query import Query, with_expressions
from sourdine.tables.statistics import Statistic


@dataclass(frozen=True, kw_only=True)
class TableQuestion:
    """A question about a declared table. Each step gives another question, and this one stays as it is."""

    name: str
    schema: Schema
    conditions: tuple[Expression, ...] = ()
    keys: tuple[Expression, ...] = ()
    statistics: tuple[AskedOf | Statistic, ...] = ()
    heaviness: float = 1
    rows: Show = EVERYTHING

    def __repr__(self) -> str:
        by = f" by {', '.join(map(name_of, self.keys))}" if self.keys else ""
        where = f" where {' and '.join(each.text for each in self.conditions)}" if self.conditions else ""
        return f"<Question {self.name!r}{by}{where}; nothing is read or spent>"

    def where(self, *conditions: AskedTruth) -> "TableQuestion":
        """Of records for which all conditions are true."""
        trees: list[Expression] = []
        for each in conditions:
            if not isinstance(each, AskedTruth):
                raise InvalidParameter(
                    "A condition compares columns, as in c.age >= 18. In brackets, join several by & and |."
                )
            trees += each.tree.of if type(each.tree) is All else [each.tree]
        return self._checked(replace(self, conditions=(*self.conditions, *trees)))

    def by(self, *columns: AskedColumn) -> "TableQuestion":
        """For each key of some columns, or of what is computed of them."""
        for each in columns:
            if not isinstance(each, AskedColumn):
                raise InvalidParameter("Group by columns of the table, as in by(c.sex, c.seen.month()).")
        return self._checked(replace(self, keys=(*self.keys, *(each.tree for each in columns))))

    def get(self, *statistics: AskedOf | Statistic) -> "TableQuestion":
        """Statistics, such as c.pay.mean() or st.Count()."""
        for each in statistics:
            if not isinstance(each, AskedOf | Statistic):
                raise InvalidParameter(
                    "Ask for statistics, such as c.pay.mean() of a column or st.Count() of the records."
                )
        return self._checked(replace(self, statistics=(*self.statistics, *statistics)))

    def weight(self, weight: float) -> "TableQuestion":
        """With more or less of the budget than other questions, which have 1."""
        return self._checked(replace(self, heaviness=weight))

    def order_by(self, *labels: str, descending: bool = False) -> "TableQuestion":
        """Rows in the order of answers, by their labels, or of keys. It costs nothing."""
        orders = tuple(RowOrder(of=label, descending=descending) for label in labels)
        return replace(self, rows=self.rows.model_copy(update={"order": (*self.rows.order, *orders)}))

    def limit(self, count: int) -> "TableQuestion":
        """The first rows alone. All are measured and paid for."""
        return replace(self, rows=Show.model_validate({**self.rows.model_dump(), "limit": count}))

    def _checked(self, question: "TableQuestion") -> "TableQuestion":
        """Refuse what the columns cannot answer on the line that asks for it."""
        if question.statistics:
            query = question.query
            query.check(with_expressions(question.schema, [query]))
        return question

    @property
    def query(self) -> Query:
        """The query that it makes, as a specification or SQL would."""
        if not self.statistics:
            raise InvalidParameter(
                f"The question '{self.name}' asks for nothing yet. Add .get(st.Count()), or statistics of "
                "columns."
            )
        one_by_one = flat(self.statistics)
        keys = list(self.keys)
        for each in one_by_one:
            keys += [tree for tree in (each.groups if isinstance(each, AskedOf) else ()) if tree not in keys]
        trees = {tree.label: tree for tree in keys if not isinstance(tree, ColumnValue)}
        steps: list[AnswerStep] = []
        statistics: dict[str, Statistic] = {}
        for each in one_by_one:
            if isinstance(each, AskedOf):
                trees |= each.derived
                steps += each.steps
                statistics.setdefault(each.statistic.label, each.statistic)
            else:
                statistics.setdefault(each.label, each)
        return Query(
            self.name,
            list(statistics.values()),
            by=[name_of(tree) for tree in keys],
            where=list(self.conditions),
            derived=trees,
            compare=list(dict.fromkeys(steps)),
            show=self.rows,
            weight=self.heaviness,
        )
