"""Values that a question in Python names: what holds, what has keys, and what has an order."""

from dataclasses import dataclass
from datetime import date
from typing import Any

from sourdine.core.errors import InvalidParameter
from sourdine.frames.expressions import (
    All,
    Among,
    AnyOf,
    Case,
    ColumnValue,
    Comparison,
    Constant,
    DayKind,
    Expression,
    IsMissing,
    Kinds,
    Letters,
    Like,
    MomentKind,
    Not,
    NumberKind,
    Substring,
)
from sourdine.frames.expressions.times import parse_time
from sourdine.tables.asking.asked import AskedOf


@dataclass(frozen=True, eq=False)
class AskedColumn:
    """A column, or what is computed of some, of a declared table."""

    tree: Expression
    kinds: Kinds

    def __post_init__(self) -> None:
        self.tree.kind(self.kinds)  # what could have no value is refused here

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.tree.text}, {self.tree.kind(self.kinds).words}>"

    def __bool__(self) -> bool:
        return bool(self.tree)  # which explains & and |

    def __hash__(self) -> int:
        return hash(self.tree)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        offered = ", ".join(each for each in dir(type(self)) if not each.startswith("_"))
        raise AttributeError(
            f"'{self.tree.text}' is {self.tree.kind(self.kinds).words}, of which '{name}' cannot be asked. "
            f"It has {offered}."
        )

    @property
    def column_name(self) -> str:
        """The name of a declared column."""
        if isinstance(self.tree, ColumnValue):
            return self.tree.name
        raise InvalidParameter(
            f"'{self.tree.text}' is computed, so it has no name yet. Ask through it, as in .mean(), or "
            "declare "
            "it as a column."
        )

    def is_missing(self) -> "AskedTruth":
        """Whether it is missing."""
        return self._truth(IsMissing(self.tree))

    def __eq__(self, other: object) -> "AskedTruth":  # type: ignore[override]
        return self._compared("=", other)

    def __ne__(self, other: object) -> "AskedTruth":  # type: ignore[override]
        return self._compared("<>", other)

    def _compared(self, sign: str, other: object) -> "AskedTruth":
        right = self._of(other)
        if isinstance(right, Constant) and sign in ("=", "<>") and not isinstance(right.value, date):
            kind = self.tree.kind(self.kinds)
            if not isinstance(kind, NumberKind):
                among = Among(self.tree, (right.value,))  # type: ignore[arg-type]
                return self._truth(among if sign == "=" else Not(among))
        return self._truth(Comparison(self.tree, sign, right))

    def _truth(self, tree: Expression) -> "AskedTruth":
        return AskedTruth(tree, self.kinds)

    def _of(self, other: object) -> Expression:
        """Another column, or a constant: beside dates a text is one."""
        if isinstance(other, AskedColumn):
            if other.kinds is not self.kinds and other.kinds != self.kinds:
                raise InvalidParameter("The two columns are of unlike tables. Take both from the same one.")
            return other.tree
        if isinstance(other, str) and isinstance(self.tree.kind(self.kinds), DayKind | MomentKind):
            return Constant(parse_time(other, isinstance(self.tree.kind(self.kinds), MomentKind)))
        if hasattr(other, "item") and not isinstance(other, date):
            other = other.item()
        return Constant(other)  # type: ignore[arg-type]


class AskedTruth(AskedColumn):
    """True, false or missing: a flag, or a condition."""

    def __and__(self, other: object) -> "AskedTruth":
        return self._joined(All, other)

    def __or__(self, other: object) -> "AskedTruth":
        return self._joined(AnyOf, other)

    def __invert__(self) -> "AskedTruth":
        return self._truth(Not(self.tree))

    def _joined(self, make: type[All], other: object) -> "AskedTruth":
        parts: list[Expression] = []
        for each in (self.tree, self._of(other)):
            parts += each.of if type(each) is make else [each]
        return self._truth(make(tuple(parts)))

    def proportion(self) -> AskedOf:
        """The share of records for which it is true."""
        return AskedOf("mean", {"column": Case(((self.tree, Constant(1)), (Not(self.tree), Constant(0))))})


class AskedOrdered(AskedColumn):
    """What comes before or after something else."""

    def __lt__(self, other: object) -> AskedTruth:
        return self._compared("<", other)

    def __le__(self, other: object) -> AskedTruth:
        return self._compared("<=", other)

    def __gt__(self, other: object) -> AskedTruth:
        return self._compared(">", other)

    def __ge__(self, other: object) -> AskedTruth:
        return self._compared(">=", other)

    def between(self, lower: object, upper: object) -> AskedTruth:
        """Whether it is at least one thing and at most another."""
        return (self >= lower) & (self <= upper)


class AskedKeys(AskedColumn):
    """Keys from a known list."""

    def is_in(self, *keys: str | int) -> AskedTruth:
        """Whether it is one of some keys."""
        return self._truth(Among(self.tree, keys))

    def like(self, pattern: str) -> AskedTruth:
        """Whether it is as a pattern says: % is any letters, _ is one."""
        return self._truth(Like(self.tree, pattern))

    def upper(self) -> "AskedKeys":
        """In capital letters."""
        return AskedKeys(Letters(self.tree, "UPPER"), self.kinds)

    def lower(self) -> "AskedKeys":
        """In small letters."""
        return AskedKeys(Letters(self.tree, "LOWER"), self.kinds)

    def substring(self, start: int, length: int) -> "AskedKeys":
        """Some of its letters, the first being 1."""
        return AskedKeys(Substring(self.tree, start, length), self.kinds)

    def top(self, k: int) -> AskedOf:
        """The k keys that most units have, in order."""
        return AskedOf("top", {"column": self.tree}, {"k": k})


class AskedText(AskedColumn):
    """Texts that nobody lists: keys are chosen privately."""

    def is_in(self, *keys: str) -> AskedTruth:
        """Whether it is one of some texts."""
        return self._truth(Among(self.tree, keys))

    def like(self, pattern: str) -> AskedTruth:
        """Whether it is as a pattern says: % is any letters, _ is one."""
        return self._truth(Like(self.tree, pattern))

    def top(self, k: int) -> AskedOf:
        """The k texts that most units have, in order."""
        return AskedOf("top", {"column": self.tree}, {"k": k})
