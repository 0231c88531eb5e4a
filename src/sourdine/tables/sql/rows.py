"""How the answer to an SQL question is shown: HAVING, ORDER BY, LIMIT and AS, over released numbers alone."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType

from sqlglot import exp

from sourdine.frames.expressions import ColumnValue, KeyKind, Like, TimePeriod
from sourdine.frames.expressions.times import start_of
from sourdine.tables.comparison.show import MOST_TERMS, AnyFilter, RowFilter, RowKeys, RowOrder, Show
from sourdine.tables.sql.aggregates import Aggregates, is_aggregate
from sourdine.tables.sql.constants import literal_of, number_of
from sourdine.tables.sql.sources import Sources
from sourdine.tables.sql.vocabulary import DATES, OPPOSITE, SIGNS, TIMES, TURNED
from sourdine.tables.statistics import Quantiles

Clauses = list[tuple[RowFilter | RowKeys, ...]]
_NAMED_PERIODS = (TimePeriod.WEEKDAY, TimePeriod.HOUR_OF_DAY)
_PAID = "all groups are measured and paid for; LIMIT and HAVING hide rows of the answer and save nothing"


class ShownRows(Sources):
    """Reads HAVING, ORDER BY and LIMIT."""

    shown: Mapping[str, str] = MappingProxyType({})  # functions of keys that take their place

    def show(
        self,
        select: exp.Select,
        items: Sequence[tuple[exp.Expr, str]],
        labels: Mapping[str, str],
        keys: Sequence[str],
        aggregates: Aggregates,
    ) -> Show:
        having, order, limit = (select.args.get(word) for word in ("having", "order", "limit"))
        filters: list[RowFilter | RowKeys | AnyFilter] = []
        if having is not None:
            self.text.only(having, "this")
            filters = self._filters(having.this, items, labels, keys, aggregates)
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
                kind = self._kind_of(of, aggregates)
                # periods are in their order, and other keys in that of their letters or numbers
                by_value = kind is not None and (
                    list(kind.keys) != sorted(kind.keys)
                    and (kind.period is None or kind.period in _NAMED_PERIODS)
                )
                orders.append(RowOrder(of=of, descending=bool(each.args.get("desc")), by_value=by_value))
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
        node = node.unnest()
        if isinstance(node, exp.Literal) and not node.is_string and node.name.isdigit():
            return self._reference(items[self.place(node, items)][0], [], labels, keys, aggregates)
        if isinstance(node, exp.Column) and not node.table and (of := self._aliased(node, items)) is not None:
            return self._reference(of, [], labels, keys, aggregates)
        if any(map(is_aggregate, node.walk())):
            return aggregates.label(node)
        if isinstance(node, exp.Column) and not node.table and node.name in keys:
            return node.name
        tree = aggregates.records.read(node)
        shown = {tree_of: name for name, tree_of in aggregates.derived.items() if name in self.shown.values()}
        if (key := aggregates.key_of(tree, keys)) is not None:
            return self.shown.get(key, key)
        if tree in shown:
            return shown[tree]
        raise self.text.refuse(node, "Sort and filter by what SELECT asks for, or by what is grouped by.")

    def _aliased(self, node: exp.Column, items: Sequence[tuple[exp.Expr, str]]) -> exp.Expr | None:
        """The item of SELECT that a name after AS means; capitals do not matter."""
        named = [each for each, alias in items if alias.casefold() == node.name.casefold()]
        if any(each != named[0] for each in named[1:]):
            raise self.text.refuse(node, f"SELECT gives two things the name '{node.name}'. Rename one.")
        return named[0] if named else None

    def _clauses(self, node: exp.Expr, atom: Callable[[exp.Expr, bool], Clauses], opposite: bool) -> Clauses:
        """A condition as clauses that all hold; in each at least one filter does.

        NOT goes inwards, which changes nothing since an answer and a shown key are never missing.
        """
        node = node.unnest()
        if isinstance(node, exp.Not):
            return self._clauses(node.this, atom, not opposite)
        if isinstance(node, exp.Between):
            self.text.only(node, "this", "low", "high")
            low, high = (
                sign(this=node.this, expression=node.args[end])
                for sign, end in ((exp.GTE, "low"), (exp.LTE, "high"))
            )
            node = exp.And(this=low, expression=high)
        if not isinstance(node, exp.And | exp.Or):
            return atom(node, opposite)
        self.text.only(node, "this", "expression")
        one, other = (self._clauses(part, atom, opposite) for part in (node.this, node.expression))
        if isinstance(node, exp.And) != opposite:
            return [*one, *other]
        if len(one) * len(other) > MOST_TERMS:
            raise self.text.refuse(node, f"HAVING takes at most {MOST_TERMS} conditions.")
        return [(*some, *others) for some in one for others in other]

    def _filters(
        self,
        node: exp.Expr,
        items: Sequence[tuple[exp.Expr, str]],
        labels: Mapping[str, str],
        keys: Sequence[str],
        aggregates: Aggregates,
    ) -> list[RowFilter | RowKeys | AnyFilter]:
        def atom(part: exp.Expr, opposite: bool) -> Clauses:
            return self._compared(
                part,
                opposite,
                lambda each: self._named_in_having(each, items, labels, keys, aggregates),
                aggregates,
            )

        found: list[RowFilter | RowKeys | AnyFilter] = []
        for clause in self._clauses(node, atom, opposite=False):
            if len(clause) > MOST_TERMS:
                raise self.text.refuse(node, f"HAVING takes at most {MOST_TERMS} conditions.")
            found.append(clause[0] if len(clause) == 1 else AnyFilter(any=clause))
        return found

    def _named_in_having(
        self,
        node: exp.Expr,
        items: Sequence[tuple[exp.Expr, str]],
        labels: Mapping[str, str],
        keys: Sequence[str],
        aggregates: Aggregates,
    ) -> str:
        """In HAVING a column that is grouped by comes before a name after AS."""
        if isinstance(node, exp.Column) and self.declared(node.name, aggregates):
            grouped = aggregates.key_of(aggregates.records.read(node), keys) is not None
            items = [] if grouped else items
        return self._reference(node, items, labels, keys, aggregates)

    def _compared(
        self,
        node: exp.Expr,
        opposite: bool,
        reference: Callable[[exp.Expr], str],
        aggregates: Aggregates,
    ) -> Clauses:
        """One comparison of HAVING, or the opposite of it."""
        if isinstance(node, exp.In):
            self.text.only(node, "this", "expressions")
            values = [self._constant(each) for each in node.expressions]
            of = reference(node.this)
            parts = [self._filter(of, "<>" if opposite else "=", value, aggregates, node) for value in values]
            return [(each,) for each in parts] if opposite else [tuple(parts)]
        if isinstance(node, exp.NullSafeEQ | exp.NullSafeNEQ):
            sign = exp.EQ if isinstance(node, exp.NullSafeEQ) else exp.NEQ
            node = sign(this=node.this, expression=node.expression)
        if isinstance(node, exp.Like):
            return [(self._like(node, opposite, reference(node.this), aggregates),)]
        if type(node) not in SIGNS:
            raise self.text.refuse(
                node, "HAVING compares answers or keys with constants, joined by AND, OR and NOT."
            )
        self.text.only(node, "this", "expression")
        left, right, sign_of = node.this, node.expression, SIGNS[type(node)]
        if self._is_constant(left):
            left, right = right, left
            sign_of = TURNED.get(sign_of, sign_of)
        value = self._constant(right)
        sign_of = OPPOSITE[sign_of] if opposite else sign_of
        return [(self._filter(reference(left), sign_of, value, aggregates, node),)]

    def _is_constant(self, node: exp.Expr) -> bool:
        dated = isinstance(node, exp.Cast) and isinstance(node.this, exp.Literal)
        return dated or isinstance(node, exp.Boolean) or literal_of(node.unnest()) is not None

    def _constant(self, node: exp.Expr) -> str | int | float | bool:
        node = node.unnest()
        if isinstance(node, exp.Boolean):
            return bool(node.this)
        if (
            isinstance(node, exp.Cast)
            and isinstance(node.this, exp.Literal)
            and node.args["to"].this in (*DATES, *TIMES)
        ):
            return str(node.this.name)
        value = literal_of(node)
        if value is None:
            raise self.text.refuse(node, "HAVING compares with constants.")
        return value

    def _filter(
        self, of: str, sign: str, value: str | int | float | bool, aggregates: Aggregates, node: exp.Expr
    ) -> RowFilter | RowKeys:
        """A comparison of an answer or a key; periods are compared by when they begin."""
        kind = self._kind_of(of, aggregates)
        if kind is None or kind.period is None or kind.period in _NAMED_PERIODS:
            return RowFilter(of=of, sign=sign, value=value)  # type: ignore[arg-type]
        if value in kind.keys and sign in ("=", "<>"):
            return RowFilter(of=of, sign=sign, value=value)  # type: ignore[arg-type]
        try:
            at = datetime.fromisoformat(str(value))
        except ValueError:
            at = None
        if at is None or at.tzinfo is not None:
            raise self.text.refuse(node, "A period is compared with a date, such as DATE '2024-01-31'.")
        test = RowFilter(of=of, sign=sign, value=at.isoformat())  # type: ignore[arg-type]
        starts = {str(key): start_of(str(key)) for key in kind.keys}
        kept = [key for key, start in starts.items() if start and test.keeps(start.isoformat())]
        return RowKeys(of=of, keys=tuple(kept))

    def _like(self, node: exp.Like, opposite: bool, of: str, aggregates: Aggregates) -> RowKeys:
        self.text.only(node, "this", "expression", "negate")
        kind = self._kind_of(of, aggregates)
        if kind is None or not isinstance(kind.keys[0], str) or not isinstance(node.expression, exp.Literal):
            raise self.text.refuse(node, "In HAVING LIKE takes a key that is a declared text, and a pattern.")
        like = Like(ColumnValue(of), node.expression.name)
        wanted = bool(node.args.get("negate")) == opposite
        return RowKeys(of=of, keys=tuple(key for key in kind.keys if like.fits(str(key)) == wanted))

    def _kind_of(self, of: str, aggregates: Aggregates) -> KeyKind | None:
        """The keys that something is grouped by, where they are declared."""
        if of in aggregates.statistics or of in aggregates.steps:
            return None
        tree = aggregates.derived.get(of)
        if tree is None and of not in self.kinds:
            return None
        kind = (ColumnValue(of) if tree is None else tree).kind(self.kinds)
        return kind if isinstance(kind, KeyKind) else None

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
