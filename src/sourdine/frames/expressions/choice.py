"""Choices among expressions: CASE, COALESCE, NULLIF, the least and the greatest."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sourdine.core.errors import InvalidParameter
from sourdine.frames.expressions.arithmetic import regrid
from sourdine.frames.expressions.kinds import (
    DAY_LENGTH,
    DayKind,
    KeyKind,
    Kind,
    MomentKind,
    NumberKind,
    TextKind,
    TruthKind,
    check_size,
    coarse_enough,
    common_step,
    on_grid,
    seconds_between,
)
from sourdine.frames.expressions.tree import (
    Constant,
    Expression,
    Kinds,
    RecordCells,
    expect_number,
    expect_truth,
)


def shared_kind(trees: Sequence[Expression], kinds: Kinds, owner: str) -> Kind:
    """The kind that holds what any of some expressions may be."""
    all_kinds = [each.kind(kinds) for each in trees]
    numbers = [each for each in all_kinds if isinstance(each, NumberKind)]
    if len(numbers) == len(all_kinds):
        step = common_step(*(each.step for each in numbers))
        lower, upper = min(each.lower for each in numbers), max(each.upper for each in numbers)
        for each in numbers:
            check_size(2 * (each.size * each.step / step + 1), owner)
        nonzero = all(not each.has_zero for each in numbers)
        enough = coarse_enough(step, lower, upper)
        return on_grid(enough, lower, upper, nonzero and enough == step)
    keys = [each for each in all_kinds if isinstance(each, KeyKind)]
    if len(keys) == len(all_kinds) and len({isinstance(each.keys[0], str) for each in keys}) == 1:
        every: Any = tuple(dict.fromkeys(key for each in keys for key in each.keys))
        periods = {each.period for each in keys}
        return KeyKind(every, periods.pop() if len(periods) == 1 else None)
    days = [each for each in all_kinds if isinstance(each, DayKind)]
    if len(days) == len(all_kinds):
        return DayKind(min(each.first for each in days), max(each.last for each in days))
    times = [each for each in all_kinds if isinstance(each, DayKind | MomentKind)]
    if len(times) == len(all_kinds):  # a date is its midnight, as in SQL
        ends = [seconds_between(each) for each in times]
        return MomentKind(min(first for first, _ in ends), max(last for _, last in ends))
    if all(isinstance(each, TruthKind) for each in all_kinds):
        return TruthKind()
    if all(isinstance(each, TextKind) for each in all_kinds):
        return TextKind()
    different = sorted({each.words if not isinstance(each, NumberKind) else "a number" for each in all_kinds})
    raise InvalidParameter(
        f"{owner} gives one thing out of several that must be alike, and they are {' and '.join(different)}. "
        "Give numbers alone, or texts that can be listed, or dates."
    )


def as_kind(tree: Expression, target: Kind, cells: RecordCells, kinds: Kinds) -> str:
    """The value of an expression as one of a kind that holds it."""
    sql, kind = tree.sql(cells, kinds), tree.kind(kinds)
    if isinstance(target, NumberKind) and isinstance(kind, NumberKind):
        return regrid(sql, kind, target.step, cells.dialect, tree.text)
    if isinstance(target, KeyKind) and isinstance(kind, KeyKind):
        return recoded(sql, tuple(target.keys.index(key) for key in kind.keys))
    if isinstance(target, MomentKind) and isinstance(tree.kind(kinds), DayKind):
        return f"({sql} * {DAY_LENGTH})"
    return sql


def recoded(code: str, places: Sequence[int | None]) -> str:
    """The place of a key as another one, by a list; NULL where it has none."""
    if all(place == other for place, other in enumerate(places)):
        return code
    alike: dict[int, list[int]] = {}
    for place, other in enumerate(places):
        if other is not None:
            alike.setdefault(other, []).append(place)
    cases = " ".join(
        f"WHEN {code} IN ({', '.join(map(str, codes))}) THEN {other}" for other, codes in alike.items()
    )
    return f"CAST(CASE {cases} END AS BIGINT)" if cases else "CAST(NULL AS BIGINT)"


@dataclass(frozen=True)
class Case(Expression):
    """The first value whose condition is true, or else the last one, or nothing.

    A condition that is missing is not true, so its record goes on to the next, and at last to `otherwise`.
    """

    whens: tuple[tuple[Expression, Expression], ...]
    otherwise: Expression | None = None

    def __post_init__(self) -> None:
        if not self.whens:
            raise InvalidParameter("CASE needs at least one WHEN. Write CASE WHEN ... THEN ... END.")

    @property
    def parts(self) -> tuple[Expression, ...]:
        return (*(part for when in self.whens for part in when), *self._otherwise)

    @property
    def _otherwise(self) -> tuple[Expression, ...]:
        return () if self.otherwise is None else (self.otherwise,)

    @property
    def values(self) -> tuple[Expression, ...]:
        """What it may be."""
        return (*(value for _, value in self.whens), *self._otherwise)

    @property
    def text(self) -> str:
        whens = " ".join(f"WHEN {when.text} THEN {value.text}" for when, value in self.whens)
        return f"CASE {whens}{''.join(f' ELSE {each.text}' for each in self._otherwise)} END"

    def kind(self, kinds: Kinds) -> Kind:
        for when, _ in self.whens:
            expect_truth(when, kinds, "CASE WHEN")
        return shared_kind(self.values, kinds, "CASE")

    def sql(self, cells: RecordCells, kinds: Kinds) -> str:
        kind = self.kind(kinds)
        whens = " ".join(
            f"WHEN ({when.sql(cells, kinds)}) IS TRUE THEN {as_kind(value, kind, cells, kinds)}"
            for when, value in self.whens
        )
        otherwise = "".join(f" ELSE {as_kind(each, kind, cells, kinds)}" for each in self._otherwise)
        return f"CASE {whens}{otherwise} END"


@dataclass(frozen=True)
class Coalesce(Expression):
    """The first value that is not missing."""

    of: tuple[Expression, ...]

    def __post_init__(self) -> None:
        if not self.of:
            raise InvalidParameter("COALESCE needs at least one value. Write COALESCE(x, 0).")

    @property
    def parts(self) -> tuple[Expression, ...]:
        return self.of

    @property
    def text(self) -> str:
        return f"COALESCE({', '.join(each.text for each in self.of)})"

    def kind(self, kinds: Kinds) -> Kind:
        return shared_kind(self.of, kinds, "COALESCE")

    def sql(self, cells: RecordCells, kinds: Kinds) -> str:
        kind = self.kind(kinds)
        return f"coalesce({', '.join(as_kind(each, kind, cells, kinds) for each in self.of)})"


@dataclass(frozen=True)
class NullIf(Expression):
    """A value, missing where it equals a constant."""

    of: Expression
    value: Expression

    @property
    def parts(self) -> tuple[Expression, ...]:
        return self.of, self.value

    @property
    def text(self) -> str:
        return f"NULLIF({self.of.text}, {self.value.text})"

    def kind(self, kinds: Kinds) -> Kind:
        kind_of_first, value = self.of.kind(kinds), self.value.kind(kinds)
        shared_kind([self.of, self.value], kinds, "NULLIF")
        if (
            isinstance(kind_of_first, NumberKind)
            and isinstance(value, NumberKind)
            and isinstance(self.value, Constant)  # any other may be missing, and then nothing equals it
        ):
            if kind_of_first.low == kind_of_first.high and value.lower == kind_of_first.lower:
                raise InvalidParameter(f"'{self.text}' is always missing. Leave it out.")
            if value.low == 0:
                return NumberKind(
                    kind_of_first.step,
                    kind_of_first.low + (kind_of_first.low == 0),
                    kind_of_first.high - (kind_of_first.high == 0),
                    True,
                )
        return kind_of_first

    def sql(self, cells: RecordCells, kinds: Kinds) -> str:
        same = equal(self.of, self.value, cells, kinds)
        return f"CASE WHEN ({same}) IS TRUE THEN NULL ELSE {self.of.sql(cells, kinds)} END"


def equal(left: Expression, right: Expression, cells: RecordCells, kinds: Kinds) -> str:
    """Whether two expressions are equal, exactly."""
    a, b = exactly_alike(left, right, cells, kinds)
    return f"{a} = {b}"


def exactly_alike(left: Expression, right: Expression, cells: RecordCells, kinds: Kinds) -> tuple[str, str]:
    """Two expressions as numbers that can be compared, without rounding either."""
    one, two = left.kind(kinds), right.kind(kinds)
    if isinstance(one, NumberKind) and isinstance(two, NumberKind):
        step = common_step(one.step, two.step)
        a, b = (
            regrid(each.sql(cells, kinds), kind, step, cells.dialect, each.text)
            for each, kind in ((left, one), (right, two))
        )
        return a, b
    kind = shared_kind([left, right], kinds, "A comparison")
    return as_kind(left, kind, cells, kinds), as_kind(right, kind, cells, kinds)


@dataclass(frozen=True)
class Least(Expression):
    """The least of some numbers; what is missing is left out of account, as in DuckDB and Spark."""

    of: tuple[Expression, ...]
    name = "LEAST"

    def __post_init__(self) -> None:
        if not self.of:
            raise InvalidParameter(f"{self.name} needs at least one number. Write {self.name}(x, 100).")

    @property
    def parts(self) -> tuple[Expression, ...]:
        return self.of

    @property
    def text(self) -> str:
        return f"{self.name}({', '.join(each.text for each in self.of)})"

    def _shared(self, kinds: Kinds) -> NumberKind:
        for each in self.of:
            expect_number(each, kinds, self.name)
        kind = shared_kind(self.of, kinds, self.name)
        assert isinstance(kind, NumberKind)
        return kind

    def kind(self, kinds: Kinds) -> Kind:
        shared, numbers = self._shared(kinds), [expect_number(each, kinds, self.name) for each in self.of]
        constants = [each for each, tree in zip(numbers, self.of, strict=True) if isinstance(tree, Constant)]
        # only a constant is never missing, so it alone bounds what is chosen
        upper = min((each.upper for each in constants), default=shared.upper)
        return on_grid(shared.step, shared.lower, min(upper, shared.upper), shared.nonzero)

    def sql(self, cells: RecordCells, kinds: Kinds) -> str:
        kind = self._shared(kinds)
        values = [as_kind(each, kind, cells, kinds) for each in self.of]
        return f"{self.name.lower()}({', '.join(values)})" if len(values) > 1 else values[0]


@dataclass(frozen=True)
class Greatest(Least):
    """The greatest of some numbers; what is missing is left out of account, as in DuckDB and Spark."""

    name = "GREATEST"

    def kind(self, kinds: Kinds) -> Kind:
        shared, numbers = self._shared(kinds), [expect_number(each, kinds, self.name) for each in self.of]
        constants = [each for each, tree in zip(numbers, self.of, strict=True) if isinstance(tree, Constant)]
        lower = max((each.lower for each in constants), default=shared.lower)
        return on_grid(shared.step, max(lower, shared.lower), shared.upper, shared.nonzero)
