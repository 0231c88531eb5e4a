"""From one SELECT to a query: which records, by which keys, what is asked, and how it is shown."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from sourdine.core.errors import InvalidParameter
from sourdine.core.text import tame
from sourdine.frames.expressions import (
    Among,
    Case,
    ColumnValue,
    Constant,
    DayKind,
    Expression,
    InPeriod,
    KeyKind,
    Matched,
    MomentKind,
    TimeBetween,
    TimePeriod,
    walk,
)
from sourdine.frames.expressions.conditions import OfKey
from sourdine.frames.times import Date
from sourdine.tables.comparison.show import EVERYTHING, RowFilter, Show
from sourdine.tables.measurements.measurement import plural
from sourdine.tables.query import Query
from sourdine.tables.sql.aggregates import Aggregates, is_aggregate
from sourdine.tables.sql.rows import ShownRows
from sourdine.tables.sql.sources import RecordScope, SqlTable
from sourdine.tables.sql.text import SqlText
from sourdine.tables.statistics import Contingency, Quantiles, Statistic, Top

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
