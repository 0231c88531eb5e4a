"""Which records a FROM gives: of the declared table, of a SELECT that folds into it, with public tables."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from sqlglot import exp

from sourdine.frames.expressions import (
    All,
    Case,
    ColumnValue,
    Expression,
    Kinds,
    Matched,
    columns_present,
    may_be_missing,
)
from sourdine.frames.joins import Join
from sourdine.frames.schema import DERIVED, PrivacyUnit, Schema
from sourdine.tables.sql.record import SqlRecords
from sourdine.tables.sql.text import SqlText
from sourdine.tables.sql.vocabulary import OF_OTHERS


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
