"""A specification: one TOML file that declares a table, its guarantee and its queries.

Fields that only somebody who knows the data can fill in are blanks, and are refused until they are.
"""

import difflib
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BeforeValidator, Field, PlainSerializer, ValidationError, model_validator

from sourdine.accounting.ledger import Ledger, PureBudget
from sourdine.accounting.ledger.address import Place, place_of
from sourdine.core import check
from sourdine.core.distance import Neighbours
from sourdine.core.errors import InvalidParameter, OldWord, SourdineError
from sourdine.core.files import unreadable
from sourdine.core.format import in_files, parse, plain, written
from sourdine.core.text import read_toml
from sourdine.frames.csv.format import TextFormat
from sourdine.frames.csv.reader import kind_of
from sourdine.frames.declared import Declared, mistake
from sourdine.frames.expressions.tree import decimal
from sourdine.frames.files import ENDINGS, TEXT, check_ending
from sourdine.frames.joins import check_brought, check_join, open_joined, read_join, read_joins
from sourdine.frames.schema import PrivacyUnit, Schema, as_tuples
from sourdine.frames.source import Source, open_source
from sourdine.frames.times import TimeColumn
from sourdine.tables.plan import ReleasePlan
from sourdine.tables.privacy import NoiseChoice, Privacy
from sourdine.tables.query import Query
from sourdine.tables.series.declaration import SeriesBlock
from sourdine.tables.statistics.hierarchy import Hierarchy, read_hierarchies, with_columns, with_hierarchies
from sourdine.tables.synthetic.declaration import SyntheticBlock

if TYPE_CHECKING:
    from sourdine.tables.series.plan import SeriesPlan
    from sourdine.tables.sql import SqlTable
    from sourdine.tables.synthetic.plan import SyntheticPlan


# The blocks of a specification as people write them: with blanks, and with words of earlier versions.

BLANK = "FILL IN"
RENAMED = {"privacy": {"rows": "max_rows", "groups": "max_groups", "reserve": "selection_delta"}}  # since 0.2
_OF_QUANTILES = {"at": "levels"}
_NAMED = 3  # fields in an error; the rest are counted


def check_filled(content: object, path: Path) -> None:
    """Refuse a specification with fields that still wait to be filled in, and name the first of them."""
    fields = list(dict.fromkeys(_blanks(content, ())))
    if not fields:
        return
    named = [f"'{'.'.join(field)}'" for field in fields[:_NAMED]]
    if len(fields) > _NAMED:
        named.append(f"{len(fields) - _NAMED} more")
    *others, last = named
    which = f"fields {', '.join(others)} and {last}" if others else f"field {last}"
    rest = " Delete the line if its type has no such field, and the block if no query needs the column."
    raise InvalidParameter(
        f"The {which} of {path} still {'say' if others else 'says'} {BLANK}. "
        "Write there what the comment beside it asks for."
        f"{rest if any(field[0] == 'columns' for field in fields) else ''}"
    )


