"""Conditions, with three values: what is compared with something missing is neither true nor false."""

import difflib
import re
from dataclasses import dataclass
from fractions import Fraction

from sourdine.core.errors import InvalidParameter
from sourdine.frames.expressions.choice import exactly_alike, shared_kind
from sourdine.frames.expressions.kinds import (
    DayKind,
    KeyKind,
    Kind,
    MomentKind,
    NumberKind,
    TextKind,
    TruthKind,
    check_size,
    common_step,
    seconds_between,
)
from sourdine.frames.expressions.tree import (
    BOTH,
    ColumnValue,
    Constant,
    Expression,
    Kinds,
    OfOne,
    RecordCells,
    enclosed,
    plain_text,
)

_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "=", "<>": "<>"}
_LOOKED_AT = 10_000  # keys, for one that may be meant
_FLAGS = {"true": True, "false": False, "yes": True, "no": False}
LONGEST_TEXT = 200


class Truth(Expression):
    """Something that is true, false or missing."""

    def kind(self, kinds: Kinds) -> Kind:
        self.check(kinds)
        return TruthKind()

    def check(self, kinds: Kinds) -> None:
        """Refuse what cannot be told."""
        for part in self.parts:
            part.kind(kinds)


@dataclass(frozen=True)
class Comparison(Truth):
    """Two numbers, dates, times or keys compared; `sign` is one of =, <>, <, <=, >, >=.

    >>> Comparison(ColumnValue("age"), ">=", Constant(18)).words
    'age at least 18'
    """

    left: Expression
    sign: str
    right: Expression

    def __post_init__(self) -> None:
        if self.sign not in _TURNED:
            raise InvalidParameter(f"A comparison is one of {', '.join(_TURNED)}. Got '{self.sign}'.")
        if isinstance(self.left, Constant) and not isinstance(self.right, Constant):
            left, right = self.right, self.left
            object.__setattr__(self, "left", left)
            object.__setattr__(self, "right", right)
            object.__setattr__(self, "sign", _TURNED[self.sign])

    @property
    def parts(self) -> tuple[Expression, ...]:
        return self.left, self.right

    @property
    def text(self) -> str:
        return f"{enclosed(self.left)} {self.sign} {enclosed(self.right)}"

    @property
    def words(self) -> str:
        words_of_sign = {">=": "at least", "<": "below", "<=": "at most", ">": "above"}.get(self.sign)
        if words_of_sign is None or not isinstance(self.right, Constant):
            return self.text
        return f"{self.left.words} {words_of_sign} {self.right.words}"

    def check(self, kinds: Kinds) -> None:
        left, right = self.left.kind(kinds), self.right.kind(kinds)
        if isinstance(left, NumberKind) and isinstance(right, NumberKind):
            if not isinstance(self.right, Constant):
                step = common_step(left.step, right.step)
                for each in (left, right):
                    check_size(4 * (each.size * each.step / step + 1), self.text)
            return
        if isinstance(left, NumberKind) != isinstance(right, NumberKind):
            whose = "numbers" if isinstance(left, NumberKind) else "some of its keys"
            raise InvalidParameter(
                f"The condition '{self.text}' does not fit its type. Compare '{self.left.text}' with {whose}."
            )
        kind = shared_kind(self.parts, kinds, f"The comparison {self.text}")
        if self.sign not in ("=", "<>") and isinstance(kind, KeyKind | TruthKind):
            raise InvalidParameter(
                f"Keys have no order, so '{self.text}' cannot be told. Name the keys that are meant, as in "
                f"{enclosed(self.left)} IN (...)."
            )
        if isinstance(kind, KeyKind) and isinstance(self.right, Constant):
            check_keys(self.left, (self.right.value,), kinds)  # type: ignore[arg-type]

    def sql(self, cells: RecordCells, kinds: Kinds) -> str:
        left, right = self.left.kind(kinds), self.right.kind(kinds)
        constant = isinstance(self.right, Constant)  # which is never missing
        if isinstance(left, NumberKind) and isinstance(right, NumberKind) and constant:
            return self._with_number(left, right.lower, cells, kinds)
        of_days = isinstance(left, DayKind) and isinstance(right, DayKind)
        if of_days and constant and isinstance(self.left, ColumnValue):
            return f"({cells.date(self.left.name)} {self.sign} {self.right.text})"
        one, two = exactly_alike(self.left, self.right, cells, kinds)
        return f"({one} {self.sign} {two})"

    def _with_number(self, kind: NumberKind, number: Fraction, cells: RecordCells, kinds: Kinds) -> str:
        """The comparison with a constant, whole steps with whole steps."""
        if isinstance(self.left, ColumnValue):
            value, start = cells.place(self.left.name), kind.low
        else:
            value, start = self.left.sql(cells, kinds), 0
        sign, exact = self.sign, number / kind.step
        at = exact.numerator // exact.denominator  # the step at the number or below
        if exact.denominator != 1:
            if sign in ("=", "<>"):
                return f"({value} {'<' if sign == '=' else '>='} {kind.low - 1 - start})"
            sign = {"<": "<=", ">=": ">"}.get(sign, sign)
        return f"({value} {sign} {max(kind.low - 1, min(kind.high + 1, at)) - start})"

    def possible(self, kinds: Kinds) -> frozenset[bool]:
        left, right = self.left.kind(kinds), self.right.kind(kinds)
        if isinstance(left, NumberKind) and isinstance(right, NumberKind):
            ends = (left.lower, left.upper), (right.lower, right.upper)
            outcomes = _compared(self.sign, *ends)
            if right.low == right.high and (right.lower / left.step).denominator != 1:
                outcomes &= {"=": frozenset({False}), "<>": frozenset({True})}.get(self.sign, BOTH)
            return outcomes
        if isinstance(left, DayKind | MomentKind) and isinstance(right, DayKind | MomentKind):
            return _compared(self.sign, seconds_between(left), seconds_between(right))
        return BOTH


