"""Public tables beside a private one: each record gets the columns of at most one public row.

The public table's key is unique, so a record stays one record; what it gets depends on itself and on what is
public. No table is quoted in an error, the public one neither: somebody may have named the wrong file.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sourdine.core.errors import InvalidParameter
from sourdine.core.format import block
from sourdine.frames.csv.format import TextFormat
from sourdine.frames.engines.dialect import Dialect
from sourdine.frames.engines.duckdb import NOTHING, AnswerTable, SideTables, TableEngine
from sourdine.frames.engines.types import Family, family, whole_in
from sourdine.frames.expressions.conditions import matched_name
from sourdine.frames.schema import Column, Schema
from sourdine.frames.source import AS_IT_IS, Source, check_alike, open_source
from sourdine.frames.type_check import check_key, check_type

MOST_ROWS = 1 << 22
_FIELDS = ("file", "table", "on", "columns")


@dataclass(frozen=True, kw_only=True)
class Join:
    """A public table, the columns of both tables that must be equal, and the columns that it brings.

    A record without a match, or without a key, gets missing values. Keys are compared letter by letter, or as
    whole numbers where the private table holds numbers.

    >>> import pyarrow as pa
    >>> places = pa.table({"name": ["Lille", "Nice"], "region": ["north", "south"]})
    >>> Join(name="places", table=places, on=(("town", "name"),), columns=("region",)).columns
    ('region',)
    """

    name: str
    table: object
    on: tuple[tuple[str, str], ...]
    columns: tuple[str, ...]

    @classmethod
    def read(cls, name: str, block: object, folder: Path = Path()) -> "Join":
        """The join of a `[joins]` block: a file (or a table), on which columns, and what it brings."""
        owner = f"joins.{name}"
        if not isinstance(block, Mapping):
            raise _wrong(owner, "it must be a block")
        for field in block:
            if field not in _FIELDS:
                raise InvalidParameter(
                    f"The declaration '{owner}.{field}' is unknown. Its fields are file, on and columns: "
                    "check its spelling, or leave it out."
                )
        if ("file" in block) == ("table" in block):
            raise _wrong(owner, "it needs a file")
        table = block.get("table")
        if "file" in block:
            if not (isinstance(block["file"], str) and block["file"]):
                raise _wrong(f"{owner}.file", "it must be a text in quotes")
            table = folder / block["file"]
        columns = _names(block.get("columns"), f"{owner}.columns")
        on = block.get("on")
        pairs = tuple(on.items()) if isinstance(on, Mapping) else None
        if pairs is None:
            pairs = tuple((each, each) for each in _names(on, f"{owner}.on"))
        _names([part for pair in pairs for part in pair], f"{owner}.on")
        return cls(name=name, table=table, on=pairs, columns=columns)


def read_joins(blocks: Mapping[str, Any], folder: Path = Path()) -> tuple[Join, ...]:
    """The joins of a `[joins]` block."""
    return tuple(
        each if isinstance(each, Join) else Join.read(name, each, folder) for name, each in blocks.items()
    )


def _names(content: object, owner: str) -> tuple[str, ...]:
    listed = (content,) if isinstance(content, str) else content
    if not isinstance(listed, list | tuple) or not listed:
        raise _wrong(owner, "it must be a column's name, or a list of them")
    if not all(isinstance(each, str) and each for each in listed):
        raise _wrong(owner, "it must be a column's name, or a list of them")
    return tuple(listed)


def _wrong(owner: str, reason: str) -> InvalidParameter:
    return InvalidParameter(
        f"The declaration '{owner}' is wrong: {reason}. Write it like "
        f"{block('joins', 'places', file='places.csv', on='town', columns=['region'])}."
    )


def read_public(
    table: object, names: Sequence[str], declared: Mapping[str, Column] = MappingProxyType({})
) -> dict[str, list[str]]:
    """Columns of a public table as texts; what is missing is empty."""
    source = open_source(table, Schema(columns={}), names)
    for name in names:
        if name in declared:
            check_type(name, declared[name], source.types[name])
        else:
            check_key(name, source.types[name])
    quoted, text = source.dialect.quoted, source.dialect.text
    listed = (f"{text(quoted(name), source.types[name])} AS column_{i}" for i, name in enumerate(names))
    try:
        table_columns = source.columns(f"SELECT {', '.join(listed)} FROM {source.name} LIMIT {MOST_ROWS + 1}")
    except source.failures:
        raise InvalidParameter(
            f"The public table {_called(table)} cannot be read to its end. Check that it is complete."
        ) from None
    columns = {}
    for i, name in enumerate(names):
        values = table_columns[f"column_{i}"]
        lost = np.ma.getmaskarray(values)
        data = np.ma.getdata(values).tolist()
        columns[name] = [
            "" if gone or cell is None else str(cell) for gone, cell in zip(lost, data, strict=True)
        ]
    rows = len(columns[names[0]])
    if rows == 0 or rows > MOST_ROWS:
        raise InvalidParameter(
            f"The public table {_called(table)} must have between 1 and {MOST_ROWS:,} rows. "
            "Check that it is the right one."
        )
    return columns


def _called(table: object) -> str:
    return str(table) if isinstance(table, str | Path) else "beside it"


def open_joined(
    table: object,
    schema: Schema,
    joins: Sequence[Join] = (),
    others: Sequence[str] = (),
    text: TextFormat | Mapping[str, Any] = AS_IT_IS,
) -> Source:
    """A table as `open_source` opens it, with the declared columns that joins bring.

    Of the private table only names and types are looked at; public ones are read.
    """
    if not joins:
        return open_source(table, schema, others, text=text)
    brought, declared, schema = check_brought(joins), schema, schema.base
    own = Schema(columns={name: each for name, each in schema.columns.items() if name not in brought})
    keys = [ours for join in joins for ours, _ in join.on]
    wanted = tuple(dict.fromkeys((*others, *(key for key in keys if key not in own.columns))))
    try:
        base = open_source(table, own, wanted, text=text)
    except InvalidParameter as problem:
        unused = next((name for name in brought if name not in schema.columns), None)
        if unused is None:
            raise
        also = f"A join brings a column '{unused}' that is not declared: if that is meant, name it alike."
        raise InvalidParameter(f"{problem} {also}") from None
    for name in keys:
        check_key(name, base.types[name])
    known = {name.casefold() for name in base.engine.names}
    for name in (*brought, *(matched_name(join.name) for join in joins)):
        if name.casefold() in known:
            raise InvalidParameter(
                f"A join brings a column '{name}', and the table has one of that name. Rename one of them."
            )
    public = tuple(read_join(join, schema, base.types) for join in joins)
    joined = Joined(base.engine, public)
    check_alike(joined.names, schema, others)
    return Source(joined, declared)


def check_brought(joins: Sequence[Join]) -> list[str]:
    """The columns that joins bring; none may come twice."""
    brought = Counter(name for join in joins for name in join.columns)
    for name, times in brought.items():
        if times > 1:
            raise InvalidParameter(f"Joins bring a column '{name}' twice. Let one of them bring it, once.")
    return list(brought)


def read_join(join: Join, schema: Schema, types: Mapping[str, str]) -> "_Public":
    """The public table of a join, read; `types` are those of the private table."""
    with _naming(join):
        return _Public.of(join, types, _wanted(join, schema))


def check_join(join: Join, schema: Schema) -> None:
    """Refuse the public table of a join while there is no private one, so that no types are known.

    Which keys repeat is not known then either, since numbers are compared as such.
    """
    wanted = _wanted(join, schema)
    with _naming(join):
        read_public(join.table, list(dict.fromkeys((*(name for _, name in join.on), *wanted))), wanted)


def _wanted(join: Join, schema: Schema) -> dict[str, Column]:
    """The declared columns that it brings."""
    return {name: schema.columns[name] for name in join.columns if name in schema.columns}


@contextmanager
def _naming(join: Join) -> Iterator[None]:
    """Errors about a public table say which join it is of."""
    try:
        yield
    except InvalidParameter as problem:
        raise InvalidParameter(f"The join '{join.name}' cannot be made. {problem}") from None


@dataclass(frozen=True)
class _Public:
    """The rows of a public table by unique keys: pairs of a private column with its type, and their keys."""

    join: str
    on: tuple[tuple[str, str], ...]
    keys: tuple[NDArray[Any], ...]
    columns: Mapping[str, NDArray[Any]]

    @classmethod
    def of(cls, join: Join, types: Mapping[str, str], wanted: Mapping[str, Column]) -> "_Public":
        """The public table of a join, with the columns that are wanted of it; keys must not repeat."""
        theirs = [name for _, name in join.on]
        public = read_public(join.table, list(dict.fromkeys((*theirs, *wanted))), wanted)
        on = tuple((ours, types[ours]) for ours, _ in join.on)
        keys = [_keys(public[name], kind) for name, (_, kind) in zip(theirs, on, strict=True)]
        rows = list(zip(*keys, strict=True))
        good = [place for place, row in enumerate(rows) if None not in row]
        rows_of: dict[tuple[object, ...], int] = {}
        for place in good:
            first = rows_of.setdefault(rows[place], place)
            if first != place:
                named = " and ".join(f"'{name}'" for name in theirs)
                raise InvalidParameter(
                    f"Rows {first + 1:,} and {place + 1:,} of its public table have the same {named}. "
                    "A record would count twice. Keep one row for each key."
                )
        return cls(
            join.name,
            on,
            tuple(
                _array([each[place] for place in good], kind)
                for each, (_, kind) in zip(keys, on, strict=True)
            ),
            {name: np.array([public[name][place] for place in good], dtype=object) for name in wanted},
        )


def _is_number(kind: str) -> bool:
    return family(kind) in (Family.WHOLE, Family.DECIMAL, Family.FLOAT)


def _keys(cells: Sequence[str], kind: str) -> list[str | int | None]:
    """Public keys as the private column has them; None for what no record can have."""
    if not _is_number(kind):
        return [cell or None for cell in cells]
    return [whole_in(cell) for cell in cells]


def _array(cells: Sequence[object], kind: str) -> NDArray[Any]:
    return np.array(cells, dtype=np.int64 if _is_number(kind) else object)


@dataclass(frozen=True)
class Joined:
    """An engine whose table has the columns of public tables beside its own."""

    base: TableEngine
    public: tuple[_Public, ...]

    @property
    def dialect(self) -> Dialect:
        """That of the engine."""
        return self.base.dialect

    @property
    def failures(self) -> tuple[type[Exception], ...]:
        """Those of the engine."""
        return self.base.failures

    @property
    def names(self) -> Sequence[str]:
        """What the columns are called."""
        return [*self.base.names, *(name for each in self.public for name in each.columns)]

    @cached_property
    def types(self) -> Mapping[str, str]:
        """The types of the columns; those that are brought hold text."""
        brought = {name: "VARCHAR" for each in self.public for name in each.columns}
        return {**self.base.types, **brought, **{matched_name(each.join): "BOOLEAN" for each in self.public}}

    @cached_property
    def name(self) -> str:
        """The table with what is brought to it: a left join by unique keys keeps every record once.

        The hint makes Spark send the small table to the records; DuckDB takes it for a comment.
        """
        quoted, added, tables = self.dialect.quoted, [], []
        for i, each in enumerate(self.public):
            conditions = []
            for j, (ours, kind) in enumerate(each.on):
                theirs = f"known_{i}.{quoted(f'public key {j}')}"
                if _is_number(kind):
                    conditions.append(f"{self.dialect.whole(quoted(ours), kind)} = {theirs}")
                else:
                    text = self.dialect.text(theirs, "VARCHAR")
                    conditions.append(f"{self.dialect.text(quoted(ours), kind)} = {text}")
            tables.append(f"LEFT JOIN sourdine_public_{i} AS known_{i} ON {' AND '.join(conditions)}")
            added += [
                f"nullif(known_{i}.{quoted(f'public column {j}')}, '') AS {quoted(name)}"
                for j, name in enumerate(each.columns)
            ]
            # a key of the public table is never NULL, but a column that it brings may be
            key = f"known_{i}.{quoted('public key 0')}"
            added.append(f"({key} IS NOT NULL) AS {quoted(matched_name(each.join))}")
        hint = f"/*+ BROADCAST({', '.join(f'known_{i}' for i in range(len(self.public)))}) */"
        columns = ", ".join(["held.*", *added])
        return f"(SELECT {hint} {columns} FROM {self.base.name} AS held {' '.join(tables)})"

    def connect(self) -> None:
        """Make sure that a question can be asked."""
        self.base.connect()

    def digest(self) -> str:
        """Return what tells the table from another."""
        return self.base.digest()

    def ask(self, sql: str, side_tables: SideTables = NOTHING) -> list[tuple[Any, ...]]:
        """The rows of a question."""
        return self.base.ask(sql, {**side_tables, **self._tables})

    def columns(self, sql: str, side_tables: SideTables = NOTHING) -> dict[str, NDArray[Any]]:
        """The answer to a question as arrays."""
        return self.base.columns(sql, {**side_tables, **self._tables})

    def keep(self, sql: str, side_tables: SideTables = NOTHING) -> AnswerTable:
        """The answer to a question, which stays in the engine."""
        return self.base.keep(sql, {**side_tables, **self._tables})

    @cached_property
    def _tables(self) -> SideTables:
        return {
            f"sourdine_public_{i}": {
                **{f"public key {j}": keys for j, keys in enumerate(each.keys)},
                **{f"public column {j}": values for j, values in enumerate(each.columns.values())},
            }
            for i, each in enumerate(self.public)
        }
