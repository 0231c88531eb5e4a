"""A question: what is asked, of which records, by which keys, and how much of the budget it gets."""

import difflib
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from pydantic import Field, ValidationError, model_validator

from sourdine.core.errors import InvalidParameter
from sourdine.frames.mistakes import told
from sourdine.frames.schema import Declared, Schema, decimal
from sourdine.tables.aggregate import KINDS, Aggregate, Contingency, Histogram, Quantiles, Top, columns_of
from sourdine.tables.condition import Condition, check_column
from sourdine.tables.hierarchy import Hierarchy

_MOST_WEIGHT = 10**6
_PAY = '"pay"'
_EXAMPLES = {
    "proportion": '{ proportion = "age", at_least = 65 }',
    "histogram": '{ histogram = "age", edges = [0, 20, 40] }',
    "contingency": '{ contingency = ["sex", "region"] }',
    "quantiles": '{ quantiles = "pay", at = [0.5] }',
    "top": '{ top = "town", k = 10 }',
    "hierarchy": '{ hierarchy = "place" }',
}
_OTHER_NAMES = {
    "average": "mean",
    "avg": "mean",
    "std": "deviation",
    "stdev": "deviation",
    "stddev": "deviation",
    "var": "variance",
    "total": "sum",
    "share": "proportion",
    "distinct": "units",
    "unique": "units",
    "nunique": "units",
}


class Query(Declared):
    """One or several aggregates over the records of each group.

    Aggregates of one column are read off the same noisy numbers, so they cost once. Among queries the budget
    is divided by weight: more weight means less noise, never less protection.

    >>> Query.read({"name": "pay", "ask": ["count", {"mean": "pay"}], "by": ["sex"]}).ask[1].label
    'mean of pay'
    """

    name: str = Field(min_length=1, max_length=200)
    ask: tuple[Aggregate, ...] = Field(min_length=1, max_length=64)
    by: tuple[str, ...] = Field(default=(), max_length=8)
    where: tuple[Condition, ...] = ()
    weight: int | float = Field(default=1, gt=0, le=_MOST_WEIGHT)

    @model_validator(mode="before")
    @classmethod
    def _listed(cls, given: Any) -> Any:
        if not isinstance(given, Mapping):
            return given
        lists = {name: tuple(value) for name, value in given.items() if isinstance(value, list)}
        alone = {"by": (given["by"],)} if isinstance(given.get("by"), str) else {}
        return {**given, **lists, **alone}

    @model_validator(mode="after")
    def _unlike(self) -> "Query":
        if len(set(self.by)) != len(self.by):
            raise ValueError("by must not repeat a column; name each of them once")
        labels = [each.label for each in self.ask]
        if len(set(labels)) != len(labels):
            raise ValueError("the same thing is asked twice; leave it out once")
        return self

    @classmethod
    def read(cls, block: Mapping[str, Any]) -> "Query":
        """The query of a `[[queries]]` block, in its short form; a mistake is named by its field."""
        if not isinstance(block, Mapping):
            raise InvalidParameter(
                "A query must be a table with a name and what to ask. "
                'Write it like { name = "people", ask = ["count"] }.'
            )
        given = dict(block)
        name = given.get("name")
        owner = f"queries.{name}" if isinstance(name, str) and name else "queries"
        if "ask" in given:
            asked = given["ask"] if isinstance(given["ask"], list | tuple) else [given["ask"]]
            given["ask"] = tuple(_aggregate(item, str(name)) for item in asked)
        if "where" in given:
            given["where"] = _conditions(given["where"], owner)
        try:
            return cls.model_validate(given)
        except ValidationError as problem:
            raise told(problem, owner) from None

    @property
    def share(self) -> Fraction:
        """The weight as it was written."""
        return decimal(self.weight)

    def check(self, schema: Schema) -> None:
        """Refuse what the declared columns cannot answer."""
        for name in (*self.by, *(name for each in self.ask for name in columns_of(each))):
            check_column(name, schema, self.name)
        for name in self.by:
            if not schema.open([name]):
                schema.keys(name)
        for condition in self.where:
            condition.check(schema, self.name)
        for each in self.ask:
            each.check(schema, self.name)
            inner = each.columns if isinstance(each, Contingency) else ()
            if isinstance(each, Hierarchy):
                inner = each.levels
            if isinstance(each, Histogram | Top):
                inner = (each.column,)
            if isinstance(each, Quantiles):
                inner = ("quantile",)  # the name of its levels among the keys
            if twice := set(inner) & set(self.by):
                raise InvalidParameter(
                    f"The query '{self.name}' groups by '{min(twice)}' twice. "
                    "Leave it out of 'by', or out of what is asked."
                )
        self._check_open(schema)

    def _check_open(self, schema: Schema) -> None:
        """Refuse keys that are chosen privately where they cannot be."""
        grouped = schema.open(self.by)
        if len({schema.text(name).other is None for name in grouped}) > 1:
            listed = " and ".join(f"'{name}'" for name in grouped)
            raise InvalidParameter(
                f"The query '{self.name}' groups by {listed} together, so that records whose keys are not "
                "shown are those of one group. Declare 'other' for each of these columns, or for none."
            )
        tops = [each for each in self.ask if isinstance(each, Top)]
        if grouped and tops:
            raise InvalidParameter(
                f"The query '{self.name}' asks for the {tops[0].label} by '{grouped[0]}', whose keys are "
                "chosen privately. Ask for it in a query of its own, by declared keys or by none."
            )

    def open(self, each: Aggregate | None, schema: Schema) -> tuple[str, ...]:
        """The columns whose keys are chosen privately for one of its aggregates, by name."""
        names = (*self.by, each.column) if isinstance(each, Top) else self.by
        return tuple(sorted(schema.open(names)))


