"""Conditions, with three values: what is compared with something missing is neither true nor false."""

import difflib
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

from sourdine.core.errors import InvalidParameter
from sourdine.frames.expressions.functions import regrid
from sourdine.frames.expressions.tree import (
    BOTH,
    DAY_LENGTH,
    ColumnValue,
    Constant,
    DayKind,
    Expression,
    KeyKind,
    Kind,
    Kinds,
    MomentKind,
    NumberKind,
    OfOne,
    RecordCells,
    TextKind,
    TruthKind,
    check_size,
    coarse_enough,
    common_step,
    decimal,
    enclosed,
    expect_number,
    expect_truth,
    number_text,
    on_grid,
    plain_text,
    seconds_between,
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


# AND, OR and NOT of conditions, and what several of them leave of a range.


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


# Choices among expressions: CASE, COALESCE, NULLIF, the least and the greatest.


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


# Keys made from numbers and from other keys: bins, letters of a key, and capital or small letters.
#
# What becomes of a known key is worked out here, once, so that no engine has a part in it.


_MOST_EDGES = 1 << 12


@dataclass(frozen=True)
class BinOf(OfOne):
    """The bin of a number between edges; a bin holds its lower edge, and the last one both.

    What lies outside of all bins is missing. Without labels, bins are called by their edges.
    """

    edges: tuple[int | float | Fraction, ...]
    labels: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        exact = tuple(map(decimal, self.edges))
        object.__setattr__(self, "edges", exact)
        if not 2 <= len(exact) <= _MOST_EDGES or not all(a < b for a, b in pairwise(exact)):
            raise InvalidParameter("The edges of bins must rise, and be at least two, as in [0, 20, 40].")
        if self.labels and (len(self.labels) != len(exact) - 1 or len(set(self.labels)) != len(self.labels)):
            raise InvalidParameter("The labels of bins must differ, one for each bin between two edges.")

    @property
    def _edges(self) -> tuple[Fraction, ...]:
        return tuple(map(decimal, self.edges))

    @property
    def text(self) -> str:
        edges = ", ".join(map(number_text, self._edges))
        return (
            f"BINS({self.of.text}, {edges})"
            if not self.labels
            else (f"BINS({self.of.text}, {edges}, {', '.join(map(repr, self.labels))})")
        )

    def kind(self, kinds: Kinds) -> Kind:
        expect_number(self.of, kinds, "BINS")
        pairs = [(number_text(low), number_text(high)) for low, high in pairwise(self._edges)]
        names = [f"{low} to below {high}" for low, high in pairs[:-1]]
        return KeyKind(self.labels or (*names, f"{pairs[-1][0]} to {pairs[-1][1]}"))

    def sql(self, cells: RecordCells, kinds: Kinds) -> str:
        number, value = expect_number(self.of, kinds, "BINS"), self.of.sql(cells, kinds)
        steps = [math.ceil(edge / number.step) for edge in self._edges]
        last = math.floor(self._edges[-1] / number.step)
        cases = " ".join(f"WHEN {value} < {end} THEN {place}" for place, end in enumerate(steps[1:-1]))
        return (
            f"CAST(CASE WHEN {value} < {steps[0]} OR {value} > {last} OR {value} IS NULL THEN NULL "
            f"{cases} ELSE {len(steps) - 2} END AS BIGINT)"
        )


class OfKey(Expression):
    """Something made of a key that is known."""

    of: Expression

    @property
    def parts(self) -> tuple[Expression, ...]:
        return (self.of,)

    def text_of(self, key: str) -> str:
        """What becomes of a key."""
        raise NotImplementedError

    def _known(self, kinds: Kinds) -> tuple[str, ...]:
        keys = self.of.kind(kinds)
        if not isinstance(keys, KeyKind) or not isinstance(keys.keys[0], str):
            raise InvalidParameter(
                f"'{self.text}' needs a text of known keys, and '{self.of.text}' is {keys.words}. "
                "Declare the column as a category with its keys."
            )
        return tuple(str(key) for key in keys.keys)

    def kind(self, kinds: Kinds) -> Kind:
        return KeyKind(tuple(dict.fromkeys(map(self.text_of, self._known(kinds)))))

    def sql(self, cells: RecordCells, kinds: Kinds) -> str:
        texts = [self.text_of(key) for key in self._known(kinds)]
        keys = list(dict.fromkeys(texts))
        return recoded(self.of.sql(cells, kinds), [keys.index(each) for each in texts])


@dataclass(frozen=True)
class Substring(OfKey):
    """Some letters of a key, from a place on that is counted from 1."""

    of: Expression
    start: int
    length: int

    def __post_init__(self) -> None:
        if self.start < 1 or self.length < 1:
            raise InvalidParameter(
                "SUBSTRING counts letters from 1, and takes at least one. Write SUBSTRING(x, 1, 2)."
            )

    @property
    def text(self) -> str:
        return f"SUBSTRING({self.of.text}, {self.start}, {self.length})"

    def text_of(self, key: str) -> str:
        return key[self.start - 1 : self.start - 1 + self.length]


@dataclass(frozen=True)
class Letters(OfKey):
    """A key in capital or in small letters; `name` is UPPER or LOWER."""

    of: Expression
    name: str = "UPPER"

    def __post_init__(self) -> None:
        if self.name not in _LETTERS:
            raise InvalidParameter(f"Letters are changed by UPPER or LOWER. Got '{self.name}'.")

    @property
    def text(self) -> str:
        return f"{self.name}({self.of.text})"

    def text_of(self, key: str) -> str:
        return "".join(map(_LETTERS[self.name], key))


def _upper(letter: str) -> str:
    """A capital letter, never several: as in databases the capital of "ß" is not "SS"."""
    if letter == "ß":
        return "ẞ"
    return next((each for each in (letter.upper(), letter.title()) if len(each) == 1), letter)


def _lower(letter: str) -> str:
    """A small letter, whatever stands beside it: the small sigma at the end of a word is another."""
    return letter.lower()[0]


_LETTERS: dict[str, Callable[[str], str]] = {"UPPER": _upper, "LOWER": _lower}


# Whether a record has a row in a public table that is joined to it.


def matched_name(join: str) -> str:
    """Return the name of the column that tells which records a join has matched."""
    return f"matched in {join}"


@dataclass(frozen=True)
class Matched(Truth):
    """Whether the public table of a join has a row for a record; it is never missing itself.

    >>> Matched("places").text
    'MATCHED(places)'
    """

    join: str

    @property
    def parts(self) -> tuple[Expression, ...]:
        return ()

    @property
    def text(self) -> str:
        return f"MATCHED({self.join})"

    @property
    def words(self) -> str:
        return matched_name(self.join)

    def sql(self, cells: RecordCells, kinds: Kinds) -> str:
        return cells.matched(self.join)