def _compared(
    sign: str, left: tuple[Fraction | int, Fraction | int], right: tuple[Fraction | int, Fraction | int]
) -> frozenset[bool]:
    """What a comparison of two ranges may give."""
    if sign in (">", ">="):
        return _compared(_TURNED[sign], right, left)
    if sign == "<>":
        return frozenset(not each for each in _compared("=", left, right))
    (low, high), (least, most) = left, right
    if sign == "=":
        may, may_not = low <= most and least <= high, not low == high == least == most
    elif sign == "<":
        may, may_not = low < most, high >= least
    else:
        may, may_not = low <= most, high > least
    return frozenset([*([True] if may else []), *([False] if may_not else [])])


def check_keys(of: Expression, keys: tuple[str | int | bool, ...], kinds: Kinds) -> None:
    """Refuse keys that a column of keys does not have."""
    kind = of.kind(kinds)
    if isinstance(kind, KeyKind):
        for key in keys:
            if isinstance(key, bool) or key not in kind.keys:
                whose = "the column " if isinstance(of, ColumnValue) else ""
                texts = [each for each in kind.keys[:_LOOKED_AT] if isinstance(each, str)]
                near = difflib.get_close_matches(key, texts, n=1) if isinstance(key, str) else []
                meant = f" Did you mean {near[0]!r}?" if near else ""
                raise InvalidParameter(
                    f"A condition names the key {key!r}, which {whose}'{of.text}' does not declare.{meant} "
                    "Use one of its keys, or declare it."
                )


