"""A question: what is asked, of which records, by which keys, and how much of the budget it gets."""

import difflib
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Protocol, Union, runtime_checkable

from pydantic import Field, ValidationError, model_validator

from sourdine.core.errors import InvalidParameter
from sourdine.core.format import either, value
from sourdine.frames.declared import Declared, by_hand, declare, known_arguments, mistake
from sourdine.frames.expressions import ColumnValue, Expression, ExpressionField, read_expression
from sourdine.frames.expressions.tree import decimal
from sourdine.frames.schema import Schema
from sourdine.tables.compare import STEPS, AnswerStep, QuerySteps, long_step
from sourdine.tables.condition import check_column, check_condition, read_where
from sourdine.tables.measurement import Measurement, Scope
from sourdine.tables.shown_rows import EVERYTHING, Show
from sourdine.tables.statistics import BY_KIND, STATISTICS, Statistic
from sourdine.tables.statistics.keys import Partitions

_MOST_WEIGHT = 10**6
_OTHER_NAMES = {name: kind for kind, each in BY_KIND.items() for name in each.other_names}
if TYPE_CHECKING:
    AnyStatistic = Statistic
    Step = AnswerStep
else:
    AnyStatistic = Annotated[Union[STATISTICS], Field(discriminator="kind")]  # noqa: UP007
    Step = Annotated[Union[STEPS], Field(discriminator="kind")]  # noqa: UP007


Asking = Statistic | str | Mapping[str, Any]  # Mean("pay"), "count" or {"mean": "pay"}
KeyOrTree = str | Expression | Mapping[str, Any]  # "sex", or what is computed, as {"month": "seen"}
Where = Expression | Mapping[str, object] | Sequence[Expression | Mapping[str, object]]


