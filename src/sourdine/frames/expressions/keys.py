"""Keys made from numbers and from other keys: bins, letters of a key, and capital or small letters.

What becomes of a known key is worked out here, once, so that no engine has a part in it.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from sourdine.core.errors import InvalidParameter
from sourdine.frames.expressions.choice import recoded
from sourdine.frames.expressions.kinds import KeyKind, Kind, decimal, number_text
from sourdine.frames.expressions.tree import Expression, Kinds, OfOne, RecordCells, expect_number

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
