"""Cells are rounded to what their intervals are worth, and intervals only ever grow."""

import math
import re

from hypothesis import given
from hypothesis import strategies as some

from sourdine.tables.crosstab import cell_text

NUMBERS = some.floats(-1e12, 1e12)


@given(NUMBERS, some.floats(1e-9, 1e9), some.floats(1e-9, 1e9), some.booleans())
def test_an_interval_is_rounded_outwards_and_stays_near(
    value: float, below: float, above: float, percent: bool
) -> None:
    low, high = value - below, value + above
    text = cell_text(value, low, high, percent=percent)
    shown = [float(part.replace(",", "")) for part in text.interval.split(" to ")]
    factor = 100 if percent else 1
    wide = factor * (high - low)
    slack = 1e-9 * max(abs(factor * low), abs(factor * high), 1)
    assert shown[0] <= factor * low + slack
    assert shown[1] >= factor * high - slack
    assert shown[1] - shown[0] <= 1.7 * wide + slack
    number = float(re.sub(r"[,\N{NO-BREAK SPACE}%]", "", text.value))
    assert abs(number - factor * value) <= wide / 2 + slack


def test_counts_keep_their_digits() -> None:
    assert str(cell_text(19927.0, 19911.0, 19943.0, whole=True)) == "19,927 (19,911 to 19,943)"
    assert str(cell_text(-3.0, -9.0, 3.0, whole=True)) == "-3 (-9 to 3)"


def test_digits_are_those_of_the_width() -> None:
    assert str(cell_text(36813, 36681, 36945)) == "36,810 (36,680 to 36,950)"
    assert str(cell_text(-0.0004, -0.9, 0.8)) == "-0.0 (-0.9 to 0.8)".replace("-0.0 ", "0.0 ", 1)
    assert str(cell_text(1.0, math.nan, math.nan)) == "1"
    assert str(cell_text(2.5, -math.inf, math.inf)) == "2.5 (-∞ to ∞)"


def test_a_wide_interval_of_a_share_is_told_truly() -> None:
    """In tens of per cent, 1 to 99 would be 0 to 100, as if nothing were known."""
    told = str(cell_text(0.5, 0.01, 0.99, percent=True)).replace("\N{NO-BREAK SPACE}", " ")
    assert told == "50 % (1 to 99)"
