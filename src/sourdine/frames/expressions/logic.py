"""AND, OR and NOT of conditions, and what several of them leave of a range."""

import math
from dataclasses import dataclass
from fractions import Fraction

from sourdine.core.errors import InvalidParameter
from sourdine.frames.expressions.kinds import DAY_LENGTH, DayKind, MomentKind, NumberKind, seconds_between
from sourdine.frames.expressions.tree import (
    BOTH,
    Constant,
    Expression,
    Kinds,
    OfOne,
    RecordCells,
    enclosed,
    expect_truth,
)
from sourdine.frames.expressions.truths import Comparison, Truth


@dataclass(frozen=True)
class All(Truth):
    """Whether all of some conditions hold."""

    of: tuple[Expression, ...]
    name = "AND"

    def __post_init__(self) -> None:
        if not self.of:
            raise InvalidParameter(f"{self.name} needs at least one condition. Leave it out.")

    @property
    def parts(self) -> tuple[Expression, ...]:
        return self.of

    @property
    def text(self) -> str:
        return f" {self.name} ".join(enclosed(each) for each in self.of)

    @property
    def words(self) -> str:
        match self.of:
            case (
                Comparison(left, ">=", Constant() as low),
                Comparison(again, "<", Constant() as high),
            ) if left == again and self.name == "AND":
                return f"{left.words} from {low.words} to below {high.words}"
        words = [each.words if not isinstance(each, All) else f"({each.words})" for each in self.of]
        return f" {self.name.lower()} ".join(words)

    def check(self, kinds: Kinds) -> None:
        for each in self.of:
            expect_truth(each, kinds, self.name)

    def sql(self, cells: RecordCells, kinds: Kinds) -> str:
        return "(" + f" {self.name} ".join(f"({each.sql(cells, kinds)})" for each in self.of) + ")"

    def possible(self, kinds: Kinds) -> frozenset[bool]:
        every = [each.possible(kinds) for each in self.of]
        if any(True not in each for each in every):
            return frozenset({False})
        if all(each == {True} for each in every):
            return frozenset({True})
        return frozenset({False}) if _empty_range(self.of, kinds) else BOTH


def _empty_range(conditions: tuple[Expression, ...], kinds: Kinds) -> bool:
    """Whether comparisons of one expression with constants leave no number."""
    for tree in dict.fromkeys(each.left for each in conditions if isinstance(each, Comparison)):
        low, high = range_of(tree, conditions, kinds)
        if low is not None and high is not None and low > high:
            return True
    return False


def range_of(
    tree: Expression, conditions: tuple[Expression, ...], kinds: Kinds
) -> tuple[int | None, int | None]:
    """The least and the greatest step, day or second of an expression for which all conditions may hold."""
    kind = tree.kind(kinds)
    if isinstance(kind, NumberKind):
        low, high, step = kind.low, kind.high, kind.step
    elif isinstance(kind, DayKind | MomentKind):
        low, high, step = kind.first, kind.last, Fraction(1)
    else:
        return None, None
    for each in conditions:
        if isinstance(each, All) and each.name == "AND":
            inner = range_of(tree, each.of, kinds)
            low = low if inner[0] is None else max(low, inner[0])
            high = high if inner[1] is None else min(high, inner[1])
        if not isinstance(each, Comparison) or each.left != tree or not isinstance(each.right, Constant):
            continue
        right = each.right.kind(kinds)
        if isinstance(right, DayKind | MomentKind):
            exact = Fraction(seconds_between(right)[0], DAY_LENGTH if isinstance(kind, DayKind) else 1)
        else:
            assert isinstance(right, NumberKind)
            exact = right.lower / step
        floor, ceiling = math.floor(exact), math.ceil(exact)
        if each.sign in (">=", "="):
            low = max(low, ceiling)
        if each.sign in ("<=", "="):
            high = min(high, floor)
        if each.sign == ">":
            low = max(low, floor + 1)
        if each.sign == "<":
            high = min(high, ceiling - 1)
    return low, high


@dataclass(frozen=True)
class AnyOf(All):
    """Whether at least one of some conditions holds."""

    name = "OR"

    def possible(self, kinds: Kinds) -> frozenset[bool]:
        every = [each.possible(kinds) for each in self.of]
        if any(False not in each for each in every):
            return frozenset({True})
        return frozenset({False}) if all(each == {False} for each in every) else BOTH


@dataclass(frozen=True)
class Not(OfOne, Truth):
    """Whether a condition does not hold; missing where the condition is."""

    @property
    def text(self) -> str:
        return f"NOT {enclosed(self.of)}"

    @property
    def words(self) -> str:
        return f"not ({self.of.words})"

    def check(self, kinds: Kinds) -> None:
        expect_truth(self.of, kinds, "NOT")

    def sql(self, cells: RecordCells, kinds: Kinds) -> str:
        return f"(NOT ({self.of.sql(cells, kinds)}))"

    def possible(self, kinds: Kinds) -> frozenset[bool]:
        return frozenset(not each for each in self.of.possible(kinds))