class Query(Declared):
    """One or several statistics of the records of each group.

    Statistics of one column are read off the same noisy numbers, so they cost once. Among queries the budget
    is divided by weight: more weight means less noise, never less protection. `derived` are the columns that
    are computed for it, by their names; an expression in `by` or `ask` is called by its text. `compare` is
    what is computed from its answers, and `show` which rows of them are shown: neither costs anything.

    >>> from sourdine.tables.statistics import Count, Mean
    >>> Query("pay", [Count(), Mean("pay")], by="sex").ask[1].label
    'mean of pay'
    """

    name: str = Field(min_length=1, max_length=200)
    ask: tuple[AnyStatistic, ...] = Field(min_length=1, max_length=64)
    by: tuple[str, ...] = Field(default=(), max_length=8)
    where: tuple[ExpressionField, ...] = ()
    derived: Mapping[str, ExpressionField] = Field(default_factory=dict, exclude_if=lambda value: not value)
    compare: tuple[Step, ...] = Field(default=(), max_length=64, exclude_if=lambda value: not value)
    show: Show = Field(default=EVERYTHING, exclude_if=lambda value: not value)
    weight: int | float = Field(default=1, gt=0, le=_MOST_WEIGHT)

    @by_hand
    @known_arguments(group_by="by=...", filter="where=...")
    def __init__(
        self,
        name: str,
        ask: Asking | Sequence[Asking],
        *,
        by: KeyOrTree | Sequence[KeyOrTree] = (),
        where: Where = (),
        weight: float = 1,
        derived: Mapping[str, Expression] = MappingProxyType({}),
        compare: AnswerStep | Sequence[AnswerStep] = (),
        show: Show | Mapping[str, object] = EVERYTHING,
    ) -> None:
        block = {"name": name, "ask": ask, "by": by, "where": where, "weight": weight}
        steps = compare if isinstance(compare, list | tuple) else [compare]
        fields = _long_form({**block, "derived": dict(derived), "compare": steps, "show": show})
        declare(super().__init__, f"queries.{name}", **fields)

    @model_validator(mode="before")
    @classmethod
    def _listed(cls, fields: Any) -> Any:
        if not isinstance(fields, Mapping):
            return fields
        lists = {name: tuple(value) for name, value in fields.items() if isinstance(value, list)}
        alone = {"by": (fields["by"],)} if isinstance(fields.get("by"), str) else {}
        return {**fields, **lists, **alone}

    @model_validator(mode="after")
    def _unlike(self) -> "Query":
        if len(set(self.by)) != len(self.by):
            raise ValueError("by must not repeat a column; name each of them once")
        labels = [*(each.label for each in self.ask), *(each.label for each in self.compare)]
        if len(set(labels)) != len(labels):
            raise ValueError("the same thing is asked twice; leave it out once")
        return self

    @classmethod
    def read(cls, block: Mapping[str, object]) -> "Query":
        """The query of a `[[queries]]` block, in its short form; a mistake is named by its field."""
        if not isinstance(block, Mapping):
            raise InvalidParameter(
                f"A query must be a table with a name and what to ask. Write it like {_example()}."
            )
        try:
            return cls.model_validate(_long_form(block))
        except ValidationError as problem:
            raise mistake(problem, _owner(block)) from None

    @property
    def share(self) -> Fraction:
        """The weight as it was written."""
        return decimal(self.weight)

    def check(self, schema: Schema) -> None:
        """Refuse what the declared columns cannot answer."""
        for name in (*self.by, *(name for each in self.ask for name in each.about)):
            check_column(name, schema, self.name)
        for name in self.by:
            if not schema.open([name]):
                schema.keys(name)
        for condition in self.where:
            check_condition(condition, schema, self.name)
        for each in self.ask:
            each.check(schema, self.name)
            if twice := set(each.adds) & set(self.by):
                raise InvalidParameter(
                    f"The query '{self.name}' groups by '{min(twice)}' twice. "
                    "Leave it out of 'by', or out of what is asked."
                )
        self._check_open(schema)
        self.steps.check(schema)

    @property
    def steps(self) -> QuerySteps:
        """What is compared and shown of its answers."""
        return QuerySteps(self.name, self.by, self.ask, self.compare, self.show)

    def _check_open(self, schema: Schema) -> None:
        """Refuse keys that are chosen privately where they cannot be."""
        grouped = schema.open(self.by)
        if len({schema.text(name).other is None for name in grouped}) > 1:
            listed = " and ".join(f"'{name}'" for name in grouped)
            raise InvalidParameter(
                f"The query '{self.name}' groups by {listed} together, so that records whose keys are not "
                "shown are those of one group. Declare 'other' for each of these columns, or for none."
            )
        tops = [each for each in self.ask if each.opens]
        if grouped and tops:
            raise InvalidParameter(
                f"The query '{self.name}' asks for the {tops[0].label} by '{grouped[0]}', whose keys are "
                "chosen privately. Ask for it in a query of its own, by declared keys or by none."
            )

    def wanted(self, schema: Schema) -> dict[str, Measurement]:
        """The measurement that each statistic is read off, by its label: the least that serves several."""
        least = {each.label: each.measurement(self._scope(each, schema), schema) for each in self.ask}
        return {label: _served(each, list(least.values()), schema) for label, each in least.items()}

    def _scope(self, each: Statistic, schema: Schema) -> Scope:
        opened = tuple(sorted(schema.open((*self.by, *each.opens))))
        return Scope(query=self.name, by=self.by, where=self.where, open=opened)

    def measurements(self, schema: Schema) -> list[tuple[Measurement, Fraction]]:
        """The fewest measurements that its statistics can be read off, with their shares of it.

        Shares add up to 1: each statistic brings a like part to the measurement it is read off, and one more
        part goes to each choice of keys that is needed.
        """
        wanted = list(self.wanted(schema).values())
        choices = dict.fromkeys(each.scope for each in wanted if each.scope.open)
        needed = [*(Partitions(scope=scope) for scope in choices), *wanted]
        part = Fraction(1, len(needed))
        fewest: list[Measurement] = []
        for each in needed:
            if each not in fewest:
                fewest.append(each)
        return [(each, part * needed.count(each)) for each in fewest]


@runtime_checkable
class QuerySource(Protocol):
    """What makes a query: a question in Python, or one in SQL."""

    @property
    def query(self) -> Query: ...


def _owner(block: Mapping[str, object]) -> str:
    name = block.get("name")
    return f"queries.{name}" if isinstance(name, str) and name else "queries"


def _long_form(block: Mapping[str, object]) -> dict[str, Any]:
    """What a query is made of, in its long form."""
    fields: dict[str, Any] = dict(block)
    trees: dict[str, object] = dict(fields.get("derived") or {})
    if "ask" in fields:
        statistics = fields["ask"] if isinstance(fields["ask"], list | tuple) else [fields["ask"]]
        fields["ask"] = tuple(_long(_with_names(item, trees), str(fields.get("name"))) for item in statistics)
    if "by" in fields:
        by = [fields["by"]] if isinstance(fields["by"], str | Mapping | Expression) else fields["by"]
        fields["by"] = tuple(_name_of(each, trees) for each in by) if isinstance(by, list | tuple) else by
    if "where" in fields:
        fields["where"] = read_where(fields["where"], _owner(block))
    if trees:
        fields["derived"] = trees
    if "compare" in fields:
        steps = fields["compare"] if isinstance(fields["compare"], list | tuple) else [fields["compare"]]
        fields["compare"] = tuple(map(long_step, steps))
    return fields