def _aggregate(item: object, query: str) -> object:
    """The long form of 'count' or of { mean = "pay" }."""
    if isinstance(item, Declared):
        return item
    if not isinstance(item, str | Mapping):
        raise InvalidParameter(
            f"The query '{query}' asks for something that is no text and no table. "
            'Write it like "count" or { mean = "pay" }.'
        )
    if isinstance(item, str):
        _known(item, query)
        if item not in ("count", "units"):
            raise InvalidParameter(
                f"The query '{query}' asks for the {item} of no column. "
                f"Write it like {_EXAMPLES.get(item, f'{{ {item} = {_PAY} }}')}."
            )
        return {"kind": item}
    if "kind" in item:
        _known(item["kind"], query)
        return item
    kind = next(iter(item), "")
    _known(kind, query)
    if kind in ("count", "units"):
        raise InvalidParameter(
            f"The query '{query}' asks for the {kind} of a column. Write \"{kind}\" alone."
        )
    rest = {name: value for name, value in item.items() if name != kind}
    if kind == "proportion":
        # of a flag alone, the share of those for which it is true
        rest = {"keys" if name == "of" else name: value for name, value in rest.items()} or {"keys": True}
        return {"kind": kind, "of": {"column": item[kind], **rest}}
    if kind == "contingency":
        return {"kind": kind, "columns": item[kind], **rest}
    if kind == "hierarchy":
        if isinstance(item[kind], str):
            raise InvalidParameter(
                f"The query '{query}' asks for the hierarchy '{item[kind]}', which no [hierarchies] block "
                'declares. Declare it, or write { hierarchy = ["region", "town"], rows = [["a", "b"]] }.'
            )
        return {"kind": kind, "levels": item[kind], **rest}
    return {"kind": kind, "column": item[kind], **rest}


def _known(kind: object, query: str) -> None:
    if kind in ("min", "max", "minimum", "maximum"):
        raise InvalidParameter(
            f"The query '{query}' asks for the {kind}, which is the value of one record, so that no noise of "
            'use could hide it. Ask for a quantile, such as { quantiles = "age", at = [0.01, 0.99] }.'
        )
    if kind in ("median", "quantile"):
        raise InvalidParameter(
            f"The query '{query}' asks for the {kind}. Write it as {{ quantiles = \"age\", at = [0.5] }}."
        )
    if isinstance(kind, str) and kind.lower() in _OTHER_NAMES:
        name = _OTHER_NAMES[kind.lower()]
        written = '"units"' if name == "units" else f"{{ {name} = {_PAY} }}"
        raise InvalidParameter(
            f"The query '{query}' asks for the {kind}. It is called {name}: write {written}."
        )
    if kind not in KINDS:
        near = difflib.get_close_matches(str(kind).lower(), KINDS, n=1)
        meant = f" Did you mean '{near[0]}'?" if near else ""
        raise InvalidParameter(
            f"The query '{query}' asks for '{kind}', which is unknown.{meant} "
            f"Ask for one of {', '.join(KINDS)}."
        )


def _conditions(where: object, owner: str) -> tuple[object, ...]:
    """The long form of { age = { at_least = 18 }, region = ["north"] }."""
    if isinstance(where, list | tuple):
        return tuple(where)
    if not isinstance(where, Mapping):
        raise InvalidParameter(
            f"The declaration '{owner}.where' is wrong: it must be a table. "
            "Write it as where = { age = { at_least = 18 } }."
        )
    return tuple(
        {"column": name, **bounds} if isinstance(bounds, Mapping) else {"column": name, "keys": bounds}
        for name, bounds in where.items()
    )
