"""Made-up tables, each a neighbour of the one before, from declarations and a seed alone."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import islice

from sourdine.audit.plans.cells import (
    SOME_TEXTS,
    VARCHAR,
    Cell,
    Dice,
    Palette,
    kinds_of,
    outside,
    palette,
    tokens,
    written,
)
from sourdine.core.distance import Neighbours
from sourdine.frames.expressions import All, Among, ColumnValue, Comparison, Constant, Expression, Not
from sourdine.frames.expressions.tree import decimal
from sourdine.frames.joins import Join, read_public
from sourdine.frames.keys import Keys
from sourdine.frames.schema import Category, Flag, Integer, Real, Schema
from sourdine.tables.plan import ReleasePlan
from sourdine.tables.query import Query
from sourdine.testing import SeededBits

Row = tuple[Cell, ...]
_MOST_ROWS = 60  # of a unit, so that tables stay small
_MANY = 40  # records from which units rather leave than come


@dataclass(frozen=True)
class Layout:
    """The columns of a made-up table, and the engine's type of each."""

    names: tuple[str, ...]
    kinds: tuple[str, ...]


@dataclass(frozen=True)
class WalkStep:
    """A table, and how it came from the one before.

    Either one unit came, went or was replaced, and the records may have changed places (`neighbour`), or
    records came that some queries leave out (`still`): their numbers must stay as they are. Records without a
    unit are `nobody`'s, and even choices of keys leave them out. Where neither holds the table is a new one.
    """

    rows: tuple[Row, ...]
    neighbour: bool = False
    still: frozenset[str] = frozenset()
    nobody: bool = False