def _with_names(item: object, trees: dict[str, object]) -> object:
    """What is asked, with the names of expressions in their place."""
    if not isinstance(item, Mapping) or not item or "kind" in item:
        return item
    kind, content = next(iter(item.items()))
    if kind not in BY_KIND or kind == "hierarchy":
        return item
    named = [_name_of(each, trees) for each in content] if isinstance(content, list | tuple) else None
    return {**item, kind: _name_of(content, trees) if named is None else named}


def _name_of(content: object, trees: dict[str, object]) -> object:
    """The name of a column, or of an expression, which is kept beside."""
    if not isinstance(content, Expression | Mapping):
        return content
    tree = read_expression(content)
    if isinstance(tree, ColumnValue):
        return tree.name
    trees[tree.label] = tree
    return tree.label


def columns_of(queries: Iterable[Query], schema: Schema) -> tuple[str, ...]:
    """Every column of the table that some queries use, or compute something of, once."""
    used = (
        name
        for query in queries
        for name in (
            *query.by,
            *(name for condition in query.where for name in condition.columns),
            *(name for each in query.ask for name in each.about),
        )
    )
    return schema.sources(tuple(dict.fromkeys(used)))


def with_expressions(schema: Schema, queries: Iterable[Query]) -> Schema:
    """The schema with the columns that are computed for some queries."""
    trees: dict[str, Expression] = {}
    for query in queries:
        for name, tree in query.derived.items():
            for column in tree.columns:
                if column not in query.derived:
                    check_column(column, schema, query.name)
            if trees.setdefault(name, tree) != tree:
                raise InvalidParameter(
                    f"Two queries compute a column '{name}', each in another way. Give them unlike names."
                )
    return schema.with_derived(trees) if trees else schema


def _served(least: Measurement, others: list[Measurement], schema: Schema) -> Measurement:
    """The first other measurement that serves one, or what serves that in turn."""
    for each in others:
        if each != least and each.serves(least, schema):
            return _served(each, others, schema)
    return least


def _long(item: object, query: str) -> object:
    """The long form of 'count' or of { mean = "pay" }."""
    if isinstance(item, Declared):
        return item
    if not isinstance(item, str | Mapping):
        raise InvalidParameter(
            f"The query '{query}' asks for something that is no statistic. "
            f"Write it like {BY_KIND['count'].how()} or {BY_KIND['mean'].how()}."
        )
    if isinstance(item, str):
        if not _known(item, query).bare:
            raise InvalidParameter(
                f"The query '{query}' asks for the {item} of no column. Write it like {BY_KIND[item].how()}."
            )
        return {"kind": item}
    if "kind" in item:
        _known(item["kind"], query)
        return item
    kind = next(iter(item), "")
    statistic = _known(kind, query)
    if statistic.bare:
        raise InvalidParameter(
            f"The query '{query}' asks for the {kind} of a column. Write {statistic.how()} alone."
        )
    rest = {name: value for name, value in item.items() if name != kind}
    return statistic.long(kind, item[kind], rest, query)


def _example() -> str:
    return either('Query("people", [Count()])', value({"name": "people", "ask": ["count"]}))


def _quantiles(*levels: float) -> str:
    return BY_KIND["quantiles"].how({"quantiles": "age", "levels": list(levels)})


def _known(kind: object, query: str) -> type[Statistic]:
    """The statistic of a name."""
    if kind in ("min", "max", "minimum", "maximum"):
        raise InvalidParameter(
            f"The query '{query}' asks for the {kind}, which is the value of one record, so that no noise of "
            f"use could hide it. Ask for a quantile, such as {_quantiles(0.01, 0.99)}."
        )
    if kind in ("median", "quantile"):
        raise InvalidParameter(f"The query '{query}' asks for the {kind}. Write it as {_quantiles(0.5)}.")
    if isinstance(kind, str) and kind.lower() in _OTHER_NAMES:
        name = _OTHER_NAMES[kind.lower()]
        raise InvalidParameter(
            f"The query '{query}' asks for the {kind}. It is called {name}: write {BY_KIND[name].how()}."
        )
    if not isinstance(kind, str) or kind not in BY_KIND:
        near = difflib.get_close_matches(str(kind).lower(), BY_KIND, n=1)
        meant = f" Did you mean '{near[0]}'?" if near else ""
        raise InvalidParameter(
            f"The query '{query}' asks for '{kind}', which is unknown.{meant} "
            f"Ask for one of {', '.join(BY_KIND)}."
        )
    return BY_KIND[kind]