def _blanks(content: object, place: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    if content == BLANK:
        yield place
    elif isinstance(content, dict):
        for name, value in content.items():
            yield from _blanks(value, (*place, str(name)))
    elif isinstance(content, list):
        for value in content:
            yield from _blanks(value, place)


class TableBlock(TextFormat):
    """Where the table is, how it is written if it is text, about how large, and whether it was checked."""

    source: str | tuple[str, ...] = Field(min_length=1)
    size: int | None = Field(default=None, ge=1, le=1 << 40)
    checked: bool = False

    @model_validator(mode="before")
    @classmethod
    def _several(cls, fields: Any) -> Any:
        return as_tuples(fields, "source")

    @property
    def text(self) -> TextFormat:
        """How files of text are written."""
        return TextFormat(**{name: getattr(self, name) for name in TextFormat.model_fields})

    @property
    def sources(self) -> tuple[str, ...]:
        """The paths, patterns or folders that the table is made of."""
        return (self.source,) if isinstance(self.source, str) else self.source


def read_blocks(path: Path) -> dict[str, Any]:
    """The blocks of a specification as they are written in a file."""
    try:
        return read_toml(path)
    except OSError as problem:
        raise InvalidParameter(
            f"{unreadable(path, problem, 'specification')} Check the path, or write one with 'sourdine init'."
        ) from None


def _read_exactly(number: Any) -> Any:
    """Read a ratio such as 1/3 as the number that it stands for, and a short one as a file writes it."""
    exact = parse(number) if isinstance(number, str) and "/" in number else number
    if not isinstance(exact, Fraction):
        return number
    if exact.denominator == 1:
        return int(exact)
    return exact if "/" in written(exact) else float(exact)


Exact = Annotated[
    int | float | Fraction,
    BeforeValidator(_read_exactly),
    PlainSerializer(
        lambda number: written(number) if isinstance(number, Fraction) else number,
        return_type=int | float | str,
        when_used="json",
    ),
]
"""A number that is written without rounding: 0.5, or "1/3" where no decimal is the same."""


class PrivacyBlock(Declared):
    """Whom the release protects, how much, and what pays for it."""

    unit: str = Field(min_length=1, max_length=200)
    column: str | None = Field(default=None, min_length=1)
    max_rows: int = Field(default=1, ge=1, le=1 << 20)
    max_groups: int = Field(default=1, ge=1, le=1 << 20)
    neighbours: str = "add-remove"
    ledger: str | None = Field(default=None, min_length=1)
    epsilon: Exact = Field(gt=0, le=1 << 20)
    delta: float | None = Field(default=None, gt=0, lt=1)
    selection_delta: float | None = Field(default=None, gt=0, lt=1)
    noise: Literal["nearest", "laplace", "gaussian"] | None = None
    confidence: float = Field(default=0.95, gt=0, lt=1)
    quality: bool = True

    @model_validator(mode="after")
    def _known(self) -> "PrivacyBlock":
        if self.neighbours not in ("add-remove", "replace"):
            raise ValueError('neighbours must be "add-remove" or "replace"')
        if self.column is None and (self.max_rows, self.max_groups) != (1, 1):
            raise ValueError(
                'max_rows and max_groups need a column that tells units apart: add column = "person_id"'
            )
        if self.selection_delta is not None and not self.selection_delta <= (self.delta or 0):
            raise ValueError("selection_delta is a part of delta: declare a delta that is at least as large")
        if self.noise == "gaussian" and self.delta is None:
            raise ValueError('Gaussian noise needs a delta: declare one, or leave out noise = "gaussian"')
        return self


def with_key_files(columns: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Columns in which `keys = { file = "districts.txt" }` has become the lines of that public file.

    Blanks around a line are left out, and so are empty lines.
    """
    return {
        name: {**block, "keys": _lines(name, block["keys"], folder)}
        if isinstance(block, Mapping) and isinstance(block.get("keys"), Mapping)
        else block
        for name, block in columns.items()
    }


def _lines(column: str, named: Mapping[str, object], folder: Path) -> list[str]:
    if list(named) != ["file"] or not isinstance(named["file"], str):
        raise InvalidParameter(
            f"The declaration 'columns.{column}.keys' is wrong: it must be a list, or name a file. Write it "
            'like keys = ["a", "b"], or keys = { file = "keys.txt" } for a file with a key in each line.'
        )
    path = folder / named["file"]
    try:
        lines = path.read_text("utf-8-sig").splitlines()
    except OSError as problem:
        raise InvalidParameter(f"{unreadable(path, problem, 'list of keys')} Check the path.") from None
    except UnicodeDecodeError:
        raise InvalidParameter(f"The list of keys {path} is not written in UTF-8. Save it so.") from None
    return [line.strip() for line in lines if line.strip()]


def old_words(blocks: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The words of earlier versions in a specification, each with the one that has taken its place."""
    words = [
        (f"{block}.{old}", f"{block}.{new}")
        for block, words in RENAMED.items()
        for old, new in words.items()
        if isinstance(blocks.get(block), Mapping) and old in blocks[block] and new not in blocks[block]
    ]
    queries = blocks.get("queries")
    statistics = (
        [each for query in queries for each in _statistics(query)] if isinstance(queries, list) else []
    )
    return words + [
        (f"queries.{old}", f"queries.{new}")
        for old, new in _OF_QUANTILES.items()
        if any(_of_quantiles(each) and old in each and new not in each for each in statistics)
    ]


def present_words(query: Any, words: Mapping[str, str]) -> Any:
    """A query whose quantiles are asked for by the present words."""
    statistics = _statistics(query)
    if not any(map(_of_quantiles, statistics)):
        return query
    ask = [renamed(each, words) if _of_quantiles(each) else each for each in statistics]
    return {**query, "ask": ask}


def _statistics(query: Any) -> Sequence[Any]:
    ask = query.get("ask", ()) if isinstance(query, Mapping) else ()
    return ask if isinstance(ask, list | tuple) else (ask,)


def _of_quantiles(each: Any) -> bool:
    return isinstance(each, Mapping) and ("quantiles" in each or each.get("kind") == "quantiles")


def renamed(block: Mapping[str, Any], words: Mapping[str, str]) -> dict[str, Any]:
    return {words.get(name, name): value for name, value in block.items()}


NO_QUERIES = ("none yet",)  # of a draft, whose columns still wait for bounds
_BLOCKS = ("table", "privacy", "columns", "queries", "joins", "hierarchies", "series", "synthetic")
_MOST_QUERIES = 2000  # beyond them a plan takes its time


class Specification(Declared):
    """All that a release needs to know. Paths in it are seen from the folder it lies in."""

    table: TableBlock
    privacy: PrivacyBlock
    columns: Mapping[str, object] = Field(default_factory=dict)
    joins: Mapping[str, object] = Field(default_factory=dict)
    hierarchies: Mapping[str, object] = Field(default_factory=dict)
    queries: tuple[object, ...] = Field(min_length=1, max_length=_MOST_QUERIES)
    series: SeriesBlock | None = Field(default=None, exclude_if=lambda block: block is None)
    synthetic: SyntheticBlock | None = Field(default=None, exclude_if=lambda block: block is None)
    folder: Path = Path()

    @classmethod
    @in_files()
    def load(cls, path: Path | str) -> "Specification":
        """The specification in a file; a mistake is told in one sentence with its place."""
        path = Path(path)
        if path.suffix.lower() in ENDINGS:
            raise InvalidParameter(
                f"{path} is a table, not a specification. Write a specification for it with: "
                f"sourdine init {quote(str(path))}"
            )
        blocks = read_blocks(path)
        check_filled(blocks, path)
        if words := [f"'{old}' is called '{new}'" for old, new in old_words(blocks)]:
            warnings.warn(
                f"In {path}, {' and '.join(words)} now. It is read as before: write the new word.",
                OldWord,
                stacklevel=2,
            )
        return cls.read(blocks, path.parent)

    @classmethod
    @in_files()
    def read(cls, blocks: Mapping[str, object], folder: Path = Path()) -> "Specification":
        """The specification of these blocks."""
        for name in blocks:
            if name not in _BLOCKS:
                near = difflib.get_close_matches(name, _BLOCKS, n=1)
                meant = f" Did you mean '{near[0]}'?" if near else ""
                raise InvalidParameter(
                    f"A specification has no block '{name}'.{meant} Its blocks are {', '.join(_BLOCKS)}."
                )
        fields: dict[str, Any] = {**blocks, "folder": folder}
        for old, new in old_words(blocks):
            block, word = old.split(".")
            words = {word: new.split(".")[1]}
            fields[block] = (
                renamed(fields[block], words)
                if block in RENAMED
                else [present_words(each, words) for each in fields[block]]
            )
        if isinstance(queries := fields.get("queries"), Mapping):
            raise InvalidParameter(
                "The queries must be a list of blocks. Write [[queries]] with two brackets before each query."
            )
        if isinstance(queries, list):
            fields["queries"] = tuple(queries)
        if "queries" not in fields and "synthetic" in fields:  # a synthetic table is asked for by its block
            fields["queries"] = NO_QUERIES
        for name in ("table", "privacy", "columns", "joins", "hierarchies"):
            if not isinstance(fields.get(name, {}), Mapping):
                raise InvalidParameter(
                    f"The declaration '{name}' is wrong: it must be a block. Write it under [{name}]."
                )
        # keys and rows of public files are taken in, so that a record of a release needs no other file
        fields["columns"] = with_key_files(fields.get("columns", {}), folder)
        fields["hierarchies"] = {
            name: each.model_dump(exclude={"kind"})
            for name, each in read_hierarchies(fields.get("hierarchies", {}), folder).items()
        }
        try:
            specification = cls.model_validate(fields)
        except ValidationError as problem:
            raise mistake(problem, "") from None
        if specification.synthetic is not None:
            specification.synthetic_plan()
        if specification.series is not None:
            specification.series_plan()
        elif specification.queries != NO_QUERIES or specification.synthetic is None:
            specification.plan()
        return specification

    @property
    def unit(self) -> PrivacyUnit:
        """Whom the release protects."""
        privacy = self.privacy
        return PrivacyUnit(
            name=privacy.unit, column=privacy.column, max_rows=privacy.max_rows, max_groups=privacy.max_groups
        )

    @cached_property
    def schema_of(self) -> Schema:
        """What is declared of the columns."""
        return Schema.read(with_columns(self.columns, self._hierarchies))

    @cached_property
    def _hierarchies(self) -> Mapping[str, Hierarchy]:
        return read_hierarchies(self.hierarchies, self.folder)

    @cached_property
    def _queries(self) -> tuple[Query, ...]:
        return tuple(query for query, _ in self._with_notes)

    @cached_property
    def _with_notes(self) -> tuple[tuple[Query, tuple[str, ...]], ...]:
        """The queries, each with what is to be known of how it was read."""
        return tuple(self._query(each, i) for i, each in enumerate(self.queries))

    def _query(self, item: object, place: int) -> tuple[Query, tuple[str, ...]]:
        if isinstance(item, Query):
            return item, ()
        block = _block(item, place)
        if "sql" not in block:
            return Query.read(with_hierarchies(block, self._hierarchies)), ()
        from sourdine.tables.sql import read_block

        question = read_block(block, self.sql_table)
        return question.query, question.notes

    @property
    def sql_table(self) -> "SqlTable":
        """What a question in SQL may be about."""
        from sourdine.tables.sql import SqlTable

        joins = read_joins(self.joins, self.folder)
        return SqlTable(schema=self.schema_of, unit=self.unit, joins=joins)

    @property
    def _declared(self) -> Privacy:
        privacy = self.privacy
        return Privacy(
            epsilon=decimal(privacy.epsilon), delta=privacy.delta, selection_delta=privacy.selection_delta
        )

    @property
    def ledger_path(self) -> Place | None:
        """Where the ledger is: a file beside the specification, or an address."""
        if self.privacy.ledger is None:
            return None
        place = place_of(self.privacy.ledger)
        return self.folder / place if isinstance(place, Path) else place

    @in_files()
    def plan(self, epsilon: Fraction | None = None) -> ReleasePlan:
        """The plan of the queries, at the declared epsilon or another."""
        if self.series is not None:
            raise InvalidParameter(
                "The specification is of a series, which is paid once and published period by period. "
                "Use 'sourdine series start' and 'sourdine series publish', or take out its block [series]."
            )
        if self.queries == NO_QUERIES:
            raise InvalidParameter(
                "The specification has no queries, only a synthetic table: use 'sourdine synthesize'. "
                "Add [[queries]] to release answers as well."
            )
        return self._plan if epsilon is None else self._at(epsilon)

    @in_files()
    def synthetic_plan(self) -> "SyntheticPlan":
        """The plan of the synthetic table: of its block, or of all declared columns."""
        return self._synthetic_plan

    @cached_property
    def _synthetic_plan(self) -> "SyntheticPlan":
        from sourdine.tables.synthetic.plan import SyntheticPlan

        schema, block = self.schema_of, self.synthetic or SyntheticBlock()
        return SyntheticPlan(
            schema=schema,
            privacy=self._declared,
            unit=self.unit,
            neighbours=Neighbours(self.privacy.neighbours),
            block=block,
            size=self.table.size,
            hierarchies=tuple(
                each for each in self._hierarchies.values() if each.column not in block.leave_out
            ),
            checked=self.table.checked,
            caveats=self.table.text.caveats,
        )

    @in_files()
    def series_plan(self) -> "SeriesPlan":
        """The plan of the series that is declared."""
        return self._series_plan

    @cached_property
    def _series_plan(self) -> "SeriesPlan":
        if self.series is None:
            raise InvalidParameter(
                'The specification declares no series. Add its block, such as [series] period = "week", '
                "first = 2026-01-05, periods = 52."
            )
        from sourdine.tables.series.plan import SeriesPlan

        return SeriesPlan(
            schema=self.schema_of,
            queries=self._queries,
            privacy=self._declared,
            unit=self.unit,
            neighbours=Neighbours(self.privacy.neighbours),
            block=self.series,
            confidence=self.privacy.confidence,
            caveats=self.table.text.caveats,
        )

    @property
    def series_path(self) -> Path:
        """Where the state of the series is: as declared, or beside the ledger."""
        if self.series is not None and self.series.state is not None:
            return self.folder / self.series.state
        ledger = self.ledger_path
        return ledger.with_suffix(".series") if isinstance(ledger, Path) else self.folder / "table.series"

    @cached_property
    def _plan(self) -> ReleasePlan:
        return self._at(self._declared.epsilon)

    def _at(self, epsilon: Fraction) -> ReleasePlan:
        return ReleasePlan(
            schema=self.schema_of,
            queries=self._queries,
            privacy=replace(self._declared, epsilon=epsilon),
            unit=self.unit,
            neighbours=Neighbours(self.privacy.neighbours),
            size=self.table.size,
            confidence=self.privacy.confidence,
            caveats=(
                *self.table.text.caveats,
                *dict.fromkeys(note for _, notes in self._with_notes for note in notes),
            ),
            quality=self.privacy.quality,
            checked=self.table.checked,
            noise=self.noise,
        )

    @cached_property
    def noise(self) -> NoiseChoice | None:
        """The declared noise, or else Gaussian noise where a ledger is there that is not kept in epsilon.

        In such a ledger pure noise at the same epsilon and delta costs some ten to twenty times as much. One
        at an address is taken for such: to plan reaches no server.
        """
        place = self.ledger_path
        if self.privacy.noise is not None:
            return NoiseChoice(self.privacy.noise)
        if self.privacy.delta is None or place is None:
            return None
        if not isinstance(place, Path):
            return NoiseChoice.GAUSSIAN
        if not place.is_file():
            return None
        try:
            with Ledger.open(place) as ledger:
                kept_in_epsilon = isinstance(ledger.terms.budget, PureBudget)
        except (SourdineError, OSError):
            return None  # whoever needs the ledger is told what is wrong with it
        return None if kept_in_epsilon else NoiseChoice.GAUSSIAN

    def model_copy(
        self, *, update: Mapping[str, object] | None = None, deep: bool = False
    ) -> "Specification":
        """A copy with other fields, which reads what is declared anew."""
        copied = super().model_copy(update=update, deep=deep)
        for name in set(vars(copied)) - set(type(copied).model_fields):
            del vars(copied)[name]
        return copied

    @property
    def places(self) -> list[Path]:
        """Where the table lies: its file, or the files, patterns or folders of it."""
        return [self.folder / each for each in self.table.sources]

    @property
    def is_there(self) -> bool:
        """Whether something lies where the table should; a pattern is looked for when it is opened."""
        return all(place.exists() or any(mark in str(place) for mark in "*?[") for place in self.places)

    @in_files()
    def open(self, places: Sequence[Path] = ()) -> Source:
        """The table, or another one like it, checked against what is declared by names and types alone."""
        others = [] if self.privacy.column is None else [self.privacy.column]
        joins = read_joins(self.joins, self.folder)
        source = open_joined(list(places) or self.places, self.schema_of, joins, others, text=self.table.text)
        self.unit.check_columns(source.engine.names)
        return source

    @in_files()
    def open_synthetic(self, place: Path) -> Source:
        """A synthetic table of this one: its own columns alone, in our format whatever the real ones have."""
        known = self.schema_of.base.columns
        columns: dict[str, Any] = {name: known[name] for name in self.synthetic_plan().names}
        for name, column in columns.items():
            if isinstance(column, TimeColumn):
                columns[name] = column.model_copy(update={"format": None})
        return open_source([place], Schema(columns=columns))

    @in_files()
    def look(self) -> Source | None:
        """The table as a release opens it, or None if there is none yet; then public ones are read alone."""
        if self.is_there:
            return self.open()
        for place in self.places:
            if place.suffix:  # else it may become a folder
                check_ending(place)
        joins, schema = read_joins(self.joins, self.folder), self.schema_of
        check_brought(joins)
        is_text = all(kind_of(place) in TEXT for place in self.places)
        for join in joins:
            if is_text:
                read_join(join, schema, {ours: "VARCHAR" for ours, _ in join.on})
            else:
                check_join(join, schema)
        return None

    @property
    def _planned_privacy(self) -> Privacy:
        """The guarantee, with the part of delta that chooses keys."""
        return self.series_plan().privacy if self.series is not None else self.plan().guarantee

    @in_files()
    def open_ledger(self, epsilon: Fraction | None = None) -> Ledger:
        """The ledger that pays; if there is none, the error says how to make one with this epsilon."""
        path = self.ledger_path
        if path is None:
            raise InvalidParameter(
                "The specification names no ledger, and a release must be paid for. "
                "Make one with 'sourdine ledger create' and name it, as in ledger = \"people.ledger\"."
            )
        if isinstance(path, Path) and not path.exists():
            declaration = self.privacy
            privacy = self._declared if self.queries == NO_QUERIES else self._planned_privacy
            small = f" --delta {plain(declaration.delta)}" if privacy.squared and declaration.delta else ""
            small += f" --selection-delta {plain(privacy.selection_delta)}" if privacy.selection_delta else ""
            budget = (
                decimal(declaration.epsilon)
                if epsilon is None
                else check.positive("Specification.open_ledger", "epsilon", epsilon)
            )
            raise InvalidParameter(
                f"There is no ledger {path}. If it was moved, name its new place: another one is another "
                f"budget. If there was none, make it with: sourdine ledger create {quote(str(path))} "
                f"--epsilon {written(budget)}{small} --unit {quote(declaration.unit)} --neighbours "
                f"{declaration.neighbours}"
            )
        return Ledger.open(path)


def _block(each: object, place: int) -> Mapping[str, Any]:
    if not isinstance(each, Mapping):
        raise InvalidParameter(f"The declaration 'queries.{place}' is wrong: it must be a [[queries]] block.")
    return each
