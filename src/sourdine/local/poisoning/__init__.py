"""What people who send made-up reports can do to an estimate, and signs that somebody did."""

from sourdine.local.poisoning.reach import Reach, attackers_reach, has_reach
from sourdine.local.poisoning.signs import (
    RowWatch,
    Sign,
    alarms,
    signs_of_counts,
    signs_of_periods,
    signs_of_rows,
)

__all__ = [
    "Reach",
    "RowWatch",
    "Sign",
    "alarms",
    "attackers_reach",
    "has_reach",
    "signs_of_counts",
    "signs_of_periods",
    "signs_of_rows",
]