@dataclass
class Walk:
    """A walk from table to table, for the columns, the unit and the neighbours of a plan.

    The same seed gives the same tables, however many are taken. `plain` tables hold what is declared
    or nothing, so that an engine of its own accord counts them alike.
    """

    plan: ReleasePlan
    seed: int
    text: bool = False
    wide: bool = False
    joins: tuple[Join, ...] = ()
    plain: bool = False
    dice: Dice = field(init=False)
    layout: Layout = field(init=False)

    def __post_init__(self) -> None:
        self.dice = Dice(SeededBits(self.seed))
        schema, unit = self.plan.schema, self.plan.unit
        brought = {name for join in self.joins for name in join.columns}
        names = [name for name in schema.base.columns if name not in brought]
        public = _public_keys(self.joins)
        names += [name for name in public if name not in names]
        if unit.column is not None and unit.column not in names:
            names.append(unit.column)
        if not names:
            names.append("nothing declared")
        columns = [schema.columns.get(name) for name in names]
        choices = [
            VARCHAR if name in public else self.dice.one(kinds_of(each, self.wide))
            for name, each in zip(names, columns, strict=True)
        ]
        self.layout = Layout(tuple(names), tuple(VARCHAR if self.text else kind for kind in choices))
        self._palettes = [
            public.get(name) if each is None else palette(each, kind)
            for name, each, kind in zip(names, columns, self.layout.kinds, strict=True)
        ]
        if self.plain:
            self._palettes = [each and Palette(each.plain, each.plain) for each in self._palettes]
        self._whose = None if unit.column is None else names.index(unit.column)
        self._tokens = [] if self._whose is None else tokens(self.layout.kinds[self._whose])
        self._outsiders = {query.name: self._ways_out(query) for query in self.plan.queries}

    def steps(self, pairs: int) -> list[WalkStep]:
        """The first table and so many after it."""
        return list(islice(self._steps(), pairs + 1))

    def _steps(self) -> Iterator[WalkStep]:
        """Records stand with the number of their unit, None where they have none."""
        rows = self._fresh()
        yield WalkStep(tuple(row for _, row in rows))
        while True:
            if self.dice.one_in(16):
                rows = self._fresh()
                yield WalkStep(tuple(row for _, row in rows))
                continue
            rows = list(rows)
            if not self.plain and self.dice.one_in(5):
                nobody = self._whose is not None and self.dice.one_in(3)
                if still := self._come_unseen(rows) if nobody else self._disturb(rows):
                    yield WalkStep(tuple(row for _, row in rows), still=still, nobody=nobody)
                    continue
            self._move(rows)
            if self.dice.one_in(3):
                rows = self.dice.shuffled(rows)
            yield WalkStep(tuple(row for _, row in rows), neighbour=True)

    def _fresh(self) -> list[tuple[int | None, Row]]:
        """A new table, whose units may have much in common: then what one more does is plain to see."""
        rows: list[tuple[int | None, Row]] = []
        common = self._traits() if self.dice.one_in(2) else None
        for _ in range(self.dice.below(6)):
            self._enter(rows, self._absent(rows)[:1], common)
        return rows

    def _move(self, rows: list[tuple[int | None, Row]]) -> None:
        """One unit comes, goes, or makes room for another."""
        there = sorted({token for token, _ in rows if token is not None})
        if self.plan.neighbours is Neighbours.REPLACE:
            if not there:
                self._enter(rows, self._absent(rows))  # of no records, which some unit had
                return
            gone = self.dice.one(there)
            absent = [token for token in self._absent(rows, every=True) if token not in there]
            self._leave(rows, gone)
            self._enter(rows, [self.dice.one(absent) if absent and self.dice.one_in(2) else gone])
            return
        absent = self._absent(rows, every=True)
        if there and (not absent or len(rows) > _MANY or self.dice.one_in(2)):
            self._leave(rows, self.dice.one(there))
        elif absent:
            self._enter(rows, [self.dice.one(absent)])

    def _absent(self, rows: Sequence[tuple[int | None, Row]], every: bool = False) -> list[int]:
        """Units that are not there; where each record is one, the next number."""
        there = {token for token, _ in rows}
        if self._whose is None:
            return [max((token for token in there if token is not None), default=0) + 1]
        absent = [token for token in range(len(self._tokens)) if token not in there]
        return absent if every or not absent else [self.dice.one(absent)]

    def _leave(self, rows: list[tuple[int | None, Row]], gone: int) -> None:
        rows[:] = [(token, row) for token, row in rows if token != gone]

    def _enter(
        self,
        rows: list[tuple[int | None, Row]],
        token: Sequence[int],
        common: Sequence[Cell] | None = None,
    ) -> None:
        """The records of a unit, each anywhere among the others."""
        for each in token:
            for row in self._records(each, common):
                rows.insert(self.dice.below(len(rows) + 1), (each, row))

    def _records(self, token: int, common: Sequence[Cell] | None = None) -> list[Row]:
        """What a unit has: a record, or several with a common trait, or as many as may count and more."""
        if self._whose is None:
            return [self._row(token, common)]
        unit, traits = self.plan.unit, common or self._traits()
        if self.dice.one_in(3):
            most = max(1, _MOST_ROWS // (unit.max_rows + 1))
            kinds = [self._row(token, traits) for _ in range(min(unit.max_groups + 1, most))]
            return [row for row in kinds for _ in range(min(unit.max_rows + 1, _MOST_ROWS))]
        many = self.dice.one([1, 1, 2, 3, min(unit.max_rows, 12), min(unit.max_rows + 1, 12), 8])
        return [self._row(token, traits) for _ in range(many)]

    def _traits(self) -> list[Cell]:
        """For some columns the cell that all records of a unit share; elsewhere each has its own."""
        return [
            each.draw(self.dice) if each is not None and self.dice.one_in(2) else _FREE
            for each in self._palettes
        ]

    def _row(self, token: int | None, traits: Sequence[Cell] | None = None) -> Row:
        cells: list[Cell] = []
        for place, each in enumerate(self._palettes):
            if place == self._whose:
                cells.append(None if token is None else self.dice.one(self._tokens[token]))
            elif traits is not None and traits[place] is not _FREE:
                cells.append(traits[place])
            else:
                cells.append(None if each is None else each.draw(self.dice))
        return tuple(cells)

    def _come_unseen(self, rows: list[tuple[int | None, Row]]) -> frozenset[str]:
        """Records without a unit come, which every query leaves out."""
        for _ in range(1 + self.dice.below(3)):
            rows.insert(self.dice.below(len(rows) + 1), (None, self._row(None)))
        return frozenset(self._outsiders)

    def _disturb(self, rows: list[tuple[int | None, Row]]) -> frozenset[str]:
        """Records come that some queries leave out; which queries those are, none where there is no way."""
        name = self.dice.one(sorted(self._outsiders))
        ways = self._outsiders[name]
        if not ways:
            return frozenset()
        there = sorted({token for token, _ in rows if token is not None})
        token = (
            self.dice.one(there or self._absent(rows)) if self._whose is not None else self._absent(rows)[0]
        )
        for _ in range(1 + self.dice.below(6)):
            row = list(self._row(token))
            for place, cells in self.dice.one(ways).items():
                row[place] = self.dice.one(cells)
            rows.insert(self.dice.below(len(rows) + 1), (token, tuple(row)))
            token = token + 1 if self._whose is None else token
        return frozenset([name])

    def _ways_out(self, query: Query) -> list[dict[int, list[Cell]]]:
        """Cells of some columns by which a record is surely left out of a query."""
        schema, names, kinds = self.plan.schema, self.layout.names, self.layout.kinds
        places = {name: place for place, name in enumerate(names) if place != self._whose}
        ways: list[dict[int, list[Cell]]] = []
        for name in query.by:
            if name in places and _drops(schema, name):
                ways.append({places[name]: outside(schema.columns[name], kinds[places[name]])})
            ways += [
                {places[ours]: [None, *self._palettes[places[ours]].odd]}  # type: ignore[union-attr]
                for join in self.joins
                if name in join.columns and _drops(schema, name)
                for ours, _ in join.on
                if ours in places and ours not in schema.columns
            ]
        for condition in query.where:
            simple = _simple(condition)
            if simple is not None and simple.column in places:
                place = places[simple.column]
                cells = _failing(simple, schema, kinds[place])
                if self.text and not _drops(schema, simple.column):
                    cells = [cell for cell in cells if cell != ""]  # nothing between commas is missing
                if cells:
                    ways.append({place: cells})
            # of comparisons with nothing but what is missing, no AND, OR or NOT is true
            about = condition.columns
            if _is_logic(condition) and all(name in places and _drops(schema, name) for name in about):
                ways.append(
                    {places[name]: outside(schema.columns[name], kinds[places[name]]) for name in about}
                )
        return ways


def some_keys(columns: int) -> Keys:
    """Keys that pass for chosen ones, in the order of their texts; some tables hold them and some do not."""
    return Keys.product([SOME_TEXTS[:2]] * columns)


def _public_keys(joins: Sequence[Join]) -> dict[str, Palette]:
    """What records hold where public tables are joined to them: public keys, and some that match nothing."""
    keys = {}
    for join in joins:
        columns = read_public(join.table, [theirs for _, theirs in join.on])
        for ours, theirs in join.on:
            known = columns[theirs][:_MANY]
            near = (key.swapcase() for key in known[:4])
            keys[ours] = Palette(known, ["", "nowhere", *(key for key in near if key not in columns[theirs])])
    return keys


_FREE: Cell = object()  # type: ignore[assignment]


def _drops(schema: Schema, name: str) -> bool:
    return getattr(schema.columns[name], "missing", None) == "drop"


@dataclass(frozen=True)
class _Simple:
    """A condition on one column, of which cells are known for which it surely does not hold."""

    column: str
    keys: tuple[object, ...] | None = None
    at_least: Fraction | None = None
    below: Fraction | None = None


def _is_logic(tree: Expression) -> bool:
    """Whether a condition is made of columns compared with constants, joined by AND, OR and NOT."""
    match tree:
        case Comparison(ColumnValue(), _, Constant()) | Among(ColumnValue(), _):
            return True
        case All(parts):  # OR is one too
            return all(map(_is_logic, parts))
        case Not(part):
            return _is_logic(part)
    return False


def _simple(tree: Expression) -> _Simple | None:
    """A condition in so many words, if it is one of these."""
    match tree:
        case Among(ColumnValue(name), keys):
            return _Simple(name, keys)
        case Comparison(ColumnValue(name), ">=", Constant(int() | Fraction() as bound)):
            return _Simple(name, at_least=Fraction(bound))
        case Comparison(ColumnValue(name), "<", Constant(int() | Fraction() as bound)):
            return _Simple(name, below=Fraction(bound))
        case All((one, two)) if type(tree) is All:
            first, second = _simple(one), _simple(two)
            if first is not None and second is not None and first.column == second.column:
                return _Simple(
                    first.column, first.keys, first.at_least or second.at_least, first.below or second.below
                )
    return None


def _failing(condition: _Simple, schema: Schema, kind: str) -> list[Cell]:
    """Cells for which a condition surely does not hold."""
    column = schema.columns[condition.column]
    cells: list[Cell] = outside(column, kind) if _drops(schema, condition.column) else []
    if isinstance(column, Integer | Real):
        low, high, step = decimal(column.lower), decimal(column.upper), column.step
        if condition.at_least is not None and condition.at_least > low + 2 * step:
            cells += _exactly(column.lower, kind)
        if condition.below is not None and condition.below < high - 2 * step:
            cells += _exactly(column.upper, kind)
    elif isinstance(column, Category):
        cells += [written(key, kind) for key in column.keys if key not in (condition.keys or ())][:4]
    elif isinstance(column, Flag):
        named = {str(key).lower() for key in condition.keys or ()}
        flags = {flag for flag in (False, True) if named & {str(flag).lower(), "yes" if flag else "no"}}
        cells += [written(flag, kind) for flag in (False, True) if flag not in flags]
    return cells


def _exactly(number: float, kind: str) -> list[Cell]:
    """A declared number as a cell, if there is one that holds it."""
    cell = written(number, kind)
    return [cell] if isinstance(cell, str) or cell == number else []
