"""A ladder of round numbers, each with two digits, that every number has its place on, however large."""

from dataclasses import dataclass
from fractions import Fraction

from sourdine.frames.source import Source

_PER_DECADE = 90  # 1.1, 1.2 ... 9.9, 10
_ALMOST = 1 - 1e-12  # so that a float just above a round number does not count as the next


@dataclass(frozen=True)
class NumberLadder:
    """Rungs 0 and, on both sides of it, all numbers with two digits from 10^first to 10^last.

    Places rise with the numbers. A place above the middle holds the numbers up to its rung and above the one
    before; below it the mirror image; what lies beyond the ends belongs to the last place. So the place of -x
    is as far from the middle as that of x, on the other side.

    >>> ladder = NumberLadder(0, 3)
    >>> ladder.places, [str(ladder.below(place)) for place in (0, 270, 271, 272, 362, 542)]
    (543, ['-990', '0', '0', '1', '10', '1000'])
    """

    first: int
    last: int

    @property
    def _side(self) -> int:
        return _PER_DECADE * (self.last - self.first) + 1

    @property
    def places(self) -> int:
        """How many places there are."""
        return 2 * self._side + 1

    def below(self, place: int) -> Fraction:
        """The number that all at this place or before lie at or below, but for what is beyond the ends."""
        up = place - self._side
        if up >= 0:
            return Fraction(0) if up == 0 else self._rung(up - 1)
        return -self._rung(-up - 2) if up < -1 else Fraction(0)

    def _rung(self, step: int) -> Fraction:
        decade, digits = divmod(step - 1, _PER_DECADE)
        if step == 0:
            return Fraction(10) ** self.first
        return (digits + 11) * Fraction(10) ** (self.first + decade - 1)

    def place(self, source: Source, name: str) -> str:
        """The place of a column's number in SQL, and -1 for what is none; it never raises.

        A number is brought to the end of its decade at most before it is rounded, so that nothing overflows.
        """
        dialect = source.dialect
        value = dialect.double(dialect.quoted(name), source.types[name])
        low, high = dialect.literal(float("-inf")), dialect.literal(float("inf"))
        size, almost = f"abs({value})", dialect.literal(_ALMOST)
        steps = f"CASE WHEN {size} <= {dialect.literal(10.0**self.first)} THEN 0 "
        for decade in range(self.last - self.first):
            end, tenth = (dialect.literal(10.0 ** (self.first + decade + i)) for i in (1, -1))
            digits = dialect.nearest(f"ceil(least({size}, {end}) / {tenth} * {almost})", "INTEGER")
            steps += f"WHEN {size} <= {end} THEN {_PER_DECADE * decade - 10} + {digits} "
        steps += f"ELSE {self._side - 1} END"
        return (
            f"CASE WHEN {value} > {low} AND {value} < {high} THEN "
            f"{self._side} + CAST(sign({value}) AS INTEGER) * (1 + {steps}) ELSE -1 END"
        )
