"""How the answer to an SQL question is shown: HAVING, ORDER BY, LIMIT and AS, over released numbers alone."""

from collections.abc import Mapping, Sequence

from sqlglot import exp

from sourdine.frames.expressions import ColumnValue
from sourdine.tables.comparison.show import MOST_TERMS, RowFilter, RowOrder, Show
from sourdine.tables.sql.aggregates import Aggregates, is_aggregate
from sourdine.tables.sql.constants import literal_of, number_of
from sourdine.tables.sql.sources import Sources
from sourdine.tables.sql.vocabulary import SIGNS
from sourdine.tables.statistics import Quantiles

_OPPOSITE = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
_PAID = "all groups are measured and paid for; LIMIT and HAVING hide rows of the answer and save nothing"


class ShownRows(Sources):
    """Reads what is said of the rows of an answer."""

    def show(
        self,
        select: exp.Select,
        items: Sequence[tuple[exp.Expr, str]],
        labels: Mapping[str, str],
        keys: Sequence[str],
        aggregates: Aggregates,
    ) -> Show:
        having, order, limit = (select.args.get(word) for word in ("having", "order", "limit"))
        filters: list[RowFilter] = []
        if having is not None:
            self.text.only(having, "this")
            filters = self._filters(having.this, labels, keys, aggregates)
            if len(filters) > MOST_TERMS:
                raise self.text.refuse(having, f"HAVING takes at most {MOST_TERMS} conditions.")
        orders = []
        if order is not None:
            self.text.only(order, "expressions")
            if len(order.expressions) > MOST_TERMS:
                raise self.text.refuse(order, f"ORDER BY takes at most {MOST_TERMS} terms. Leave some out.")
            for each in order.expressions:
                self.text.only(each, "this", "desc", "nulls_first")
                of = self._reference(each.this, items, labels, keys, aggregates)
                orders.append(RowOrder(of=of, descending=bool(each.args.get("desc"))))
        most = None if limit is None else self.limit(limit)
        if filters or most is not None:
            aggregates.notes.append(_PAID)
        names = self._names(items, labels, aggregates)
        return Show(having=tuple(filters), order=tuple(orders), limit=most, names=names)

    def _names(
        self, items: Sequence[tuple[exp.Expr, str]], labels: Mapping[str, str], aggregates: Aggregates
    ) -> dict[str, str]:
        """What AS calls answers, where it is the name of one answer, and no other thing has it."""
        called: dict[str, set[str]] = {}
        for node, alias in items:
            label = labels.get(alias or node.sql())
            if label is not None:
                called.setdefault(label, set()).add(self.free(alias, aggregates))
        names = {label: max(each) for label, each in called.items() if len(each) == 1 and max(each)}
        several = {  # rows of one answer
            label
            for label, each in aggregates.statistics.items()
            if each.adds and not (isinstance(each, Quantiles) and len(each.levels) == 1)
        }
        taken = {*aggregates.statistics, *aggregates.steps, *aggregates.keys}
        return {
            label: name
            for label, name in names.items()
            if label not in several and (name == label or name not in taken)
        }

    def limit(self, node: exp.Expr) -> int:
        self.text.only(node, "expression")
        number = number_of(node.expression)
        if number is None or number.denominator != 1 or number < 1:
            raise self.text.refuse(node, "LIMIT is a whole number above 0, written out.")
        return int(number)

    def _reference(
        self,
        node: exp.Expr,
        items: Sequence[tuple[exp.Expr, str]],
        labels: Mapping[str, str],
        keys: Sequence[str],
        aggregates: Aggregates,
    ) -> str:
        """The answer, or the key, that a word in ORDER BY or HAVING means."""
        if isinstance(node, exp.Literal) and not node.is_string and node.name.isdigit():
            return self._reference(items[self.place(node, items)][0], items, labels, keys, aggregates)
        if isinstance(node, exp.Column) and node.name in labels:
            return labels[node.name]
        if any(map(is_aggregate, node.walk())):
            return aggregates.label(node)
        if isinstance(node, exp.Column) and node.name in keys:
            return node.name
        tree = aggregates.records.read(node)
        for each in keys:
            if aggregates.derived.get(each, ColumnValue(each)) == tree:
                return each
        raise self.text.refuse(node, "Sort and filter by what SELECT asks for, or by what is grouped by.")

    def _filters(
        self,
        node: exp.Expr,
        labels: Mapping[str, str],
        keys: Sequence[str],
        aggregates: Aggregates,
        opposite: bool = False,
    ) -> list[RowFilter]:
        node = node.unnest()
        if isinstance(node, exp.Not):
            return self._filters(node.this, labels, keys, aggregates, opposite=not opposite)
        if isinstance(node, exp.And) and not opposite:
            return [
                each
                for part in (node.this, node.expression)
                for each in self._filters(part, labels, keys, aggregates)
            ]
        if isinstance(node, exp.Or) and opposite:  # neither of both
            return [
                each
                for part in (node.this, node.expression)
                for each in self._filters(part, labels, keys, aggregates, opposite=True)
            ]
        if isinstance(node, exp.Between) and not opposite:
            self.text.only(node, "this", "low", "high")
            ends = ((exp.GTE, "low"), (exp.LTE, "high"))
            return [
                each
                for sign, end in ends
                for each in self._filters(
                    sign(this=node.this, expression=node.args[end]), labels, keys, aggregates
                )
            ]
        if isinstance(node, exp.Or | exp.And | exp.Between | exp.In):
            raise self.text.refuse(
                node,
                "HAVING joins comparisons by AND. Leave this out and choose among the rows of the answer, "
                "which costs the same: all groups are measured in any case.",
            )
        if type(node) not in SIGNS:
            raise self.text.refuse(node, "HAVING compares answers or keys with constants, joined by AND.")
        self.text.only(node, "this", "expression")
        left, right, sign = node.this, node.expression, SIGNS[type(node)]
        if literal_of(left) is not None:
            left, right = right, left
            sign = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}.get(sign, sign)
        value = literal_of(right)
        if value is None:
            raise self.text.refuse(right, "HAVING compares with constants.")
        of = self._reference(left, [], labels, keys, aggregates)
        return [RowFilter(of=of, sign=_OPPOSITE[sign] if opposite else sign, value=value)]  # type: ignore[arg-type]

    def place(self, node: exp.Expr, items: Sequence[tuple[exp.Expr, str]]) -> int:
        """The place of an item that is named by its number."""
        place = number_of(node)
        if place is None or not 1 <= place <= len(items):
            raise self.text.refuse(node, f"SELECT has {len(items)} columns. Name one of them.")
        return int(place) - 1

    def declared(self, name: str, aggregates: Aggregates) -> bool:
        return any(each.casefold() == name.casefold() for each in aggregates.records.columns)

    def free(self, alias: str, aggregates: Aggregates) -> str:
        """What AS says, or nothing if a column of the question or of the table is called so."""
        names = (*self.table.schema.columns, self.table.unit.column or "")
        taken = self.declared(alias, aggregates) or alias.casefold() in (each.casefold() for each in names)
        return "" if taken else alias