@dataclass(frozen=True)
class Among(OfOne, Truth):
    """Whether a value is one of some constants.

    >>> Among(ColumnValue("region"), ("north", "south")).words
    'region north or south'
    """

    keys: tuple[str | int | Fraction | bool, ...]

    def __post_init__(self) -> None:
        if not self.keys:
            raise InvalidParameter(f"'{self.of.text} IN ()' is never true. Name at least one key.")

    @property
    def text(self) -> str:
        return f"{enclosed(self.of)} IN ({', '.join(Constant(key).text for key in self.keys)})"

    @property
    def words(self) -> str:
        named = (str(key).lower() if isinstance(key, bool) else plain_text(key) for key in self.keys)
        return f"{self.of.words} {' or '.join(named)}"

    def _known(self, kind: Kind) -> tuple[str | int | bool, ...]:
        """The keys as the expression has them: "true" and "false" are those of a flag."""
        keys: tuple[str | int | bool, ...] = self.keys  # type: ignore[assignment]
        return (
            tuple(_FLAGS.get(str(key).lower(), key) for key in keys) if isinstance(kind, TruthKind) else keys
        )

    def check(self, kinds: Kinds) -> None:
        kind = self.of.kind(kinds)
        known = self._known(kind)
        match kind:
            case KeyKind():
                check_keys(self.of, known, kinds)
            case TruthKind():
                self._check_all(all(isinstance(key, bool) for key in known), "true or false")
            case TextKind():
                fit = all(isinstance(key, str) and 0 < len(key) <= LONGEST_TEXT for key in known)
                self._check_all(fit, f"texts of 1 to {LONGEST_TEXT} characters")
            case NumberKind():
                fit = all(isinstance(key, int | Fraction) and not isinstance(key, bool) for key in self.keys)
                self._check_all(fit, "numbers, or else at_least or below")
            case DayKind() | MomentKind():
                raise InvalidParameter(
                    f"'{self.of.text}' holds dates, of which a range is asked for: write {self.of.text} >= "
                    "DATE '2024-01-01' and so on, or compare with =."
                )

    def _check_all(self, fit: bool, what: str) -> None:
        if not fit:
            raise InvalidParameter(f"The condition on '{self.of.text}' does not fit its type. State {what}.")

    def sql(self, cells: RecordCells, kinds: Kinds) -> str:
        kind = self.of.kind(kinds)
        known = self._known(kind)
        if isinstance(kind, NumberKind):
            parts = [Comparison(self.of, "=", Constant(key)).sql(cells, kinds) for key in self.keys]
            return f"({' OR '.join(parts)})"
        if isinstance(self.of, ColumnValue):
            return cells.among(self.of.name, known)
        if isinstance(kind, KeyKind):
            places = sorted({kind.keys.index(key) for key in known})
            return f"({self.of.sql(cells, kinds)} IN ({', '.join(map(str, places))}))"
        sql = self.of.sql(cells, kinds)
        if isinstance(kind, TextKind):
            return f"({sql} IN ({', '.join(map(cells.dialect.literal, known))}))"
        named = sorted({bool(key) for key in known})
        return (
            f"(({sql}) = {cells.dialect.literal(named[0])})"
            if len(named) == 1
            else f"(({sql}) IS NOT NULL OR NULL)"
        )

    def possible(self, kinds: Kinds) -> frozenset[bool]:
        if isinstance(self.of.kind(kinds), NumberKind):
            every = [Comparison(self.of, "=", Constant(key)).possible(kinds) for key in self.keys]
            return frozenset.union(*every) | ({False} if len(every) > 1 else frozenset())
        return BOTH


@dataclass(frozen=True)
class Like(OfOne, Truth):
    """Whether a text is as a pattern says: % is any letters, _ is one."""

    pattern: str

    @property
    def text(self) -> str:
        return f"{enclosed(self.of)} LIKE {Constant(self.pattern).text}"

    @property
    def _regex(self) -> str:
        signs = {"%": ".*", "_": "."}
        return "".join(signs.get(letter) or re.escape(letter) for letter in self.pattern)

    def check(self, kinds: Kinds) -> None:
        kind = self.of.kind(kinds)
        texts = isinstance(kind, KeyKind) and isinstance(kind.keys[0], str)
        if not texts and not isinstance(kind, TextKind):
            raise InvalidParameter(
                f"LIKE needs a text, and '{self.of.text}' is {kind.words}. Use it with a column of texts."
            )
        if len(self.pattern) > LONGEST_TEXT or not self.pattern.isprintable():
            raise InvalidParameter(
                f"The pattern of LIKE must be at most {LONGEST_TEXT} characters without control characters."
            )

    def sql(self, cells: RecordCells, kinds: Kinds) -> str:
        kind, value = self.of.kind(kinds), self.of.sql(cells, kinds)
        if isinstance(kind, KeyKind):
            places = self._fitting(kind)
            condition = f"{value} IN ({', '.join(map(str, places))})" if places else f"{value} < 0"
            return f"({condition})"
        return f"({cells.dialect.matches(value, self._regex)})"

    def _fitting(self, kind: KeyKind) -> list[int]:
        return [place for place, key in enumerate(kind.keys) if self.fits(str(key))]

    def fits(self, text: str) -> bool:
        """Return whether a text is as the pattern says."""
        return re.fullmatch(self._regex, text, re.DOTALL) is not None

    def possible(self, kinds: Kinds) -> frozenset[bool]:
        kind = self.of.kind(kinds)
        if not isinstance(kind, KeyKind):
            return BOTH
        fitting = len(self._fitting(kind))
        return frozenset([*([True] if fitting else []), *([False] if fitting < len(kind.keys) else [])])


@dataclass(frozen=True)
class IsMissing(OfOne, Truth):
    """Whether a value is missing; it is true or false, never missing itself."""

    @property
    def text(self) -> str:
        return f"{enclosed(self.of)} IS NULL"

    def sql(self, cells: RecordCells, kinds: Kinds) -> str:
        return f"(({self.of.sql(cells, kinds)}) IS NULL)"
