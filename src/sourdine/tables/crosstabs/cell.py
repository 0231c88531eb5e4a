"""One cell of a crosstab as people read it: rounded to what its interval is worth, whose ends go outwards."""

import math
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal

from sourdine.core.format import endless

_GAP = "\N{NO-BREAK SPACE}"
_NOTHING, _UNKNOWN = "–", "nothing can be said"
_EXACT = Context(prec=400)
_FEW = 3  # a width that begins with 1 or 2 is worth one digit more


@dataclass(frozen=True)
class CellText:
    """A value, and its interval where it has one."""

    value: str
    interval: str = ""

    def __str__(self) -> str:
        return f"{self.value} ({self.interval})" if self.interval else self.value


def cell_text(
    value: float,
    lower: float,
    upper: float,
    *,
    percent: bool = False,
    whole: bool = False,
    blind: bool = False,
) -> CellText:
    r"""A value and its interval. Counts keep all their digits, so that they add up as they are shown.

    >>> print(str(cell_text(0.54361, 0.54012, 0.54693, percent=True)).replace("\N{NO-BREAK SPACE}", " "))
    54.4 % (54.0 to 54.7)
    >>> print(cell_text(36813, 36681, 36945), cell_text(18279, 18276, 18282, whole=True))
    36,810 (36,680 to 36,950) 18,279 (18,276 to 18,282)
    >>> print(cell_text(5, 0, 10, blind=True), cell_text(3, -math.inf, 9.5))
    – (nothing can be said) 3.0 (-∞ to 9.5)
    """
    if math.isnan(value):
        return CellText(_NOTHING)
    if blind:
        return CellText(_NOTHING, _UNKNOWN)
    first, low, high = (_exact(x) * (100 if percent else 1) for x in (value, lower, upper))
    ends = [each for each in (first, low, high) if each.is_finite()]
    place = max((digits_of(each) for each in ends), default=0)
    if not whole and low.is_finite() and high.is_finite() and high > low:
        worth = _worth(high - low)
        # in tens of per cent, 1 to 99 would be told as 0 to 100: all that there is
        place = min(place, max(worth, 0) if percent else worth)
    shown = _written(first, place, ROUND_HALF_EVEN)
    if percent:
        shown = f"{shown}{_GAP}%"
    if low.is_nan():
        return CellText(shown)
    return CellText(shown, f"{_written(low, place, ROUND_FLOOR)} to {_written(high, place, ROUND_CEILING)}")


def worth_showing(value: float, lower: float, upper: float) -> tuple[Decimal, Decimal, Decimal]:
    """A value and the ends of its interval, each with the digits that the interval is worth.

    One digit more than in a cell of a crosstab, since what is listed is also compared and drawn.

    >>> [f"{each:,f}" for each in worth_showing(185863.4, 182012.7, 189614.1)]
    ['185,900', '182,000', '189,700']
    """
    first, low, high = (_exact(x) for x in (value, lower, upper))
    if not all(each.is_finite() for each in (first, low, high)) or high <= low:
        return first, low, high
    place = min(max(map(digits_of, (first, low, high))), _worth(high - low) + 1)
    return (
        _rounded(first, place, ROUND_HALF_EVEN),
        _rounded(low, place, ROUND_FLOOR),
        _rounded(high, place, ROUND_CEILING),
    )


def _exact(number: float) -> Decimal:
    return Decimal(math.copysign(math.inf, number) if endless(number) else repr(number))


def digits_of(number: Decimal) -> int:
    """How many digits stand behind the point."""
    exponent = number.normalize().as_tuple().exponent
    return max(0, -exponent) if isinstance(exponent, int) else 0


def _worth(width: Decimal) -> int:
    """The last place worth showing, from the point on: negative ones are tens and hundreds."""
    first = width.as_tuple().digits[0]
    return -width.adjusted() + (1 if first < _FEW else 0)


def _written(number: Decimal, place: int, rounding: str) -> str:
    if not number.is_finite():
        return "∞" if number > 0 else "-∞"
    return f"{_rounded(number, place, rounding):,.{max(place, 0)}f}"


def _rounded(number: Decimal, place: int, rounding: str) -> Decimal:
    return number.quantize(Decimal(1).scaleb(-place), rounding=rounding, context=_EXACT) + 0
