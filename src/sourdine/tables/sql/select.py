"""From one SELECT to a query: which records, by which keys, what is asked, and how it is shown."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from types import MappingProxyType

from sqlglot import exp

from sourdine.core.errors import InvalidParameter
from sourdine.core.text import tame
from sourdine.frames.expressions import (
    All,
    Among,
    Case,
    ColumnValue,
    Constant,
    DayKind,
    Expression,
    InPeriod,
    KeyKind,
    Kinds,
    Like,
    Matched,
    MomentKind,
    TimeBetween,
    TimePeriod,
    columns_present,
    may_be_missing,
    walk,
)
from sourdine.frames.expressions.conditions import OfKey
from sourdine.frames.expressions.times import start_of
from sourdine.frames.joins import Join
from sourdine.frames.schema import DERIVED, PrivacyUnit, Schema
from sourdine.frames.times import Date
from sourdine.tables.measurement import plural
from sourdine.tables.query import Query
from sourdine.tables.shown_rows import EVERYTHING, MOST_TERMS, AnyFilter, RowFilter, RowKeys, RowOrder, Show
from sourdine.tables.sql.aggregates import Aggregates, is_aggregate
from sourdine.tables.sql.record import SqlRecords, literal_of, number_of
from sourdine.tables.sql.vocabulary import DATES, OF_OTHERS, OPPOSITE, SIGNS, TIMES, TURNED, SqlText
from sourdine.tables.statistics import Contingency, Quantiles, Statistic, Top

# Which records a FROM gives: of the declared table, of a SELECT that folds into it, with public tables.


@dataclass(frozen=True, kw_only=True)
class SqlTable:
    """What a question may be about: a declared table, whose records it is, and public tables beside it."""

    schema: Schema
    unit: PrivacyUnit
    joins: tuple[Join, ...] = ()


@dataclass(frozen=True)
class RecordScope:
    """The records that a FROM gives: what their columns are computed by, and which of them count."""

    columns: Mapping[str, Expression]
    where: tuple[Expression, ...] = ()
    tables: frozenset[str] = frozenset()
    brought: Mapping[str, Mapping[str, Expression]] = field(default_factory=dict)
    matched: Mapping[tuple[str, str], Matched] = field(default_factory=dict)


class Sources:
    """Reads FROM, JOIN, WHERE and WITH."""

    def __init__(self, text: SqlText, table: SqlTable) -> None:
        self.text, self.table = text, table
        self.steps: dict[str, RecordScope] = {}
        self.later: set[str] = set()  # names that WITH gives further on

    @property
    def kinds(self) -> Kinds:
        return self.table.schema.kinds

    def records(self, scope: RecordScope) -> SqlRecords:
        return SqlRecords(
            text=self.text,
            columns=scope.columns,
            kinds=self.kinds,
            tables=scope.tables,
            unit=self.table.unit.column,
            brought=scope.brought,
            matched=scope.matched,
            present=frozenset(scope.where),
            lacking=self._lacking(scope),
        )

    def _lacking(self, scope: RecordScope) -> frozenset[str]:
        """Return the columns that may be missing in a record that counts."""
        columns = self.table.schema.columns

        def lacks(name: str) -> bool:
            column = columns[name]
            if isinstance(column, DERIVED):
                return may_be_missing(column.expression, lacks)
            return getattr(column, "missing", "drop") == "drop"

        present: set[str] = set().union(*map(columns_present, scope.where))
        return frozenset(name for name in columns if name not in present and lacks(name))

    def scope(self, select: exp.Select) -> RecordScope:
        """The records of a SELECT, after WHERE."""
        source = select.args.get("from_")
        if source is None:
            raise self.text.refuse(select, "Name the table: SELECT ... FROM people.")
        self.text.only(source, "this")
        scope = self._source(source.this)
        for join in select.args.get("joins") or []:
            scope = self._joined(scope, join)
        if (where := select.args.get("where")) is not None:
            self.text.only(where, "this")
            tree = self.records(scope).read(where.this)
            parts = tree.of if type(tree) is All else (tree,)
            scope = replace(scope, where=(*scope.where, *parts))
        return scope

    def _source(self, node: exp.Expr) -> RecordScope:
        if isinstance(node, exp.Subquery):
            self.text.only(node, "this", "alias")
            return self._renamed(self._inner(node.this), node.alias)
        if not isinstance(node, exp.Table) or not isinstance(node.this, exp.Identifier):
            raise self.text.refuse(node, "Only declared tables are read. Name the table.")
        if node.args.get("sample"):
            raise self.text.refuse(
                node, "Sampling in the engine is not secret, and makes no answer more private. Leave it out."
            )
        self.text.only(node, "this", "alias")
        if (step := self.steps.get(node.name.casefold())) is not None:
            return self._renamed(step, node.alias or node.name)
        if node.name.casefold() in self.later:
            raise self.text.refuse(node, f"WITH names '{node.name}' only further on. Put it first.")
        if not node.name.isidentifier():
            raise self.text.refuse(node, "Only the declared table is read, and no file. Name it by a word.")
        if any(join.name.casefold() == node.name.casefold() for join in self.table.joins):
            raise self.text.refuse(
                node,
                f"'{node.name}' is a public table beside the private one. Ask FROM the private one and JOIN "
                "it.",
            )
        columns = {name: ColumnValue(name) for name in self.table.schema.columns}
        return self._renamed(RecordScope(columns=columns), node.alias or node.name)

    def _renamed(self, scope: RecordScope, alias: str) -> RecordScope:
        return replace(scope, tables=frozenset({alias.casefold()}) if alias else frozenset())

    def _inner(self, node: exp.Expr) -> RecordScope:
        """A SELECT that chooses records and computes columns of each, and nothing else."""
        if not isinstance(node, exp.Select):
            raise self.text.refuse(node, "Only a SELECT may stand here.")
        if node.args.get("group") or any(each.find(exp.AggFunc) for each in node.expressions):
            raise self.text.refuse(
                node.args.get("group") or node,
                OF_OTHERS,
            )
        for word in ("distinct", "order", "limit", "having"):
            if node.args.get(word):
                raise self.text.refuse(
                    node.args[word], f"{word.upper()} inside would choose records by others. Leave it out."
                )
        self.text.only(node, "expressions", "from_", "joins", "where")
        scope = self.scope(node)
        records = self.records(scope)
        columns: dict[str, Expression] = {}
        for each in node.expressions:
            if isinstance(each, exp.Star):  # no column of it is left out or computed
                columns.update(scope.columns)
                continue
            inner = each.this if isinstance(each, exp.Alias) else each
            columns[each.alias_or_name or inner.sql()] = records.read(inner)
        return replace(scope, columns=columns)

    def _joined(self, scope: RecordScope, node: exp.Join) -> RecordScope:
        self.text.only(node, "this", "on", "side", "kind", "using")
        target = node.this
        if isinstance(target, exp.Table) and isinstance(target.this, exp.Identifier):
            self.text.only(target, "this", "alias")
        named = isinstance(target, exp.Table) and target.name
        join = next(
            (each for each in self.table.joins if named and each.name.casefold() == named.casefold()), None
        )
        if join is None or join.name.casefold() in self.steps:
            raise self.text.refuse(
                target,
                "Only a declared public table is joined: of another, one person could meet many records. "
                "Join "
                "before and declare the unit, or declare the table under joins.",
            )
        side, kind = (str(node.args.get(word) or "").upper() for word in ("side", "kind"))
        if side not in ("", "LEFT") or kind not in ("", "INNER", "OUTER"):
            raise self.text.refuse(node, "A public table is joined by JOIN or LEFT JOIN, on its key.")
        self._check_key(scope, node, join)
        alias = (target.alias or target.name).casefold()
        left, matched = side == "LEFT", Matched(join.name)
        declared = self.table.schema.columns
        own = {name: scope.columns.get(name, ColumnValue(name)) for name in (ours for ours, _ in join.on)}
        # a record without a match has NULL there, whatever missing cells of the column count as
        brought: dict[str, Expression] = {
            name: Case(((matched, ColumnValue(name)),))
            if left and getattr(declared.get(name), "missing", "drop") != "drop"
            else ColumnValue(name)
            for name in join.columns
        }
        names = {name.casefold(): tree for name, tree in brought.items()}
        names |= {
            theirs.casefold(): Case(((matched, own[ours]),)) if left else own[ours]
            for ours, theirs in join.on
        }
        known = {name: tree for name, tree in brought.items() if name in declared}
        return replace(
            scope,
            columns={
                **known,
                **{
                    name: tree
                    for name, tree in scope.columns.items()
                    if tree != ColumnValue(name) or name not in known
                },
            },
            where=scope.where if left else (*scope.where, matched),
            tables=scope.tables | {alias},
            brought={**scope.brought, alias: names},
            matched={**scope.matched, **{(alias, theirs.casefold()): matched for _, theirs in join.on}},
        )

    def _check_key(self, scope: RecordScope, node: exp.Join, join: Join) -> None:
        """The columns that are compared must be those that are declared."""
        for ours, _ in join.on:
            if scope.columns.get(ours, ColumnValue(ours)) != ColumnValue(ours):
                raise self.text.refuse(node, f"'{ours}' is another column here. Join on that of the table.")
        wanted = {frozenset((ours.casefold(), theirs.casefold())) for ours, theirs in join.on}
        columns = set()
        if using := node.args.get("using"):
            columns = {frozenset((each.name.casefold(),)) for each in using}
        elif (on := node.args.get("on")) is not None:
            for each in on.flatten() if isinstance(on, exp.And) else [on]:
                if isinstance(each, exp.EQ) and all(
                    isinstance(side, exp.Column) for side in each.iter_expressions()
                ):
                    columns.add(frozenset((each.this.name.casefold(), each.expression.name.casefold())))
                else:
                    raise self.text.refuse(
                        each, "A public table is joined where its key is equal, and nothing else."
                    )
        if columns != wanted:
            condition = " AND ".join(f"{ours} = {join.name}.{theirs}" for ours, theirs in join.on)
            raise self.text.refuse(
                node.args.get("on") or node,
                f"On a key that may repeat a record would count several times. Join '{join.name}' on its "
                "declared "
                f"key: {condition}.",
            )

    def name_steps(self, node: exp.Expr | None) -> None:
        """The named SELECTs of a WITH."""
        if node is None:
            return
        self.text.only(node, "expressions")
        names = [each.alias.casefold() for each in node.expressions]
        for place, each in enumerate(node.expressions):
            self.text.only(each, "this", "alias")
            if names[place] in self.steps:
                raise self.text.refuse(each, f"WITH names '{each.alias}' twice. Rename one.")
            # a step sees those before it, and by its own name what was called so before
            self.later = set(names[place + 1 :])
            self.steps[names[place]] = self._inner(each.this)


# How the answer to an SQL question is shown: HAVING, ORDER BY, LIMIT and AS, over released numbers alone.


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


_SELECT = (
    "expressions",
    "distinct",
    "from_",
    "joins",
    "where",
    "group",
    "having",
    "order",
    "limit",
    "with_",
    "operation_modifiers",
)


@dataclass(frozen=True, kw_only=True)
class SqlQuestion:
    """A question that was read: the query it makes, whether only its plan is asked for, and what to know."""

    query: Query
    explain: bool = False
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        asks = ", ".join(each.label for each in self.query.ask)
        by = f" by {', '.join(self.query.by)}" if self.query.by else ""
        return tame(f"<Question '{self.query.name}': {asks}{by}; nothing is read or spent>")


def read_sql(text: object, table: SqlTable, name: str = "sql") -> SqlQuestion:
    """The query of an SQL text. Its words never reach an engine: they become our own expressions.

    >>> from sourdine.frames import PrivacyUnit, Schema
    >>> schema = Schema.read({"age": {"type": "integer", "lower": 0, "upper": 120}})
    >>> asked = "SELECT AVG(age) FROM people WHERE age >= 18"
    >>> read_sql(asked, SqlTable(schema=schema, unit=PrivacyUnit())).query.ask[0].label
    'mean of age'
    """
    if not isinstance(text, str):
        raise InvalidParameter(f"An SQL question is a text. Got a {type(text).__name__}.")
    sql = SqlText(text)
    select, explain = sql.parse()
    try:
        return replace(_Reader(sql, table).question(select, name), explain=explain)
    except RecursionError:
        raise InvalidParameter("This SQL is nested too deeply. Write it flatter, or ask in parts.") from None


def read_block(block: Mapping[str, object], table: SqlTable) -> SqlQuestion:
    """The question of a `[[queries]]` block with its name, `sql` and perhaps a weight."""
    unknown = [field for field in block if field not in ("name", "sql", "weight")]
    if unknown:
        raise InvalidParameter(
            f"A query in SQL has a name, sql and a weight, and here is '{unknown[0]}' too. Say it in the SQL."
        )
    name = block.get("name", "sql")
    if not isinstance(name, str) or not name:
        raise InvalidParameter("The name of a query must be a text in quotes.")
    question = read_sql(block["sql"], table, name)
    if question.explain:
        raise InvalidParameter("EXPLAIN asks for a plan, which 'sourdine plan' prints. Leave it out.")
    if "weight" in block:
        fields = {**question.query.model_dump(), "weight": block["weight"]}
        question = replace(question, query=Query.read({**fields, "name": name}))
    return question


class _Reader(ShownRows):
    """Reads the outermost SELECT."""

    def question(self, select: exp.Select, name: str) -> SqlQuestion:
        """The query of the outermost SELECT."""
        for word, sentence in {
            "windows": "Records would be computed from others, so that one person could move many.",
            "qualify": "QUALIFY looks at other records. Leave it out.",
        }.items():
            if select.args.get(word):
                place = select.args[word]
                raise self.text.refuse(place if isinstance(place, exp.Expr) else select, sentence)
        self.text.only(select, *_SELECT)
        for star in select.find_all(exp.Star):  # EXCLUDE and REPLACE
            self.text.only(star)
        for alias in select.find_all(exp.TableAlias):  # other names for columns
            self.text.only(alias, "this")
        self.name_steps(select.args.get("with_"))
        if not select.expressions:
            raise self.text.refuse(select, "Say what to ask for, such as SELECT COUNT(*) FROM people.")
        scope = self.scope(select)
        aggregates = Aggregates(self.records(scope))
        items = [
            (each.this, each.alias) if isinstance(each, exp.Alias) else (each, "")
            for each in select.expressions
        ]
        self._check_items(items)
        aggregates.alone = sum(map(is_aggregate, select.walk())) == 1
        distinct = self._distinct(select, items)
        keys, rolled = self._keys(select.args.get("group"), items, aggregates)
        if distinct and not select.args.get("group"):
            keys = [self._key(each, items, aggregates) for each, _ in items]
        if select.args.get("distinct") and not distinct:
            self._check_distinct(select, items, [*keys, *rolled], aggregates)
        keys = list(dict.fromkeys(keys))
        aggregates.keys = keys
        if (top := self._top(select, items, keys, aggregates)) is not None:
            return self._query(name, scope, aggregates, (top,))
        labels, shown = self._labels(items, [*keys, *rolled], aggregates)
        if rolled:
            return self._query(name, scope, aggregates, (self._table(rolled, aggregates, select),))
        self.shown = shown
        show = self.show(select, items, labels, keys, aggregates)
        if distinct:
            show = self._occurring(select, show, aggregates)
        if not aggregates.statistics:
            raise self.text.refuse(select.expressions[0], "Ask for an aggregate too, such as COUNT(*).")
        by = tuple(shown.get(each, each) for each in keys)
        return self._query(name, scope, aggregates, tuple(aggregates.statistics.values()), by=by, show=show)

    def _distinct(self, select: exp.Select, items: Sequence[tuple[exp.Expr, str]]) -> bool:
        """Return whether keys that occur are asked for: SELECT DISTINCT without an aggregate."""
        distinct = select.args.get("distinct")
        if not distinct:
            return False
        self.text.only(distinct)
        return not any(_computed(node) for node, _ in items) and not select.args.get("group")

    def _check_distinct(
        self,
        select: exp.Select,
        items: Sequence[tuple[exp.Expr, str]],
        keys: Sequence[str],
        aggregates: Aggregates,
    ) -> None:
        """Refuse DISTINCT where rows may be alike: where a key that is grouped by is not shown."""
        trees = [aggregates.records.read(node) for node, _ in items if not _computed(node)]
        shown = {aggregates.key_of(tree, keys) for tree in trees}
        for key in keys:
            if key not in shown:
                raise self.text.refuse(
                    select.expressions[0], f"DISTINCT may make several rows one. Show '{key}' too."
                )

    def _occurring(self, select: exp.Select, show: Show, aggregates: Aggregates) -> Show:
        """The keys that some record has, as far as noise tells."""
        if select.args.get("having"):
            raise self.text.refuse(select.args["having"], "HAVING goes with GROUP BY.")
        label = aggregates.label(exp.Count(this=exp.Star()))
        aggregates.notes.append(
            "DISTINCT shows the keys whose noisy count is at least 1, with their counts: noise may show a "
            "key that does not occur, and hide one of a few records"
        )
        return show.model_copy(update={"having": (RowFilter(of=label, sign=">=", value=1),)})

    def _check_items(self, items: Sequence[tuple[exp.Expr, str]]) -> None:
        for node, _ in items:
            if isinstance(node, exp.Star) or (
                isinstance(node, exp.Column) and isinstance(node.this, exp.Star)
            ):
                raise self.text.refuse(
                    node, "This would show records. Ask for an aggregate, such as COUNT(*)."
                )

    def _keys(
        self, group: exp.Expr | None, items: Sequence[tuple[exp.Expr, str]], aggregates: Aggregates
    ) -> tuple[list[str], list[str]]:
        """The names of what is grouped by, and those of a table with margins."""
        if group is None:
            return [], []
        self.text.only(group, "expressions", "all")
        if group.args.get("all"):
            raise self.text.refuse(group, "Name what to group by.")
        rolled: list[str] = []
        keys: list[str] = []
        sets = 0
        for each in group.expressions:
            if isinstance(each, exp.Rollup | exp.Cube):
                rolled += [self._key(part, items, aggregates) for part in each.expressions]
                sets += 1
            else:
                keys.append(self._key(each, items, aggregates))
        if rolled and (keys or sets > 1):
            raise self.text.refuse(group, "ROLLUP or CUBE is asked for alone. Put all columns into it.")
        if len(set(rolled)) < len(rolled):
            raise self.text.refuse(group, "This names a key twice. Name each once.")
        return keys, rolled

    def _key(self, node: exp.Expr, items: Sequence[tuple[exp.Expr, str]], aggregates: Aggregates) -> str:
        """The name of a column, or of an expression, to group by."""
        unit = self.table.unit.column
        if isinstance(node, exp.Column) and unit is not None and node.name.casefold() == unit.casefold():
            raise self.text.refuse(
                node, f"Each group would be one {self.table.unit.name}. Group by something else."
            )
        alias = ""
        if isinstance(node, exp.Literal) and not node.is_string and node.name.isdigit():
            node, alias = items[self.place(node, items)]
        elif isinstance(node, exp.Column) and not node.table and not self.declared(node.name, aggregates):
            node, alias = next(((each, name) for each, name in items if name == node.name), (node, ""))
        else:
            alias = next((name for each, name in items if each == node and name), "")
        if node.find(exp.AggFunc):
            raise self.text.refuse(node, "An aggregate is not known before records are grouped.")
        tree = aggregates.records.read(node)
        column = self.table.schema.columns.get(tree.name) if isinstance(tree, ColumnValue) else None
        kind = tree.kind(self.kinds)
        if isinstance(kind, MomentKind) or (isinstance(kind, DayKind) and not _by_day(column)):
            if isinstance(kind, MomentKind):
                raise self.text.refuse(
                    node, "Times are grouped by periods. Write DATE_TRUNC('hour', x), or another period."
                )
            tree = InPeriod(tree, TimePeriod.DAY)
        if isinstance(node, exp.Column) and any(isinstance(each, Matched) for each in walk(tree)):
            alias = alias or node.sql()
        key = self._named(tree, alias, aggregates)
        aggregates.written[key] = node.sql(dialect="duckdb")
        return key

    def _named(self, tree: Expression, alias: str, aggregates: Aggregates) -> str:
        """What an expression to group by is called: as in AS, unless a column is called so."""
        if isinstance(tree, ColumnValue):
            return tree.name
        return aggregates.keep(self.free(alias, aggregates) or tree.label, tree)

    def _labels(
        self, items: Sequence[tuple[exp.Expr, str]], keys: Sequence[str], aggregates: Aggregates
    ) -> tuple[dict[str, str], dict[str, str]]:
        """What is asked for, by its name in SQL; and keys that are shown by a function of theirs."""
        labels: dict[str, str] = {}
        shown: dict[str, str] = {}
        # first what is computed, so that a window is told to be one, and not that keys beside it lack a group
        for node, alias in sorted(items, key=lambda item: not _computed(item[0])):
            if _computed(node):
                aggregates.alias = self.free(alias, aggregates)
                labels[alias or node.sql()] = aggregates.label(node)
                aggregates.alias = ""
                continue
            if isinstance(node, exp.Literal | exp.Boolean):
                continue
            tree = aggregates.records.read(node)
            if aggregates.key_of(tree, keys) is not None:
                continue
            whose = [each for each in keys if tree.columns == (each,)]
            if not whose:
                raise self.text.refuse(
                    node,
                    "This is neither grouped by nor aggregated, so it would be the value of one record. Put "
                    "it into "
                    "GROUP BY, or ask for an aggregate of it.",
                )
            shown[whose[0]] = self._shown(node, tree, whose[0], alias, aggregates)
        return labels, shown

    def _shown(self, node: exp.Expr, tree: Expression, key: str, alias: str, aggregates: Aggregates) -> str:
        """A function of a key, which takes its place if it tells all keys apart."""
        kind, before = tree.kind(self.kinds), ColumnValue(key).kind(self.kinds)
        one_to_one = isinstance(tree, OfKey) or _renames(tree, key)
        if not (
            isinstance(kind, KeyKind)
            and isinstance(before, KeyKind)
            and len(kind.keys) == len(before.keys)
            and one_to_one
        ):
            raise self.text.refuse(
                node, f"This may make several keys of '{key}' one, or leave some out. Group by it instead."
            )
        return self._named(tree, alias, aggregates)

    def _top(
        self,
        select: exp.Select,
        items: Sequence[tuple[exp.Expr, str]],
        keys: Sequence[str],
        aggregates: Aggregates,
    ) -> Statistic | None:
        """GROUP BY k ORDER BY COUNT(*) DESC LIMIT n that shows k alone is the top n of k."""
        order, limit = select.args.get("order"), select.args.get("limit")
        if order is None or limit is None or len(keys) != 1 or select.args.get("having"):
            return None
        if any(each.find(exp.AggFunc) for each, _ in items) or len(order.expressions) != 1:
            return None
        by = order.expressions[0]
        if not (isinstance(by.this, exp.Count) and by.args.get("desc")):
            return None
        by_units = self.table.unit.column is not None  # which are what a top counts then
        ranked = Aggregates(aggregates.records).label(by.this)
        if ranked != "count" and not (ranked == "units" and by_units):
            return None
        self.text.only(order, "expressions")
        self.text.only(by, "this", "desc", "nulls_first")
        _, shown = self._labels(items, keys, aggregates)
        if ranked == "count" and by_units:
            raise self.text.refuse(
                by,
                f"The top are those that most {plural(self.table.unit.name)} have. Write ORDER BY "
                f"COUNT(DISTINCT {self.table.unit.column}), or show COUNT(*) too.",
            )
        return Top(shown.get(keys[0], keys[0]), self.limit(limit))

    def _table(self, rolled: Sequence[str], aggregates: Aggregates, select: exp.Select) -> Statistic:
        others = [each for each in aggregates.statistics if each != "count"]
        if others or aggregates.steps or not aggregates.statistics:
            raise self.text.refuse(select.args["group"], "ROLLUP and CUBE are answered for COUNT(*) alone.")
        for word in ("having", "order", "limit"):
            if select.args.get(word):
                raise self.text.refuse(
                    select.args[word], f"{word.upper()} does not go with ROLLUP and CUBE here."
                )
        group = select.args["group"]
        aggregates.check_present(rolled, group)
        # as in SQL, ROLLUP(a, b) has the sums over b and over both, and CUBE(a, b) those over a too
        return Contingency(rolled, rolled=len(rolled) == 1 or group.find(exp.Rollup) is not None)

    def _notes(self, aggregates: Aggregates) -> Iterator[str]:
        """What is computed otherwise than somebody may think."""
        yield from aggregates.notes
        for tree in aggregates.derived.values():
            for each in walk(tree):
                if isinstance(each, Case) and each.otherwise is not None:
                    yield (
                        f"where nothing is true in '{each.text}', also because a column is missing, a record "
                        f"counts as {each.otherwise.text}"
                    )
                if isinstance(each, TimeBetween):
                    yield (
                        f"'{each.text}' may be as much as the declared dates are apart, either way: a column "
                        "that holds it, with closer bounds, gets less noise"
                    )

    def _query(
        self,
        name: str,
        scope: RecordScope,
        aggregates: Aggregates,
        statistics: tuple[Statistic, ...],
        *,
        by: tuple[str, ...] = (),
        show: Show = EVERYTHING,
    ) -> SqlQuestion:
        widest = _widest(statistics)
        used = {*by, *(each for statistic in widest for each in statistic.about)}
        query = Query(
            name,
            list(widest),
            by=list(by),
            where=[*scope.where, *aggregates.conditions],
            derived={each: tree for each, tree in aggregates.derived.items() if each in used},
            compare=list(aggregates.steps.values()),
            show=show,
        )
        return SqlQuestion(query=query, notes=tuple(dict.fromkeys(self._notes(aggregates))))


def _widest(statistics: Sequence[Statistic]) -> tuple[Statistic, ...]:
    """Of quantiles of a column the last, which has the levels of all."""
    last = {each.column: each for each in statistics if isinstance(each, Quantiles)}
    return tuple(each for each in statistics if not isinstance(each, Quantiles) or last[each.column] is each)


def _by_day(column: object) -> bool:
    """Return whether the groups of a column of dates are single days."""
    return isinstance(column, Date) and column.period is TimePeriod.DAY


def _renames(tree: Expression, key: str) -> bool:
    """Return whether CASE gives each key a name: as many as there are, each in a WHEN of its own."""
    if not isinstance(tree, Case) or tree.otherwise is not None:
        return False
    named = [
        (when.keys[0], value.value)
        for when, value in tree.whens
        if isinstance(when, Among)
        and when.of == ColumnValue(key)
        and len(when.keys) == 1
        and isinstance(value, Constant)
    ]
    distinct = len({key for key, _ in named}) == len({value for _, value in named}) == len(named)
    return len(named) == len(tree.whens) and distinct


def _computed(node: exp.Expr) -> bool:
    """Whether an item is computed of several records."""
    return any(is_aggregate(each) or isinstance(each, exp.Window) for each in node.walk())
