"""A table that is declared and open for private questions.

What plans and releases need is loaded by the first of them, and not by the table.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from sourdine.core import check
from sourdine.core.display import Viewable
from sourdine.core.distance import Neighbours
from sourdine.core.errors import InvalidParameter
from sourdine.core.random.bits import SYSTEM, Bits
from sourdine.core.text import tame
from sourdine.frames.csv.format import TextFormat
from sourdine.frames.declared import known_arguments
from sourdine.frames.joins import Join, open_joined, read_joins
from sourdine.frames.schema import PrivacyUnit, Schema
from sourdine.frames.source import AS_IT_IS, Source
from sourdine.tables.origin import TableOrigin

if TYPE_CHECKING:
    from sourdine.accounting.ledger import Ledger
    from sourdine.tables.bounds import FoundBounds
    from sourdine.tables.builder import Columns, TableQuestion
    from sourdine.tables.plan import ReleasePlan
    from sourdine.tables.privacy import NoiseChoice
    from sourdine.tables.quality import ExactQuality
    from sourdine.tables.query import Query, QuerySource
    from sourdine.tables.release import TableRelease
    from sourdine.tables.series import SeriesBlock, SeriesPlan
    from sourdine.tables.sql import SqlQuestion
    from sourdine.tables.synthetic import SyntheticPlan, SyntheticRelease

_LONGEST = 200  # characters of what the ledger notes


@dataclass(frozen=True, init=False)
class Table(Viewable):
    """A file, or a frame of pandas, Polars, Arrow, DuckDB or Spark, and what is declared of it.

    A unit given by name means that each record is one. The guarantee of a release is epsilon (or epsilon and
    delta) for one unit, added or removed, or else replaced. Several files, a pattern such as "2024-*.csv" and
    a folder of Parquet files are one table. `text` is how files of text are written, such as
    {"encoding": "cp1252", "delimiter": ";", "decimal": ","}. `joins` are public tables by name, each like
    {"table": places, "on": "town", "columns": ["region"]}: a record gets the columns of at most one of their
    rows, and no guarantee changes.
    Say `checked` if these declarations were written after somebody read `check()`.

    >>> import pyarrow as pa
    >>> from sourdine.tables.query import Query
    >>> people = Table(
    ...     pa.table({"age": [31, 54, 54], "sex": ["f", "m", "f"]}),
    ...     unit="person",
    ...     columns={
    ...         "age": {"type": "integer", "lower": 0, "upper": 120},
    ...         "sex": {"type": "category", "keys": ["f", "m"]},
    ...     },
    ... )
    >>> plan = people.plan(Query.read({"name": "ages", "ask": [{"mean": "age"}], "by": ["sex"]}), epsilon=1)
    >>> [(line.measurement.label, str(line.share)) for line in plan.lines]
    [('sum and count of age', '19/20'), ('data quality', '1/20')]
    """

    source: Source
    unit: PrivacyUnit
    schema: Schema
    size: int | None
    neighbours: Neighbours
    text: TextFormat
    joins: tuple[Join, ...]
    checked: bool
    origin: TableOrigin

    @known_arguments(
        **{name: f'text={{"{name}": ...}}' for name in TextFormat.model_fields},
        schema="columns={...}",
        privacy_unit="unit=...",
    )
    def __init__(
        self,
        source: object,
        *,
        unit: PrivacyUnit | str,
        columns: Mapping[str, object] | Schema,
        size: int | None = None,
        neighbours: Neighbours | str = Neighbours.ADD_REMOVE,
        text: TextFormat | Mapping[str, object] = AS_IT_IS,
        joins: Mapping[str, object] = MappingProxyType({}),
        checked: bool = False,
    ) -> None:
        whose: object = PrivacyUnit(name=unit) if isinstance(unit, str) else unit
        if not isinstance(whose, PrivacyUnit):
            like = 'Write unit="person", or PrivacyUnit("person", column="id") if one has several records.'
            raise check.fail("Table", "unit", "be a PrivacyUnit or its name", unit, like)
        if neighbours in tuple(Neighbours):  # its name in a text will do
            neighbours = Neighbours(neighbours)
        schema = columns if isinstance(columns, Schema) else Schema.read(columns)
        others = [] if whose.column is None else [whose.column]
        public = read_joins(joins)
        for name, value in {
            "unit": whose,
            "schema": schema,
            "size": None if size is None else check.integer("Table", "size", size, 1, 1 << 40),
            "neighbours": check.member("Table", "neighbours", neighbours, Neighbours),
            "text": (read_as := TextFormat.read(text)),
            "joins": public,
            "checked": bool(checked),
            "origin": TableOrigin.of(source, public, read_as),
            "source": open_joined(source, schema, public, others, text=text),
        }.items():
            object.__setattr__(self, name, value)
        whose.check_columns(self.source.engine.names)

    def __repr__(self) -> str:
        from sourdine.tables.measurement import plural

        size = "" if self.size is None else f", about {self.size:,} records"
        columns = ", ".join(self.schema.columns)
        return tame(
            f"<Table of {plural(self.unit.name)}, {self.neighbours} neighbours{size}; columns: {columns}>"
        )

    @property
    def c(self) -> "Columns":
        """The declared columns, to ask about: an editor completes their names and what can be asked."""
        from sourdine.tables.builder import Columns

        return Columns(self.schema)

    def ask(self, name: str) -> "TableQuestion":
        """A question by that name, to be built step by step; nothing is read or spent.

        >>> import pyarrow as pa
        >>> from sourdine.tables.statistics import Count
        >>> columns = {"age": {"type": "integer", "lower": 0, "upper": 120}}
        >>> people = Table(pa.table({"age": [31, 54]}), unit="person", columns=columns)
        >>> people.ask("grown").where(people.c.age >= 18).get(Count(), people.c.age.mean())
        <Question 'grown' where age >= 18; nothing is read or spent>
        """
        from sourdine.tables.builder import TableQuestion

        return TableQuestion(name=name, schema=self.schema)

    def sql(self, text: str, *, name: str = "sql") -> "SqlQuestion":
        """A question in SQL, for `plan`; nothing is read or spent, and no word of it reaches an engine.

        The table may be called by any name in FROM, and public tables by those they were given in `joins`.
        """
        from sourdine.tables.sql import SqlTable, read_sql

        return read_sql(text, SqlTable(schema=self.schema, unit=self.unit, joins=self.joins), name)

    def plan(
        self,
        *queries: "Query | QuerySource | Mapping[str, object] | Sequence[object]",
        epsilon: Fraction | float | str,
        delta: float | None = None,
        selection_delta: float | None = None,
        confidence: float = 0.95,
        quality: bool = True,
        noise: "NoiseChoice | str | None" = None,
    ) -> "ReleasePlan":
        """What these queries would do and be worth; nothing is read or spent.

        They come from `Query`, `ask` or `sql`, one by one or in lists. What a release would refuse of them
        and of the table is refused here already.

        `selection_delta` is the part of delta for keys that are chosen privately: half, if nothing is said.
        `noise` is "laplace" (pure noise, which takes nothing else of delta), "gaussian", or "nearest" of both
        for each measurement, which is taken if nothing is said. In a ledger that is not kept in epsilon pure
        noise costs more: there say which.
        With `quality`, at most a twentieth of the budget tells how many records do not fit what is
        declared.
        """
        from sourdine.tables.plan import ReleasePlan
        from sourdine.tables.privacy import Privacy
        from sourdine.tables.release import check_release

        questions = [self._query(each) for each in _listed(queries)]
        notes = (note for _, of_query in questions for note in of_query)
        release_plan = ReleasePlan(
            schema=self.schema,
            queries=tuple(query for query, _ in questions),
            privacy=Privacy(epsilon=epsilon, delta=delta, selection_delta=selection_delta),  # type: ignore[arg-type]
            unit=self.unit,
            neighbours=self.neighbours,
            size=self.size,
            confidence=confidence,
            caveats=tuple(dict.fromkeys((*self.text.caveats, *notes))),
            quality=quality,
            checked=self.checked,
            near=self.source.dialect.near,
            noise=noise,  # type: ignore[arg-type]
        )
        check_release(release_plan, self)
        return release_plan

    def series_plan(
        self,
        *queries: "Query | QuerySource | Mapping[str, object] | Sequence[object]",
        series: "SeriesBlock | Mapping[str, object]",
        epsilon: Fraction | float | str,
        delta: float | None = None,
        confidence: float = 0.95,
    ) -> "SeriesPlan":
        """What a series of these queries would do and be worth; nothing is read or spent.

        `series` is like {"period": "week", "first": "2026-01-05", "periods": 52, "arrived": "arrived"}. Start
        it with `TableSeries.start`; its one charge protects each unit over all periods.
        """
        from sourdine.tables.privacy import Privacy
        from sourdine.tables.series.declaration import SeriesBlock
        from sourdine.tables.series.plan import SeriesPlan

        return SeriesPlan(
            schema=self.schema,
            queries=tuple(self._query(each)[0] for each in _listed(queries)),
            privacy=Privacy(epsilon=epsilon, delta=delta),  # type: ignore[arg-type]
            unit=self.unit,
            neighbours=self.neighbours,
            block=series if isinstance(series, SeriesBlock) else SeriesBlock.read(series),
            confidence=confidence,
            caveats=self.text.caveats,
        )

    def _query(self, question: object) -> "tuple[Query, tuple[str, ...]]":
        """The query of what was asked in any form, and what is to be known of it."""
        from sourdine.tables.query import Query, QuerySource

        if isinstance(question, Query):
            return question, ()
        if isinstance(question, Mapping) and "sql" in question:
            from sourdine.tables.sql import SqlTable, read_block

            question = read_block(question, SqlTable(schema=self.schema, unit=self.unit, joins=self.joins))
        if isinstance(question, QuerySource):
            return question.query, tuple(getattr(question, "notes", ()))
        return Query.read(_block_of(question)), ()

    def release(
        self,
        plan: "ReleasePlan",
        ledger: "Ledger | Path | str",
        *,
        purpose: str | None = None,
        bits: Bits = SYSTEM,
    ) -> "TableRelease":
        """Pay for a plan from a ledger, or from the one in a file, and carry it out.

        The ledger notes the purpose; without one, the names of the queries.
        """
        from sourdine.tables.plan import ReleasePlan
        from sourdine.tables.release import release

        if not isinstance(plan, ReleasePlan):
            raise InvalidParameter("A release needs a plan. Make it with this table's plan().")
        noted = described(plan.queries) if purpose is None else purpose
        if self.checked and not plan.checked:
            plan = replace(plan, checked=True)
        return replace(release(plan, self, ledger, purpose=noted, bits=bits), origin=self.origin)

    def synthetic_plan(
        self,
        *,
        epsilon: Fraction | float | str,
        delta: float | None = None,
        target: str | None = None,
        columns: Sequence[str] | None = None,
        leave_out: Sequence[str] = (),
        bins: Mapping[str, int | Sequence[float]] = MappingProxyType({}),
        rows: int | None = None,
        zeros: Sequence[Mapping[str, object]] = (),
        totals: Mapping[str, Mapping[str, int]] = MappingProxyType({}),
        mark: str | None = None,
        selection_delta: float | None = None,
    ) -> "SyntheticPlan":
        """What a synthetic table would measure, cost and need; nothing is read or spent.

        It has all declared `columns` if none are named, but for those to `leave_out`. With a `target`, a
        column of declared keys, one tree of relations is grown for each of them. `bins` gives for numbers
        how many bins, or their edges; `rows` how many are drawn; `zeros` combinations of keys of two columns
        that cannot be; `totals` known numbers of units by the keys of a column; `mark` the name of a column
        that says "synthetic". Keys of texts are chosen privately, for which `selection_delta` is the part of
        delta: half, if nothing is said.
        """
        from sourdine.tables.privacy import Privacy
        from sourdine.tables.synthetic import SyntheticBlock, SyntheticPlan
        from sourdine.tables.synthetic.synthesis import check_source

        synthetic_plan = SyntheticPlan(
            schema=self.schema,
            privacy=Privacy(epsilon=epsilon, delta=delta, selection_delta=selection_delta),  # type: ignore[arg-type]
            unit=self.unit,
            neighbours=self.neighbours,
            block=SyntheticBlock.read(
                {
                    "columns": None if columns is None else tuple(columns),
                    "leave_out": tuple(leave_out),
                    "target": target,
                    "bins": {
                        name: each if isinstance(each, int) else tuple(each) for name, each in bins.items()
                    },
                    "rows": rows,
                    "zeros": tuple(zeros),
                    "totals": {name: dict(each) for name, each in totals.items()},
                    "mark": mark,
                }
            ),
            size=self.size,
            checked=self.checked,
            caveats=self.text.caveats,
        )
        check_source(synthetic_plan, self)
        return synthetic_plan

    def synthesize(
        self,
        *,
        epsilon: Fraction | float | str,
        delta: float | None = None,
        ledger: "Ledger | Path | str",
        target: str | None = None,
        columns: Sequence[str] | None = None,
        leave_out: Sequence[str] = (),
        bins: Mapping[str, int | Sequence[float]] = MappingProxyType({}),
        rows: int | None = None,
        zeros: Sequence[Mapping[str, object]] = (),
        totals: Mapping[str, Mapping[str, int]] = MappingProxyType({}),
        mark: str | None = None,
        selection_delta: float | None = None,
        published: "TableRelease | None" = None,
        purpose: str = "synthetic table",
        bits: Bits = SYSTEM,
    ) -> "SyntheticRelease":
        """Pay for a synthetic table, and draw it: rows like those of the table, of nobody.

        The guarantee is (epsilon, delta) for one unit, added or removed, or else replaced; of each unit one
        record counts. What is declared is as for `synthetic_plan`. Counts of a `published` release make it
        more accurate at no cost.
        """
        from sourdine.tables.synthetic import synthesize
        from sourdine.tables.synthetic.model import prior_tables

        plan = self.synthetic_plan(
            epsilon=epsilon,
            delta=delta,
            target=target,
            columns=columns,
            leave_out=leave_out,
            bins=bins,
            rows=rows,
            zeros=zeros,
            totals=totals,
            mark=mark,
            selection_delta=selection_delta,
        )
        prior = () if published is None else prior_tables(plan, published)
        return synthesize(plan, self, ledger, purpose=purpose, prior=prior, bits=bits)

    def check(self) -> "ExactQuality":
        """Exact counts of records that do not fit the declared columns: NOT private, and nothing is spent.

        They are for the holder of the data alone. From now on plans and certificates of this table say that
        its declarations were checked. What is declared otherwise after reading them is outside the guarantee,
        and a table that is declared anew must be marked `checked`.
        """
        from sourdine.tables.quality import exact_quality

        object.__setattr__(self, "checked", True)
        return exact_quality(self.source, tuple(self.schema.base.columns), self.unit)

    @staticmethod
    def find_bounds(
        source: object,
        column: str,
        *,
        unit: PrivacyUnit | str,
        epsilon: Fraction | float | str,
        ledger: "Ledger | Path | str",
        kind: Literal["integer", "real"] | None = None,
        outside: float = 0.01,
        neighbours: Neighbours = Neighbours.ADD_REMOVE,
        size: int | None = None,
        text: TextFormat | Mapping[str, object] = AS_IT_IS,
        bits: Bits = SYSTEM,
    ) -> "FoundBounds":
        """Bounds of a column of which nobody knows any, before it is declared: a spend of its own.

        All but the share `outside` of the records lie within, as far as noise tells. Of a column that comes
        as text, say its `kind`; where the `size` is public and too small for this epsilon, nothing is paid.
        """
        from sourdine.tables.bounds import find_bounds

        return find_bounds(
            source,
            column,
            unit=unit,
            epsilon=epsilon,
            ledger=ledger,
            kind=kind,
            outside=outside,
            neighbours=neighbours,
            size=size,
            text=text,
            bits=bits,
        )


def _block_of(query: object) -> Mapping[str, Any]:
    if isinstance(query, Mapping):
        return query
    raise InvalidParameter(
        f'A query is written like Query("people", [Count()], by="sex"). Got a {type(query).__name__}.'
        + (' Write people.sql("SELECT ...") for a question in SQL.' if isinstance(query, str) else "")
    )


def _listed(questions: Sequence[object]) -> Iterator[object]:
    """Everything that is asked, one by one."""
    for each in questions:
        if isinstance(each, list | tuple):
            yield from _listed(each)
        else:
            yield each


def rehearse(plan: "ReleasePlan") -> "TableRelease":
    """The same plan on a synthetic twin: what a release will look like, without reading or spending."""
    from sourdine.frames.quality import mock_source
    from sourdine.tables.release import _carry_out

    return _carry_out(plan, mock_source(plan.schema, plan.unit, plan.size, plan.joins))


def described(queries: "Sequence[Query]") -> str:
    """What is asked, in one line for a ledger."""
    names = ", ".join(query.name for query in queries)
    return "".join(letter if letter.isprintable() else " " for letter in f"tables: {names}")[:_LONGEST]
